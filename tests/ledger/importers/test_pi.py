"""The pi importer: the tree, compaction, branches, labels, forks, damage."""

import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ledger.events.compaction import CompactionDone
from ledger.events.effect import EffectDone
from ledger.events.input import ContextInjected
from ledger.events.model_call import ModelCallAnswered, ModelCallFailed, ModelCallRequested
from ledger.events.recovery import CheckpointTaken, DamageFound, RolledBack
from ledger.events.session import SessionForked
from ledger.events.tool_call import ToolCallRequested, ToolCallSettled
from ledger.home import open_ledger
from ledger.importers import pi
from ledger.importers._intake import import_paths
from tests.ledger.importers.fixtures import FIXTURES, trace_files
from tests.ledger.importers.harness_checks import (
    TRACES,
    check_foreign,
    check_import,
    check_traces,
    events_of,
    lines_of,
    mutated,
    with_damage,
    with_ledger,
    write_lines,
)

ORIGIN, FORK = trace_files(FIXTURES / "pi" / "tree")
USAGE = {"input": 3, "output": 2, "cacheRead": 1, "cacheWrite": 0, "cost": {"total": 0.5}}


def _said(name: str, parent: str | None, role: str, text: str) -> dict[str, Any]:
    message: dict[str, Any] = {"role": role, "content": [{"type": "text", "text": text}]}
    if role == "assistant":
        message |= {"model": "m", "provider": "p", "usage": USAGE, "stopReason": "stop"}
    time = "2026-11-29T10:00:00.000Z"
    return {"type": "message", "id": name, "parentId": parent, "timestamp": time, "message": message}


HEADER = {"type": "session", "version": 3, "id": "s", "timestamp": "2026-11-29T09:00:00.000Z", "cwd": "/"}


def test_tools_costs_and_a_refused_request(tmp_path: Path) -> None:
    records = with_ledger(tmp_path / "home", [ORIGIN])
    settled = {one.call_id: one.outcome for one in events_of(records, ToolCallSettled)}
    assert [settled[f"call_000{n}"] for n in range(1, 5)] == ["returned", "failed", "returned", "failed"]
    typed = [one.event for one in records if one.actor is not None and one.actor.kind == "human"]
    assert [one.tool for one in typed if isinstance(one, ToolCallRequested)] == ["bash"]
    assert next(one.error for one in events_of(records, ModelCallFailed)).startswith("400")
    assert {str(one.cost_usd) for one in events_of(records, ModelCallAnswered)} == {"0.0011925000000000002"}
    assert [(one.target, one.evidence) for one in events_of(records, EffectDone)] == [
        ("greeting.txt", "inferred")
    ]


def test_a_compaction_keeps_what_it_names(tmp_path: Path) -> None:
    records = with_ledger(tmp_path / "home", [ORIGIN])
    (done,) = events_of(records, CompactionDone)
    # the refused answer and its empty message are not sent
    assert (done.messages_before, done.messages_after, done.tokens_before) == (12, 3, 1370)
    last = events_of(records, ModelCallRequested)[-1]
    assert (last.context_length, last.completeness) == (4, "messages")


def test_a_fork_tells_only_what_is_its_own(tmp_path: Path) -> None:
    records = with_ledger(tmp_path / "home", [ORIGIN, FORK])
    (forked,) = events_of(records, SessionForked)
    first = records[0].session
    assert forked.origin == first
    own = [record for record in records if record.session != first]
    assert len(events_of(own, ModelCallAnswered)) == 1
    assert events_of(own, ModelCallRequested)[0].context_length == 4
    alone = with_ledger(tmp_path / "alone", [FORK])
    assert len(events_of(alone, ModelCallAnswered)) == 5  # without its origin, the copies are all there is


def test_going_back_in_the_tree_rolls_the_context_back(tmp_path: Path) -> None:
    rows = [
        HEADER,
        _said("a", None, "user", "one"),
        _said("b", "a", "assistant", "two"),
        _said("c", "b", "user", "three"),
        _said("d", "c", "assistant", "four"),
        {"type": "label", "id": "l", "parentId": "d", "targetId": "b", "label": "good"},
        {"type": "branch_summary", "id": "e", "parentId": "b", "fromId": "d", "summary": "it failed"},
        _said("f", "e", "user", "five"),
        _said("g", "f", "assistant", "six"),
    ]
    records = with_ledger(tmp_path / "home", [write_lines(tmp_path / "s.jsonl", rows)])
    (back,), (label,) = events_of(records, RolledBack), events_of(records, CheckpointTaken)
    three = next(record.seq for record in records if record.source and record.source.item == "entry:c")
    assert (back.to_seq, back.checkpoint_id, back.evidence) == (three - 1, "entry:b", "inferred")
    assert (label.seq, label.label, label.taken_by) == (three - 1, "good", "human")
    assert [one.provenance for one in events_of(records, ContextInjected)] == ["branch-summary"]
    assert [one.context_length for one in events_of(records, ModelCallRequested)] == [1, 3, 4]


def test_an_entry_without_its_parent_says_so(tmp_path: Path) -> None:
    rows = [HEADER, _said("a", None, "user", "one"), _said("c", "lost", "assistant", "two")]
    with open_ledger(tmp_path / "home") as ledger:
        (report,) = import_paths(ledger.recorder, [write_lines(tmp_path / "s.jsonl", rows)]).files
        assert report["dangling_parents"] == 1
        (asked,) = events_of(list(ledger.store.read_all()), ModelCallRequested)
        assert asked.completeness == "none"
        assert any("never written" in part for part in asked.not_seen)


def test_damage_in_the_middle_costs_its_own_line_alone(tmp_path: Path) -> None:
    records = with_damage(tmp_path, ORIGIN, line=8, spoiled=b'{"type":"message","id":"x\n', cut=40)
    assert len(events_of(records, DamageFound)) == 2
    assert len(events_of(records, ModelCallAnswered)) == 4


def test_other_files_are_not_taken(tmp_path: Path) -> None:
    check_foreign(pi, tmp_path)


@given(st.data())
@settings(max_examples=25, suppress_health_check=[HealthCheck.too_slow])
def test_wrong_types_anywhere_do_no_harm(data: st.DataObject) -> None:
    rows = lines_of(data.draw(st.sampled_from([ORIGIN, FORK])))
    start = data.draw(st.integers(0, len(rows) - 8))
    with tempfile.TemporaryDirectory() as folder:
        path = write_lines(Path(folder) / "s.jsonl", mutated(data, [rows[0], *rows[start : start + 8]]))
        check_import([path], Path(folder) / "home", "pi")


@pytest.mark.skipif(not TRACES.is_dir(), reason="no shared traces here")
def test_shared_traces() -> None:
    taken = check_traces(pi)
    assert [str(path.relative_to(TRACES)) for path in taken] == ["wild/pi/before-compaction.cut.jsonl"]
