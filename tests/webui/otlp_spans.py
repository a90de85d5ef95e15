"""OTLP spans and export requests for tests, in the real protobuf messages."""

import json
from collections.abc import Mapping
from typing import Any

from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status

START = 1_790_000_000_000_000_000
"""When the first span starts, nanoseconds since 1970."""


def _fill(pairs: Any, given: Mapping[str, Any]) -> None:
    for name, said in given.items():
        text = said if isinstance(said, str) else json.dumps(said)
        pairs.add(key=name).value.string_value = text


def span(
    number: int,
    attributes: Mapping[str, Any],
    *,
    trace: int = 1,
    parent: int = 0,
    start: int = START,
    failed: str = "",
) -> Span:
    """A span that starts `number` seconds after `start` and lasts one; what is no text goes as JSON."""
    made = Span(
        trace_id=trace.to_bytes(16, "big"),
        span_id=number.to_bytes(8, "big"),
        parent_span_id=parent.to_bytes(8, "big") if parent else b"",
        name=f"span {number}",
        start_time_unix_nano=start + number * 10**9,
        end_time_unix_nano=start + (number + 1) * 10**9,
    )
    _fill(made.attributes, attributes)
    if failed:
        made.status.code = Status.STATUS_CODE_ERROR
        _fill(made.attributes, {"error.type": failed})
    return made


def agent(number: int, *, trace: int = 1, parent: int = 0, **others: Any) -> Span:
    """A span of an agent."""
    said = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "clerk"}
    return span(number, said, trace=trace, parent=parent, **others)


def tool(number: int, *, trace: int = 1, parent: int = 1, result: str = "done", **others: Any) -> Span:
    """A span of a tool call, `call-<trace>-<number>`."""
    said = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "write",
        "gen_ai.tool.call.id": f"call-{trace}-{number}",
        "gen_ai.tool.call.arguments": {"line": number},
        "gen_ai.tool.call.result": result,
    }
    return span(number, said, trace=trace, parent=parent, **others)


def model(
    number: int, answer: list[Any], *, parent: int = 1, stop: str = "", failed: str = "", **others: Any
) -> Span:
    """A span of a model call with an answer made of parts."""
    said: dict[str, Any] = {
        "gen_ai.operation.name": "chat",
        "gen_ai.request.model": "a-model",
        "gen_ai.input.messages": [{"role": "user", "parts": [{"type": "text", "content": "go on"}]}],
        "gen_ai.output.messages": [{"role": "assistant", "parts": answer}],
    }
    if stop:
        said["gen_ai.response.finish_reasons"] = [stop]
    return span(number, said, parent=parent, failed=failed, **others)


def request(*spans: Span, service: str = "agent") -> bytes:
    """An export request of traces."""
    made = ExportTraceServiceRequest()
    group = made.resource_spans.add()
    _fill(group.resource.attributes, {"service.name": service})
    scope = group.scope_spans.add()
    scope.spans.extend(spans)
    return made.SerializeToString()


def logs(*records: tuple[int, str, Mapping[str, Any]], trace: int = 1, service: str = "agent") -> bytes:
    """An export request of log records: span, event name, attributes."""
    made = ExportLogsServiceRequest()
    group = made.resource_logs.add()
    _fill(group.resource.attributes, {"service.name": service})
    scope = group.scope_logs.add()
    for number, name, said in records:
        record = scope.log_records.add(
            trace_id=trace.to_bytes(16, "big"),
            span_id=number.to_bytes(8, "big"),
            event_name=name,
            time_unix_nano=START + number * 10**9,
        )
        _fill(record.attributes, said)
    return made.SerializeToString()
