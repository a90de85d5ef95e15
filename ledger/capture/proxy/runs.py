"""All runs behind a proxy, and the thread that writes them."""

import re
import threading
import time
from collections import OrderedDict
from collections.abc import Callable

from ledger.capture.proxy.live import LiveExchange
from ledger.capture.proxy.run import About, Outcome, Run
from ledger.capture.proxy.writer import Writer, Written
from ledger.effects.loop_policy import LoopPolicy
from ledger.errors import InputError
from ledger.protocols.wire import HttpExchange
from ledger.recorder import Recorder

_RUN_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_RUNS_KEPT = 2_000


class Runs:
    """Begins exchanges. Threads may share it; `close` ends the sessions that are open."""

    def __init__(
        self,
        recorder: Recorder,
        *,
        monotonic: Callable[[], float] = time.monotonic,
        lost: Callable[[BaseException], None] = lambda error: None,
        policy: LoopPolicy | None = None,
    ) -> None:
        self._recorder = recorder
        self._monotonic = monotonic
        self._lost = lost
        self._policy = policy
        self._writer = Writer()
        self._lock = threading.Lock()
        self._runs: OrderedDict[str, Run] = OrderedDict()

    def exchange(self, run: str, exchange: HttpExchange) -> LiveExchange:
        """An exchange of a run, about to begin. Raises InputError for what cannot be the id of one."""
        live = LiveExchange(self._run(run), self._writer, self._recorder.ids(), exchange)
        live.lost = self._lost
        return live

    def describe(self, run: str, about: About) -> None:
        """Say what a run is, before its first exchange. Raises InputError for what cannot be the id of one."""
        self._run(run).about = about

    def end(
        self, run: str, reason: str = "the recording ended", outcome: Outcome = "unknown"
    ) -> Written | None:
        """End the session of a run; None where none is open."""
        with self._lock:
            found = self._runs.pop(run, None)
        return None if found is None else self._writer.submit(found, lambda: found.ending(reason, outcome))

    def close(self) -> None:
        """End all sessions, and write what waits."""
        for name in list(self._runs):
            self.end(name, "the proxy was stopped")
        self._writer.close()

    def _run(self, name: str) -> Run:
        if not _RUN_NAME.fullmatch(name):
            raise InputError(f"expected a run id of letters, digits, '.', '_' and '-', found {name[:100]!r}")
        with self._lock:
            known = self._runs.get(name)
            if known is None:
                known = self._runs[name] = Run(self._recorder, name, self._monotonic, self._policy)
                if len(self._runs) > _RUNS_KEPT:
                    _, oldest = self._runs.popitem(last=False)
                    self._writer.submit(oldest, lambda: oldest.ending("idle"))
            self._runs.move_to_end(name)
            return known
