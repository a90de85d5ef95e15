"""One run recorded in several forms reads the same: the same calls, approvals and compactions in one order."""

import json
import os
from pathlib import Path

import pytest

from ledger.events.approval import ApprovalAsked, ApprovalDecided
from ledger.events.compaction import CompactionDone
from ledger.events.tool_call import ToolCallRequested, ToolCallSettled
from ledger.home import Ledger, open_ledger
from ledger.importers import discover
from ledger.importers._intake import import_paths
from replay.conversation import decode_content
from tests.ledger.importers.langgraph_cases import (
    FOLDER,
    case,
)

TRACES = Path(os.environ.get("LOOPLEDGER_TRACES", Path(__file__).parents[4] / "shared" / "traces"))
needs_traces = pytest.mark.skipif(not TRACES.is_dir(), reason="the shared traces are not here")


def canonical(ledger: Ledger, sources: list[Path]) -> list[tuple[str, ...]]:
    """Tool calls, approvals and compactions of a run in order, without what only one form says."""
    told: list[tuple[str, ...]] = []
    for session in import_paths(ledger.recorder, sources).sessions:
        for record in ledger.store.read(session):
            event = record.event
            if isinstance(event, ToolCallRequested):
                arguments = decode_content(ledger.store.content(event.arguments.digest))
                told.append(("call", event.call_id, event.tool, json.dumps(arguments, sort_keys=True)))
            elif isinstance(event, ToolCallSettled):
                told.append(("settled", event.call_id, event.outcome))
            elif isinstance(event, ApprovalAsked):
                told.append(("asked", event.call_id or "", event.tool or ""))
            elif isinstance(event, ApprovalDecided):
                assert event.outcome in ("approved", "unknown")  # spans do not say what was answered
                told.append(("decided", event.call_id or ""))
            elif isinstance(event, CompactionDone):
                told.append(("compaction",))  # one form counts the system prompt among the messages
    return told


needs_spans = pytest.mark.skipif("otlp" not in discover(), reason="the importer of spans is not here")


@needs_spans
def test_our_run_reads_the_same_from_checkpoints_and_from_spans(tmp_path: Path) -> None:
    told = {}
    for source in (case("one-run"), FOLDER / "one-run.openinference.traces.pb.gz"):
        with open_ledger(tmp_path / source.parent.name) as ledger:
            told[source.name] = canonical(ledger, [source])
    database, spans = told.values()
    assert database == spans
    assert [entry[0] for entry in database].count("compaction") == 2


@needs_traces
@needs_spans
def test_the_shared_run_reads_the_same_in_all_its_forms(tmp_path: Path) -> None:
    folder = TRACES / "wild" / "otlp-and-langgraph-generated"
    told = {}
    for name in (
        "langgraph_checkpoints_openinference.sqlite",
        "langgraph_checkpoints_traceloop.sqlite",
        "otlp_openinference.json",
        "otlp_traceloop.json",
    ):
        with open_ledger(tmp_path / name) as ledger:
            told[name] = canonical(ledger, [folder / name])
    expected = told["langgraph_checkpoints_openinference.sqlite"]
    assert [entry[:2] for entry in expected] == [
        ("call", "call_1"),
        ("settled", "call_1"),
        *[(kind, call) for call in ("call_2", "call_3") for kind in ("call", "asked", "decided", "settled")],
        ("compaction",),
    ]
    for name, sequence in told.items():
        assert sequence == expected, name
