"""Work that takes long, in a process of its own that lets all others go first: the pages stay quick beside it.

`python -m webui.working`, with one line of JSON on its standard input: the kind of work, the home, and what it needs.
It answers in lines of JSON: how far it is, then one with the result. It ends when its standard input does.
"""

import contextlib
import json
import os
import select
import signal
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ledger.audit import chosen, discover
from ledger.audit.rules import read_rules
from ledger.cli.auditing import run
from ledger.cli.records import outline
from ledger.errors import LedgerError
from ledger.home import Ledger, open_ledger
from ledger.importers._intake import import_paths
from ledger.lake import Lake
from ledger.lake.connection import FOLDER
from ledger.lake.manifest import Manifest
from ledger.store import verify
from ledger.views.backtesting import backtest, save
from ledger.views.events import EventsView
from ledger.views.findings import keep
from ledger.views.findings_list import FindingsView
from ledger.views.lake import LakeFollower, lake_feed
from ledger.views.search import SearchView
from ledger.views.sessions import SessionsView
from ledger.views.standing import StandingView
from replay.ahead import LEAST, Ahead
from webui.scoring import score

Tell = Callable[[dict[str, Any]], None]
"""Tells how far the work is."""

_NICE, _NICE_OF_LISTS = 15, 8
_TOLD_EVERY_S = 0.2
_PAUSE_S = 0.2
_FOLDED_EVERY_S = 10.0
_MOST_PROBLEMS = 2000
_MOST_FAILED = 5


