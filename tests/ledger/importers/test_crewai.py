"""CrewAI: dumps of the event bus, and checkpoints with the events up to them."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ledger.events.model_call import ModelCallAnswered, ModelCallFailed, ModelCallRequested
from ledger.events.recovery import CheckpointTaken, DamageFound
from ledger.events.session import SessionEnded, SessionForked
from ledger.events.tool_call import ToolCallRequested, ToolCallSettled, ToolCallStarted
from ledger.home import Ledger
from ledger.importers._frameworks.printed import unprinted
from ledger.store import verify
from tests.ledger.importers.fixtures import FIXTURES
from tests.ledger.importers.framework_traces import contexts, out_of_shape, recognized, survives, written
from tests.ledger.importers.plain_traces import TRACES, content, events, imported, records, shared

CASES = FIXTURES / "crewai"
DUMP = CASES / "events" / "events.json.gz"
HAND = CASES / "by-hand" / "events.json.gz"
SAVES = sorted((CASES / "checkpoints").glob("?_*.json.gz"))
BODIES = [json.loads(gzip.decompress(DUMP.read_bytes())), json.loads(gzip.decompress(SAVES[1].read_bytes()))]


def test_tokens_are_those_of_the_calls_and_the_report_says_where_the_crew_counts_twice(
    ledger: Ledger,
) -> None:
    report = imported(ledger, HAND)
    assert report["tokens"] == {"input": 70, "output": 20, "cache_read": 40, "cache_write": 0}
    (note,) = report["notes"]
    assert "reports 260 tokens" in note
    assert "add up to 130" in note
    assert (report["model_calls"], report["failed_calls"]) == (2, 1)
    assert report["unknown"] == {"something_new": 1}
    assert [one.outcome for one in events(ledger, SessionEnded)] == ["completed"]


def test_tools_are_joined_to_calls_by_their_arguments(ledger: Ledger) -> None:
    imported(ledger, HAND)
    asked = {one.call_id: content(ledger, one.arguments) for one in events(ledger, ToolCallRequested)}
    assert asked == {"call_1": {"shelf": "A"}, "call_2": {"shelf": "B"}}
    assert [one.call_id for one in events(ledger, ToolCallStarted)] == ["call_2", "call_1"]
    first, second = events(ledger, ToolCallSettled)
    assert (first.call_id, first.outcome, first.duration_ms) == ("call_1", "returned", 250)
    assert (second.call_id, second.outcome, second.error) == ("call_2", "failed", "KeyError('no shelf B')")


def test_a_request_that_holds_printed_parts_says_so(ledger: Ledger) -> None:
    imported(ledger, HAND)
    first, second, third = events(ledger, ModelCallRequested)
    assert (first.completeness, second.completeness, third.completeness) == (
        "messages",
        "partial",
        "messages",
    )
    assert any("printed" in one for one in second.not_seen)
    assert contexts(ledger)["c3"] == [{"role": "user", "content": "Write it down"}]
    assert [one.error for one in events(ledger, ModelCallFailed)] == ["timed out"]


def test_an_event_names_the_one_that_led_to_it(ledger: Ledger) -> None:
    imported(ledger, HAND)
    causes = {record.type: record.cause for record in records(ledger)}
    assert causes["model_call.failed"] is not None
    assert causes["session.ended"] is not None


def test_a_real_dump_tells_the_calls_of_the_run_once(ledger: Ledger) -> None:
    report = imported(ledger, DUMP)
    assert report["tokens"] == {"input": 70, "output": 20, "cache_read": 40, "cache_write": 0}
    assert (report["notes"], report["unknown"], report["orphan_results"]) == ([], {}, 0)
    settled = {one.call_id: (one.outcome, one.error) for one in events(ledger, ToolCallSettled)}
    assert settled == {"call_1": ("returned", None), "call_2": ("failed", "KeyError('no shelf B')")}
    assert len(events(ledger, ModelCallRequested)) == 3
    (failed,) = events(ledger, ModelCallFailed)
    assert failed.error is not None
    assert "no ink" in failed.error
    assert [one.outcome for one in events(ledger, SessionEnded)] == ["completed"]
    assert verify(ledger.store).problems == []


def test_checkpoints_of_one_run_add_only_what_is_new_and_a_branch_is_a_fork(ledger: Ledger) -> None:
    for path in SAVES:
        imported(ledger, path)
    answered = [
        (record.session, record.event.call_id)
        for record in records(ledger)
        if isinstance(record.event, ModelCallAnswered)
    ]
    run = answered[0][0]
    assert [session for session, _ in answered] == [run, run, f"{run}:again"]
    assert len({call for _, call in answered}) == 3
    assert len(events(ledger, CheckpointTaken)) == 1
    (fork,) = events(ledger, SessionForked)
    assert fork.origin == run
    assert fork.origin_item is not None
    assert fork.origin_seq is not None
    assert verify(ledger.store).problems == []


def test_each_file_is_taken_by_this_importer_alone() -> None:
    assert recognized(CASES, "crewai") == {path: ["crewai"] for path in (*SAVES, DUMP, HAND)}


@pytest.mark.parametrize("body", BODIES, ids=["events", "checkpoint"])
def test_a_torn_file_gives_what_stands_before_the_tear(ledger: Ledger, tmp_path: Path, body: Any) -> None:
    raw = written(body).encode()
    torn = tmp_path / "torn.json"
    torn.write_bytes(raw[: len(raw) * 2 // 3])
    assert imported(ledger, torn)["format"] == "crewai"
    assert events(ledger, DamageFound)
    assert verify(ledger.store).problems == []


@given(st.text())
def test_a_printed_text_is_read_back(text: str) -> None:
    assert unprinted(repr(text)) == text


@given(st.sampled_from(BODIES).flatmap(out_of_shape))
@settings(max_examples=25, suppress_health_check=list(HealthCheck), deadline=None)
def test_values_out_of_shape_break_nothing(value: Any) -> None:
    def write(path: Path) -> None:
        path.write_text(written(value), encoding="utf-8")

    survives(write, "crewai", "events.json")


def test_real_traces_give_the_calls_that_went_over_the_wire(ledger: Ledger) -> None:
    dump, wire, saved = shared(
        "frameworks/crewai/events-plain.json.gz",
        "frameworks/crewai/proxy-crewai-plain.jsonl",
        "frameworks/crewai/checkpoints",
    )
    report = imported(ledger, dump)
    calls = len(wire.read_text(encoding="utf-8").splitlines())
    assert (report["model_calls"], report["tool_calls"], report["error_results"]) == (calls, 7, 1)
    tokens = report["tokens"]
    assert tokens["input"] + tokens["cache_read"] + tokens["output"] == 3144
    assert (report["orphan_results"], report["unanswered_calls"], report["unknown"]) == (0, 0, {})
    saves = sorted(saved.glob("*.json"), key=lambda path: "p-none" not in path.name)
    for path in saves:
        imported(ledger, path)
    assert len(events(ledger, ModelCallAnswered)) == calls + 2
    taken = recognized(TRACES / "frameworks", "crewai")
    assert taken == {path: ["crewai"] for path in (*saves, dump)}
