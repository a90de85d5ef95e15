"""Which traces are one session. A session is never joined on a name that anybody could have chosen alone."""

import hashlib
import re
from collections import OrderedDict
from collections.abc import Iterator
from typing import Any, TypeVar

from ledger.events.canonical import spelled
from ledger.intake import Desk
from ledger.otlp.calls import CHOICE, is_response_id
from ledger.otlp.messages import asks, results
from ledger.otlp.records import Origin
from ledger.otlp.trace import Trace
from ledger.otlp.values import structured, text

PREFIX = "otlp-"
"""Begins every session id, so that no session of another source of the same run is continued by mistake."""

_IDS = (
    "gen_ai.conversation.id",
    "session.id",
    "langfuse.session.id",
    "traceloop.association.properties.conversation_id",
    "traceloop.association.properties.session_id",
    "traceloop.association.properties.thread_id",
    "langsmith.trace.session_id",
    "langsmith.metadata.thread_id",
    "ai.telemetry.metadata.sessionId",
    "thread_id",
    "group_id",
)
_METADATA = ("conversation_id", "session_id", "thread_id", "group_id")
_UNIQUE = re.compile(r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}|[0-9a-f]{32}", re.IGNORECASE)
_CALL_ID = re.compile(r"(?=.*[0-9])[\w-]{8,}")
_PLACES = ("service.namespace", "service.name", "service.instance.id")
_KEPT = 50_000

_Key = TypeVar("_Key")


class Sessions:
    """Gives each trace its session, in the order in which traces began."""

    def __init__(self, desk: Desk, file: str) -> None:
        """`file` stands for a sender that does not name itself."""
        self._desk = desk
        self._file = file
        self._of_trace: OrderedDict[str, str] = OrderedDict()
        self._of_name: OrderedDict[str, str] = OrderedDict()
        self._of_response: OrderedDict[str, str] = OrderedDict()
        self._of_ask: OrderedDict[tuple[str, str], str] = OrderedDict()

    def assign(self, trace: Trace) -> None:
        """Set session, name and claims of a trace."""
        place = _place(trace.records[0].origin)
        trace.name, origin = self._native(trace)
        named = None
        if trace.name is not None:
            named = self._named(trace.name, origin or trace.records[0].origin)
            trace.session = self._of_name.get(named) or self._desk.claimed(name_claim(named)) or named
        elif trace.id:
            trace.session = PREFIX + trace.id
        else:
            trace.session = self._desk.fallback_session("otlp")
        if trace.id and (known := self._known(trace)) is not None:
            trace.is_continued = True
            if named == trace.session != known:
                # Its first part did not tell of the conversation: traces that do, go on in the session of this one.
                trace.claims.append(name_claim(named))
                _put(self._of_name, named, known)
            trace.session = known
        elif trace.id and trace.name is None:
            trace.session = self._continued(trace, place) or trace.session
        if trace.id:
            trace.claims.insert(0, claim_of(trace.id))
        self._remember(trace, place)

    def _known(self, trace: Trace) -> str | None:
        """The session that a part of the trace was recorded in before it was known whose it is."""
        if (known := self._of_trace.get(trace.id)) is not None:
            return known
        first = next(trace.walk(), None)
        if first is not None and self._desk.recorded(trace.session, f"span:{first.key}"):
            return trace.session
        return self._desk.claimed(claim_of(trace.id))

    def _native(self, trace: Trace) -> tuple[str | None, Origin | None]:
        """The conversation that the span nearest to a root names: those below may be of other agents."""
        for span in trace.broad():
            if (named := native_id(span.attributes)) is not None:
                return named, span.origin
        for log in trace.logs:
            if (named := native_id(log.attributes)) is not None:
                return named, log.origin
        return None, None

    def _named(self, name: str, origin: Origin) -> str:
        """A unique id is itself; any other is one of its sender."""
        if _UNIQUE.fullmatch(name) and len(set(name)) > 8:
            return PREFIX + name.lower()
        sender = [spelled(origin.resource.get(place, "")) for place in _PLACES]
        if not sender[2] and (not sender[1] or sender[1].startswith("unknown_service")):
            sender.append(self._file)
        identity = "\0".join((*sender, name)).encode("utf-8", "surrogatepass")
        return PREFIX + hashlib.sha256(identity).hexdigest()[:16]

    def _continued(self, trace: Trace, place: str) -> str | None:
        """The session of an earlier trace that this one evidently goes on with."""
        for facts in trace.facts.values():
            if facts.previous and (session := self._of_response.get(facts.previous)):
                return session
        for span in trace.spans:
            conversation = text(span.attributes.get("gen_ai.conversation.id")) or ""
            if session := self._of_response.get(conversation):
                return session
            for link in span.links:
                if session := self._of_trace.get(link["trace"]):
                    return session
        for call_id in _shown(trace):
            if session := self._of_ask.get((place, call_id)):
                return session
        return None

    def _remember(self, trace: Trace, place: str) -> None:
        if trace.id:
            _put(self._of_trace, trace.id, trace.session)
        for facts in trace.facts.values():
            if facts.response_id:
                _put(self._of_response, facts.response_id, trace.session)
        for call_id in _asked(trace):
            _put(self._of_ask, (place, call_id), trace.session)


def claim_of(trace: str) -> str:
    """The claim by which other files find the session of a trace."""
    return f"trace:{trace}"


def name_claim(named: str) -> str:
    """The claim by which later traces find the session of a conversation that is not called after it."""
    return f"conversation:{named}"


def native_id(attributes: dict[str, Any]) -> str | None:
    """The conversation, session, thread or group that attributes name."""
    for name in _IDS:
        said = text(attributes.get(name))
        if said is not None and not is_response_id(said):
            return said
    for holder in ("metadata", "langgraph.metadata"):
        metadata = structured(attributes.get(holder))
        if isinstance(metadata, dict):
            for name in _METADATA:
                if (said := text(metadata.get(name))) is not None:
                    return said
    return None


def _place(origin: Origin) -> str:
    return "\0".join(spelled(origin.resource.get(place, "")) for place in _PLACES)


def _messages(trace: Trace, *, answers: bool) -> Iterator[Any]:
    for facts in trace.facts.values():
        yield from (facts.outputs if answers else facts.messages) or ()
    for log in trace.logs:
        if log.name == "gen_ai.tool.message" and not answers:
            yield {"role": "tool", **(log.body if isinstance(log.body, dict) else {})}
        elif log.name == CHOICE and answers and isinstance(log.body, dict):
            yield log.body.get("message")


def _asked(trace: Trace) -> Iterator[str]:
    """Ids of the tool calls that its models made, where they look like no other's."""
    for message in _messages(trace, answers=True):
        for ask in asks(message):
            if ask.call_id and _CALL_ID.fullmatch(ask.call_id) and not ask.call_id.startswith(ask.tool):
                yield ask.call_id


def _shown(trace: Trace) -> Iterator[str]:
    """Ids of tool calls that it ran, or showed the results of."""
    for span in trace.spans:
        if (call_id := text(span.attributes.get("gen_ai.tool.call.id"))) is not None:
            yield call_id
    for message in _messages(trace, answers=False):
        for shown in results(message):
            yield shown.call_id


def _put(held: "OrderedDict[_Key, str]", key: _Key, session: str) -> None:
    held.setdefault(key, session)
    if len(held) > _KEPT:
        held.popitem(last=False)
