"""Codex files as they lie about: growing, cut, damaged, hostile, real; nothing is lost and nothing comes twice."""

import copy
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ledger.events.governance import ModeChanged
from ledger.events.model_call import ModelCallAnswered, ModelCallRequested
from ledger.events.recovery import DamageFound
from ledger.home import Ledger, open_ledger
from ledger.importers import Desk, Sniff, codex
from ledger.importers._files import sniff
from ledger.importers._intake import import_paths
from tests.ledger.importers.codex_cases import CASES, content, events, records, rollout, sources

ROOT = Path(__file__).parents[3]
TRACES = Path(os.environ.get("LOOPLEDGER_TRACES", ROOT.parent / "shared" / "traces"))


@pytest.fixture
def ledger(tmp_path: Path, clock: Callable[[], str]) -> Iterator[Ledger]:
    with open_ledger(tmp_path / "home", clock=clock) as opened:
        yield opened


@pytest.mark.parametrize("case", ["basic", "compaction", "envelope", "flat", "exec-stream"])
def test_a_growing_file_ends_as_the_whole_one(case: str, tmp_path: Path, clock: Callable[[], str]) -> None:
    lines = rollout(case).read_bytes().splitlines(keepends=True)
    whole = tmp_path / rollout(case).name
    whole.write_bytes(b"".join(lines))
    with open_ledger(tmp_path / "whole", clock=clock) as ledger:
        promised = import_paths(ledger.recorder, [whole]).files[0]
        wanted = _last_answers(ledger)
    for count in range(2, len(lines), 5):
        _grow(tmp_path / f"home{count}", whole, lines, [count], promised, wanted)
    _grow(tmp_path / "every-line", whole, lines, list(range(1, len(lines))), promised, wanted)


def _grow(
    home: Path,
    path: Path,
    lines: list[bytes],
    cuts: list[int],
    promised: dict[str, Any],
    wanted: dict[str, Any],
) -> None:
    with open_ledger(home) as ledger:
        for count in cuts:
            path.write_bytes(b"".join(lines[:count]))
            import_paths(ledger.recorder, [path])
        path.write_bytes(b"".join(lines))
        report = import_paths(ledger.recorder, [path]).files[0]
        for name in (
            "model_calls",
            "tool_calls",
            "tool_results",
            "unanswered_calls",
            "tokens",
            "compactions",
        ):
            assert report[name] == promised[name], (name, cuts)
        assert (report["duplicates"], report["dangling_parents"]) == (0, 0)
        assert import_paths(ledger.recorder, [path]).records_added == 0
        assert _last_answers(ledger) == wanted


def _last_answers(ledger: Ledger) -> dict[str, Any]:
    """The last revision of every answer, by call."""
    found: dict[str, Any] = {}
    for event in events(ledger, ModelCallAnswered):
        assert event.call_id not in found or event.revision > 0
        found[event.call_id] = (content(ledger, event.message.digest), event.usage, event.response_id)
    return found


def test_a_line_cut_by_a_crash_is_read_once_it_is_whole(tmp_path: Path, ledger: Ledger) -> None:
    data = rollout("basic").read_bytes()
    path = tmp_path / rollout("basic").name
    path.write_bytes(data[:-100])
    first = import_paths(ledger.recorder, [path]).files[0]
    assert [place["line"] for place in first["quarantined"]] == [39]
    path.write_bytes(data)
    second = import_paths(ledger.recorder, [path])
    assert second.files[0]["quarantined"] == []
    assert second.records_added == 2  # the line, and the report
    assert second.files[0]["model_calls"] == 4


def test_damage_in_the_middle_costs_its_own_line_alone(tmp_path: Path, ledger: Ledger) -> None:
    lines = rollout("basic").read_bytes().splitlines(keepends=True)
    lines[18] = b"\x00\xff not json\n"  # the output of the first call
    lines.insert(30, lines[29])  # written twice
    path = tmp_path / rollout("basic").name
    path.write_bytes(b"\xef\xbb\xbf" + b"".join(lines).replace(b"\n", b"\r\n"))
    report = import_paths(ledger.recorder, [path]).files[0]
    assert [place["line"] for place in report["quarantined"]] == [19]
    assert (report["model_calls"], report["tool_calls"], report["tool_results"]) == (4, 5, 4)
    assert (report["unanswered_calls"], report["duplicates"]) == (1, 1)
    (damage,) = events(ledger, DamageFound)
    assert damage.content is not None
    assert ledger.store.content(damage.content.digest) == b"\x00\xff not json"
    (record,) = [record for record in records(ledger) if isinstance(record.event, DamageFound)]
    assert record.session == json.loads(lines[0])["payload"]["id"]
    grades = [event.completeness for event in events(ledger, ModelCallRequested)]
    assert grades == ["messages", "partial", "partial", "partial"]
    assert import_paths(ledger.recorder, [path]).records_added == 0


