"""The Codex importer: every fixture gives what it promises, requests equal the wire, and hostile files do no harm."""

import json
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from ledger.events.approval import ApprovalDecided
from ledger.events.compaction import CompactionDone
from ledger.events.delegation import DelegationReturned, DelegationStarted
from ledger.events.effect import EffectDone
from ledger.events.governance import ArtifactChanged, ModeChanged
from ledger.events.input import MessageReceived
from ledger.events.keeping import SourceKept
from ledger.events.model_call import ModelCallAnswered, ModelCallFailed, ModelCallRequested
from ledger.events.recovery import CheckpointTaken, RolledBack
from ledger.events.session import SessionForked, SessionStarted
from ledger.events.tool_call import ToolCallRequested, ToolCallSettled, ToolCallStarted
from ledger.home import Ledger, open_ledger
from ledger.importers._codex.outputs import verdict_of
from ledger.importers._intake import import_paths
from tests.ledger.importers.codex_cases import CASES, FOLDER, content, events, records, rollout, sources

WIRED = [case for case in CASES if (FOLDER / case / "wire.json").is_file()]


@pytest.fixture
def ledger(tmp_path: Path, clock: Callable[[], str]) -> Iterator[Ledger]:
    with open_ledger(tmp_path / "home", clock=clock) as opened:
        yield opened


@pytest.mark.parametrize("case", CASES)
def test_a_second_import_reports_the_same(case: str, ledger: Ledger) -> None:
    first = import_paths(ledger.recorder, sources(case))
    again = import_paths(ledger.recorder, sources(case))
    for before, after in zip(first.files, again.files, strict=True):
        assert {**before, "records": 0} == after


@pytest.mark.parametrize("case", WIRED)
def test_requests_are_those_of_the_wire(case: str, ledger: Ledger) -> None:
    wire = json.loads((FOLDER / case / "wire.json").read_text(encoding="utf-8"))
    import_paths(ledger.recorder, sources(case))
    asked: dict[tuple[str, str], ModelCallRequested] = {}
    answered: dict[str | None, tuple[str, str]] = {}
    for record in records(ledger):
        if isinstance(record.event, ModelCallRequested):
            asked[record.session, record.event.call_id] = record.event
        elif isinstance(record.event, ModelCallAnswered):
            answered[record.event.response_id] = (record.session, record.event.call_id)
    assert len(answered) == len(wire["requests"])
    for request in wire["requests"]:
        event = asked[answered[request["response"]]]
        assert event.context is not None
        found = [content(ledger, digest) for digest in ledger.store.context(event.context)]
        sent = [wire["items"][index] for index in request["input"]]
        if request["kind"] == "compaction":
            assert (event.purpose, event.completeness) == ("compaction", "partial")
            sent.pop()  # the order to summarise is not in the log
        else:
            assert event.completeness == "messages"
        if case == "subagents-history" and event.purpose == "sub-agent":
            found, sent = _without_ids(found), _without_ids(sent)  # copied items are sent under new ids
        assert found == sent
        assert event.model == request["model"]
        assert "tools" in event.not_seen


def _without_ids(items: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{name: value for name, value in item.items() if name != "id"} for item in items]


def test_refusals_are_inferred_and_grants_are_not_made_up(ledger: Ledger) -> None:
    import_paths(ledger.recorder, [rollout("approvals")])
    (decided,) = events(ledger, ApprovalDecided)
    assert (decided.outcome, decided.decided_by, decided.evidence) == ("denied", "human", "inferred")
    settled = {event.call_id: event.outcome for event in events(ledger, ToolCallSettled)}
    assert settled[decided.call_id or ""] == "denied"
    assert sorted(settled.values()) == ["denied", *["returned"] * 4]
    modes = [
        (event.old, event.new, event.cause)
        for event in events(ledger, ModeChanged)
        if event.mode == "approval"
    ]
    assert modes == [
        (None, "untrusted", "startup"),
        ("untrusted", "never", "unknown"),
        ("never", "untrusted", "unknown"),
    ]


