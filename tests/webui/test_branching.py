"""Branches by wire: a recorded beginning from the ledger, then another answer or a live model, recorded."""

import json
from pathlib import Path
from typing import Any

import pytest

from ledger.errors import InputError
from ledger.events.model_call import ModelCallAnswered, ModelCallRequested
from ledger.events.recovery import BranchOpened
from ledger.events.replaying import ReplayAnswered
from ledger.events.session import SessionForked
from ledger.home import open_ledger
from ledger.store import verify
from replay.branching import Branch
from replay.report import Report
from tests.scripted_model import Script, ScriptedModel, Step, Text
from tests.webui.proxied import RUN, recorded, script
from tests.webui.rerunning import Case, command, counting
from tests.webui.test_rerun import can_hold_back, case
from webui.branching import run_branch
from webui.rerun import Rerun

__all__ = ["can_hold_back", "case"]

OTHER = {
    "id": "msg_other",
    "type": "message",
    "role": "assistant",
    "model": "scripted",
    "content": [],
    "stop_reason": "end_turn",
    "usage": {"input_tokens": 1, "output_tokens": 1},
}


def sse(words: str) -> bytes:
    """An answer of Anthropic's, as a stream."""
    events: list[dict[str, Any]] = [
        {"type": "message_start", "message": OTHER},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": words}},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 1}},
        {"type": "message_stop"},
    ]
    return "".join(f"event: {one['type']}\ndata: {json.dumps(one)}\n\n" for one in events).encode()


def seqs(home: Path, kind: type) -> list[int]:
    """Where a kind of event stands in the recorded session."""
    with open_ledger(home) as ledger:
        return [record.seq for record in ledger.store.read(RUN) if isinstance(record.event, kind)]


def branched(case: Case, branch: Branch, live: Script, *arguments: str) -> tuple[Report, str, int]:
    """Run a branch: report, what the agent printed, and how often the live model was asked."""
    printed = case.home.parent / "printed.txt"
    with ScriptedModel(live) as model, open_ledger(case.home) as ledger, printed.open("wb") as output:
        how = Rerun(command(*arguments), case.workspace, output=output.fileno())
        report = run_branch(ledger, RUN, branch, how, upstream=[model.url])
        assert verify(ledger.store).problems == []
    return report, printed.read_text(), len(model.exchanges)


def test_a_branch_has_a_recorded_beginning_and_lives_on(case: Case) -> None:
    case.record(counting(2), "count the apples")
    at = seqs(case.home, ModelCallAnswered)[0]
    live = script(Step([Text("I would rather not.")]))
    report, printed, asked = branched(case, Branch(at, {}, "live"), live, "count the apples")
    assert (report.verdict, printed, asked) == ("equal", "I would rather not.\n", 1)
    assert [one.source for one in report.requests] == ["recorded", "live"]
    session = report.facts["replay_session"]
    (forked,) = recorded(case.home, SessionForked)
    (opened,) = recorded(case.home, BranchOpened)
    assert (forked.origin, forked.origin_seq) == (RUN, at)
    assert (opened.branch, opened.at_seq) == (session, at)
    with open_ledger(case.home) as ledger:
        events = [record.event for record in ledger.store.read(session)]
    assert [event.context_length for event in events if isinstance(event, ModelCallRequested)] == [1, 3]
    assert len([event for event in events if isinstance(event, ModelCallAnswered)]) == 2
    assert [event.source for event in events if isinstance(event, ReplayAnswered)] == ["recorded", "live"]
    assert case.counted() == 0


def test_another_answer_is_given_and_recorded_in_the_branch(case: Case) -> None:
    case.record(counting(2), "count the apples")
    second = seqs(case.home, ModelCallRequested)[1]
    at = seqs(case.home, ModelCallAnswered)[-1]
    branch = Branch(at, {second: sse("Enough of it.")}, "live")
    report, printed, asked = branched(case, branch, script(), "count the apples")
    assert (report.verdict, printed, asked) == ("equal", "Enough of it.\n", 0)
    assert [one.source for one in report.requests] == ["recorded", "live"]
    with open_ledger(case.home) as ledger:
        answers = [
            record.event
            for record in ledger.store.read(report.facts["replay_session"])
            if isinstance(record.event, ModelCallAnswered)
        ]
        assert len(answers) == 2
        assert b"Enough of it." in ledger.store.content(answers[1].message.digest)


def test_blocked_models_are_not_asked(case: Case) -> None:
    case.record(counting(2), "count the apples")
    at = seqs(case.home, ModelCallAnswered)[0]
    report, _, asked = branched(case, Branch(at, {}, "blocked"), script(), "count the apples")
    assert (asked, report.blocked) == (0, 1)
    assert [one.source for one in report.requests] == ["recorded", "blocked"]


def test_a_beginning_that_differs_stops_the_branch(case: Case) -> None:
    case.record(counting(2), "count the apples")
    at = seqs(case.home, ModelCallAnswered)[1]
    words = ["--fake", "7 so far", "count the apples"]
    report, _, asked = branched(case, Branch(at, {}, "live"), script(), *words)
    assert (report.verdict, asked) == ("diverged", 0)
    assert report.divergence is not None and report.divergence.pointer == "/messages/2/content/0/content"


def test_an_answer_to_what_is_no_request_is_a_mistake(case: Case) -> None:
    case.record(counting(1), "count the apples")
    with pytest.raises(InputError, match="expected a model request to give another answer to"):
        branched(case, Branch(3, {1: b"{}"}, "live"), script(), "count the apples")
    with pytest.raises(InputError, match="comes after the branch at 3"):
        branched(case, Branch(3, {9: b"{}"}, "live"), script(), "count the apples")


def test_the_command_branches(case: Case, tmp_path: Path) -> None:
    case.record(counting(2), "count the apples")
    requests, answers = seqs(case.home, ModelCallRequested), seqs(case.home, ModelCallAnswered)
    other = tmp_path / "other.sse"
    other.write_bytes(sse("Enough of it."))
    options = ["--at", str(answers[-1]), "--answer", f"{requests[0]}={other}"]
    status, report, errors = case.replay("count the apples", options=options, word="branch")
    assert (status, errors) == (0, "Enough of it.\n")
    assert (report["level"], report["verdict"]) == ("branch", "equal")
    for options, words in (
        (["--at", "3", "--answer", "x=y"], "expected SEQ=FILE"),
        (["--at", "3", "--answer", "3=/no/such"], "/no/such cannot be read"),
        (["--at", "99"], "does not exist"),
    ):
        status, _, errors = case.replay("count the apples", options=options, word="branch")
        assert (status, words in errors) == (2, True), errors
