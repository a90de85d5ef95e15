"""OTLP/JSON into records. Ids are hexadecimal, or base64 where a plain protobuf printer wrote them."""

import base64
import binascii
from collections.abc import Iterator
from typing import Any

import ijson

from ledger.events.canonical import spelled
from ledger.otlp.records import LogRecord, Origin, Record, Span
from ledger.otlp.values import finite, free_name, integer, open_json, plain

KINDS = ("resourceSpans", "resourceLogs")
"""What a request may hold, and we read."""

_SNAKE = {
    "resource_spans": "resourceSpans",
    "resource_logs": "resourceLogs",
    "resource_metrics": "resourceMetrics",
    "scope_spans": "scopeSpans",
    "scope_logs": "scopeLogs",
    "instrumentation_library_spans": "scopeSpans",
    "instrumentationLibrarySpans": "scopeSpans",
    "instrumentation_library_logs": "scopeLogs",
    "instrumentationLibraryLogs": "scopeLogs",
    "instrumentationLibrary": "scope",
    "instrumentation_library": "scope",
    "log_records": "logRecords",
    "trace_id": "traceId",
    "span_id": "spanId",
    "parent_span_id": "parentSpanId",
    "start_time_unix_nano": "startTimeUnixNano",
    "end_time_unix_nano": "endTimeUnixNano",
    "time_unix_nano": "timeUnixNano",
    "observed_time_unix_nano": "observedTimeUnixNano",
    "dropped_attributes_count": "droppedAttributesCount",
    "dropped_events_count": "droppedEventsCount",
    "dropped_links_count": "droppedLinksCount",
    "trace_state": "traceState",
    "schema_url": "schemaUrl",
    "event_name": "eventName",
    "severity_number": "severityNumber",
    "severity_text": "severityText",
}
_COUNTS = ("droppedAttributesCount", "droppedEventsCount", "droppedLinksCount", "flags")
_STATUS = {"STATUS_CODE_UNSET": 0, "STATUS_CODE_OK": 1, "STATUS_CODE_ERROR": 2}
_SPAN_KINDS = {
    "SPAN_KIND_UNSPECIFIED": 0,
    "SPAN_KIND_INTERNAL": 1,
    "SPAN_KIND_SERVER": 2,
    "SPAN_KIND_CLIENT": 3,
    "SPAN_KIND_PRODUCER": 4,
    "SPAN_KIND_CONSUMER": 5,
}
_SEVERITIES = {
    f"SEVERITY_NUMBER_{name}{step or ''}": 4 * place + 1 + (step - 1 if step else 0)
    for place, name in enumerate(("TRACE", "DEBUG", "INFO", "WARN", "ERROR", "FATAL"))
    for step in (0, 2, 3, 4)
}


def is_request(value: Any) -> bool:
    """Whether a JSON value is an OTLP request."""
    return isinstance(value, dict) and any(_SNAKE.get(name, name) in KINDS for name in value)


def request_records(request: dict[str, Any]) -> Iterator[Record]:
    """The records of one request, in its order. What is no record of the form is passed over by `others_of`."""
    for resource, scope, item, is_span in _placed(request):
        yield _span(item, _origin(resource, scope)) if is_span else _log(item, _origin(resource, scope))


def others_of(request: dict[str, Any]) -> dict[str, Any]:
    """What else a request holds: metrics, unknown fields, things that are no records."""
    others = {name: value for name, value in request.items() if _SNAKE.get(name, name) not in KINDS}
    for kind in KINDS:
        held = _camel(request).get(kind)
        if held is not None and not _is_sound(held):
            others[kind] = held
    return others


def _is_sound(held: Any) -> bool:
    """Whether all of it can be walked down to the records."""
    if not isinstance(held, list):
        return False
    for group in held:
        if not isinstance(group, dict):
            return False
        for scopes in _lists(_camel(group), ("scopeSpans", "scopeLogs")):
            if not isinstance(scopes, dict):
                return False
            if not all(isinstance(item, dict) for item in _lists(_camel(scopes), ("spans", "logRecords"))):
                return False
    return True


