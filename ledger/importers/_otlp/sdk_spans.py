"""Spans as the JavaScript SDK of OpenTelemetry holds them, as JSON: the same facts as OTLP, spelled otherwise."""

import re
from typing import Any

from ledger.events.canonical import spelled

_BEGINS = re.compile(
    rb'\A\s*\[?\s*\{\s*(?:"[\w.]{1,40}"\s*:\s*(?:"[^"]{0,200}"|\d+|\{[^{}]*\})\s*,\s*){0,6}"spanContext"\s*:\s*\{'
)
_RENAMED = frozenset(
    {
        "attributes",
        "endTime",
        "kind",
        "parentSpanContext",
        "parentSpanId",
        "spanContext",
        "startTime",
        "events",
    }
)


def looks_like_sdk_spans(start: bytes) -> bool:
    """Whether a file that begins so holds such spans, one by one or in a list."""
    return bool(_BEGINS.match(start.removeprefix(b"\xef\xbb\xbf")))


def is_sdk_span(value: Any) -> bool:
    """Whether a value is such a span."""
    return isinstance(value, dict) and isinstance(value.get("spanContext"), dict) and "name" in value


def as_request(spans: list[dict[str, Any]]) -> dict[str, Any]:
    """An export request of OTLP with these spans."""
    return {
        "resourceSpans": [
            {
                "resource": {"attributes": _attributes(_record(span.get("resource")).get("attributes"))},
                "scopeSpans": [{"scope": _scope(span), "spans": [_span(span)]}],
            }
            for span in spans
        ]
    }


def _span(span: dict[str, Any]) -> dict[str, Any]:
    context, parent = span["spanContext"], _record(span.get("parentSpanContext"))
    events = span.get("events")
    kind = span.get("kind")
    made = {name: value for name, value in span.items() if name not in _RENAMED}
    return {
        **made,
        "traceId": context.get("traceId"),
        "spanId": context.get("spanId"),
        "parentSpanId": parent.get("spanId") or span.get("parentSpanId") or "",
        "kind": kind + 1 if isinstance(kind, int) and 0 <= kind < 5 else 0,
        "startTimeUnixNano": _nanoseconds(span.get("startTime")),
        "endTimeUnixNano": _nanoseconds(span.get("endTime")),
        "attributes": _attributes(span.get("attributes")),
        "events": [_event(event) for event in events if isinstance(event, dict)]
        if isinstance(events, list)
        else [],
    }


def _event(event: dict[str, Any]) -> dict[str, Any]:
    return {
        "name": event.get("name"),
        "timeUnixNano": _nanoseconds(event.get("time")),
        "attributes": _attributes(event.get("attributes")),
    }


def _scope(span: dict[str, Any]) -> dict[str, Any]:
    return _record(span.get("instrumentationScope") or span.get("instrumentationLibrary"))


def _nanoseconds(time: Any) -> str:
    """A time of the SDK: seconds and nanoseconds."""
    match time:
        case [int() as seconds, int() as rest] if 0 <= seconds < 2**40 and 0 <= rest < 10**9:
            return str(seconds * 10**9 + rest)
    return "0"


def _attributes(attributes: Any) -> list[dict[str, Any]]:
    return [{"key": name, "value": _value(value)} for name, value in _record(attributes).items()]


def _value(value: Any) -> dict[str, Any]:
    """A value as OTLP writes it: a text, number or truth, or a list of these; all that attributes may hold."""
    if isinstance(value, list):
        return {"arrayValue": {"values": [_scalar(one) for one in value]}}
    return _scalar(value)


def _scalar(value: Any) -> dict[str, Any]:
    match value:
        case bool():
            return {"boolValue": value}
        case str():
            return {"stringValue": value}
        case int():
            return {"intValue": str(value)}
        case float():
            return {"doubleValue": value}
    return {} if value is None else {"stringValue": spelled(value)}


def _record(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
