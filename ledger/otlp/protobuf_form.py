"""OTLP protobuf into records, walked field by field so that a cut or broken message costs only its own bytes."""

from collections.abc import Iterator
from typing import Any, BinaryIO, NamedTuple

from google.protobuf.message import DecodeError
from opentelemetry.proto.common.v1.common_pb2 import InstrumentationScope, KeyValue
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord as LogMessage
from opentelemetry.proto.resource.v1.resource_pb2 import Resource
from opentelemetry.proto.trace.v1.trace_pb2 import Span as SpanMessage

from ledger.otlp.records import LogRecord, Origin, Record, Span
from ledger.otlp.values import free_name, open_message, plain

_LENGTHS = {0: None, 1: 8, 2: None, 5: 4}
_NESTED = 2
_LARGEST = 512 * 1024 * 1024


class Torn(NamedTuple):
    """A stretch of a message that could not be read."""

    offset: int
    """Where it begins in the file or body."""
    reason: str
    """What was expected and found."""
    raw: bytes
    """Its bytes."""


class _Field(NamedTuple):
    number: int
    wire: int
    start: int
    end: int


def _varint(data: bytes | memoryview, at: int, end: int) -> tuple[int, int] | None:
    """A number and the place after it; None when it is cut or too long."""
    value = shift = 0
    while at < end and shift < 64:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
    return None


def _fields(data: bytes, start: int, end: int) -> Iterator[_Field | int]:
    """The fields between two places; at a broken one the place where it begins, as the last thing given."""
    at = start
    while at < end:
        begin = at
        tag = _varint(data, at, end)
        if tag is None or tag[0] >> 3 == 0 or tag[0] & 7 not in _LENGTHS:
            yield begin
            return
        number, wire = tag[0] >> 3, tag[0] & 7
        at = tag[1]
        if wire == _NESTED or wire == 0:
            value = _varint(data, at, end)
            if value is None:
                yield begin
                return
            at = value[1]
            length = value[0] if wire == _NESTED else 0
        else:
            length = _LENGTHS[wire] or 0
        yield _Field(number, wire, at, at + length)
        at += length


def request_records(data: bytes, offset: int = 0) -> Iterator[Record | Torn]:
    """The records of an export request, or of several written one after another."""
    for field in _fields(data, 0, len(data)):
        if isinstance(field, int):
            yield _torn(data, field, len(data), offset, "an export request")
        elif field.number == 1 and field.wire == _NESTED:
            yield from group_records(data[field.start : field.end], offset + field.start)
            if field.end > len(data):
                return  # the cut is reported where it falls
        elif field.end > len(data):
            yield _torn(data, field.start, len(data), offset, "a field of an export request")


def group_records(data: bytes, offset: int = 0) -> Iterator[Record | Torn]:
    """The records of one resource."""
    about: dict[str, Any] = {}
    schema = ""
    groups: list[_Field] = []
    for field in _fields(data, 0, len(data)):
        if isinstance(field, int):
            yield _torn(data, field, len(data), offset, "a resource with its spans or log records")
        elif field.number == 1 and field.wire == _NESTED and field.end <= len(data):
            try:
                about = _attributes(Resource.FromString(data[field.start : field.end]).attributes)
            except DecodeError:
                yield _torn(data, field.start, field.end, offset, "a resource")
        elif field.number == _NESTED and field.wire == _NESTED:
            groups.append(field)
        elif field.number == 3 and field.wire == _NESTED:
            schema = data[field.start : field.end].decode("utf-8", "replace")
    for group in groups:
        yield from _scope_records(data, group.start, group.end, about, schema, offset)


def _scope_records(
    data: bytes, start: int, end: int, about: dict[str, Any], resource_schema: str, offset: int
) -> Iterator[Record | Torn]:
    said: dict[str, Any] = {}
    items: list[_Field] = []
    stop = min(end, len(data))
    for field in _fields(data, start, stop):
        if isinstance(field, int):
            yield _torn(data, field, stop, offset, "a scope with its spans or log records")
        elif field.number == 1 and field.wire == _NESTED and field.end <= stop:
            try:
                said = _scope(InstrumentationScope.FromString(data[field.start : field.end])) | said
            except DecodeError:
                yield _torn(data, field.start, field.end, offset, "an instrumentation scope")
        elif field.number == _NESTED and field.wire == _NESTED:
            items.append(field)
        elif field.number == 3 and field.wire == _NESTED:
            said["schemaUrl"] = data[field.start : field.end].decode("utf-8", "replace")
    if resource_schema:
        said["resourceSchema"] = resource_schema
    origin = Origin(about, said)
    for item in items:
        if item.end > stop:
            yield _torn(data, item.start, stop, offset, "a whole span or log record", "it cut")
            return
        raw = data[item.start : item.end]
        try:
            yield _record(raw, origin)
        except (DecodeError, UnicodeDecodeError) as error:
            yield _torn(data, item.start, item.end, offset, "a span or log record", str(error))


