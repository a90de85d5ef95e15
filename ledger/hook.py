"""The program that a harness's hooks start for each event: `python -P -m ledger.hook claude-code [--home DIR] …`.

It does what `loopledger hook` does, without loading the other commands, since a harness waits for it. It prints nothing
to standard output, which would go to the model.
"""

import argparse
import os
import sys

from ledger.capture.taps.claude_code import BEFORE_AN_ACT, record_hook
from ledger.errors import InputError
from ledger.events.canonical import decode_json
from ledger.home import open_ledger

_LARGEST = 64 * 1024 * 1024
_BLOCKS = 2
_SAYS_SO = 1


def record_event(content: bytes, *, home: str | None, store: str | None, fail_closed: bool) -> int:
    """Record one event of Claude Code and give the exit status.

    0 recorded; 1 not recorded, Claude Code shows the message and goes on; 2 not recorded and `fail_closed`, it does not
    do what it was about to.
    """
    name = None
    try:
        payload = _payload(content)
        name = payload.get("hook_event_name") if isinstance(payload, dict) else None
        with open_ledger(home, store) as ledger:
            record_hook(ledger.recorder, payload, run=os.environ.get("LOOPLEDGER_RUN"))
    except Exception as error:  # noqa: BLE001 - whatever it was, the harness must get a status that it understands
        sys.stderr.write(f"loopledger: {name or 'the event'} was not recorded: {error}\n")
        return _BLOCKS if fail_closed and (name is None or name in BEFORE_AN_ACT) else _SAYS_SO
    return 0


def _payload(content: bytes) -> object:
    if len(content) > _LARGEST:
        raise InputError(f"expected an event of at most {_LARGEST} bytes on standard input, found more")
    try:
        return decode_json(content)
    except ValueError as error:
        raise InputError(f"expected an event as JSON on standard input, found: {error}") from error


def read_event() -> bytes:
    """The event on standard input; one byte more than the most where it is too large."""
    return sys.stdin.buffer.read(_LARGEST + 1)


def main() -> int:
    """Record the event on standard input."""
    parser = argparse.ArgumentParser(prog="python -P -m ledger.hook")
    parser.add_argument("harness", choices=["claude-code"])
    parser.add_argument("--home", metavar="DIR")
    parser.add_argument("--store", metavar="URL")
    parser.add_argument("--fail-closed", action="store_true")
    given = parser.parse_args()
    return record_event(read_event(), home=given.home, store=given.store, fail_closed=given.fail_closed)


if __name__ == "__main__":
    sys.exit(main())
