"""The DeepSeek Harness importer: all log formats, frames, compaction, deliveries of the log, damage."""

import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import zstandard
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ledger.events.approval import ApprovalAsked, ApprovalDecided
from ledger.events.compaction import CompactionDone
from ledger.events.delegation import DelegationReturned, DelegationStarted
from ledger.events.effect import EffectDone
from ledger.events.keeping import SourceKept
from ledger.events.model_call import (
    ModelCallAnswered,
    ModelCallChunk,
    ModelCallFailed,
    ModelCallRequested,
    ModelCallRetried,
)
from ledger.events.recovery import DamageFound
from ledger.events.session import SessionForked, SessionResumed, SessionStarted
from ledger.events.tool_call import ToolCallSettled
from ledger.home import open_ledger
from ledger.importers import Sniff, deepseek_harness
from ledger.importers._files import open_source
from ledger.importers._intake import import_paths
from tests.ledger.importers.fixtures import FIXTURES, trace_files
from tests.ledger.importers.harness_checks import (
    TRACES,
    check_foreign,
    check_import,
    check_traces,
    events_of,
    mutated,
    with_ledger,
    write_lines,
)

FOLDER = FIXTURES / "deepseek-harness"
BASIC = FOLDER / "basic" / "lab-basic" / "session.v4.jsonl.zstd"


def _rows(path: Path = BASIC) -> list[Any]:
    with open_source(path) as stream:
        return [json.loads(line) for line in stream.read().splitlines()]


def _log(*events: dict[str, Any], version: int = 0, **header: Any) -> list[Any]:
    first = {"type": "session", "version": version, "id": "old", "createdAt": 1_700_000_000_000, **header}
    return [
        first,
        *({"seq": seq, "time": 1_700_000_000_100 + seq, **event} for seq, event in enumerate(events)),
    ]


def test_every_native_seq_is_kept_as_the_source_item(tmp_path: Path) -> None:
    records = with_ledger(tmp_path / "home", [BASIC])
    found = {record.source.item for record in records if record.source is not None}
    assert found == {"header", *(f"seq:{row['seq']}" for row in _rows()[1:])}


def test_each_frame_of_the_file_is_read(tmp_path: Path) -> None:
    assert BASIC.read_bytes().count(b"\x28\xb5\x2f\xfd") == len(_rows()) > 60
    torn = tmp_path / BASIC.name
    torn.write_bytes(BASIC.read_bytes()[:-20])
    with open_ledger(tmp_path / "home") as ledger:
        (report,) = import_paths(ledger.recorder, [torn]).files
        assert report["lines"] == len(_rows()) - 1
        assert report["model_calls"] == 5


def test_the_log_that_goes_to_the_provider_is_an_effect_and_a_note(tmp_path: Path) -> None:
    with open_ledger(tmp_path / "home") as ledger:
        (report,) = import_paths(ledger.recorder, [BASIC]).files
        sent = [
            one for one in events_of(list(ledger.store.read_all()), EffectDone) if one.operation == "send"
        ]
    deliveries = [row for row in _rows() if row["type"] == "session-log-deepseek/delivery-accepted"]
    assert len(sent) == len(deliveries) == 6
    assert {(one.target, one.effect_class, one.evidence) for one in sent} == {
        ("deepseek:dsh_session_log", "external", "declared")
    }
    assert any("sent this session's log to the model's provider 6 times" in note for note in report["notes"])


def test_failures_retries_and_resumption(tmp_path: Path) -> None:
    records = with_ledger(tmp_path / "home", [BASIC])
    failed = events_of(records, ModelCallFailed)
    assert [(one.error, one.status) for one in failed] == [("SERVER", 529), ("TRANSPORT", None)]
    retried = events_of(records, ModelCallRetried)
    assert [one.failed_call_id for one in retried] == [one.call_id for one in failed]
    assert [one.attempt for one in events_of(records, ModelCallRequested)] == [1, 1, 1, 2, 3, 1, 1]
    assert len(events_of(records, ModelCallChunk)) == 1  # half an answer had arrived
    assert len(events_of(records, SessionResumed)) == 1
    asked, decided = events_of(records, ApprovalAsked)[0], events_of(records, ApprovalDecided)[0]
    assert (decided.outcome, decided.decided_by, decided.how) == ("denied", "system", "unavailable")
    settled = {one.call_id: one.outcome for one in events_of(records, ToolCallSettled)}
    assert settled[asked.call_id] == settled[decided.call_id] == "denied"
    changed = [(one.operation, Path(one.target).name) for one in events_of(records, EffectDone)]
    assert [one for one in changed if one[0] != "send"] == [("edit", "greeting.txt"), ("create", "new.txt")]


