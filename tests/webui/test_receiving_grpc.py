"""OTLP/gRPC against a server in a process of its own. Skipped where the extra `grpc` is not installed."""

import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceResponse
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse

from ledger.events.tool_call import ToolCallRequested
from ledger.home import open_ledger
from tests.commands import run
from tests.webui.otlp_spans import agent, logs, request, tool
from tests.webui.served import batch, free_port, post, served

grpc = pytest.importorskip("grpc")

_PACKAGE = "opentelemetry.proto.collector"

Export = Callable[..., bytes]


@pytest.fixture
def exports(tmp_path: Path) -> Iterator[tuple[str, Export, Export]]:
    """Address of OTLP/HTTP, and the two methods of OTLP/gRPC, of one server."""
    port = free_port()
    with (
        served(tmp_path, "--grpc-port", str(port), "--max-request", "20") as (url, _),
        grpc.insecure_channel(f"127.0.0.1:{port}") as channel,
    ):
        traces = channel.unary_unary(f"/{_PACKAGE}.trace.v1.TraceService/Export")
        yield url, traces, channel.unary_unary(f"/{_PACKAGE}.logs.v1.LogsService/Export")


def _calls(home: Path) -> Counter[str]:
    with open_ledger(home) as ledger:
        events = (record.event for record in ledger.store.read_all())
        return Counter(event.call_id for event in events if isinstance(event, ToolCallRequested))


def test_both_transports_lead_to_one_ledger_that_keeps_each_span_once(
    tmp_path: Path, exports: tuple[str, Export, Export]
) -> None:
    url, traces, log_records = exports
    assert traces(batch(0, 10)) == b""
    assert traces(batch(5, 10), compression=grpc.Compression.Gzip) == b""
    assert post(f"{url}/v1/traces", batch(0, 20))[0] == 200
    assert log_records(logs((1, "said", {"a": "b"}))) == b""
    assert traces(request(agent(1), tool(2, result="x" * 12_000_000))) == b""
    assert _calls(tmp_path) == {f"call-{number}": 1 for number in range(1, 20)} | {"call-1-2": 1}


def test_what_cannot_be_read_is_said_as_the_convention_wants_it(
    tmp_path: Path, exports: tuple[str, Export, Export]
) -> None:
    _, traces, log_records = exports
    answer = ExportTraceServiceResponse.FromString(traces(batch(0, 3).replace(b"call-2", b"call-\xff")))
    assert answer.partial_success.rejected_spans == 1 and answer.partial_success.error_message
    said = ExportLogsServiceResponse.FromString(
        log_records(logs((1, "said", {"a": "b"})) + b"\x0a\x03\x12\x01\x07")
    )
    assert said.partial_success.error_message
    with pytest.raises(grpc.RpcError) as refused:
        traces(b"\xff\xff\xff")
    assert refused.value.code() == grpc.StatusCode.INVALID_ARGUMENT
    with pytest.raises(grpc.RpcError) as too_large:
        traces(b"x" * 21_000_000)
    assert too_large.value.code() == grpc.StatusCode.RESOURCE_EXHAUSTED
    assert _calls(tmp_path) == {"call-1": 1}


def test_a_sender_that_cannot_be_served_now_is_told_to_come_again(
    tmp_path: Path, exports: tuple[str, Export, Export]
) -> None:
    _, traces, _ = exports
    blocker = sqlite3.connect(tmp_path / "ledger.sqlite", isolation_level=None)
    blocker.execute("begin immediate")
    waiting = [
        traces.future(request(tool(number, parent=0)))  # type: ignore[attr-defined]
        for number in range(1, 301)
    ]
    assert waiting[-1].exception(timeout=120).code() == grpc.StatusCode.UNAVAILABLE
    blocker.execute("rollback")
    blocker.close()
    refused = [error.code() for one in waiting if (error := one.exception(timeout=120)) is not None]
    assert set(refused) == {grpc.StatusCode.UNAVAILABLE}
    assert _calls(tmp_path).total() == 300 - len(refused) > 0


def test_a_port_that_is_taken_is_a_wrong_use(tmp_path: Path, exports: tuple[str, Export, Export]) -> None:
    taken = exports[0].rpartition(":")[2]
    assert run(tmp_path / "other", "serve", "--port", 0, "--grpc-port", taken).exit_code == 2
