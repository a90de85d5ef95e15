"""Two sessions of the same run say so to each other, once."""

from typing import Any

from ledger.capture import joining
from ledger.capture.joining import join_sessions
from ledger.events import Draft, Event
from ledger.events.session import SessionForked, SessionLinked, SessionStarted
from ledger.events.tool_call import ToolCallRequested
from ledger.home import Ledger


def session(ledger: Ledger, name: str, calls: list[str], *more: Event, run: str | None = None) -> str:
    """A session with calls of these ids."""
    keeper = ledger.recorder.keeper()
    events: list[Event] = [SessionStarted(harness="test"), *more]
    events += [
        ToolCallRequested(call_id=call, tool="look", arguments=keeper.json({}, "arguments")) for call in calls
    ]
    drafts = [Draft(one, correlation=run) for one in events]
    ledger.recorder.append(name, drafts, keeper)
    return name


def links(ledger: Ledger, name: str) -> list[SessionLinked]:
    """What a session says of others."""
    return [one.event for one in ledger.store.read(name) if isinstance(one.event, SessionLinked)]


def test_shared_calls_link_both_sessions_and_a_second_call_adds_nothing(ledger: Ledger) -> None:
    journal = session(ledger, "journal", ["toolu_aaaa", "toolu_bbbb", "toolu_cccc"])
    live = session(ledger, "live", ["toolu_bbbb", "toolu_aaaa"])
    session(ledger, "other", ["toolu_xxxx"])
    first = join_sessions(ledger.recorder, live)
    assert [(one.other, one.matched, one.only_here, one.only_there, one.is_new) for one in first] == [
        (journal, 2, 0, 1, True)
    ]
    assert [(one.matched, one.only_here) for one in links(ledger, journal)] == [(2, 1)]
    head = ledger.store.last_position()
    assert [one.is_new for one in join_sessions(ledger.recorder, journal)] == [False]
    assert ledger.store.last_position() == head


def test_a_tap_is_found_by_the_id_that_its_session_extends_and_a_run_by_its_name(ledger: Ledger) -> None:
    session(ledger, "abc", [])
    session(ledger, "abc.hooks", [])
    session(ledger, "mcp", ["1"], run="run-1")
    session(ledger, "proxy", ["1"], run="run-1")
    assert [one.how for one in join_sessions(ledger.recorder, "abc")] == [("session_id",)]
    found = join_sessions(ledger.recorder, "mcp")
    assert [(one.other, one.how, one.matched) for one in found] == [("proxy", ("run_id",), 0)]


def test_a_fork_is_not_the_same_run_told_twice(ledger: Ledger) -> None:
    origin = session(ledger, "origin", ["toolu_aaaa"])
    fork = session(ledger, "fork", ["toolu_aaaa"], SessionForked(origin=origin))
    assert join_sessions(ledger.recorder, origin) == []
    assert join_sessions(ledger.recorder, fork, [origin]) == []


def test_parts_give_the_same_as_one_look(ledger: Ledger, monkeypatch: Any) -> None:
    calls = [f"toolu_{number:05}" for number in range(50)]
    session(ledger, "one", calls)
    session(ledger, "two", [*calls[10:], "toolu_more"])
    monkeypatch.setattr(joining, "_PART", 7)
    found = join_sessions(ledger.recorder, "one")
    assert [(one.matched, one.only_here, one.only_there) for one in found] == [(40, 10, 1)]
