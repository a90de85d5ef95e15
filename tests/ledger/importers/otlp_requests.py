"""OTLP/JSON requests for tests, a span in a line."""

import json
from pathlib import Path
from typing import Any

_START = 1_790_000_000_000_000_000

Json = dict[str, Any]


def trace_of(number: int) -> str:
    """A trace id."""
    return f"{number:032x}"


def value(given: Any) -> Json:
    """A value in the form of OTLP/JSON."""
    if isinstance(given, bool):
        return {"boolValue": given}
    if isinstance(given, int):
        return {"intValue": str(given)}
    if isinstance(given, float):
        return {"doubleValue": given}
    if isinstance(given, list):
        return {"arrayValue": {"values": [value(item) for item in given]}}
    if isinstance(given, dict):
        return {"kvlistValue": {"values": pairs(given)}}
    return {"stringValue": given}


def pairs(given: Json) -> list[Json]:
    """Attributes."""
    return [{"key": name, "value": value(item)} for name, item in given.items()]


def span(
    number: int, operation: str, attributes: Json, *, trace: int = 1, parent: int = 0, status: int = 0
) -> Json:
    """A span that starts `number` seconds after the first and lasts one."""
    made: Json = {
        "traceId": trace_of(trace),
        "spanId": f"{number:016x}",
        "name": f"{operation} {number}",
        "startTimeUnixNano": str(_START + number * 10**9),
        "endTimeUnixNano": str(_START + (number + 1) * 10**9),
        "attributes": pairs({"gen_ai.operation.name": operation, **attributes}),
    }
    if parent:
        made["parentSpanId"] = f"{parent:016x}"
    if status:
        made["status"] = {"code": status}
    return made


def log(number: int, name: str, body: Any, attributes: Json | None = None, *, trace: int = 1) -> Json:
    """A log record of a span."""
    return {
        "traceId": trace_of(trace),
        "spanId": f"{number:016x}",
        "eventName": name,
        "timeUnixNano": str(_START + number * 10**9),
        "body": value(body),
        "attributes": pairs(attributes or {}),
    }


def one_request(
    spans: list[Json] | None = None, *, logs: list[Json] | None = None, resource: Json | None = None
) -> Json:
    """An export request of spans or of log records."""
    about = {"attributes": pairs({"service.name": "tested"} if resource is None else resource)}
    scope = {"name": "scope.tested"}
    if logs is not None:
        return {"resourceLogs": [{"resource": about, "scopeLogs": [{"scope": scope, "logRecords": logs}]}]}
    return {"resourceSpans": [{"resource": about, "scopeSpans": [{"scope": scope, "spans": spans}]}]}


def write_json(path: Path, request: Any) -> Path:
    """Write a request as one document."""
    path.write_text(json.dumps(request), encoding="utf-8")
    return path