def _torn(data: bytes, start: int, end: int, offset: int, what: str, found: str = "other bytes") -> Torn:
    return Torn(offset + start, f"expected {what} at byte {offset + start}, found {found}", data[start:end])


def _record(raw: bytes, origin: Origin) -> Record:
    made = (
        _log(LogMessage.FromString(raw), origin)
        if _is_log(raw)
        else _span(SpanMessage.FromString(raw), origin)
    )
    made.size = len(raw)
    return made


_LOG_WIRES = {1: 1, 2: 0, 6: _NESTED, 7: 0, 8: 5, 11: 1}
_SPAN_WIRES = {1: _NESTED, 2: _NESTED, 6: 0, 7: 1, 8: 1, 11: _NESTED}


def _is_log(raw: bytes) -> bool:
    """Span and log record differ in the wire types of fields that both have."""
    for field in _fields(raw, 0, len(raw)):
        if isinstance(field, int) or _SPAN_WIRES.get(field.number) == field.wire:
            return False
        if _LOG_WIRES.get(field.number) == field.wire:
            return True
    return False


def _attributes(pairs: Any) -> dict[str, Any]:
    made: dict[str, Any] = {}
    pair: KeyValue
    for pair in pairs:
        made[free_name(made, pair.key)] = plain(pair.value, open_message)
    return made


def _scope(scope: InstrumentationScope) -> dict[str, Any]:
    said: dict[str, Any] = {
        name: value for name, value in (("name", scope.name), ("version", scope.version)) if value
    }
    if scope.attributes:
        said["attributes"] = _attributes(scope.attributes)
    return said


def _id(value: bytes) -> str:
    return value.hex() if any(value) else ""


def _counts(message: Any, names: dict[str, str]) -> dict[str, Any]:
    return {native: value for name, native in names.items() if (value := getattr(message, name))}


_SPAN_REST = {
    "kind": "kind",
    "trace_state": "traceState",
    "flags": "flags",
    "dropped_attributes_count": "droppedAttributesCount",
    "dropped_events_count": "droppedEventsCount",
    "dropped_links_count": "droppedLinksCount",
}
_LOG_REST = {
    "severity_number": "severityNumber",
    "severity_text": "severityText",
    "flags": "flags",
    "dropped_attributes_count": "droppedAttributesCount",
}
_DROPPED = {"dropped_attributes_count": "droppedAttributesCount"}


def _span(message: SpanMessage, origin: Origin) -> Span:
    return Span(
        trace=_id(message.trace_id),
        span=_id(message.span_id),
        parent=_id(message.parent_span_id),
        name=message.name,
        start=message.start_time_unix_nano,
        end=message.end_time_unix_nano,
        attributes=_attributes(message.attributes),
        events=[
            {
                "name": event.name,
                "time": str(event.time_unix_nano),
                "attributes": _attributes(event.attributes),
                **_counts(event, _DROPPED),
            }
            for event in message.events
        ],
        links=[
            {
                "trace": _id(link.trace_id),
                "span": _id(link.span_id),
                "attributes": _attributes(link.attributes),
                **_counts(link, _DROPPED | {"trace_state": "traceState", "flags": "flags"}),
            }
            for link in message.links
        ],
        status=message.status.code,
        status_message=message.status.message,
        rest=_counts(message, _SPAN_REST),
        origin=origin,
    )


def _log(message: LogMessage, origin: Origin) -> LogRecord:
    attributes = _attributes(message.attributes)
    named = attributes.get("event.name")
    rest = _counts(message, _LOG_REST)
    if message.observed_time_unix_nano:
        rest["observed"] = str(message.observed_time_unix_nano)
    return LogRecord(
        trace=_id(message.trace_id),
        span=_id(message.span_id),
        name=message.event_name or (named if isinstance(named, str) else ""),
        time=message.time_unix_nano or message.observed_time_unix_nano,
        body=plain(message.body, open_message),
        attributes=attributes,
        rest=rest,
        origin=origin,
    )