def test_a_policy_refuses_where_nobody_was_asked(ledger: Ledger) -> None:
    import_paths(ledger.recorder, [rollout("sandbox")])
    (decided,) = events(ledger, ApprovalDecided)
    assert (decided.outcome, decided.decided_by) == ("denied", "policy")
    modes = [event.new for event in events(ledger, ModeChanged) if event.mode == "sandbox"]
    assert modes == ["read-only", "workspace-write", "danger-full-access"]
    outcomes = [(event.outcome, event.error) for event in events(ledger, ToolCallSettled)]
    assert outcomes[0] == ("failed", "exit code 1")
    assert outcomes[1][0] == "denied"


def test_the_envelope_of_2025_in_full(ledger: Ledger) -> None:
    import_paths(ledger.recorder, [rollout("envelope")])
    usages = [event.usage for event in events(ledger, ModelCallAnswered)]
    assert [usage and usage.input_tokens for usage in usages] == [400, 400, 100, None, 500]
    decisions = [
        (event.call_id, event.outcome, event.decided_by) for event in events(ledger, ApprovalDecided)
    ]
    assert decisions == [("call_2", "denied", "human"), ("call_4", "unknown", "unknown")]
    effects = [(event.target, event.operation, event.evidence) for event in events(ledger, EffectDone)]
    assert effects == [("a.txt", "edit", "inferred"), ("c.txt", "create", "inferred")]
    (failed,) = events(ledger, ModelCallFailed)
    assert (failed.error, failed.will_retry) == ("stream_error", True)
    (checkpoint,) = events(ledger, CheckpointTaken)
    assert checkpoint.checkpoint_id.startswith("c0ffee")
    settled = {event.call_id: event.outcome for event in events(ledger, ToolCallSettled)}
    assert settled["call_5"] == "unknown"
    rule = events(ledger, ArtifactChanged)[0]
    assert (rule.artifact, rule.kind) == ("file:AGENTS.md", "rule_file")
    assert rule.content is not None
    assert ledger.store.content(rule.content.digest) == b"# House rules\n- Never delete files."
    unknown = [event.native_type for event in events(ledger, SourceKept) if not event.recognized]
    assert unknown == ["event_msg:brand_new_event", "brand_new_line"]


def test_a_rollback_names_the_place_and_shortens_the_context(ledger: Ledger) -> None:
    import_paths(ledger.recorder, [rollout("envelope")])
    rolled, undone = events(ledger, RolledBack)
    assert undone.reason == "undo"
    session = records(ledger)[0].session
    assert rolled.to_seq is not None
    assert isinstance(ledger.store.record(session, rolled.to_seq + 1).event, MessageReceived)
    last = events(ledger, ModelCallRequested)[-1]
    assert last.context is not None
    texts = [content(ledger, digest)["content"][0]["text"] for digest in ledger.store.context(last.context)]
    assert texts == ["SUMMARY: a typo was fixed. RULE: never delete files.", "Stop here."]
    assert last.completeness == "partial"
    assert any("compaction" in part for part in last.not_seen)


def test_a_compaction_names_its_call_and_the_new_context(ledger: Ledger) -> None:
    import_paths(ledger.recorder, [rollout("compaction")])
    first, second = events(ledger, CompactionDone)
    asked = {event.call_id: event.purpose for event in events(ledger, ModelCallRequested)}
    assert asked[first.call_id or ""] == asked[second.call_id or ""] == "compaction"
    assert (first.trigger, first.tokens_before) == ("auto", 9050)
    calls = {event.call_id: event for event in events(ledger, ModelCallRequested)}
    assert (
        first.context_before == calls[first.call_id or ""].context
    )  # what was summed up, and nothing after it
    assert first.context_after is not None
    assert len(ledger.store.context(first.context_after)) == first.messages_after == 4
    assert first.summary is not None
    assert b"RULE: never touch notes.md." in ledger.store.content(first.summary.digest)


def test_a_fork_points_to_its_origin_and_has_its_history(ledger: Ledger) -> None:
    import_paths(ledger.recorder, sources("fork"))
    forks = [record for record in records(ledger) if isinstance(record.event, SessionForked)]
    assert len(forks) == 2
    for record in forks:
        event = record.event
        assert isinstance(event, SessionForked)
        assert event.origin_seq is not None
        origin = ledger.store.record(event.origin, event.origin_seq)
        assert origin.source is not None
        assert origin.source.item == event.origin_item


