"""Google ADK: events, approvals, rewinds and compactions, from databases and from JSON."""

import json
import pickle
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ledger.events.approval import ApprovalAsked, ApprovalDecided
from ledger.events.compaction import CompactionDone
from ledger.events.delegation import DelegationStarted
from ledger.events.input import MessageReceived
from ledger.events.keeping import SourceKept
from ledger.events.model_call import ModelCallAnswered, ModelCallRequested
from ledger.events.recovery import DamageFound, RolledBack
from ledger.events.tool_call import ToolCallRequested, ToolCallSettled
from ledger.home import Ledger
from tests.ledger.importers.fixtures import FIXTURES
from tests.ledger.importers.framework_traces import contexts, out_of_shape, recognized, survives, written
from tests.ledger.importers.plain_traces import TRACES, content, events, imported, records, shared

CASES = FIXTURES / "google-adk"
SESSION = json.loads((CASES / "session" / "rfq.session.json").read_text(encoding="utf-8"))
EVALSET = json.loads((CASES / "evalset" / "lamps.evalset.json").read_text(encoding="utf-8"))


class Canary:
    """Writes a file when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return Path.touch, (self.path,)


def sent(message: Any) -> Any:
    """A content as it goes over the wire: camel case, and no marks of the provider's."""
    if isinstance(message, dict):
        return {
            {"function_call": "functionCall", "function_response": "functionResponse"}.get(name, name): sent(
                one
            )
            for name, one in message.items()
            if name != "thought_signature"
        }
    return [sent(one) for one in message] if isinstance(message, list) else message


def is_quoted(message: Any) -> bool:
    return "For context:" in json.dumps(message)


def test_both_services_and_the_session_json_tell_the_same_story() -> None:
    stories = []
    for case in ("sqlite", "database", "session"):
        expected = json.loads((CASES / case / "expected.json").read_text(encoding="utf-8"))
        (told,) = expected["events"].values()
        stories.append([one for one in told if not one.startswith("ledger.")])
    assert stories[0] == stories[1] == stories[2]
    assert len(stories[0]) > 50


def test_an_approval_and_a_refusal_are_joined_to_their_calls(ledger: Ledger) -> None:
    imported(ledger, CASES / "sqlite" / "session.sqlite")
    first, second = events(ledger, ApprovalAsked)
    yes, no = events(ledger, ApprovalDecided)
    assert [one.tool for one in (first, second)] == ["erp_write", "erp_write"]
    assert [(one.outcome, one.decided_by, one.evidence) for one in (yes, no)] == [
        ("approved", "human", "logged"),
        ("denied", "human", "logged"),
    ]
    settled = {event.call_id: event for event in events(ledger, ToolCallSettled)}
    assert (yes.approval_id, yes.call_id) == (first.approval_id, first.call_id)
    assert settled[yes.call_id].outcome == "returned"
    assert settled[no.call_id].outcome == "denied"


def test_a_stream_without_the_user_lets_answers_be_inferred(ledger: Ledger) -> None:
    imported(ledger, CASES / "events" / "events.json")
    decided = events(ledger, ApprovalDecided)
    assert [(one.outcome, one.evidence) for one in decided] == [
        ("approved", "inferred"),
        ("denied", "inferred"),
    ]
    assert {one.completeness for one in events(ledger, ModelCallRequested)} <= {"partial", "none"}


def test_the_contents_of_model_calls_are_those_that_the_server_saw(ledger: Ledger) -> None:
    wire = json.loads((CASES / "sqlite" / "wire.json").read_text(encoding="utf-8"))
    del wire[3]  # inside the agent that was called as a tool
    imported(ledger, CASES / "sqlite" / "session.sqlite")
    asked = [event for event in events(ledger, ModelCallRequested) if event.purpose == "main"]
    seen = contexts(ledger)
    assert len(asked) == len(wire)
    for event, contents in zip(asked, wire, strict=True):
        messages = [sent(message) for message in seen[event.call_id]]
        assert len(messages) == len(contents)
        for ours, theirs in zip(messages, contents, strict=True):
            assert is_quoted(theirs) or ours == theirs
        assert (event.completeness == "partial") == any(is_quoted(one) for one in contents)


