"""The other half of an export: traces and logs of one run come apart, and belong together."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from ledger.otlp.records import LogRecord, Record, Span
from ledger.otlp.trace import tells_of_call


@dataclass(frozen=True)
class Beside:
    """What the other half holds that this one cannot do without."""

    spans: set[tuple[str, str]] = field(default_factory=set)
    """Trace and span id of its spans."""

    logs: dict[tuple[str, str], list[LogRecord]] = field(default_factory=dict)
    """Its log records about model calls, by trace and span id."""

    def add(self, records: Iterable[Record]) -> None:
        """Take note of what it holds."""
        for record in records:
            if isinstance(record, Span):
                self.spans.add((record.trace, record.span))
            elif tells_of_call(record):
                self.logs.setdefault((record.trace, record.span), []).append(record)
