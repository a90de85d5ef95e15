"""Finds sessions that tell of the same run, and says so in both: a journal and its hooks, a proxy and a tap.

Sessions are read as streams. Identifiers are compared in parts, so that memory does not grow with the sessions; a
long session is read once for each part.
"""

import hashlib
import re
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from ledger.events import Actor, Draft, Record
from ledger.events.model_call import ModelCallAnswered
from ledger.events.session import SessionForked, SessionLinked, SessionStarted
from ledger.events.tool_call import ToolCallRequested
from ledger.recorder import Recorder
from ledger.store import EventStore, KeysTakenError, SourceKey

How = Literal["response_id", "call_id", "session_id", "trace_id", "run_id"]
"""By what two sessions belong together."""

SUFFIXES = (".hooks", ".tap")
"""What taps put behind the id that the source gives its session."""

_PART = 200_000
"""Identifiers of one session that are held at once."""

_CANDIDATES = 1000
_TRACES = 1000
_SHORTEST = 8
"""Shorter identifiers are numbers that any program counts for itself: they tell nothing."""

_TRACE = re.compile(r"(?:[0-9a-f]{2}-)?([0-9a-f]{32})(?:-[0-9a-f]{16}-[0-9a-f]{2})?")
_CALLS = (ToolCallRequested.TYPE, ModelCallAnswered.TYPE)


class Link(NamedTuple):
    """Two sessions that tell of the same run."""

    session: str
    """The one that was asked about."""
    other: str
    """The other."""
    how: tuple[How, ...]
    """By which identifiers they were found."""
    matched: int
    """Calls that both tell of."""
    only_here: int
    """Calls that only `session` tells of."""
    only_there: int
    """Calls that only `other` tells of."""
    is_new: bool
    """Whether the ledger did not say so before."""


@dataclass
class _Facts:
    """What one reading of a session tells."""

    session: str
    calls: int = 0
    parent: str | None = None
    origins: set[str] = field(default_factory=set)
    run: str | None = None
    traces: set[str] = field(default_factory=set)

    @classmethod
    def of(cls, store: EventStore, session: str) -> "_Facts":
        facts = cls(session)
        for record in store.read(session):
            match record.event:
                case SessionStarted() as started:
                    facts.parent = facts.parent or started.parent
                    facts.run = facts.run or record.correlation
                case SessionForked() as forked:
                    facts.origins.add(forked.origin)
                case ToolCallRequested() | ModelCallAnswered(revision=0):
                    facts.calls += 1
                case _:
                    pass
            if (trace := trace_of(record.correlation)) and len(facts.traces) < _TRACES:
                facts.traces.add(trace)
        return facts

    def is_kin(self, other: "_Facts") -> bool:
        """Whether one goes back to the other: a fork holds the same calls, a delegate is another loop."""
        return (
            self.parent == other.session
            or other.parent == self.session
            or other.session in self.origins
            or self.session in other.origins
        )

    def shared(self, other: "_Facts") -> Iterator[How]:
        """By which names of whole sessions they belong together."""
        if base_of(self.session) == base_of(other.session):
            yield "session_id"
        if self.traces & other.traces:
            yield "trace_id"
        if self.run is not None and self.run == other.run and self.parent is None and other.parent is None:
            yield "run_id"


def base_of(session: str) -> str:
    """The id of a session without what a tap puts behind it."""
    for suffix in SUFFIXES:
        session = session.removesuffix(suffix)
    return session


def trace_of(text: str | None) -> str | None:
    """The trace id in a W3C `traceparent`, or the text itself when it is a trace id."""
    found = _TRACE.fullmatch(text) if text else None
    return found.group(1) if found else None


def join_sessions(recorder: Recorder, session: str, others: Iterable[str] | None = None) -> list[Link]:
    """Link a session to others that tell of the same run; without `others`, to all that the ledger holds.

    Each pair gets one `session.linked` in both sessions; a second call adds nothing, unless a session has grown.
    """
    store = recorder.store
    here = _Facts.of(store, session)
    names = dict.fromkeys(_candidates(store, here) if others is None else others)
    links = []
    for name in names:
        if name != session and (link := _pair(store, here, _Facts.of(store, name))) is not None:
            links.append(_append(recorder, link))
    return links


def _candidates(store: EventStore, here: _Facts) -> list[str]:
    """Sessions that share an identifier, in the order in which the ledger shows them."""
    found: dict[str, None] = {}
    parts = 1 + here.calls // _PART
    for part in range(parts):
        wanted = set(_identifiers(store.read(here.session), part, parts))
        names = (*_CALLS, SessionStarted.TYPE) if part == 0 else _CALLS
        for record in store.read_all(names=names):
            if record.session == here.session or len(found) >= _CANDIDATES:
                continue
            shares = next(_identifiers([record], part, parts), None) in wanted
            if isinstance(record.event, SessionStarted):
                is_root = here.parent is None and record.event.parent is None
                shares = base_of(record.session) == base_of(here.session)
                shares = shares or (is_root and here.run is not None and record.correlation == here.run)
            if shares or trace_of(record.correlation) in here.traces:
                found[record.session] = None
    return list(found)


def _pair(store: EventStore, here: _Facts, there: _Facts) -> Link | None:
    if here.is_kin(there):
        return None
    matched: Counter[How] = Counter()
    parts = 1 + min(here.calls, there.calls) // _PART
    smaller, larger = sorted((here, there), key=lambda facts: facts.calls)
    for part in range(parts):
        known = set(_identifiers(store.read(smaller.session), part, parts))
        for found in _identifiers(store.read(larger.session), part, parts):
            if found in known:
                known.discard(found)
                matched[found[0]] += 1
    how: tuple[How, ...] = (*sorted(matched), *here.shared(there))
    if not how:
        return None
    both = matched.total()
    return Link(here.session, there.session, how, both, here.calls - both, there.calls - both, False)


def _identifiers(records: Iterable[Record], part: int, parts: int) -> Iterator[tuple[How, str]]:
    """The telling identifiers of calls that belong to a part."""
    for record in records:
        event = record.event
        found: tuple[How, str | None]
        if isinstance(event, ToolCallRequested):
            # Gemini CLI logs the provider's id behind the name of the tool.
            found = ("call_id", event.call_id.removeprefix(f"{event.tool}__"))
        elif isinstance(event, ModelCallAnswered):
            found = ("response_id", event.response_id)
        else:
            continue
        kind, name = found
        if name is None or len(name) < _SHORTEST:
            continue
        if parts == 1 or zlib.crc32(name.encode("utf-8", "surrogatepass")) % parts == part:
            yield kind, name


def _append(recorder: Recorder, link: Link) -> Link:
    keeper = recorder.keeper()
    pair = ((link.session, link.other), (link.other, link.session))
    counts = ((link.only_here, link.only_there), (link.only_there, link.only_here))
    drafts = {}
    keys = []
    for (session, other), (here, there) in zip(pair, counts, strict=True):
        event = SessionLinked(
            other=other, how=link.how, matched=link.matched, only_here=here, only_there=there
        )
        drafts[session] = [Draft(event, actor=Actor("system", "loopledger"))]
        told = "\0".join((session, other, *link.how, str(link.matched), str(here), str(there)))
        key = hashlib.sha256(f"session.linked\0{told}".encode("utf-8", "surrogatepass")).digest()[:16]
        keys.append(SourceKey(session, 0, key, 0, 0))
    try:
        recorder.append_many(drafts, keeper, keys=keys)
    except KeysTakenError:
        return link
    return link._replace(is_new=True)
