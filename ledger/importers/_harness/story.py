"""The story of one session as its records are told: who acts, what the context holds, which calls are open.

Makes drafts, keeps content through the desk, and never decides what a native record means.
"""

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any, Literal

from ledger.events import ContentRef, Draft, Source
from ledger.events.canonical import decode_json
from ledger.events.governance import ArtifactChanged, ModeChanged
from ledger.events.input import ContextInjected, MessageReceived
from ledger.events.keeping import SourceKept
from ledger.events.model_call import ModelCallAnswered, ModelCallFailed, ModelCallRequested, Purpose, Usage
from ledger.events.record import Actor, ActorKind, Event, Grade
from ledger.events.session import ArtifactInForce
from ledger.events.tool_call import EffectClass, ToolCallRequested, ToolCallSettled, ToolCallStarted
from ledger.importers import Desk, Item

_CALLS_KEPT = 50_000

Outcome = Literal["returned", "failed", "denied", "not_started", "unknown"]
"""How a tool call ended."""

Cause = Literal["human", "agent", "harness", "startup", "unknown"]
"""By whose act a mode changed."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a record stands in its source."""

    key: str
    """Its identity within session and format."""

    line: int | None = None
    """Its line or row number."""

    time: str | None = None
    """Its time as RFC 3339."""

    check: bytes = b""
    """Its bytes, to tell it from another record of the same identity."""


@dataclass(slots=True)
class _Call:
    key: str
    started: bool = False
    settled: bool = False