# -- files of requests ---------------------------------------------------------------------------------------


def framing(start: bytes) -> int | None:
    """How requests lie in a file: 0 one after another, 1 each after its length as a varint, 4 as four bytes.

    None when these bytes begin no file of OTLP traces or logs.
    """
    if _begins_request(start, 0):
        return 0
    length = _varint(start, 0, len(start))
    if length is not None and length[0] > 0 and _begins_request(start, length[1]):
        return 1
    if len(start) > 4 and int.from_bytes(start[:4], "big") > 0 and _begins_request(start, 4):
        return 4
    return None


def _begins_request(start: bytes, at: int) -> bool:
    """Whether a resource, a scope and a span or log record begin here, one inside the other."""
    end = len(start)
    group = _first(start, at, end, 1)
    scopes = group and _first(start, group.start, min(group.end, end), _NESTED)
    item = scopes and _first(start, scopes.start, min(scopes.end, end), _NESTED)
    if not item:
        return False
    raw = start[item.start : min(item.end, end)]
    if _is_log(raw):
        return True
    fields = [field for field in list(_fields(raw, 0, len(raw)))[:2] if isinstance(field, _Field)]
    lengths = [(field.number, field.end - field.start) for field in fields]
    return lengths == [(1, 16), (2, 8)]


def _first(data: bytes, start: int, end: int, number: int) -> _Field | None:
    """The first field of this number, when those before it make sense."""
    for field in _fields(data, start, end):
        if isinstance(field, int) or field.wire != _NESTED:
            return None
        if field.number == number:
            return field
        if field.number > 3:
            return None
    return None


def stream_records(stream: BinaryIO) -> Iterator[Record | Torn]:
    """The records of a file, one resource at a time in memory."""
    start = stream.read(64 * 1024)
    frame = framing(start)
    reader = _Ahead(start, stream)
    if frame is None:
        frame = 0
    while not reader.at_end:
        offset = reader.offset
        length = _next_length(reader, frame)
        if length is None or length > _LARGEST:
            rest = reader.rest(_LARGEST)
            yield Torn(offset, f"expected an export request at byte {offset}, found other bytes", rest)
            return
        begin = reader.offset
        payload = reader.take(length)
        is_torn = False
        for entry in request_records(payload, begin) if frame else group_records(payload, begin):
            is_torn = is_torn or isinstance(entry, Torn)
            yield entry
        if len(payload) < length and not is_torn:
            yield Torn(begin, f"expected {length} bytes after byte {begin}, found {len(payload)}", b"")


def _next_length(reader: "_Ahead", frame: int) -> int | None:
    if frame == 4:
        head = reader.take(4)
        return int.from_bytes(head, "big") if len(head) == 4 else None
    if frame == 0 and reader.take(1) != b"\n":  # field 1, nested: the only one that a request has
        return None
    return reader.varint()


class _Ahead:
    """A stream whose first bytes were read already."""

    def __init__(self, start: bytes, stream: BinaryIO) -> None:
        self._held = start
        self._stream = stream
        self.offset = 0

    @property
    def at_end(self) -> bool:
        """Whether nothing is left."""
        if not self._held:
            self._held = self._stream.read(64 * 1024)
        return not self._held

    def take(self, size: int) -> bytes:
        """The next bytes, fewer at the end."""
        parts = [self._held[:size]]
        self._held = self._held[size:]
        missing = size - len(parts[0])
        while missing and (more := self._stream.read(min(missing, 8 * 1024 * 1024))):
            parts.append(more)
            missing -= len(more)
        taken = b"".join(parts)
        self.offset += len(taken)
        return taken

    def rest(self, most: int) -> bytes:
        """What is left, up to a size."""
        return self.take(most)

    def varint(self) -> int | None:
        """A number; None when it is cut."""
        held = bytearray()
        while len(held) < 10 and (byte := self.take(1)):
            held += byte
            if byte[0] < 0x80:
                break
        value = _varint(bytes(held), 0, len(held))
        return None if value is None else value[0]