def test_a_fork_without_its_origin_says_what_is_missing(tmp_path: Path, ledger: Ledger) -> None:
    path = tmp_path / rollout("fork", 1).name
    path.write_bytes(rollout("fork", 1).read_bytes())
    report = import_paths(ledger.recorder, [path]).files[0]
    assert len(report["notes"]) == 1
    first = events(ledger, ModelCallRequested)[0]
    assert first.completeness == "partial"
    assert any("before the fork" in part for part in first.not_seen)


@pytest.mark.parametrize("case", ["subagents", "subagents-history"])
def test_sub_agents_are_sessions_with_a_parent(case: str, ledger: Ledger) -> None:
    import_paths(ledger.recorder, sources(case))
    started = [record for record in records(ledger) if isinstance(record.event, SessionStarted)]
    children = {record.session: record for record in started if record.event.parent is not None}  # type: ignore[attr-defined]
    assert len(children) == 2
    handed = events(ledger, DelegationStarted)
    assert {event.to_session for event in handed} == set(children)
    back = events(ledger, DelegationReturned)
    assert {event.from_session for event in back} == set(children)
    assert all(event.outcome == "returned" for event in back)
    assert all(record.depth == 1 for record in children.values())
    calls = Counter(event.call_id for event in events(ledger, ToolCallRequested))
    assert max(calls.values()) == 1  # what a child copies from its parent is not counted again


def test_times_results_and_effects_of_tools(ledger: Ledger) -> None:
    import_paths(ledger.recorder, [rollout("basic")])
    started = {event.call_id for event in events(ledger, ToolCallStarted)}
    settled = events(ledger, ToolCallSettled)
    assert started == {event.call_id for event in settled}
    failed = [event for event in settled if event.outcome == "failed"]
    assert [event.error for event in failed] == ["exit code 3"]
    assert failed[0].details is not None
    assert content(ledger, failed[0].details.digest)["item"]["exit_code"] == 3
    (effect,) = events(ledger, EffectDone)
    assert (effect.target, effect.operation, effect.evidence) == (
        "/home/dev/repo/greeting.txt",
        "edit",
        "observed",
    )
    (rules,) = [event for event in events(ledger, ArtifactChanged) if event.kind == "rule_file"]
    assert rules.artifact == "file:/home/dev/repo/AGENTS.md"
    turns = {record.correlation for record in records(ledger) if record.type.startswith("model_call.")}
    assert len(turns) == 1


@pytest.mark.parametrize(
    ("output", "outcome", "by"),
    [
        ("plain text", "returned", None),
        ("Chunk ID: a\nWall time: 0.5 seconds\nOutput:\nexec command rejected by user", "returned", None),
        ("Exit code: 2\nWall time: 1 seconds\nOutput:\nno", "failed", None),
        ('{"output":"x","metadata":{"exit_code":0,"duration_seconds":1.5}}', "returned", None),
        ('{"output":"x","metadata":{"exit_code":127,"duration_seconds":null}}', "failed", None),
        ("exec command rejected by user", "denied", "human"),
        ("patch rejected by user", "denied", "human"),
        ("patch rejected: writing outside of the project; rejected by user approval settings", "denied", "policy"),
        ('exec_command failed: CreateProcess { message: "Rejected(\\"rejected by user\\")" }', "denied", "human"),
        ("approval policy is Never; reject command", "denied", "policy"),
        ("aborted by user after 3.1s", "unknown", None),
        ("aborted", "unknown", None),
        ("exec_command failed: no such file", "failed", None),
        ({"content": "x", "success": False}, "failed", None),
        ([{"type": "input_text", "text": "exec command rejected by user"}], "returned", None),
        ("a file says: exec command rejected by user", "returned", None),
        (None, "returned", None),
    ],
)  # fmt: skip
def test_outputs_are_read_as_codex_writes_them(output: Any, outcome: str, by: str | None) -> None:
    verdict = verdict_of(output)
    assert (verdict.outcome, verdict.denied_by) == (outcome, by)