def _placed(request: dict[str, Any]) -> Iterator[tuple[dict[str, Any], dict[str, Any], dict[str, Any], bool]]:
    camel = _camel(request)
    for group in _lists(camel, KINDS):
        if not isinstance(group, dict):
            continue
        resource = _camel(group)
        for scopes in _lists(resource, ("scopeSpans", "scopeLogs")):
            if not isinstance(scopes, dict):
                continue
            scope = _camel(scopes)
            for name in ("spans", "logRecords"):
                items = scope.get(name)
                for item in items if isinstance(items, list) else ():
                    if isinstance(item, dict):
                        yield resource, scope, item, name == "spans"


def _lists(value: dict[str, Any], names: tuple[str, ...]) -> Iterator[Any]:
    for name in names:
        held = value.get(name)
        if isinstance(held, list):
            yield from held


def _camel(value: dict[str, Any]) -> dict[str, Any]:
    return {_SNAKE.get(name, name): item for name, item in value.items()}


def _origin(resource: dict[str, Any], scope: dict[str, Any]) -> Origin:
    """Resource and scope as they stand around a record."""
    inner = resource.get("resource")
    about = _attributes(inner.get("attributes")) if isinstance(inner, dict) else {}
    named = scope.get("scope")
    said: dict[str, Any] = {}
    if isinstance(named, dict):
        said = {name: named[name] for name in ("name", "version") if named.get(name)}
        if attributes := _attributes(named.get("attributes")):
            said["attributes"] = attributes
    for name, value in (("schemaUrl", scope.get("schemaUrl")), ("resourceSchema", resource.get("schemaUrl"))):
        if value:
            said[name] = value
    return Origin(about, said)


def _attributes(pairs: Any) -> dict[str, Any]:
    made: dict[str, Any] = {}
    if isinstance(pairs, list):
        for pair in pairs:
            if isinstance(pair, dict):
                made[free_name(made, spelled(pair.get("key", "")))] = plain(pair.get("value"), open_json)
    return made


def _id(value: Any, length: int) -> str:
    """An id in hexadecimal. Base64 has another length, so there is no doubt which it is."""
    if not isinstance(value, str) or not value:
        return ""
    if len(value) != 2 * length:
        try:
            decoded = base64.b64decode(value, validate=True)
        except (binascii.Error, ValueError):
            return value
        if len(decoded) == length:
            return decoded.hex() if any(decoded) else ""
        return value
    return value.lower() if value.strip("0") else ""


def _nanoseconds(value: Any) -> int:
    made = integer(value)
    return made if isinstance(made, int) and not isinstance(made, bool) and made > 0 else 0


def _rest(item: dict[str, Any], used: tuple[str, ...]) -> dict[str, Any]:
    rest = {}
    for name, value in item.items():
        if name in used or value in (None, "", [], {}):
            continue
        if name in _COUNTS:
            value = integer(value)
        if name == "kind":
            value = _SPAN_KINDS.get(value, value) if isinstance(value, str) else value
        if name == "severityNumber":
            value = _SEVERITIES.get(value, value) if isinstance(value, str) else value
        if value == 0 and not isinstance(value, bool):
            continue
        rest[name] = finite(value)
    return rest


_SPAN_USED = (
    *("traceId", "spanId", "parentSpanId", "name", "startTimeUnixNano", "endTimeUnixNano"),
    *("attributes", "events", "links", "status"),
)
_LOG_USED = ("traceId", "spanId", "timeUnixNano", "body", "attributes", "eventName")
_EVENT_USED = ("name", "timeUnixNano", "attributes")
_LINK_USED = ("traceId", "spanId", "attributes")


