"""Spans and log records as OTLP has them, free of encoding. Whoever maps them must not ask where they came from."""

import hashlib
from dataclasses import dataclass, field
from typing import Any

from ledger.events.canonical import canonical_json

ERROR = 2
"""Status code of a span that failed."""


@dataclass(frozen=True, slots=True)
class Origin:
    """Who emitted a record: resource and instrumentation scope. Shared by the records of one scope."""

    resource: dict[str, Any] = field(default_factory=dict)
    """Attributes of the resource."""

    scope: dict[str, Any] = field(default_factory=dict)
    """Name, version and attributes of the scope, and schema addresses, where there are any."""

    @property
    def scope_name(self) -> str:
        """Name of the instrumentation; empty when it gives none."""
        name = self.scope.get("name")
        return name if isinstance(name, str) else ""


@dataclass(slots=True)
class Span:
    """One span."""

    trace: str
    """Trace id, hexadecimal."""

    span: str
    """Span id, hexadecimal."""

    parent: str
    """Parent's span id; empty for a root."""

    name: str
    """Its name."""

    start: int
    """Start, nanoseconds since 1970; 0 when not given."""

    end: int
    """End; 0 when not given."""

    attributes: dict[str, Any]
    """Attributes; a repeated key has a number after it."""

    events: list[dict[str, Any]]
    """Events: `name`, `time`, `attributes` and the rest as given."""

    links: list[dict[str, Any]]
    """Links to other spans: `trace`, `span`, `attributes` and the rest as given."""

    status: int
    """0 unset, 1 ok, 2 error."""

    status_message: str
    """What is said about the status."""

    rest: dict[str, Any]
    """Everything else: kind, flags, trace state, counts of what was dropped, fields that nobody knows."""

    origin: Origin
    """Who emitted it."""

    number: int = 0
    """Its place among the records of its file, from 1."""

    size: int = 0
    """Bytes that it took, about."""

    @property
    def key(self) -> str:
        """Its identity: trace and span."""
        return f"{self.trace}/{self.span}"

    @property
    def dropped(self) -> int:
        """How many attributes the SDK dropped."""
        count = self.rest.get("droppedAttributesCount")
        return count if isinstance(count, int) else 0

    def fingerprint(self) -> bytes:
        """Equal for equal spans, however they were encoded."""
        return _digest(self.whole())

    def whole(self, without: frozenset[str] | set[str] = frozenset()) -> dict[str, Any]:
        """All of it as JSON, without some attributes."""
        kept = {name: value for name, value in self.attributes.items() if name not in without}
        body: dict[str, Any] = {"name": self.name, "attributes": kept, **self.rest}
        if self.parent:
            body["parent"] = self.parent
        if self.events:
            body["events"] = self.events
        if self.links:
            body["links"] = self.links
        if self.status or self.status_message:
            body["status"] = {"code": self.status, "message": self.status_message}
        body["start"], body["end"] = str(self.start), str(self.end)
        return body


@dataclass(slots=True)
class LogRecord:
    """One log record."""

    trace: str
    """Trace id, hexadecimal; empty when there is none."""

    span: str
    """Span id, hexadecimal; empty when there is none."""

    name: str
    """Event name, from the field or from the attribute of older versions; empty when it has none."""

    time: int
    """Time, nanoseconds since 1970: when it happened, or else when it was observed."""

    body: Any
    """Body."""

    attributes: dict[str, Any]
    """Attributes."""

    rest: dict[str, Any]
    """Everything else."""

    origin: Origin
    """Who emitted it."""

    number: int = 0
    """Its place among the records of its file, from 1."""

    size: int = 0
    """Bytes that it took, about."""

    @property
    def key(self) -> str:
        """The span that it belongs to."""
        return f"{self.trace}/{self.span}"

    def fingerprint(self) -> bytes:
        """Equal for equal records, however they were encoded. A log record has no id: this is it."""
        return _digest({"key": self.key, "time": str(self.time), **self.whole(), **self.rest})

    def whole(self) -> dict[str, Any]:
        """What it says, as JSON: the same for records that say the same."""
        return {"name": self.name, "body": self.body, "attributes": self.attributes}


Record = Span | LogRecord
"""Either."""


def _digest(value: Any) -> bytes:
    return hashlib.sha256(canonical_json(value)).digest()
