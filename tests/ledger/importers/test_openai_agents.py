"""OpenAI Agents SDK: what its states, databases and spans say, and what they only let us infer."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ledger.events.approval import ApprovalAsked, ApprovalDecided
from ledger.events.compaction import CompactionDone
from ledger.events.delegation import DelegationStarted
from ledger.events.model_call import ModelCallAnswered, ModelCallRequested
from ledger.events.recovery import DamageFound, RolledBack
from ledger.events.session import SessionForked
from ledger.events.tool_call import ToolCallRequested, ToolCallSettled
from ledger.home import Ledger
from ledger.importers._intake import import_paths
from tests.ledger.importers.fixtures import FIXTURES, trace_files
from tests.ledger.importers.framework_traces import contexts, out_of_shape, recognized, survives, written
from tests.ledger.importers.plain_traces import TRACES, content, events, imported, shared

CASES = FIXTURES / "openai-agents"
STATE = json.loads((CASES / "states" / "state-3-approved.json").read_text(encoding="utf-8"))
DUMP = json.loads((CASES / "spans-content" / "spans-with-content.json").read_text(encoding="utf-8"))[:70]


def plain(value: Any) -> Any:
    """Without the fields that are null: the client leaves them out of what it sends."""
    if isinstance(value, dict):
        return {name: plain(part) for name, part in value.items() if part is not None}
    return [plain(part) for part in value] if isinstance(value, list) else value


def test_one_state_resumed_with_both_answers_gives_a_run_and_a_fork(ledger: Ledger) -> None:
    report = import_paths(ledger.recorder, trace_files(CASES / "states"))
    run, fork = report.sessions
    (forked,) = events(ledger, SessionForked)
    asked = [record for record in ledger.store.read(run) if isinstance(record.event, ApprovalAsked)]
    assert len(asked) == 1
    assert (forked.origin, forked.origin_seq) == (run, asked[0].seq)
    decided = {
        record.session: record.event
        for record in ledger.store.read_all()
        if record.type == "approval.decided"
    }
    assert (decided[run].outcome, decided[fork].outcome) == ("approved", "denied")  # type: ignore[attr-defined]
    last = {
        session: [one.event for one in ledger.store.read(session) if isinstance(one.event, ToolCallSettled)][
            -1
        ]
        for session in (run, fork)
    }
    assert (last[run].outcome, last[fork].outcome) == ("returned", "denied")
    assert last[run].call_id == last[fork].call_id


def test_a_pending_approval_is_asked_and_not_decided(ledger: Ledger) -> None:
    imported(ledger, CASES / "states" / "state-1-interrupted.json")
    (asked,) = events(ledger, ApprovalAsked)
    assert (asked.tool, content(ledger, asked.context)["tool_name"]) == ("erp_write", "erp_write")
    assert events(ledger, ApprovalDecided) == []


def test_the_inputs_of_model_calls_are_those_that_the_server_saw(ledger: Ledger) -> None:
    for case, name in (("states", "state-3-approved.json"), ("spans-content", "spans-with-content.json")):
        wire = json.loads((CASES / case / "wire.json").read_text(encoding="utf-8"))
        imported(ledger, CASES / case / name)
        seen = contexts(ledger)
        assert len(seen) >= 7
        for call_id, messages in seen.items():
            assert plain(messages) == plain(wire[call_id]), call_id


def test_usage_and_ids_of_provider_are_kept_once(ledger: Ledger) -> None:
    report = imported(ledger, CASES / "states" / "state-3-approved.json")
    answered = events(ledger, ModelCallAnswered)
    assert report["tokens"]["input"] == 700
    assert [event.response_id for event in answered] == [event.call_id for event in answered]
    assert all(event.request_id for event in answered)
    assert any("called as tools" in note for note in report["notes"])


def test_a_handoff_stays_in_the_session_and_an_agent_as_tool_has_its_own(ledger: Ledger) -> None:
    imported(ledger, CASES / "spans-content" / "spans-with-content.json")
    handoff, tool = events(ledger, DelegationStarted)
    assert (handoff.how, handoff.to_agent, handoff.to_session) == ("handoff", "procurement", None)
    assert (tool.how, tool.to_agent) == ("tool", "expert")
    first = next(ledger.store.read(tool.to_session))
    assert (first.event.parent_call, first.depth) == (tool.call_id, 1)  # type: ignore[attr-defined]


def test_approvals_are_inferred_from_spans_and_say_so(ledger: Ledger) -> None:
    imported(ledger, CASES / "spans-content" / "spans-with-content.json")
    decided = events(ledger, ApprovalDecided)
    assert [(one.outcome, one.evidence) for one in decided] == [
        ("approved", "inferred"),
        ("denied", "inferred"),
    ]
    assert [one.evidence for one in events(ledger, RolledBack)] == ["inferred"]


def test_bare_spans_show_calls_without_content(ledger: Ledger) -> None:
    report = imported(ledger, CASES / "spans" / "spans.jsonl")
    assert report["model_calls"] == 12
    assert {event.completeness for event in events(ledger, ModelCallRequested)} == {"none"}
    calls = events(ledger, ToolCallRequested)
    assert len({event.call_id for event in calls}) == len(calls) == 6


def test_a_compacted_session_says_what_is_gone(ledger: Ledger) -> None:
    imported(ledger, CASES / "session" / "session.sqlite")
    (done,) = events(ledger, CompactionDone)
    assert done.evidence == "logged"
    assert done.evidence_detail == "4 rows before the first of this session are gone"


def test_a_session_that_grew_adds_only_what_is_new(ledger: Ledger, tmp_path: Path) -> None:
    path = tmp_path / "session.sqlite"
    path.write_bytes((CASES / "session" / "session.sqlite").read_bytes())
    imported(ledger, path)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(
            "insert into agent_messages (session_id, message_data) values (?, ?)",
            ("rfq-2031", json.dumps({"role": "user", "content": "More."})),
        )
    assert imported(ledger, path)["records"] == 2  # the message, and the report


def test_a_torn_state_keeps_what_can_be_read(ledger: Ledger, tmp_path: Path) -> None:
    path = tmp_path / "state.json"
    whole = (CASES / "states" / "state-3-approved.json").read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    report = imported(ledger, path)
    assert report["quarantined"]
    assert len(events(ledger, DamageFound)) == 1


def test_a_span_whose_parent_never_comes_is_told(ledger: Ledger, tmp_path: Path) -> None:
    lines = (CASES / "spans" / "spans.jsonl").read_text(encoding="utf-8").splitlines()
    path = tmp_path / "spans.jsonl"
    path.write_text("\n".join(lines[:20]) + "\n" + lines[20][:100], encoding="utf-8")
    report = imported(ledger, path)
    assert report["model_calls"] == sum('"type": "response"' in line for line in lines[:20])
    assert len(report["quarantined"]) == 1


def test_a_batch_of_the_sdks_exporter_is_read(ledger: Ledger, tmp_path: Path) -> None:
    lines = (CASES / "spans" / "spans.jsonl").read_text(encoding="utf-8").splitlines()
    path = tmp_path / "batch.json"
    path.write_text(json.dumps({"data": [json.loads(line) for line in lines]}), encoding="utf-8")
    report = imported(ledger, path)
    assert (report["format"], report["model_calls"], report["tool_calls"]) == ("openai-agents", 12, 6)


def test_a_decision_for_all_calls_of_a_tool_reaches_the_session(ledger: Ledger, tmp_path: Path) -> None:
    state = json.loads((CASES / "states" / "state-2-decided.json").read_text(encoding="utf-8"))
    state["context"]["function_tool_approvals"][0]["decision"] = {"approved": True, "rejected": []}
    path = tmp_path / "state.json"
    path.write_text(json.dumps(state), encoding="utf-8")
    imported(ledger, path)
    (decided,) = events(ledger, ApprovalDecided)
    assert (decided.outcome, decided.scope, decided.call_id) == ("approved", "session", "call_0007")


def test_rows_beside_the_items_are_kept(ledger: Ledger, tmp_path: Path) -> None:
    path = tmp_path / "session.sqlite"
    path.write_bytes((CASES / "session" / "session.sqlite").read_bytes())
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(
            "create table turn_usage (id integer primary key, session_id, branch_id, input_tokens)"
        )
        connection.execute("insert into turn_usage values (1, 'rfq-2031', 'second', 700)")
    report = imported(ledger, path)
    assert report["native"]["turn_usage"] == 1
    assert "branches" in report["notes"][0]
    assert imported(ledger, path)["records"] == 0


def test_names_of_the_wrong_type_are_no_reason_to_fail(ledger: Ledger, tmp_path: Path) -> None:
    path = tmp_path / "odd.json"
    path.write_text(json.dumps([{"ev": {}}, {"kind": [], "parts": 1}]), encoding="utf-8")
    assert imported(ledger, path)["format"] is None
    said = {"type": "message", "role": "assistant", "content": [{"type": []}]}
    span = json.loads(json.dumps(DUMP[:6]))
    span[-1]["not_exported"]["_py_response"]["output"] = [said]
    path.write_text(json.dumps(span), encoding="utf-8")
    assert imported(ledger, path)["model_calls"] == 1


def test_an_unknown_span_is_kept_and_counted(ledger: Ledger, tmp_path: Path) -> None:
    span = {
        "object": "trace.span",
        "id": "s",
        "trace_id": "t",
        "parent_id": None,
        "span_data": {"type": "dream"},
    }
    path = tmp_path / "spans.json"
    path.write_text(json.dumps([span]), encoding="utf-8")
    assert imported(ledger, path)["unknown"] == {"span:dream": 1}


@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(out_of_shape(STATE))
def test_a_state_out_of_shape_never_breaks_an_import(state: Any) -> None:
    survives(lambda path: _write(path, written(state)), "openai-agents", "state.json")


@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(out_of_shape(DUMP))
def test_spans_out_of_shape_never_break_an_import(dump: Any) -> None:
    survives(lambda path: _write(path, written(dump)), "openai-agents", "spans.json")


@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    st.lists(
        st.one_of(st.none(), st.integers(-(2**63), 2**63 - 1), st.binary(max_size=9), st.text(max_size=9)),
        max_size=4,
    )
)
def test_rows_out_of_shape_never_break_an_import(values: list[Any]) -> None:
    def write(path: Path) -> None:
        with closing(sqlite3.connect(path)) as connection, connection:
            connection.execute("create table agent_sessions (session_id)")
            connection.execute("create table agent_messages (id, session_id, message_data, created_at)")
            for value in values:
                connection.execute(
                    "insert into agent_messages values (?, ?, ?, ?)", (value, value, value, value)
                )
                connection.execute("insert into agent_messages values (1, 's', '{\"type\": 1}', ?)", (value,))

    survives(write, "openai-agents", "session.sqlite")


def test_real_traces_are_taken_by_this_importer_alone(ledger: Ledger) -> None:
    (folder,) = shared("frameworks/openai-agents")
    found = recognized(TRACES, "openai-agents")
    assert sorted(path.name for path in found if path.parent == folder) == [
        "runstate-interrupted-responses.json",
        "session-responses.sqlite",
        "trace-spans-responses.json",
    ]
    assert {path: names for path, names in found.items() if names != ["openai-agents"]} == {}
    for path in found:
        report = imported(ledger, path)
        assert (report["quarantined"], report["unknown"], report["orphan_results"]) == ([], {}, 0)


def test_real_spans_hold_every_call_of_the_wire(ledger: Ledger) -> None:
    (spans,) = shared("frameworks/openai-agents/trace-spans-responses.json")
    (wire,) = shared("frameworks/openai-agents/proxy-openai-agents-plain-responses.jsonl")
    imported(ledger, spans)
    sent = {}
    for line in wire.read_text(encoding="utf-8").splitlines():
        exchange = json.loads(line)
        answer = json.loads("".join(text for _, text in exchange["chunks"]))
        sent[answer["id"]] = exchange["req_body"]
    seen = contexts(ledger)
    assert len(seen) == 15
    for call_id, messages in seen.items():
        body = sent[call_id]
        body = json.loads(body) if isinstance(body, str) else body
        assert plain(messages) == plain(body["input"])


def _write(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")
