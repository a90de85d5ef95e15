"""Lists of chat messages: who asked for which tool, what came back, and labels that become no facts."""

import csv
import json
from pathlib import Path

from ledger.events.credential import SecretRedacted
from ledger.events.delegation import DelegationReturned, DelegationStarted
from ledger.events.keeping import Imported, SourceKept
from ledger.events.model_call import ModelCallAnswered, ModelCallRequested
from ledger.events.session import SessionEnded
from ledger.events.tool_call import ToolCallRequested, ToolCallSettled
from ledger.home import Ledger
from tests.ledger.importers.fixtures import FIXTURES
from tests.ledger.importers.plain_traces import content, events, imported, records, shared

CASES = FIXTURES / "chat-messages"
LABELS = ("injection", "mallory", "important_instructions", "utility", "security", "reward", "mistake")


def test_a_call_and_its_result_are_joined_and_a_failure_is_told(ledger: Ledger) -> None:
    imported(ledger, CASES / "agentdojo" / "plain.json")
    first, second = events(ledger, ToolCallRequested)
    assert (first.call_id, first.tool, content(ledger, first.arguments)) == (
        "call_1",
        "read_bill",
        {"name": "nordwind"},
    )
    good, bad = events(ledger, ToolCallSettled)
    assert (good.call_id, good.outcome, content(ledger, good.result)) == (
        "call_1",
        "returned",
        "120.00 to DE02",
    )
    assert (bad.call_id, bad.outcome, bad.error) == (second.call_id, "failed", "ValueError")


def test_calls_without_ids_are_joined_in_their_order(ledger: Ledger) -> None:
    imported(ledger, CASES / "agentdojo" / "blocks.json")
    asked = [event.call_id for event in events(ledger, ToolCallRequested)]
    settled = events(ledger, ToolCallSettled)
    assert [event.call_id for event in settled] == asked
    assert len(set(asked)) == 2
    assert [content(ledger, event.result)[0]["content"] for event in settled] == ["Nothing.", "A letter."]


def test_labels_of_a_benchmark_are_kept_and_become_no_fact(ledger: Ledger) -> None:
    for name in (
        "agentdojo/plain.json",
        "agentdojo/error.json",
        "tau-bench/two_tasks.json",
        "agent-log/group_chat.json",
    ):
        imported(ledger, CASES / name)
    kept = [event for event in events(ledger, SourceKept) if event.native_type.endswith(".record")]
    assert len(kept) == 5
    assert "mallory" in json.dumps([content(ledger, event.body) for event in kept])
    for record in records(ledger):
        if isinstance(record.event, Imported):
            continue
        told = record.event.model_dump_json()
        assert not [label for label in LABELS if label in told], told


def test_a_run_that_ended_with_an_error_failed(ledger: Ledger) -> None:
    imported(ledger, CASES / "agentdojo" / "error.json")
    assert [event.outcome for event in events(ledger, SessionEnded)] == ["failed"]


def test_a_model_call_saw_all_messages_before_it(ledger: Ledger) -> None:
    imported(ledger, CASES / "agentdojo" / "plain.json")
    source = json.loads((CASES / "agentdojo" / "plain.json").read_text())["messages"]
    _, last = events(ledger, ModelCallRequested)
    assert content(ledger, last.system) == source[0]
    seen = [json.loads(ledger.store.content(digest)) for digest in ledger.store.context(last.context)]
    assert seen == source[1:5]


def test_arguments_that_are_no_json_are_kept_as_they_are(ledger: Ledger) -> None:
    report = imported(ledger, CASES / "tau-bench" / "two_tasks.json")
    last = events(ledger, ToolCallRequested)[-1]
    assert last.arguments.kind == "text"
    assert content(ledger, last.arguments) == '{"all": tru'
    assert report["unanswered_calls"] == 1


def test_an_id_used_again_names_another_call(ledger: Ledger, tmp_path: Path) -> None:
    call = {"id": "call_0", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    turn = [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "call_0", "content": "seen"},
    ]
    path = tmp_path / "twice.json"
    path.write_text(json.dumps([{"role": "user", "content": "look"}, *turn, *turn]))
    report = imported(ledger, path)
    assert [event.call_id for event in events(ledger, ToolCallSettled)] == ["call_0", "call_0~2"]
    assert (report["unanswered_calls"], report["orphan_results"]) == (0, 0)


def test_a_log_of_named_agents_shows_who_handed_work_to_whom(ledger: Ledger) -> None:
    report = imported(ledger, CASES / "agent-log" / "magentic.json")
    (started,) = events(ledger, DelegationStarted)
    (returned,) = events(ledger, DelegationReturned)
    assert (started.to_agent, returned.delegation_id) == ("WebSurfer", started.delegation_id)
    assert (report["grade"], report["model_calls"]) == ("skeleton", 0)


def test_every_line_is_a_session_and_an_unknown_role_is_told(ledger: Ledger) -> None:
    report = imported(ledger, CASES / "lines" / "runs.jsonl")
    assert report["unknown"] == {"message:narrator": 1}
    assert (len(report["sessions"]), report["orphan_results"]) == (4, 1)


def test_messages_added_at_the_end_go_to_the_same_session(ledger: Ledger, tmp_path: Path) -> None:
    messages = [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]
    path = tmp_path / "grows.json"
    path.write_text(json.dumps(messages))
    first = imported(ledger, path)
    path.write_text(
        json.dumps([*messages, {"role": "user", "content": "c"}, {"role": "assistant", "content": "d"}])
    )
    second = imported(ledger, path)
    assert second["sessions"] == first["sessions"]
    assert len(events(ledger, ModelCallAnswered)) == 2
    assert events(ledger, ModelCallRequested)[-1].context_length == 3


def test_two_files_of_one_name_are_two_sessions(ledger: Ledger, tmp_path: Path) -> None:
    for folder, said in (("one", "a"), ("two", "b")):
        path = tmp_path / folder / "none" / "none.json"
        path.parent.mkdir(parents=True)
        path.write_text(
            json.dumps([{"role": "user", "content": said}, {"role": "assistant", "content": said}])
        )
        imported(ledger, path)
    assert len(set(ledger.store.sessions())) == 2


def test_a_secret_is_nowhere_in_the_store(ledger: Ledger, tmp_path: Path) -> None:
    secret = "sk-proj-" + "Ab3dE6gH9jK2mN5pQ8sT1vW4yZ7" * 2
    call = {
        "id": secret,
        "type": "function",
        "function": {"name": "use", "arguments": json.dumps({"key": secret})},
    }
    path = tmp_path / "secret.json"
    path.write_text(
        json.dumps([{"role": "user", "content": secret}, {"role": "assistant", "tool_calls": [call]}])
    )
    imported(ledger, path)
    assert events(ledger, SecretRedacted)
    ledger.close()
    files = [file for file in (tmp_path / "home").rglob("*") if file.is_file()]
    assert not [file for file in files if secret.encode() in file.read_bytes()]


def test_real_agentdojo_runs_have_the_counts_of_their_labels(ledger: Ledger) -> None:
    folder, labels = shared("agentdojo/runs", "agentdojo/labels.csv")
    with labels.open(encoding="utf-8", newline="") as rows:
        for row in csv.DictReader(rows):
            report = imported(ledger, folder / row["path"])
            found = (report["lines"], report["tool_calls"])
            assert found == (int(row["n_messages"]), int(row["n_tool_calls"])), row["path"]
