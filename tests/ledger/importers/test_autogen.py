"""AutoGen: event logs, messages of a team, and saved states."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ledger.events.delegation import DelegationStarted
from ledger.events.model_call import ModelCallAnswered, ModelCallRequested
from ledger.events.recovery import DamageFound
from ledger.events.session import SessionEnded
from ledger.events.tool_call import ToolCallRequested, ToolCallSettled, ToolCallStarted
from ledger.home import Ledger
from ledger.store import verify
from tests.ledger.importers.fixtures import FIXTURES
from tests.ledger.importers.framework_traces import contexts, out_of_shape, recognized, survives, written
from tests.ledger.importers.plain_traces import TRACES, events, imported, shared

CASES = FIXTURES / "autogen"
LOG = CASES / "log" / "event-log.json"
MESSAGES = CASES / "messages" / "team-messages.json"
STATE = CASES / "state" / "team-state.json"
BODIES = {path: json.loads(path.read_text(encoding="utf-8")) for path in (LOG, MESSAGES, STATE)}


def test_a_log_gives_the_requests_as_they_stand_in_it(ledger: Ledger) -> None:
    report = imported(ledger, LOG)
    asked = events(ledger, ModelCallRequested)
    logged = [one["messages"] for one in BODIES[LOG] if one["type"] == "LLMCall"]
    seen = contexts(ledger)
    for event, messages in zip(asked, logged, strict=True):
        listed = seen[event.call_id]
        assert listed == messages[len(messages) - len(listed) :]
        assert (event.system is not None) or listed == messages
        assert "parameters" in event.not_seen
    assert report["tokens"] == {"input": 170, "output": 26, "cache_read": 58, "cache_write": 0}
    assert report["unknown"] == {}


def test_an_entry_of_no_known_type_is_kept_and_told(ledger: Ledger, tmp_path: Path) -> None:
    path = tmp_path / "event-log.json"
    path.write_text(written([*BODIES[LOG], {"type": "SomethingNew", "agent_id": None}]), encoding="utf-8")
    assert imported(ledger, path)["unknown"] == {"SomethingNew": 1}


def test_tools_of_a_log_are_joined_by_arguments_and_settled_by_the_message_that_knows(ledger: Ledger) -> None:
    imported(ledger, LOG)
    assert [one.call_id for one in events(ledger, ToolCallRequested)] == ["call_1", "call_2", "call_3"]
    assert [one.call_id for one in events(ledger, ToolCallStarted)] == [
        "call_1",
        "call_2",
    ]  # a failure leaves no entry of its own
    ends = {one.call_id: (one.outcome, one.orphan) for one in events(ledger, ToolCallSettled)}
    assert ends == {
        "call_1": ("returned", False),
        "call_2": ("returned", False),
        "call_3": ("failed", False),
    }


def test_a_log_that_stops_after_a_tool_leaves_its_outcome_open_and_may_go_on(
    ledger: Ledger, tmp_path: Path
) -> None:
    path = tmp_path / "event-log.json"
    entries = BODIES[LOG]
    first_tool = [one["type"] for one in entries].index("ToolCall")
    path.write_text(written(entries[: first_tool + 1]), encoding="utf-8")
    imported(ledger, path)
    assert [one.outcome for one in events(ledger, ToolCallSettled)] == ["unknown"]
    path.write_text(written(entries), encoding="utf-8")
    imported(ledger, path)
    settled = [one.call_id for one in events(ledger, ToolCallSettled)]
    assert sorted(settled) == ["call_1", "call_2", "call_3"]
    assert len(events(ledger, ModelCallAnswered)) == 3
    assert verify(ledger.store).problems == []


@pytest.mark.parametrize("path", [MESSAGES, STATE])
def test_messages_and_states_tell_the_calls_without_their_requests(ledger: Ledger, path: Path) -> None:
    report = imported(ledger, path)
    assert (report["model_calls"], report["tool_calls"], report["error_results"]) == (3, 3, 1)
    assert report["tokens"]["input"] == 228
    assert {one.completeness for one in events(ledger, ModelCallRequested)} == {"none"}
    assert [(one.to_agent, one.call_id) for one in events(ledger, DelegationStarted)] == [
        ("gardener", "call_1")
    ]
    ended = events(ledger, SessionEnded)
    assert [one.reason for one in ended] == (["Text 'DONE' mentioned"] if path == MESSAGES else [])


def test_each_file_is_taken_by_this_importer_alone() -> None:
    assert recognized(CASES, "autogen") == {path: ["autogen"] for path in (LOG, MESSAGES, STATE)}


@pytest.mark.parametrize("path", [LOG, MESSAGES, STATE])
def test_a_torn_file_gives_what_stands_before_the_tear(ledger: Ledger, tmp_path: Path, path: Path) -> None:
    raw = path.read_bytes()
    torn = tmp_path / path.name
    torn.write_bytes(raw[: len(raw) * 2 // 3])
    report = imported(ledger, torn)
    assert report["format"] == "autogen"
    assert events(ledger, DamageFound)
    assert verify(ledger.store).problems == []


@given(st.sampled_from(sorted(BODIES)).flatmap(lambda path: out_of_shape(BODIES[path])))
@settings(max_examples=25, suppress_health_check=list(HealthCheck), deadline=None)
def test_values_out_of_shape_break_nothing(value: Any) -> None:
    def write(path: Path) -> None:
        path.write_text(written(value), encoding="utf-8")

    survives(write, "autogen", "team.json")


def test_real_traces_give_the_calls_that_went_over_the_wire(ledger: Ledger) -> None:
    log, messages, state, wire = shared(
        *(f"frameworks/autogen/{name}" for name in ("event-log.json", "team-messages.json")),
        "frameworks/autogen/team-state.json",
        "frameworks/autogen/proxy-autogen.jsonl",
    )
    calls = len(wire.read_text(encoding="utf-8").splitlines())
    assert calls == 8
    for path in (messages, state):
        report = imported(ledger, path)
        assert (report["model_calls"], report["tool_calls"], report["tool_results"]) == (8, 8, 8)
    report = imported(ledger, log)  # the trace was cut after the sixth call
    assert (report["model_calls"], report["native"]["ToolCall"], report["orphan_results"]) == (6, 5, 0)
    taken = recognized(TRACES / "frameworks", "autogen")
    assert taken == {path: ["autogen"] for path in (log, messages, state)}


def test_agents_of_the_event_log_go_by_their_own_names(ledger: Ledger) -> None:
    """The runtime puts the team's id behind each; hand-overs and messages name them without."""
    imported(ledger, LOG)
    (session,) = ledger.store.sessions()
    agents = {record.agent for record in ledger.store.read(session)} - {None}
    assert {"greeter", "gardener"} <= agents
    assert not any("_" in str(agent) for agent in agents)
