"""One trace as a tree: children after parents, whatever the order in which they came. Holds records, maps none."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from ledger.otlp.calls import (
    CHOICE,
    DETAILS,
    EXCEPTION,
    MESSAGE_ROLES,
    CallFacts,
    log_facts,
    span_facts,
)
from ledger.otlp.kinds import Kind, kind_of
from ledger.otlp.records import ERROR, LogRecord, Record, Span

_CALL_EVENTS = frozenset((DETAILS, CHOICE, EXCEPTION, *MESSAGE_ROLES))


def tells_of_call(log: LogRecord) -> bool:
    """Whether a log record tells of a model call."""
    return log.name in _CALL_EVENTS and bool(log.span)


@dataclass(slots=True)
class Trace:
    """The records of one trace that came together."""

    id: str
    """Trace id; empty for log records that have none."""

    spans: list[Span] = field(default_factory=list)
    """Spans, each id once, as they came."""

    repeated: list[Span] = field(default_factory=list)
    """Spans whose id came before, or that have none: they take no place in the tree."""

    logs: list[LogRecord] = field(default_factory=list)
    """Log records, as they came."""

    size: int = 0
    """Bytes, about."""

    session: str = ""
    """Session that it belongs to."""

    name: str | None = None
    """What the source calls the conversation."""

    claims: list[str] = field(default_factory=list)
    """What its session claims, for other files and later requests to find it by."""

    is_continued: bool = False
    """Whether a part of it came before."""

    kinds: dict[str, Kind] = field(default_factory=dict)
    """What each span is about, by span id."""

    facts: dict[str, CallFacts] = field(default_factory=dict)
    """Model calls by span id."""

    second: dict[str, str] = field(default_factory=dict)
    """Spans that report a call again, and the span that reported it first."""

    children: dict[str, list[Span]] = field(default_factory=dict)
    """Children by span id, in order; those without a known parent under the empty one."""

    _known: set[str] = field(default_factory=set)

    def add(self, record: Record) -> None:
        """Take a record in."""
        self.size += record.size
        if isinstance(record, LogRecord):
            self.logs.append(record)
        elif not record.span or record.span in self._known:
            self.repeated.append(record)
        else:
            self._known.add(record.span)
            self.spans.append(record)

    @property
    def records(self) -> list[Record]:
        """Everything in it, spans first."""
        return [*self.spans, *self.logs, *self.repeated]

    @property
    def is_whole(self) -> bool:
        """Whether it has a root, and the parent of every other span."""
        return any(not span.parent for span in self.spans) and all(
            not span.parent or span.parent in self._known for span in self.spans
        )

    def prepare(self, beside: Mapping[tuple[str, str], list[LogRecord]]) -> None:
        """Build the tree, and read the model calls. `beside`: more log records about them, by trace and span id."""
        self._build()
        about: dict[str, list[LogRecord]] = {span.span: [] for span in self.spans} if self.logs else {}
        for log in self.logs:
            if log.span in about and tells_of_call(log):
                about[log.span].append(log)
        for span in self.walk():
            kind = kind_of(span)
            logs = [*about.get(span.span, ()), *beside.get((span.trace, span.span), ())]
            if kind in ("other", "unknown") and logs:
                kind = "model"  # the log records say what the span does not
            self.kinds[span.span] = kind
            if kind == "model":
                facts = span_facts(span)
                if logs:
                    facts.filled(log_facts(logs))
                self.facts[span.span] = facts
        self._find_second_reports()

    def _build(self) -> None:
        """Children in the order in which they started: a tracer has no other order, and no clock beside its own.

        A circle of parents is cut at its first span.
        """
        order = sorted(self.spans, key=lambda span: span.start)
        parents = {span.span: span.parent for span in self.spans}
        rooted: set[str] = set()
        for span in order:
            path: list[str] = []
            seen: set[str] = set()
            at = span.span
            while at in parents and at not in rooted and at not in seen:
                path.append(at)
                seen.add(at)
                at = parents[at]
            if at in seen:
                parents[at] = ""
            rooted.update(path)
        for span in order:
            parent = parents[span.span]
            self.children.setdefault(parent if parent in parents else "", []).append(span)

    def walk(self) -> Iterator[Span]:
        """All spans, parents first."""
        stack = list(reversed(self.children.get("", ())))
        while stack:
            span = stack.pop()
            yield span
            stack.extend(reversed(self.children.get(span.span, ())))

    def broad(self) -> Iterator[Span]:
        """All spans, those nearest to a root first."""
        level = self.children.get("", [])
        while level:
            yield from level
            level = [child for span in level for child in self.children.get(span.span, ())]

    def _find_second_reports(self) -> None:
        """The same call seen by two instrumentations: the response id tells, or that one lies inside the other."""
        by_response: dict[str, str] = {}
        above: dict[str, str] = {}
        for span in self.walk():
            inherited = above.get(span.span, "")
            if span.span in self.facts:
                facts = self.facts[span.span]
                first = by_response.get(facts.response_id or "") or self._inside(span, inherited)
                if first:
                    self.second[span.span] = first
                    self.facts[first].filled(facts)
                else:
                    inherited = span.span
                if facts.response_id:
                    by_response.setdefault(facts.response_id, first or span.span)
            elif self.kinds[span.span] in ("tool", "agent"):
                inherited = ""
            for child in self.children.get(span.span, ()):
                above[child.span] = inherited

    def _inside(self, span: Span, outer: str) -> str:
        """The call that this one reports again from the inside; empty when it is one of its own, as a retry is."""
        if not outer:
            return ""
        mine, others = self.facts[span.span], self.facts[outer]
        if mine.response_id and others.response_id:
            return ""
        return "" if span.status == ERROR and mine.response_id is None and others.response_id else outer


class Window:
    """Records held until their trace is whole, or until they are too many."""

    def __init__(self, most_bytes: int, most_records: int) -> None:
        self._most_bytes = most_bytes
        self._most_records = most_records
        self._traces: dict[str, Trace] = {}
        self._bytes = 0
        self._records = 0

    def add(self, record: Record) -> None:
        """Hold a record."""
        trace = self._traces.get(record.trace)
        if trace is None:
            trace = self._traces[record.trace] = Trace(record.trace)
        trace.add(record)
        self._bytes += record.size
        self._records += 1

    @property
    def is_full(self) -> bool:
        """Whether some should be taken."""
        return self._bytes > self._most_bytes or self._records > self._most_records

    def take(self) -> list[Trace]:
        """The traces that are whole; with them the oldest others, when these alone are too many."""
        taken = [trace for trace in self._traces.values() if trace.is_whole]
        self._drop(taken)
        for trace in list(self._traces.values()):
            if self._bytes <= self._most_bytes // 2 and self._records <= self._most_records // 2:
                break
            taken.append(trace)
            self._drop([trace])
        return taken

    def take_all(self) -> list[Trace]:
        """Everything."""
        taken = list(self._traces.values())
        self._drop(taken)
        return taken

    def _drop(self, traces: list[Trace]) -> None:
        for trace in traces:
            del self._traces[trace.id]
            self._bytes -= trace.size
            self._records -= len(trace.spans) + len(trace.repeated) + len(trace.logs)
