"""OTLP/HTTP as exporters speak it, against a server in a process of its own."""

import json
from pathlib import Path

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse

from ledger.capture.otlp import BusyError, Receiver, TooLargeError, UndecodableError, unpacked
from ledger.events.recovery import DamageFound
from ledger.events.tool_call import ToolCallRequested
from ledger.home import open_ledger
from tests.webui.served import PROTOBUF, batch, post, served


def _calls(home: Path) -> list[str]:
    with open_ledger(home) as ledger:
        return [
            record.event.call_id
            for record in ledger.store.read_all()
            if isinstance(record.event, ToolCallRequested)
        ]


def test_what_was_acknowledged_survives_a_kill_children_first_and_sent_twice(tmp_path: Path) -> None:
    with served(tmp_path) as (url, child):
        for first in (50, 25, 0, 25):
            status, _, body = post(f"{url}/v1/traces", batch(first, 25), packed=first == 25)
            assert (status, body) == (200, b"")
        child.kill()
    assert sorted(_calls(tmp_path)) == sorted(f"call-{number}" for number in range(1, 75))
    with served(tmp_path) as (url, _):
        assert post(f"{url}/v1/traces", batch(0, 75))[0] == 200
    assert len(_calls(tmp_path)) == 74


def test_a_poisonous_span_costs_no_other_and_its_bytes_are_kept(tmp_path: Path) -> None:
    poisoned = batch(0, 3).replace(b"call-2", b"call-\xff")
    with served(tmp_path) as (url, _):
        status, _, body = post(f"{url}/v1/traces", poisoned)
    answer = ExportTraceServiceResponse.FromString(body).partial_success
    assert status == 200 and answer.rejected_spans == 1 and answer.error_message
    assert _calls(tmp_path) == ["call-1"]
    with open_ledger(tmp_path) as ledger:
        found = [r.event for r in ledger.store.read_all() if isinstance(r.event, DamageFound)]
    assert len(found) == 1 and found[0].content is not None


def test_what_cannot_be_read_is_refused_with_a_reason(tmp_path: Path) -> None:
    span = {"traceId": "07" * 16, "spanId": "01" * 8, "name": "a"}
    request = {"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]}
    log = {"resourceLogs": [{"scopeLogs": [{"logRecords": [{"body": {"stringValue": "said"}}]}]}]}
    with served(tmp_path) as (url, _):
        assert post(f"{url}/v1/traces", json.dumps(request).encode(), kind="application/json")[0] == 200
        assert (
            post(f"{url}/v1/logs", json.dumps(log).encode(), kind="application/json", packed=True)[0] == 200
        )
        assert post(f"{url}/v1/traces", b"{", kind="application/json")[0] == 400
        assert post(f"{url}/v1/traces", b"\xff\xff\xff")[0] == 400
        assert post(f"{url}/v1/traces", b"a", kind="text/plain")[0] == 415
    with open_ledger(tmp_path) as ledger:
        assert len(list(ledger.store.sessions())) == 2


def test_a_full_receiver_says_busy_and_a_bomb_is_stopped(tmp_path: Path) -> None:
    with open_ledger(tmp_path) as ledger:
        receiver = Receiver(ledger.recorder, held_bytes=10)
        with receiver.holding() as first, receiver.holding() as second:
            first.add(8)
            with pytest.raises(BusyError):
                second.add(8)
        receiver.close()
        with pytest.raises(BusyError):
            receiver.submit(b"", PROTOBUF)
    with pytest.raises(TooLargeError):
        unpacked(b"x" * 11, "", 10)
    with pytest.raises(UndecodableError):
        unpacked(b"x" * 11, "gzip", 10)


def test_twelve_megabytes_in_one_attribute_are_taken(tmp_path: Path) -> None:
    with served(tmp_path) as (url, _):
        assert post(f"{url}/v1/traces", batch(0, 2, filler=12_000_000), packed=True)[0] == 200
    assert _calls(tmp_path) == ["call-1"]
