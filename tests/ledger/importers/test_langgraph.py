"""The LangGraph importer on real runs: answers, refusals, sub-graphs, failures, compactions, requests, causes."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ledger.events.approval import ApprovalAsked, ApprovalDecided, ApprovalUsed
from ledger.events.compaction import CompactionDone
from ledger.events.delegation import DelegationReturned, DelegationStarted
from ledger.events.input import MessageReceived
from ledger.events.model_call import ModelCallAnswered, ModelCallRequested
from ledger.events.session import SessionEnded, SessionResumed, SessionStarted
from ledger.events.tool_call import ToolCallRequested, ToolCallSettled
from ledger.home import Ledger, open_ledger
from replay.context import rebuild_request
from replay.conversation import decode_content
from tests.ledger.importers.langgraph_cases import (
    brought_in,
    case,
    check_stale_approval,
    events,
    found,
)


@pytest.fixture
def ledger(tmp_path: Path, clock: Callable[[], str]) -> Iterator[Ledger]:
    """A fresh ledger."""
    with open_ledger(tmp_path / "home", clock=clock) as opened:
        yield opened


def test_a_fork_shows_both_answers_and_under_which_its_call_ran(ledger: Ledger) -> None:
    brought_in(ledger, case("stale-approval"))
    check_stale_approval(ledger)


def test_a_refusal_stands_in_for_the_call_and_an_edit_runs_with_other_arguments(ledger: Ledger) -> None:
    brought_in(ledger, case("refused"))
    outcomes = {event.call_id: event.outcome for event in events(ledger, ToolCallSettled)}
    assert outcomes == {"call_first": "denied", "call_pumps": "returned", "call_second": "returned"}
    assert [event.call_id for event in events(ledger, ApprovalUsed)] == ["call_second"]
    asked = {event.call_id: event for event in events(ledger, ApprovalAsked)}
    decided = {event.call_id: event for event in events(ledger, ApprovalDecided)}
    assert [decided[call].how for call in ("call_first", "call_second")] == ["reject", "edit"]
    assert decided["call_second"].arguments_digest != asked["call_second"].arguments_digest
    assert [event.how for event in events(ledger, SessionResumed)] == ["new input"]


def test_a_subgraph_tells_its_own_question_once(ledger: Ledger) -> None:
    brought_in(ledger, case("subgraphs"))
    (started,), (returned,) = events(ledger, DelegationStarted), events(ledger, DelegationReturned)
    assert started.to_session == returned.from_session and started.how == "spawn"
    (question, asked), *more = found(ledger, ApprovalAsked)
    assert not more and question.session == started.to_session and asked.call_id is None
    assert [event.outcome for event in events(ledger, ApprovalDecided)] == ["unknown"]
    ended = {record.session: event for record, event in found(ledger, SessionEnded)}
    assert ended[started.to_session or ""].outcome == "completed"
    (failed,) = [event for event in ended.values() if event.outcome == "failed"]
    assert "the printer is on fire" in (failed.reason or "")
    assert len(events(ledger, MessageReceived)) == 2


def test_a_subagent_is_a_session_of_its_own_with_the_call_that_started_it(ledger: Ledger) -> None:
    report = brought_in(ledger, case("one-run"))
    (started,) = events(ledger, DelegationStarted)
    child = next(event for event in events(ledger, SessionStarted) if event.parent is not None)
    assert (started.call_id, child.parent_call, child.parent) == (
        "call_expert",
        "call_expert",
        report["sessions"][0],
    )
    assert [event.returned for event in events(ledger, DelegationReturned)] == ["result"]


def test_what_no_checkpoint_holds_yet_is_told(ledger: Ledger) -> None:
    report = brought_in(ledger, case("crashed-tool"))
    outcomes = {event.call_id: event for event in events(ledger, ToolCallSettled)}
    assert outcomes["call_good"].outcome == "returned"
    assert outcomes["call_bad"].outcome == "failed" and "locked" in (outcomes["call_bad"].error or "")
    assert report["unanswered_calls"] == 0


def test_a_compaction_shows_the_context_before_and_after(ledger: Ledger) -> None:
    brought_in(ledger, case("one-run"))
    first = events(ledger, CompactionDone)[0]
    assert first.evidence == "logged" and first.summary is not None
    assert first.context_before is not None and first.context_after is not None
    before, after = ledger.store.context(first.context_before), ledger.store.context(first.context_after)
    assert (len(before), len(after)) == (first.messages_before, first.messages_after)
    assert first.summary.digest in after and first.summary.digest not in before
    assert "offer 77 is read" in decode_content(ledger.store.content(first.summary.digest))["content"]


def test_messages_that_vanish_without_a_word_are_an_inferred_compaction(ledger: Ledger) -> None:
    brought_in(ledger, case("chat-dicts"))
    assert [event.evidence for event in events(ledger, CompactionDone)] == ["inferred", "inferred"]
    assert [event.tool for event in events(ledger, ToolCallRequested)] == ["look"] * 3


def test_the_request_is_the_state_before_the_answer(ledger: Ledger) -> None:
    brought_in(ledger, case("delta"))
    lengths = []
    for record, event in found(ledger, ModelCallRequested):
        request = rebuild_request(ledger.store, record.session, record.seq)
        assert request.messages[-1]["content"].endswith("?")
        assert event.completeness == "messages" and "tools" in event.not_seen
        lengths.append(len(request.messages))
    assert sorted(lengths) == [1, 3, 5, 7, 7, 9]  # the fork asks a fourth question of its own
    assert [event.call_id for event in events(ledger, ModelCallAnswered)] == [
        event.call_id for event in events(ledger, ModelCallRequested)
    ]


def test_the_causes_lead_from_the_result_to_the_request(ledger: Ledger) -> None:
    report = brought_in(ledger, case("one-run"))
    session = {record.seq: record for record in ledger.store.read(report["sessions"][0])}
    for record in session.values():
        if isinstance(record.event, ToolCallSettled):
            assert isinstance(record.cause, int)
            call = session[record.cause]
            assert isinstance(call.event, ToolCallRequested) and call.event.call_id == record.event.call_id
            assert isinstance(call.cause, int)
            assert isinstance(session[call.cause].event, ModelCallAnswered)