def test_a_rewind_goes_back_to_where_the_invocation_began(ledger: Ledger) -> None:
    imported(ledger, CASES / "sqlite" / "session.sqlite")
    (back,) = events(ledger, RolledBack)
    after = next(record for record in records(ledger) if record.seq == back.to_seq + 1)
    assert isinstance(after.event, MessageReceived)
    assert content(ledger, after.event.message)["parts"][0]["text"] == "Anything else?"


def test_compactions_are_logged_with_their_summary_and_its_cost(ledger: Ledger) -> None:
    report = imported(ledger, CASES / "sqlite" / "session.sqlite")
    done = events(ledger, CompactionDone)
    assert {one.evidence for one in done} == {"logged"}
    assert content(ledger, done[0].summary)["parts"][0]["text"] == "They asked for a quote."
    answered = {event.call_id for event in events(ledger, ModelCallAnswered)}
    assert all(one.call_id in answered for one in done)
    assert report["tokens"] == {"input": 1400, "output": 280, "cache_read": 140, "cache_write": 0}


def test_a_transfer_is_a_handoff(ledger: Ledger) -> None:
    imported(ledger, CASES / "sqlite" / "session.sqlite")
    (handoff,) = events(ledger, DelegationStarted)
    assert (handoff.how, handoff.to_agent, handoff.call_id) == ("handoff", "procurement", "call_0001")


def test_an_evalset_is_a_skeleton_and_says_that_nothing_took_place(ledger: Ledger) -> None:
    for name in ("lamps.evalset.json", "lamps.test.json"):
        report = imported(ledger, CASES / "evalset" / name)
        assert (report["grade"], report["model_calls"]) == ("skeleton", 0)
        assert "expected" in report["notes"][0]
    assert [event.tool for event in events(ledger, ToolCallRequested)] == ["set_lamp"] * 3


def test_pickled_actions_of_the_older_schema_are_kept_and_never_loaded(
    ledger: Ledger, tmp_path: Path
) -> None:
    path, canary = tmp_path / "old.sqlite", tmp_path / "canary"
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("create table sessions (app_name, user_id, id, state, create_time, update_time)")
        connection.execute(
            "create table events (id, app_name, user_id, session_id, invocation_id, author, actions blob,"
            " branch, timestamp, content, partial, error_code)"
        )
        connection.execute("insert into sessions values ('a', 'u', 's', '{}', '2026-01-01 00:00:00', null)")
        said = json.dumps({"role": "user", "parts": [{"text": "Hello."}]})
        actions = pickle.dumps(Canary(canary))
        row = ("e1", "a", "u", "s", "i1", "user", actions, None, "2026-01-01 00:00:01", said, 0, None)
        connection.execute(f"insert into events values ({', '.join('?' * len(row))})", row)
    report = imported(ledger, path)
    assert report["unknown"] == {"event:pickled actions": 1}
    assert not canary.exists()
    assert len(events(ledger, MessageReceived)) == 1
    kept = next(one for one in events(ledger, SourceKept) if one.native_type == "event:pickled actions")
    assert kept.body.kind == "bytes"


def test_a_torn_session_keeps_what_can_be_read(ledger: Ledger, tmp_path: Path) -> None:
    path = tmp_path / "torn.session.json"
    whole = (CASES / "session" / "rfq.session.json").read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    report = imported(ledger, path)
    assert report["quarantined"]
    assert report["tool_calls"] > 3
    assert len(events(ledger, DamageFound)) == 1


def test_a_row_that_is_no_json_is_damage_and_the_rest_is_read(ledger: Ledger, tmp_path: Path) -> None:
    path = tmp_path / "session.sqlite"
    path.write_bytes((CASES / "sqlite" / "session.sqlite").read_bytes())
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("update events set event_data = '{\"torn\": ' where rowid = 5")
    report = imported(ledger, path)
    assert len(report["quarantined"]) == 1
    assert report["model_calls"] == 14


