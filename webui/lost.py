"""What a server says of an answer that it could not record: it has been sent, so nothing else can be done."""

import threading

import typer

from ledger.cli.terminal import visible


class Lost:
    """Tells of each on standard error, and counts them. Threads share it."""

    def __init__(self) -> None:
        self.count = 0
        """Parts of answers (a head, a chunk, an end) that were not recorded since the start."""
        self._lock = threading.Lock()

    def __call__(self, error: BaseException) -> None:
        """Tell of one."""
        with self._lock:
            self.count += 1
        typer.echo(f"loopledger: an answer could not be recorded: {visible(str(error))}", err=True)