def test_a_compaction_replaces_what_it_shadows(tmp_path: Path) -> None:
    records = with_ledger(tmp_path / "home", trace_files(FOLDER / "compaction"))
    first, second = events_of(records, CompactionDone)
    asked = {one.call_id: one for one in events_of(records, ModelCallRequested)}
    assert asked[first.call_id].purpose == "compaction"
    assert (first.trigger, first.evidence) == ("auto", "logged")
    assert (first.messages_before, first.messages_after) == (6, 3)
    assert (second.context_before, second.messages_after) == (first.context_after, 3)
    last = events_of(records, ModelCallRequested)[-1]
    assert last.completeness == "messages"
    assert last.context_length == 7


def test_a_sub_agent_is_a_session_with_a_parent(tmp_path: Path) -> None:
    records = with_ledger(tmp_path / "home", trace_files(FOLDER / "delegation"))
    started = {record.session: record.event for record in records if isinstance(record.event, SessionStarted)}
    (child,) = [name for name, event in started.items() if event.parent is not None]
    assert started[child].parent == "lab-delegation"
    (handed,), (back,) = events_of(records, DelegationStarted), events_of(records, DelegationReturned)
    assert (handed.to_session, handed.call_id, back.from_session) == (child, "call_0001", child)
    assert {record.depth for record in records if record.session == child and record.source} == {1}


def test_the_oldest_format_with_chunks_steering_and_old_names(tmp_path: Path) -> None:
    text = {"type": "text", "text": "hello"}
    message = {"role": "assistant", "content": [text], "id": "m2", "source": {"kind": "model"}}
    rows = _log(
        {
            "type": "request/header",
            "data": {"header": {"config": {"model": "deepseek-x"}, "system": "Be good."}},
        },
        {
            "type": "user/message",
            "data": {"role": "user", "content": [text], "source": {"kind": "user"}, "id": "m1"},
            "surfaceOp": "append",
        },
        {
            "type": "assistant/chunk",
            "data": {"turn": 1, "step": 1, "chunk": {"type": "text-delta", "text": "he"}},
        },
    )
    rows.append(
        {
            "type": "text-chunks",
            "seq0": 3,
            "time0": 1_700_000_000_200,
            "data": {"turn": 1, "step": 1, "index": 0, "dt": [5], "texts": ["l", "lo"]},
        }
    )
    rows += [
        {
            "type": "assistant/message",
            "seq": 5,
            "time": 1_700_000_000_300,
            "data": {
                "turn": 1,
                "step": 1,
                "message": message,
                "usage": {"inputTokens": 3, "outputTokens": 2},
            },
            "surfaceOp": "append",
        },
        {
            "type": "compact/summary",
            "seq": 6,
            "time": 1_700_000_000_400,
            "data": {"compactionId": "c", "summary": [text], "shadowedSeqs": [1, 5], "model": "deepseek-x"},
            "surfaceOp": {"op": "replace", "start": 1, "end": 5},
        },
        {
            "type": "steering/message",
            "seq": 7,
            "time": 1,
            "data": {"turn": 1, "content": [text], "source": {"kind": "user"}},
        },
        {"type": "brand/new", "seq": 8, "time": 2, "data": {}},
    ]
    records = with_ledger(tmp_path / "home", [write_lines(tmp_path / "session.jsonl", rows)])
    assert [one.purpose for one in events_of(records, ModelCallRequested)] == ["main", "compaction"]
    answer = events_of(records, ModelCallAnswered)[0]
    assert {one.call_id for one in events_of(records, ModelCallChunk)} == {answer.call_id}
    (done,) = events_of(records, CompactionDone)
    assert (done.messages_before, done.messages_after) == (2, 1)
    unknown = [one.native_type for one in events_of(records, SourceKept) if not one.recognized]
    assert unknown == ["brand/new"]
    assert not events_of(records, DamageFound)


