"""The levels `state` and `request`: equal for what was recorded, named where it is not."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings

from ledger.events.model_call import ModelCallAnswered
from ledger.home import Ledger
from replay import proving
from replay.fold import advance
from replay.proving import prove_requests, prove_states
from replay.timeline import session_timeline
from tests.commands import record_session, run

from .histories import SESSION, Step, Writer, fresh_ledger, histories, write
from .wire import conversation, record


@settings(max_examples=30)
@given(steps=histories())
def test_every_history_is_in_the_same_state_by_every_fold(steps: list[Step]) -> None:
    with fresh_ledger() as ledger:
        last = write(Writer(ledger), steps)
        report = prove_states(ledger.store, SESSION)
        assert report.divergence is None
        assert report.facts["states"] == last
        assert report.facts["digest"] == session_timeline(ledger.store, SESSION).at().digest()


def test_a_fold_that_is_not_pure_is_named_by_record_and_place(
    ledger: Ledger, writer: Writer, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(writer, [("message", n % 3, 0) for n in range(10)] + [("declare", 1, 1), ("message", 1, 1)])
    folded = advance

    def impure(state: Any, record: Any, past: Any) -> None:
        folded(state, record, past)
        if record.seq == 11:
            state.put("constraints", "rule 1", {"text": "something else"})

    monkeypatch.setattr(proving, "advance", impure)
    divergence = prove_states(ledger.store, SESSION).divergence
    assert divergence is not None
    assert (divergence.kind, divergence.seq) == ("projector", 11)
    assert str(divergence.pointer).startswith("/constraints/rule 1")


def test_requests_of_a_recording_are_rebuilt_whole(ledger: Ledger, tmp_path: Path) -> None:
    session = record(ledger, tmp_path, conversation())
    report = prove_requests(ledger.store, session)
    assert report.divergence is None
    assert [one.match for one in report.requests] == ["raw"] * 3
    assert report.facts["bodies_equal"] == 3


def test_messages_are_proved_where_a_source_shows_no_more(ledger: Ledger, writer: Writer) -> None:
    write(writer, [("message", 1, 0), ("request", 1, 0), ("request", 2, 5)])
    report = prove_requests(ledger.store, SESSION)
    assert report.divergence is None
    assert [(one.match, one.rules) for one in report.requests] == [("canonical", ("messages-only",))]
    assert report.facts["not_checked"] == {"its source did not show it": 1}


def test_a_wrong_digest_is_a_divergence_at_its_record(ledger: Ledger, writer: Writer) -> None:
    write(writer, [("message", 1, 0)])
    writer.add(writer.request("wrong", completeness="body", body_digest="0" * 64))
    writer.flush()
    divergence = prove_requests(ledger.store, SESSION).divergence
    assert divergence is not None
    assert (divergence.kind, divergence.seq) == ("request", 2)


@pytest.mark.parametrize("level", ["state", "request"])
def test_the_command_says_equal_and_exits_with_0(tmp_path: Path, level: str) -> None:
    record_session(tmp_path, "live-1")
    result = run(tmp_path, "replay", "live-1", "--level", level, "--json")
    assert result.exit_code == 0
    report = json.loads(result.stdout)
    assert (report["verdict"], report["level"], report["divergence"]) == ("equal", level, None)
    assert "equal" in run(tmp_path, "replay", "live-1", "--level", level).stdout


def test_the_command_exits_with_1_and_2(tmp_path: Path) -> None:
    with fresh_ledger(tmp_path) as ledger:
        writer = Writer(ledger)
        writer.add(writer.request("wrong", completeness="body", body_digest="0" * 64))
        writer.flush()
    result = run(tmp_path, "replay", SESSION)
    assert result.exit_code == 1
    assert f"{SESSION}#1" in result.stdout
    assert run(tmp_path, "replay", "nothing").exit_code == 2
    assert run(tmp_path, "replay", SESSION, "--level", "wrong").exit_code == 2


def test_a_fuller_answer_after_a_second_request_of_its_call_is_in_the_conversation(
    ledger: Ledger, writer: Writer
) -> None:
    write(writer, [("message", 1, 0), ("request", 1, 0)])
    message = {"role": "assistant", "content": "half"}
    writer.add(writer.answer("model 1", message), writer.request("model 1"))
    fuller = writer.answer("model 1", {**message, "content": "whole"}, revision=1)
    writer.add(fuller)
    writer.flush()
    state = session_timeline(ledger.store, SESSION).at()
    assert isinstance(fuller, ModelCallAnswered)
    assert [item.digest for item in state.since()] == [fuller.message.digest]
    assert state.get("usage", "model_calls") == 1