def _span(native: dict[str, Any], origin: Origin) -> Span:
    item = _camel(native)
    status = item.get("status")
    status = status if isinstance(status, dict) else {}
    code, message = status.get("code"), status.get("message")
    name = item.get("name")
    return Span(
        trace=_id(item.get("traceId"), 16),
        span=_id(item.get("spanId"), 8),
        parent=_id(item.get("parentSpanId"), 8),
        name=name if isinstance(name, str) else "",
        start=_nanoseconds(item.get("startTimeUnixNano")),
        end=_nanoseconds(item.get("endTimeUnixNano")),
        attributes=_attributes(item.get("attributes")),
        events=[_event(event) for event in _dicts(item.get("events"))],
        links=[_link(link) for link in _dicts(item.get("links"))],
        status=_STATUS.get(code, 0) if isinstance(code, str) else code if isinstance(code, int) else 0,
        status_message=message if isinstance(message, str) else "",
        rest=_rest(item, _SPAN_USED),
        origin=origin,
    )


def _dicts(values: Any) -> Iterator[dict[str, Any]]:
    for value in values if isinstance(values, list) else ():
        if isinstance(value, dict):
            yield _camel(value)


def _event(event: dict[str, Any]) -> dict[str, Any]:
    made: dict[str, Any] = {
        "name": event.get("name") or "",
        "time": str(_nanoseconds(event.get("timeUnixNano"))),
    }
    return made | {"attributes": _attributes(event.get("attributes"))} | _rest(event, _EVENT_USED)


def _link(link: dict[str, Any]) -> dict[str, Any]:
    made: dict[str, Any] = {"trace": _id(link.get("traceId"), 16), "span": _id(link.get("spanId"), 8)}
    return made | {"attributes": _attributes(link.get("attributes"))} | _rest(link, _LINK_USED)


def _log(native: dict[str, Any], origin: Origin) -> LogRecord:
    item = _camel(native)
    attributes = _attributes(item.get("attributes"))
    name = item.get("eventName") or attributes.get("event.name")
    rest = _rest(item, _LOG_USED)
    if observed := _nanoseconds(rest.pop("observedTimeUnixNano", 0)):
        rest["observed"] = str(observed)
    return LogRecord(
        trace=_id(item.get("traceId"), 16),
        span=_id(item.get("spanId"), 8),
        name=name if isinstance(name, str) else "",
        time=_nanoseconds(item.get("timeUnixNano")) or observed,
        body=plain(item.get("body"), open_json),
        attributes=attributes,
        rest=rest,
        origin=origin,
    )


def salvaged(raw: bytes) -> Iterator[Record]:
    """The whole records of a text that is cut or broken somewhere, up to that place."""
    resource: dict[str, Any] = {}
    scope: dict[str, Any] = {}
    builder: Any = None
    at = ""
    try:
        for prefix, event, value in ijson.parse(raw, use_float=True):
            if builder is None:
                names = [_SNAKE.get(name, name) for name in prefix.split(".") if name != "item"]
                if len(names) == 1 and prefix.endswith("item"):
                    resource, scope = {}, {}
                elif len(names) == 2 and prefix.endswith("item"):
                    scope = {}
                is_part = names[1:] == ["resource"] or names[2:] == ["scope"]
                is_record = names[2:] in (["spans"], ["logRecords"]) and prefix.endswith("item")
                if not (event == "start_map" and (is_part or is_record) and names[0] in KINDS):
                    continue
                builder, at = ijson.ObjectBuilder(), prefix
            builder.event(event, value)
            if prefix != at or event != "end_map":
                continue
            made, builder = builder.value, None
            names = [_SNAKE.get(name, name) for name in at.split(".") if name != "item"]
            if names[-1] == "resource":
                resource = {"resource": made}
            elif names[-1] == "scope":
                scope = {"scope": made}
            else:
                origin = _origin(resource, scope)
                yield _span(made, origin) if names[-1] == "spans" else _log(made, origin)
    except (ijson.JSONError, UnicodeDecodeError, ValueError):
        return  # where it is broken; the caller reports it