def test_a_fork_does_not_count_what_it_copies(tmp_path: Path) -> None:
    rows = _rows()
    cut = next(place for place, row in enumerate(rows) if row["type"] == "turn/end") + 1
    head = {**rows[0], "id": "fork", "parentSession": rows[0]["id"], "isSeeded": True}
    mark = {"type": "session/end-seed", "seq": cut - 1, "time": 1, "data": {"inherited": True}}
    path = write_lines(tmp_path / "session.v4.jsonl", [head, *rows[1:cut], mark])
    records = with_ledger(tmp_path / "home", [path])
    (forked,) = events_of(records, SessionForked)
    assert forked.origin == "lab-basic"
    assert events_of(records, ModelCallAnswered) == []
    old = write_lines(tmp_path / "session.jsonl", _log(*rows[1:5], parentSession="x", seedLength=4))
    kept = events_of(with_ledger(tmp_path / "home2", [old]), SourceKept)
    assert [one.native_type.split(":")[0] for one in kept] == ["inherited"] * 4


def test_missing_events_are_damage_and_repeated_ones_are_kept(tmp_path: Path) -> None:
    rows = _rows()
    del rows[10]
    rows.append(rows[-1])
    records = with_ledger(tmp_path / "home", [write_lines(tmp_path / "session.v4.jsonl", rows)])
    (damage,) = events_of(records, DamageFound)
    assert "expected the event with seq 9, found 10" in damage.reason
    assert {one.completeness for one in events_of(records, ModelCallRequested)} == {"partial"}
    assert len(events_of(records, ModelCallAnswered)) == 5


def test_other_files_are_not_taken(tmp_path: Path) -> None:
    check_foreign(deepseek_harness, tmp_path)
    pi = b'{"type":"session","version":3,"id":"a","timestamp":"t","cwd":"/"}\n'
    path = tmp_path / "pi.jsonl"
    path.write_bytes(pi)
    assert not deepseek_harness.recognizes(Sniff(path, pi, len(pi)))


@given(st.data())
@settings(max_examples=25, suppress_health_check=[HealthCheck.too_slow])
def test_wrong_types_anywhere_do_no_harm(data: st.DataObject) -> None:
    rows = _rows(trace_files(FOLDER / data.draw(st.sampled_from(["basic", "compaction"])))[0])
    start = data.draw(st.integers(0, len(rows) - 12))
    part = [rows[0], *rows[start : start + 12]]
    with tempfile.TemporaryDirectory() as folder:
        path = write_lines(Path(folder) / "session.v4.jsonl", mutated(data, part))
        check_import([path], Path(folder) / "home", "deepseek-harness")


def test_damaged_frames_are_reported(tmp_path: Path, clock: Callable[[], str]) -> None:
    packed = bytearray(BASIC.read_bytes())
    packed[len(packed) // 2] ^= 0xFF
    path = tmp_path / BASIC.name
    path.write_bytes(bytes(packed))
    with open_ledger(tmp_path / "home", clock=clock) as ledger:
        (report,) = import_paths(ledger.recorder, [path], format_name="deepseek-harness").files
    assert "stopped after line" in report["reason"]
    with pytest.raises(zstandard.ZstdError), open_source(path) as stream:
        stream.read()


@pytest.mark.skipif(not TRACES.is_dir(), reason="no shared traces here")
def test_shared_traces(tmp_path: Path) -> None:
    taken = check_traces(deepseek_harness)
    assert [path.name for path in taken] == ["events.json", "notifications.json"]
    with open_ledger(tmp_path / "home") as ledger:
        listed, notified = import_paths(ledger.recorder, taken).files
        assert listed["sessions"] == notified["sessions"] == ["rfq-2031b"]
        assert listed["tokens"] == {"input": 62, "output": 13, "cache_read": 7, "cache_write": 0}
        kinds = [record.type for record in ledger.store.read("rfq-2031b")]
        assert kinds.count("model_call.answered") == 1