def test_a_session_that_grew_adds_only_what_is_new(ledger: Ledger, tmp_path: Path) -> None:
    path = tmp_path / "session.sqlite"
    path.write_bytes((CASES / "sqlite" / "session.sqlite").read_bytes())
    with closing(sqlite3.connect(path)) as connection, connection:
        (last,) = connection.execute("select max(rowid) from events").fetchone()
        row = connection.execute("select * from events where rowid = ?", (last,)).fetchone()
        connection.execute("delete from events where rowid = ?", (last,))
    imported(ledger, path)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("insert into events values (?, ?, ?, ?, ?, ?, ?)", row)
    assert (
        imported(ledger, path)["records"] == 4
    )  # the summary's call and answer, the compaction, and the report


@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(out_of_shape(SESSION))
def test_a_session_out_of_shape_never_breaks_an_import(session: Any) -> None:
    survives(lambda path: _write(path, session), "google-adk", "session.json")


@settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))
@given(out_of_shape(EVALSET))
def test_an_evalset_out_of_shape_never_breaks_an_import(evalset: Any) -> None:
    survives(lambda path: _write(path, evalset), "google-adk", "lamps.evalset.json")


@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    st.lists(st.one_of(st.none(), st.integers(-9, 9), st.binary(max_size=9), st.text(max_size=9)), max_size=4)
)
def test_rows_out_of_shape_never_break_an_import(values: list[Any]) -> None:
    def write(path: Path) -> None:
        with closing(sqlite3.connect(path)) as connection, connection:
            connection.execute("create table sessions (app_name, user_id, id, state, create_time)")
            connection.execute(
                "create table events (id, app_name, user_id, session_id, invocation_id, timestamp, event_data)"
            )
            for value in values:
                connection.execute("insert into sessions values (?, ?, ?, ?, ?)", (value,) * 5)
                connection.execute("insert into events values (?, ?, ?, ?, ?, ?, ?)", (value,) * 7)

    survives(write, "google-adk", "session.sqlite")


def test_real_traces_are_taken_by_this_importer_alone(ledger: Ledger) -> None:
    framework, wild = shared("frameworks/google-adk", "wild/adk")
    found = recognized(TRACES, "google-adk")
    assert {path: names for path, names in found.items() if names != ["google-adk"]} == {}
    assert sorted(path.name for path in found if path.parent == framework) == [
        "events-gemini.json",
        "session-dbservice-gemini.sqlite",
        "session-gemini.sqlite",
    ]
    assert {path for path in wild.rglob("*.json") if path.name != "test_config.json"} <= found.keys()
    for path in found:
        report = imported(ledger, path)
        assert (report["quarantined"], report["unknown"], report["orphan_results"]) == ([], {}, 0)


def test_a_real_session_holds_every_call_of_the_wire_but_those_of_an_agent_as_tool(ledger: Ledger) -> None:
    database, wire = shared(
        "frameworks/google-adk/session-gemini.sqlite",
        "frameworks/google-adk/proxy-google-adk-gemini-plain.jsonl",
    )
    report = imported(ledger, database)
    exchanges = [json.loads(line) for line in wire.read_text(encoding="utf-8").splitlines()]
    assert report["model_calls"] == len(exchanges) - 1
    asked = [event for event in events(ledger, ModelCallRequested) if event.purpose == "main"]
    lengths = [len(contexts(ledger)[event.call_id]) for event in asked]
    bodies = [
        one["req_body"] if isinstance(one["req_body"], dict) else json.loads(one["req_body"])
        for one in exchanges
    ]
    on_wire = [len(body["contents"]) for body in bodies]
    told = [length for number, length in enumerate(on_wire) if number not in _aside(bodies)]
    # To another agent the runner also quotes the response that stood in while a person was asked.
    assert [min(1, there - here) for here, there in zip(lengths, told, strict=True)] == [0] * 9 + [1, 1]


def _aside(bodies: list[Any]) -> set[int]:
    """Calls that no event tells of as such: of the agent called as a tool, and of the summariser."""
    told = [json.dumps(body.get("systemInstruction", body.get("system_instruction", ""))) for body in bodies]
    return {
        number for number, system in enumerate(told) if "procurement" not in system and "Route" not in system
    }


def _write(path: Path, value: Any) -> None:
    path.write_text(written(value), encoding="utf-8")
