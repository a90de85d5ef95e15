"""Findings are events: raised once, judged by people, found while a session runs."""

import queue
import threading
import time
from pathlib import Path

import pytest

from ledger.audit import discover
from ledger.audit.report import Report
from ledger.errors import InputError
from ledger.events.review import FindingRaised
from ledger.views.auditing import AuditFollower
from ledger.views.findings import find, give_verdict, keep, kept, measured
from tests.ledger.audit.histories import History, Told

DETECTORS = [discover()[name] for name in ("control_tampering", "duplicated_effect")]


def twice(session: str = "main") -> list[Told]:
    """A payment, made twice."""
    return [
        {"type": "session.started", "@session": session, "harness": "own"},
        *(told | {"@session": session} for call in "ab" for told in payment(call)),
    ]


def payment(call: str) -> list[Told]:
    """One payment."""
    return [
        {
            "type": "tool_call.requested",
            "call_id": call,
            "tool": "pay",
            "effect_class": "irreversible",
            "arguments": {"to": "x", "amount": 5},
        },
        {"type": "tool_call.settled", "call_id": call, "outcome": "returned", "result": "paid"},
    ]


def test_a_finding_is_raised_once(tmp_path: Path) -> None:
    with History(tmp_path) as history:
        history.add(twice())
        found = history.findings(DETECTORS)
        assert [one.detector for one in keep(history.ledger.recorder, found)] == ["duplicated_effect"]
        assert keep(history.ledger.recorder, found) == []
        assert history.findings(DETECTORS) == found  # what was raised changes nothing
        events = [record.event for record in history.ledger.store.read("main", names=(FindingRaised.TYPE,))]
    assert [one.witnesses for one in events if isinstance(one, FindingRaised)] == [("main#2", "main#4")]


def test_several_auditors_at_once_raise_a_finding_once(tmp_path: Path) -> None:
    with History(tmp_path) as history:
        history.add(twice())
        found = history.findings(DETECTORS)
        new: list[int] = []
        threads = [
            threading.Thread(target=lambda: new.append(len(keep(history.ledger.recorder, found))))
            for _ in range(8)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(new) == [0] * 7 + [1]
        assert len(list(history.ledger.store.read("main", names=(FindingRaised.TYPE,)))) == 1


def test_what_people_say_is_measured_as_precision(tmp_path: Path) -> None:
    with History(tmp_path) as history:
        recorder = history.ledger.recorder
        for number in range(4):
            history.add(twice(f"s{number}"))
        keep(recorder, history.findings(DETECTORS))
        first, second, third, _ = kept(history.ledger.store)
        give_verdict(recorder, first, "dismissed", "alice", "a test")
        give_verdict(recorder, first, "confirmed", "alice", None)  # the last word counts
        give_verdict(recorder, second, "dismissed", "bob", None)
        give_verdict(recorder, third, "duplicate", "bob", None)
        assert find(history.ledger.store, second.id[:9]).verdict == "dismissed"
        with pytest.raises(InputError, match="no finding has an id that starts with 'zz'"):
            find(history.ledger.store, "zz")
        done = measured(kept(history.ledger.store))["duplicated_effect"]
        report = history.report(DETECTORS)
    assert (done.runs, done.findings, done.precision.hits, done.precision.of) == (4, 4, 1, 2)
    low, high = done.precision.interval()
    assert round(low, 3) == 0.095 and round(high, 3) == 0.905
    assert len(report.findings) == 4 and len(report.open()) == 2


def test_a_run_is_flagged_while_every_action_passes_its_own_check(tmp_path: Path) -> None:
    approved: list[Told] = [
        {
            "type": "approval.decided",
            "approval_id": f"q{call}",
            "call_id": call,
            "outcome": "approved",
            "decided_by": "human",
        }
        for call in "ab"
    ]
    events = twice()
    with History(tmp_path) as history:
        history.add(events, prefix="unasked-")
        history.add([*events[:2], approved[0], *events[2:4], approved[1], *events[4:]], prefix="asked-")
        report: Report = history.report(DETECTORS)
    metrics = report.metrics()
    assert metrics["flagged"] == 2 and metrics["flagged_by_no_action"]["hits"] == 1
    runs = {run["session"]: [one["why"] for one in run["failed"]] for run in metrics["runs"]}
    assert runs == {"asked-main": [], "unasked-main": ["pay: irreversible", "pay: irreversible"]}


def test_live_findings_come_while_the_session_runs(tmp_path: Path) -> None:
    came: queue.Queue[str] = queue.Queue()
    with History(tmp_path) as history:
        history.add(twice()[:3])
        with AuditFollower(history.ledger.recorder, DETECTORS, tell=lambda one: came.put(one.detector)):
            history.add(twice()[3:])  # a query: over the rows of the session
            assert came.get(timeout=120) == "duplicated_effect"
            history.add(
                [
                    {
                        "type": "tool_call.requested",
                        "call_id": "k",
                        "tool": "Bash",
                        "arguments": {"command": "rm .claude/hooks/guard.py"},
                    },
                    {"type": "tool_call.started", "call_id": "k"},
                ]
            )  # a fold
            assert came.get(timeout=120) == "control_tampering.control"
            deadline = time.monotonic() + 120
            while len(kept(history.ledger.store)) < 2 and time.monotonic() < deadline:
                time.sleep(0.01)
        assert {one.detector for one in kept(history.ledger.store)} == {
            "duplicated_effect",
            "control_tampering.control",
        }
        assert came.empty()