class Story:
    """One session. Set `place` to the record that is being told, then ask for drafts."""

    def __init__(
        self, desk: Desk, format_name: str, session: str, protocol: str, grade: Grade = "semantic"
    ) -> None:
        self.desk = desk
        self.keep = desk.keep
        self.session = session
        self.context = desk.context()
        """What the model sees."""
        self.place = Place("start")
        """The record that is being told."""
        self.model: str | None = None
        """Model asked for."""
        self.provider: str | None = None
        """Provider asked."""
        self.system: ContentRef | None = None
        """System prompt in force."""
        self.tools: ContentRef | None = None
        """Tools on offer."""
        self.parameters: ContentRef | None = None
        """Other fields of requests, as far as they are known."""
        self.missing: str | None = None
        """What is known to be missing from the context; None while it is whole."""
        self.unseen: tuple[str, ...] = ()
        """Parts of every request that this source does not hold."""
        self.agent: str | None = None
        self.depth = 0
        self.turn: str | None = None
        self.purpose: Purpose = "main"
        """What the session's model calls are for, where nothing else is said."""
        self._format = format_name
        self._protocol = protocol
        self._grade = grade
        self._calls: OrderedDict[str, _Call] = OrderedDict()
        self._modes: dict[str, str] = {}
        self._artifacts: dict[str, ContentRef] = {}
        self._changed: dict[str, ContentRef] = {}

    def draft(
        self, event: Event, actor: ActorKind = "system", *, rest: Any = None, time: str | None = None
    ) -> Draft:
        """A draft of an event that this record shows. `rest`: native fields that no event field carries."""
        kept = self.keep.json(rest, "native fields").digest if rest else None
        place = self.place
        return Draft(
            event,
            time or place.time,
            Actor(actor, self.agent if actor == "agent" else None),
            correlation=self.turn,
            agent=self.agent,
            depth=self.depth,
            source=Source(self._format, self.desk.file, place.key, place.line, kept),
            grade=self._grade,
        )

    def item(self, drafts: Iterable[Draft], cause: str | None = None) -> Item:
        """What this record becomes."""
        place = self.place
        return Item(self.session, place.key, list(drafts), place.line, place.check, cause)

    def kept(self, native_type: str, body: Any, *, recognized: bool = True) -> Draft:
        """The record itself, for one that carries no act of the loop."""
        if not recognized:
            self.desk.tally.unknown[native_type] += 1
        kept = self.keep.json(body, native_type)
        return self.draft(SourceKept(native_type=native_type, recognized=recognized, body=kept))

    def say(self, message: Any) -> ContentRef:
        """Put a message at the end of the context."""
        ref = self.keep.json(message, "message")
        self.context.append(ref)
        return ref

    def received(self, message: ContentRef, *, sender: str | None = None, rest: Any = None) -> Draft:
        """What a person said."""
        event = MessageReceived(origin="human", trust="trusted", message=message, sender=sender)
        return self.draft(event, "human", rest=rest)

    def heard(self, message: ContentRef, sender: str | None, *, rest: Any = None) -> Draft:
        """What another agent said."""
        return self.draft(MessageReceived(origin="agent", message=message, sender=sender), "agent", rest=rest)

    def injected(self, provenance: str, message: ContentRef, *, rest: Any = None) -> Draft:
        """What the harness put into the context."""
        return self.draft(ContextInjected(provenance=provenance, message=message), rest=rest)

    def mode(
        self, mode: str, new: str | None, cause: Cause = "unknown", *, rest: Any = None
    ) -> Iterator[Draft]:
        """A mode as it now stands; an event when that is news."""
        old = self._modes.get(mode)
        if new is None or new == old:
            return
        self._modes[mode] = new
        cause = "startup" if old is None and cause == "unknown" else cause
        yield self.draft(ModeChanged(mode=mode, old=old, new=new, cause=cause), rest=rest)

    def artifact(
        self, name: str, content: ContentRef | None, kind: Literal["prompt", "tool_schema", "rule_file"]
    ) -> Iterator[Draft]:
        """A governing artifact as it now stands (None: it is gone); an event when that is news."""
        old = self._artifacts.get(name)
        if content == old:
            return
        if content is None:
            del self._artifacts[name]
            self._changed.pop(name, None)
        else:
            self._artifacts[name] = self._changed[name] = content
        event = ArtifactChanged(
            artifact=name, kind=kind, old=old.digest if old else None, content=content, cause="unknown"
        )
        yield self.draft(event)

    def tools_offered(self, tools: Sequence[Any]) -> Iterator[Draft]:
        """The tools that requests offer from now on, each an artifact by its name."""
        self.tools = self.keep.json(list(tools), "tools")
        names = set()
        for tool in tools:
            name = tool.get("name") if isinstance(tool, dict) else None
            if isinstance(name, str) and name not in names:
                names.add(name)
                yield from self.artifact(f"tool:{name}", self.keep.json(tool, "tool"), "tool_schema")
        for name in [one for one in self._artifacts if one.startswith("tool:") and one[5:] not in names]:
            yield from self.artifact(name, None, "tool_schema")

    def asked(
        self,
        call_id: str,
        *,
        purpose: Purpose | None = None,
        attempt: int = 1,
        whole: bool = True,
        not_seen: Sequence[str] = (),
        time: str | None = None,
    ) -> Draft:
        """A model call, with the context as it stands. `whole`: whether the context is what was sent."""
        missing = () if self.missing is None else (f"messages: {self.missing}",)
        known = len(self.context) > 0
        partial = self.missing is not None or not whole
        changed, self._changed = self._changed, {}
        event = ModelCallRequested(
            call_id=call_id,
            purpose=purpose or self.purpose,
            protocol=self._protocol,
            model=self.model,
            provider=self.provider,
            context=self.context.head,
            context_length=len(self.context),
            context_added=self.context.take_added(),
            system=self.system,
            tools=self.tools,
            parameters=self.parameters,
            completeness=("partial" if partial else "messages") if known else "none",
            not_seen=(*(() if known else ("messages",)), *self.unseen, *missing, *not_seen),
            artifacts=tuple(
                ArtifactInForce(artifact=name, digest=ref.digest) for name, ref in changed.items()
            ),
            attempt=attempt,
        )
        return replace(self.draft(event, "agent"), occurred_at=time)

    def answered(
        self,
        call_id: str,
        message: ContentRef,
        *,
        usage: Usage | None = None,
        cost: Decimal | None = None,
        stop: str | None = None,
        model: str | None = None,
        response_id: str | None = None,
        stream: ContentRef | None = None,
        completeness: Literal["complete", "partial", "aborted"] = "complete",
        revision: int = 0,
        synthetic: bool = False,
        rest: Any = None,
        duration_ms: int | None = None,
    ) -> Draft:
        """An answer of the model."""
        event = ModelCallAnswered(
            call_id=call_id,
            model=model or self.model,
            message=message,
            stop_reason=stop,
            usage=usage,
            cost_usd=cost,
            response_id=response_id,
            stream=stream,
            duration_ms=duration_ms,
            completeness=completeness,
            revision=revision,
            synthetic=synthetic,
        )
        return self.draft(event, "agent", rest=rest)

    def failed(
        self, call_id: str, error: str, detail: Any, *, status: int | None = None, retry: bool | None = None
    ) -> Draft:
        """A model call without an answer."""
        kept = self.keep.json(detail, "error")
        return self.draft(
            ModelCallFailed(call_id=call_id, status=status, error=error, detail=kept, will_retry=retry)
        )

    def call(
        self,
        call_id: str,
        tool: str | None,
        arguments: Any,
        *,
        effect: EffectClass | None = None,
        server: str | None = None,
        rest: Any = None,
    ) -> Draft:
        """A tool call that was asked for. Arguments that are JSON in a text are kept as JSON."""
        if isinstance(arguments, str):
            try:
                kept = self.keep.json(decode_json(arguments), "arguments")
            except ValueError:
                kept = self.keep.text(arguments, "arguments")
        else:
            kept = self.keep.json(arguments, "arguments")
        self._calls[call_id] = _Call(self.place.key)
        if len(self._calls) > _CALLS_KEPT:
            self._calls.popitem(last=False)
        event = ToolCallRequested(
            call_id=call_id,
            tool=tool or "unnamed",
            arguments=kept,
            effect_class=effect,
            effect_declared="inferred" if effect is not None else None,
            server=server,
        )
        return self.draft(event, "agent", rest=rest)

    def knows(self, call_id: str) -> bool:
        """Whether a tool call was asked for here."""
        return call_id in self._calls

    def key_of(self, call_id: str | None) -> str | None:
        """Key of the record that asked for a tool call."""
        call = self._calls.get(call_id) if call_id is not None else None
        return call.key if call is not None else None

    def started(self, call_id: str, *, time: str | None = None) -> Iterator[Draft]:
        """A tool call that began to run; said once."""
        call = self._calls.get(call_id)
        if call is not None and not call.started and not call.settled:
            call.started = True
            yield self.draft(ToolCallStarted(call_id=call_id), time=time)

    def settled(
        self,
        call_id: str,
        outcome: Outcome,
        result: ContentRef | None,
        *,
        details: Any = None,
        error: str | None = None,
        duration_ms: int | None = None,
        rest: Any = None,
    ) -> Draft:
        """How a tool call ended."""
        call = self._calls.get(call_id)
        event = ToolCallSettled(
            call_id=call_id,
            outcome=outcome,
            result=result,
            details=self.keep.json(details, "result details") if details else None,
            error=error,
            duration_ms=duration_ms,
            orphan=call is None,
        )
        if call is not None:
            call.settled = True
        return self.draft(event, rest=rest)

    def is_settled(self, call_id: str) -> bool:
        """Whether a tool call has ended."""
        call = self._calls.get(call_id)
        return call is not None and call.settled
