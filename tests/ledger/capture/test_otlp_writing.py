"""Requests on their way into the ledger: one that cannot be written costs no other, and keeps its bytes."""

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ledger.capture.otlp import Receiver, UndecodableError
from ledger.capture.otlp.requests import PROTOBUF, Entry, decoded
from ledger.capture.otlp.writing import Writer
from ledger.events.approval import ApprovalAsked, ApprovalDecided
from ledger.events.compaction import CompactionDone
from ledger.events.model_call import ModelCallAnswered
from ledger.events.recovery import DamageFound
from ledger.events.tool_call import ToolCallRequested, ToolCallSettled
from ledger.home import Ledger, open_ledger
from ledger.importers._intake import import_paths
from ledger.importers._otlp.reading import entries
from ledger.otlp.records import Span
from ledger.store import verify
from tests.ledger.importers.fixtures import FIXTURES
from tests.webui.otlp_spans import request, tool


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    """An empty ledger."""
    with open_ledger(tmp_path) as opened:
        yield opened


def _calls(ledger: Ledger) -> list[str]:
    events = (record.event for record in ledger.store.read_all())
    return [event.call_id for event in events if isinstance(event, ToolCallRequested)]


def _poisoned(number: int) -> list[Entry]:
    """A request of three spans, the second of which holds what no JSON can."""
    entries = decoded(request(*(tool(number + place, parent=0) for place in range(3))), PROTOBUF)
    poisonous = entries[1]
    assert isinstance(poisonous, Span)
    poisonous.attributes["poison"] = object()
    return entries


def test_a_record_that_cannot_be_written_is_kept_as_damage_and_costs_no_other(ledger: Ledger) -> None:
    writer = Writer(ledger.recorder)
    with pytest.raises(TypeError):
        writer.write([_poisoned(1)])
    answer = writer.write_one_by_one(_poisoned(1))
    assert answer.rejected == 1
    assert "could not be read" in answer.messages[0]
    (answer,) = writer.write([decoded(request(tool(9, parent=0)), PROTOBUF)])
    assert answer.rejected == 0
    assert _calls(ledger) == ["call-1-1", "call-1-3", "call-1-9"]
    damages = [record.event for record in ledger.store.read_all(names=[DamageFound.TYPE])]
    assert len(damages) == 1
    assert isinstance(damages[0], DamageFound) and damages[0].content is not None
    assert b"call-1-2" in ledger.store.content(damages[0].content.digest)


def test_two_writers_of_one_trace_keep_each_span_once(ledger: Ledger) -> None:
    first, second = Writer(ledger.recorder), Writer(ledger.recorder)
    for number in range(1, 6):
        entries = [tool(number, parent=0), tool(number + 1, parent=0)]
        for writer in (first, second):
            writer.write([decoded(request(*entries), PROTOBUF)])
    assert sorted(_calls(ledger)) == [f"call-1-{number}" for number in range(1, 7)]
    assert verify(ledger.store).ok


def _told(ledger: Ledger) -> list[tuple[str, ...]]:
    """Calls, approvals, answers and compactions in the order of each session."""
    told: list[tuple[str, ...]] = []
    for session in sorted(ledger.store.sessions()):
        for record in ledger.store.read(session):
            event = record.event
            if isinstance(event, ToolCallRequested):
                content = ledger.store.content(event.arguments.digest)
                told.append((record.type, event.call_id, content.decode()))
            elif isinstance(event, ToolCallSettled):
                told.append((record.type, event.call_id, event.outcome))
            elif isinstance(event, ApprovalAsked | ApprovalDecided | ModelCallAnswered):
                told.append((record.type, event.call_id or ""))
            elif isinstance(event, CompactionDone):
                told.append((record.type,))
    return told


@pytest.mark.parametrize("size", [1, 3, 10, 1000])
@pytest.mark.parametrize(
    "source",
    [
        "langgraph/one-run.openinference.traces.pb.gz",
        "otlp/interrupt/payer.traces.otlp.jsonl",
        "otlp/openllmetry/buyer.traces.pb.gz",
        "otlp/openinference/buyer.otlp.json",
    ],
)
def test_a_run_that_comes_span_by_span_reads_like_its_file(tmp_path: Path, source: str, size: int) -> None:
    path = FIXTURES / source
    with open_ledger(tmp_path / "imported") as imported, open_ledger(tmp_path / "received") as received:
        import_paths(imported.recorder, [path])
        spans = sorted(
            (entry for entry in entries(path) if isinstance(entry, Span)), key=lambda span: span.end
        )
        writer = Writer(received.recorder)
        for first in range(0, len(spans), size):  # as exporters send them: each when it has ended
            writer.write([list(spans[first : first + size])])
        assert _told(received) == _told(imported)


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(st.data())
def test_a_body_cut_or_changed_anywhere_stops_nothing(ledger: Ledger, data: st.DataObject) -> None:
    body = bytearray(request(tool(1, parent=0), tool(2)))
    for place in data.draw(st.lists(st.integers(0, len(body) - 1), max_size=4)):
        body[place] = data.draw(st.integers(0, 255))
    cut = data.draw(st.integers(0, len(body)))
    receiver = Receiver(ledger.recorder)
    with contextlib.suppress(UndecodableError):
        receiver.submit(bytes(body[:cut]), PROTOBUF).result()
    assert receiver.submit(request(tool(3, parent=0)), PROTOBUF).result().rejected == 0
    receiver.close()
    assert "call-1-3" in _calls(ledger)