def main() -> None:
    """Do one piece of work."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a Ctrl-C is for the server, which ends us
    asked = json.loads(sys.stdin.buffer.readline())
    _give_way(_NICE_OF_LISTS if asked["kind"] == "follow" else _NICE)
    try:
        with open_ledger(asked["home"]) as ledger:
            result = _KINDS[asked["kind"]](ledger, asked, _Teller())
    except LedgerError as error:
        result = {"failed": str(error)}
    except Exception:  # noqa: BLE001 - the server logs it and tells who waits
        _say({"fault": traceback.format_exc()})
        result = {"failed": "The server failed at this; its log tells more."}
    if result:
        _say({"result": result})


def _give_way(nice: int) -> None:
    """Take less of the processor than others, and never from one that is at work."""
    os.nice(nice)
    if sys.platform == "linux":
        with contextlib.suppress(OSError):
            os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))


def _say(line: dict[str, Any]) -> None:
    try:
        sys.stdout.write(json.dumps(line) + "\n")
        sys.stdout.flush()
    except BrokenPipeError:
        os._exit(1)


class _Teller:
    """Tells how far it is, a few times a second; leaves when nobody listens any more."""

    def __init__(self) -> None:
        self._next = 0.0

    def __call__(self, progress: dict[str, Any]) -> None:
        now = time.monotonic()
        if now >= self._next:
            self._next = now + _TOLD_EVERY_S
            if _is_left():
                os._exit(0)
            _say({"progress": progress})


def _is_left(wait_s: float = 0.0) -> bool:
    """Whether the server has closed our input, as it does when it ends, however it ends."""
    return bool(select.select([0], [], [], wait_s)[0]) and not os.read(0, 1)


def _import(ledger: Ledger, asked: dict[str, Any], tell: Tell) -> dict[str, Any]:
    """Import the files of a folder by their names in it."""
    os.chdir(asked["folder"])
    names = sorted(str(path) for path in Path().rglob("*") if path.is_file())
    begun = 0

    def moves(path: Path, lines: int) -> None:
        nonlocal begun
        begun += lines == 0
        tell({"done": begun - 1, "total": len(names), "note": f"{path.name[:80]} line {lines}"})

    return import_paths(ledger.recorder, names, progress=moves, survive=True).as_json()


def _verify(ledger: Ledger, asked: dict[str, Any], tell: Tell) -> dict[str, Any]:
    """Verify a session or the whole ledger, and note it in the list of sessions."""
    session = asked["session"]
    total = ledger.store.last_position() if session is None else ledger.store.head(session).seq
    found = verify(
        ledger.store,
        session,
        progress=lambda records: tell({"done": records, "total": total, "note": "records"}),
    )
    with SessionsView(ledger.home, ledger.store) as view:
        view.catch_up()
        view.note_verification(found.problems, session)
    return {
        "ok": found.ok,
        "records": found.records,
        "sessions": found.sessions,
        "problems": [problem._asdict() for problem in found.problems[:_MOST_PROBLEMS]],
        "unlisted": found.unlisted + max(0, len(found.problems) - _MOST_PROBLEMS),
    }


def _export(ledger: Ledger, asked: dict[str, Any], tell: Tell) -> dict[str, Any]:
    """Bring the lake up to the ledger; it is made where there is none."""
    del asked
    total = ledger.store.last_position()
    lake = Lake(ledger.home / FOLDER)
    done = lake.export(
        lake_feed(ledger.store),
        progress=lambda position: tell({"done": position, "total": total, "note": "records"}),
    )
    lake.clear()
    return {"position": done.position, "events": done.events, "files": done.files}


def _audit(ledger: Ledger, asked: dict[str, Any], tell: Tell) -> dict[str, Any]:
    """Run the detectors that are on over a session or all, and raise what is new."""
    del tell
    detectors = chosen(discover(ledger.home), (), everything=False)
    session = asked["session"]
    report = run(ledger, detectors, None if session is None else [session])
    new = keep(ledger.recorder, report.findings)
    return {
        "sessions": report.sessions,
        "detectors": len(report.detectors),
        "found": len(report.findings),
        "new": len(new),
        "broken": [f"{one.detector}: {one.error}" for one in report.failures[:_MOST_FAILED]],
    }


def _backtest(ledger: Ledger, asked: dict[str, Any], tell: Tell) -> dict[str, Any]:
    """Hold rules against all past sessions, and keep the answer."""
    del tell
    wanted = read_rules(asked["name"], asked["rules"], asked["name"])
    old = read_rules(asked["name"], asked["against"], asked["name"]) if asked["against"] else None
    return {"kept": save(ledger.recorder, ledger.home, backtest(ledger.store, wanted, old)).name}


def _scorecard(ledger: Ledger, asked: dict[str, Any], tell: Tell) -> dict[str, Any]:
    """Answer the six questions about a session, with more time for the proofs than a page has."""
    total = ledger.store.head(asked["session"]).seq
    return score(
        ledger.store,
        asked["session"],
        asked["seconds"],
        lambda seq: tell({"done": seq, "total": total, "note": "records, each read and then proved twice"}),
    )


def _constraints(ledger: Ledger, asked: dict[str, Any], tell: Tell) -> dict[str, Any]:
    """Work out how the constraints of a session stood, and keep it for the pages."""
    total = ledger.store.head(asked["session"]).seq
    with StandingView(ledger.home, ledger.store) as view:
        view.catch_up()
        answer = view.work_out(
            asked["session"], lambda seq: tell({"done": seq, "total": total, "note": "records"})
        )
    return {"seq": answer.seq, "rules": answer.rules, "cuts": answer.cuts}


def _follow(ledger: Ledger, asked: dict[str, Any], tell: Tell) -> dict[str, Any]:
    """Keep lists, search index, states of long sessions and a lake up with the ledger, until the server ends."""
    del tell
    folder = ledger.home / FOLDER
    reached, folded, is_followed, next_fold = -1, 0, False, 0.0
    ahead = Ahead(ledger)
    with (
        contextlib.ExitStack() as stack,
        SessionsView(ledger.home, ledger.store) as sessions,
        EventsView(ledger.home, ledger.store, outline) as events,
        FindingsView(ledger.home, ledger.store) as findings,
        SearchView(ledger.home, ledger.store) as index,
        contextlib.suppress(_LeftError),
    ):

        def lists_first(position: int = 0) -> None:
            """Between two batches of the index, which takes longer: the lists."""
            _leave(position)
            sessions.catch_up(_leave)
            events.catch_up(_leave)
            findings.catch_up(_leave)

        while True:
            try:
                last = ledger.store.last_position()
                if last > reached:
                    lists_first()
                    index.catch_up(lists_first)
                    reached = last
                if reached > folded and time.monotonic() >= next_fold:
                    folded = reached
                    ahead.catch_up(sessions.long(LEAST), lists_first)
                    next_fold = time.monotonic() + _FOLDED_EVERY_S
            except (LedgerError, OSError) as error:
                _say({"failed": str(error)})  # it is tried again
            if not is_followed and (asked["lake"] or Manifest(folder).exists()):
                stack.enter_context(LakeFollower(ledger.store, folder))
                is_followed = True
            if _is_left(_PAUSE_S):
                break
    return {}


class _LeftError(Exception):
    """The server has ended."""


def _leave(position: int) -> None:
    """Between two batches: end when the server has ended."""
    del position
    if _is_left():
        raise _LeftError


_KINDS: dict[str, Callable[[Ledger, dict[str, Any], Tell], dict[str, Any]]] = {
    "import": _import,
    "verify": _verify,
    "export": _export,
    "audit": _audit,
    "backtest": _backtest,
    "scorecard": _scorecard,
    "constraints": _constraints,
    "follow": _follow,
}

if __name__ == "__main__":
    main()