def test_bytes_that_are_not_utf8_are_read_and_reported(tmp_path: Path, ledger: Ledger) -> None:
    path = tmp_path / "x.jsonl"
    path.write_bytes(rollout("flat").read_bytes().replace(b"Count the files", b"Count \xff files"))
    report = import_paths(ledger.recorder, [path], format_name="codex").files[0]
    assert [place["line"] for place in report["quarantined"]] == [3]
    assert (report["model_calls"], report["tool_calls"]) == (3, 2)


def test_every_kind_of_file_is_recognised(tmp_path: Path) -> None:
    for case in CASES:
        for path in sources(case):
            assert codex.recognizes(sniff(path)), path
    for line in rollout("basic").read_bytes().splitlines():  # a file of one event is one of ours
        assert codex.recognizes(Sniff(tmp_path / "event.jsonl", line, len(line)))


@pytest.mark.parametrize(
    "start",
    [
        b"",
        b"{",
        b"\xff\xfe{",
        b'{"type":"user","uuid":"1","parentUuid":null,"sessionId":"s","message":{}}',
        b'{"resourceSpans":[]}',
        b'{"id":"1","timestamp":"2025-01-01T00:00:00Z","level":"info"}',
        b'{"type":"session","version":3,"id":"a","timestamp":"t"}',
        b'[{"type":"response_item","payload":{}}]',
    ],
)
def test_other_files_are_not_recognised(start: bytes, tmp_path: Path) -> None:
    assert not codex.recognizes(Sniff(tmp_path / "x.jsonl", start, len(start)))


_LEAVES = (
    st.none() | st.booleans() | st.integers(-1, 2**70) | st.floats(allow_nan=False, allow_infinity=False)
)
_VALUES = st.recursive(
    _LEAVES | st.text(max_size=8) | st.just("\ud800"),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


def _spots(value: Any) -> list[tuple[Any, Any]]:
    """Every place inside a value, as (container, key)."""
    spots: list[tuple[Any, Any]] = []
    stack = [value]
    while stack:
        item = stack.pop()
        keys = list(item) if isinstance(item, dict) else range(len(item)) if isinstance(item, list) else []
        spots.extend((item, key) for key in keys)
        stack.extend(item[key] for key in keys)
    return spots


_ROWS = [
    json.loads(line)
    for case in ("basic", "envelope", "compaction", "subagents-history", "exec-stream", "flat")
    for path in sources(case)
    for line in path.read_text(encoding="utf-8").splitlines()
]


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(data=st.data())
def test_no_value_in_any_place_stops_an_import(data: st.DataObject, tmp_path: Path, ledger: Ledger) -> None:
    rows = []
    for row in data.draw(st.lists(st.sampled_from(_ROWS), min_size=1, max_size=12)):
        changed = copy.deepcopy(row)
        for _ in range(data.draw(st.integers(0, 3))):
            container, key = data.draw(st.sampled_from(_spots(changed)))
            container[key] = data.draw(_VALUES)
        rows.append(changed)
    path = tmp_path / "x.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    desk = Desk(ledger.recorder.keeper(), "x.jsonl", path)
    lines = {item.line for item in codex.read(path, desk)}
    assert lines <= set(range(1, len(rows) + 1))
    assert desk.tally.lines == len(rows)


def _traces() -> dict[str, Any]:
    expected = TRACES / "EXPECTED.json"
    if not expected.is_file():
        return {}
    promised = json.loads(expected.read_text(encoding="utf-8"))
    return {
        name: counts
        for name, counts in promised.items()
        if name.startswith("wild/codex/") and "/testdata/claude/" not in name
    }


@pytest.mark.skipif(not _traces(), reason="the shared traces are not here")
def test_real_rollouts_give_the_expected_counts(ledger: Ledger) -> None:
    for name, counts in _traces().items():
        report = import_paths(ledger.recorder, [TRACES / name]).files[0]
        assert report["format"] == "codex", name
        found = {kind.rpartition(":")[2]: number for kind, number in report["native"].items()}
        modes = [
            record.event.new
            for session in report["sessions"]
            for record in ledger.store.read(session)
            if isinstance(record.event, ModeChanged) and record.event.mode in ("approval", "sandbox")
            if record.source is not None and record.source.file == str(TRACES / name)
        ]
        for kind, count in counts.items():
            if kind == "policy_sequence":
                assert [modes] == count
            elif kind in report:
                assert report[kind] == count, (name, kind)
            elif not name.endswith("standard_session.jsonl"):
                assert found[kind] == count, (name, kind)
    assert import_paths(ledger.recorder, [TRACES / name for name in _traces()]).records_added == 0
