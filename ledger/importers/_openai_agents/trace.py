"""One trace told as events: a session for the run, and one for each agent that was called as a tool."""

from collections import OrderedDict, deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from ledger.events import Draft
from ledger.events.approval import ApprovalDecided
from ledger.events.canonical import canonical_json
from ledger.events.delegation import DelegationStarted
from ledger.events.policy import PolicyEvaluated
from ledger.events.recovery import RolledBack
from ledger.events.session import SessionStarted
from ledger.importers import Desk, Item
from ledger.importers._frameworks.histories import step_digest
from ledger.importers._harness.story import Place
from ledger.importers._harness.values import items, moment, record, rest, words
from ledger.importers._openai_agents.items import (
    FORMAT,
    NOT_APPROVED,
    call_name,
    is_output,
    is_result,
    is_run,
    usage_of,
)
from ledger.importers._openai_agents.talk import Talk
from ledger.importers._plain.scribe import milliseconds_between, utc_time
from ledger.protocols.tool_use import ToolUse, arguments_of, calls_in

_KEPT = frozenset({"agent", "custom", "mcp_tools", "transcription", "speech", "speech_group", "turn", "task"})
_CALLS_KEPT = 20_000
_UNFINISHED_KEPT = 200
_RESPONSE_PARTS = ("output", "usage", "id", "instructions", "tools", "model")


class Span(NamedTuple):
    """One exported span."""

    id: str
    parent: str | None
    fields: dict[str, Any]
    """As exported."""
    more: dict[str, Any]
    """What a dump keeps beside the export."""
    line: int
    raw: bytes


@dataclass
class _Loop:
    """One agent loop: the run, or an agent called as a tool."""

    talk: Talk
    session: str
    open_calls: OrderedDict[str, deque[str]] = field(default_factory=OrderedDict)
    """Calls that a model asked for and no span was seen of, by tool and arguments."""
    unfinished: OrderedDict[str, str] = field(default_factory=OrderedDict)
    """Calls whose span ended without result, by tool and arguments."""
    inputs: list[str] = field(default_factory=list)
    """Digests of the items of the last input."""
    root: str | None = None
    """Span of the run that goes on."""


class TraceTeller:
    """One trace."""

    def __init__(self, desk: Desk, trace: str, below: Callable[[str], Sequence[Span]]) -> None:
        self._desk = desk
        self._below = below
        self._main = _Loop(Talk(desk, desk.session_name(trace)), desk.session_name(trace))
        self._loops: list[_Loop] = [self._main]
        self._calls: OrderedDict[str, str] = OrderedDict()
        self._begun: dict[str, bool] = {}
        self._nested: set[str] = set()
        self._is_begun = False

    def trace(self, fields: dict[str, Any], line: int, raw: bytes) -> Iterator[Item]:
        """The trace itself."""
        yield self.other("trace", fields, line, True) if self._is_begun else self._begin(fields, line)

    def other(self, name: str, body: dict[str, Any], line: int, known: bool, key: str | None = None) -> Item:
        """An entry that is no span."""
        story = self._main.talk.story
        story.place = Place(key or f"{name}:{line}", line, None, canonical_json(body))
        return story.item([story.kept(name, body, recognized=known)])

    def enter(self, span: Span, below: Sequence[Span]) -> Iterator[Item]:
        """What is known when a span begins."""
        if not self._is_begun:
            yield self._begin({}, span.line)
        loop, data = self._loops[-1], record(span.fields.get("span_data"))
        if span.parent is None:
            loop.root = span.id
        kind = data.get("type")
        if kind == "agent" or (kind == "custom" and record(data.get("data")).get("sdk_span_type") == "turn"):
            name = words(data.get("name")) if kind == "agent" else None
            loop.talk.story.agent = name or words(record(data.get("data")).get("agent_name"))
        if kind != "function":
            return
        self._place(loop, span, "started_at", ":start")
        drafts = list(self._function_begun(loop, span, data))
        asked_in = loop.talk.story.key_of(self._calls[span.id])
        asked_in = None if asked_in == loop.talk.story.place.key else asked_in
        call_id, session, nested = self._calls[span.id], "", any(is_run(one.fields) for one in below)
        self._begun[span.id] = bool(drafts) or nested
        if nested:
            session = self._desk.session_name(f"{self._main.session}.{span.id}")
            event = DelegationStarted(
                delegation_id=f"tool:{call_id}",
                to_session=session,
                to_agent=self._agent_of(below),
                how="tool",
                call_id=call_id,
                payload=loop.talk.keep.json(arguments_of(data.get("input")), "delegation"),
            )
            drafts.append(loop.talk.story.draft(event, "agent"))
        if drafts:
            yield self._item(loop, drafts, asked_in)
        if nested:
            yield self._nest(loop, session, call_id, span, below)

    def leave(self, span: Span) -> Iterator[Item]:
        """What is known when a span ends."""
        delegated = span.id in self._nested
        if delegated:
            self._nested.discard(span.id)
            self._loops.pop()
        loop, data = self._loops[-1], record(span.fields.get("span_data"))
        self._place(loop, span, "ended_at")
        cause = f"span:{span.id}:start" if self._begun.pop(span.id, False) else None
        yield self._item(loop, list(self._told(loop, span, data, delegated)), cause)
        if span.parent is None and loop is self._main:
            loop.talk.story.agent = None

    def _item(self, loop: _Loop, drafts: list[Draft], cause: str | None) -> Item:
        item = loop.talk.story.item(drafts, cause)
        if loop is not self._main and self._desk.recorded(self._main.session, item.key):
            item.session = self._main.session  # told before the file held the call that it runs below
        return item

    def _begin(self, fields: dict[str, Any], line: int) -> Item:
        self._is_begun = True
        story = self._main.talk.story
        story.place = Place("trace", line, None, canonical_json(rest(fields, "ev")))
        event = SessionStarted(
            harness=FORMAT,
            name=words(fields.get("workflow_name")),
            environment=story.keep.json(fields, "trace") if fields else None,
        )
        return story.item([story.draft(event)])

    def _nest(self, outer: _Loop, session: str, call_id: str, span: Span, below: Sequence[Span]) -> Item:
        loop = _Loop(Talk(self._desk, session), session)
        self._loops.append(loop)
        self._nested.add(span.id)
        story = loop.talk.story
        story.depth = outer.talk.story.depth + 1
        story.agent = self._agent_of(below)
        story.purpose = "sub-agent"
        self._place(loop, span, "started_at", ":session")
        event = SessionStarted(harness=FORMAT, agent=story.agent, parent=outer.session, parent_call=call_id)
        return story.item([story.draft(event)])

    def _place(self, loop: _Loop, span: Span, when: str, part: str = "") -> None:
        time = moment(span.fields.get(when))
        loop.talk.story.place = Place(f"span:{span.id}{part}", span.line, time, span.raw)
        loop.talk.story.turn = words(span.fields.get("trace_id"))

    def _agent_of(self, below: Sequence[Span]) -> str | None:
        """Name of the agent that runs below a call: its span is a child, or a child of the run's span."""
        for span in (*below, *(inner for one in below for inner in self._below(one.id))):
            data = record(span.fields.get("span_data"))
            if data.get("type") == "agent":
                return words(data.get("name"))
        return None

    def _told(self, loop: _Loop, span: Span, data: dict[str, Any], delegated: bool) -> Iterator[Draft]:
        talk, kind = loop.talk, words(data.get("type")) or "none"
        if kind == "response":
            yield from self._response(loop, span, data)
        elif kind == "generation":
            yield from self._generation(loop, span, data)
        elif kind == "function":
            yield from self._function_ended(loop, span, data, delegated)
        elif kind == "handoff":
            to_agent = words(data.get("to_agent"))
            call_id = self._handoff_call(loop)
            yield from talk.handoff(call_id, to_agent, None)
        elif kind == "guardrail":
            event = PolicyEvaluated(
                rule=words(data.get("name")) or "guardrail",
                verdict="deny" if data.get("triggered") is True else "allow",
                detail=talk.keep.json(span.fields, "guardrail"),
            )
            yield talk.story.draft(event, "policy")
        else:
            yield talk.story.kept(f"span:{kind[:60]}", span.fields, recognized=kind in _KEPT)

    def _response(self, loop: _Loop, span: Span, data: dict[str, Any]) -> Iterator[Draft]:
        """A call of the Responses API: id and usage, and with a dump's content all the rest."""
        talk, response = loop.talk, record(span.more.get("_py_response"))
        story, response_id = talk.story, words(data.get("response_id"))
        given = span.more.get("_py_input")
        if given is not None:
            yield from self._inputs(loop, given)
        story.model = words(response.get("model"))
        if response:
            system, tools = response.get("instructions"), items(response.get("tools"))
            story.system = talk.keep.json(system, "instructions") if system is not None else None
            yield from story.tools_offered(tools)
            story.parameters = talk.keep.json(rest(response, *_RESPONSE_PARTS), "parameters")
            unseen = [name for name, seen in (("system", system), ("tools", tools)) if not seen]
            story.unseen = (*unseen, "parameters that the response does not echo")
        else:
            story.system = story.tools = story.parameters = None
            story.unseen = ("system", "tools", "parameters", "model")
        yield from self._answered(loop, span, items(response.get("output")), data, response_id, not response)

    def _generation(self, loop: _Loop, span: Span, data: dict[str, Any]) -> Iterator[Draft]:
        """A call of the chat API: messages and the choice."""
        talk, story = loop.talk, loop.talk.story
        given = data.get("input")
        messages = items(given)
        if messages and record(messages[0]).get("role") in ("system", "developer"):
            story.system = talk.keep.json(messages[0], "system prompt")
            messages = messages[1:]
        if given is not None:
            yield from self._inputs(loop, messages)
        story.model = words(data.get("model"))
        config = data.get("model_config")
        story.parameters = talk.keep.json(config, "parameters") if config is not None else None
        story.unseen = ("tools",) if given is not None else ("tools", "system")
        output = items(data.get("output"))
        yield from self._answered(loop, span, output, data, None, given is None, is_chat=True)

    def _answered(
        self,
        loop: _Loop,
        span: Span,
        output: list[Any],
        data: dict[str, Any],
        response_id: str | None,
        is_bare: bool,
        *,
        is_chat: bool = False,
    ) -> Iterator[Draft]:
        talk, story = loop.talk, loop.talk.story
        call_id = response_id or f"span-{span.id}"
        error = span.fields.get("error")
        asked_at = moment(span.fields.get("started_at"))
        if error is not None and not output and response_id is None:
            yield story.asked(call_id, whole=not is_bare, time=asked_at)
            yield story.failed(call_id, words(record(error).get("message")) or "error", error)
            return
        if is_bare:  # the answer is not in the export: what is kept in its place says so by being empty
            story.context.cut(0)
        drafts = list(
            talk.answer(
                call_id,
                output,
                usage=usage_of(data.get("usage")),
                response_id=response_id,
                asked_at=asked_at,
                rest={"error": error} if error is not None else None,
            )
        )
        if is_chat:
            event = drafts[0].event.model_copy(update={"protocol": "openai.chat"})
            drafts[0] = replace(drafts[0], event=event)
        yield from drafts
        for use in calls_in(output):
            self._await(loop, use)

    def _inputs(self, loop: _Loop, given: Any) -> Iterator[Draft]:
        """The input of a call: what is new in it, and whether something that was there has gone."""
        talk, story = loop.talk, loop.talk.story
        listed = items(given) if isinstance(given, list) else [{"role": "user", "content": given}]
        known, loop.inputs = loop.inputs, [step_digest(item) for item in listed]
        shared = 0
        for old, new in zip(known, loop.inputs, strict=False):
            if old != new:
                break
            shared += 1
        story.context.replace([talk.keep.json(item, "message") for item in listed])
        again = shared < len(known)
        if again:
            reason = f"the next model input leaves out {len(known) - shared} of {len(known)} items"
            yield story.draft(RolledBack(reason=reason, evidence="inferred"))
        for item in listed[shared:]:
            yield from self._input(loop, record(item), again)

    def _input(self, loop: _Loop, item: dict[str, Any], again: bool) -> Iterator[Draft]:
        talk, role = loop.talk, item.get("role")
        if is_output(item):
            return
        if role == "user":
            ref = talk.keep.json(item, "message")
            story = talk.story
            yield story.received(ref) if loop is self._main else story.heard(ref, self._main.talk.story.agent)
        elif is_result(item) or role == "tool":
            call_id = words(item.get("call_id")) or words(item.get("tool_call_id"))
            output = item.get("output", item.get("content"))
            if call_id is not None and talk.story.knows(call_id):
                yield from self._shown(loop, call_id, output, again)

    def _shown(self, loop: _Loop, call_id: str, output: Any, again: bool) -> Iterator[Draft]:
        """A result that the model was shown and no span told of; `again`: after the run went back."""
        talk = loop.talk
        if talk.story.is_settled(call_id) and not again:
            return
        denied = output == NOT_APPROVED or again or call_id in loop.unfinished.values()
        if denied:
            event = ApprovalDecided(
                approval_id=call_id,
                call_id=call_id,
                outcome="denied",
                decided_by="unknown",
                how="the model was shown a result, and no span ran the call",
                evidence="inferred",
            )
            yield talk.story.draft(event)
        yield from talk.settle(call_id, output, outcome="denied" if denied else None)

    def _await(self, loop: _Loop, use: ToolUse) -> None:
        """A model asked for a call: the next span of this tool and these arguments is its."""
        if use.call_id is None:
            return
        name = call_name(use.tool, use.arguments)
        loop.open_calls.setdefault(name, deque()).append(use.call_id)
        if len(loop.open_calls) > _CALLS_KEPT:
            loop.open_calls.popitem(last=False)

    def _handoff_call(self, loop: _Loop) -> str | None:
        for name, calls in loop.open_calls.items():
            if name.startswith("transfer_to_") and calls:
                return calls.popleft()
        return None

    def _function_begun(self, loop: _Loop, span: Span, data: dict[str, Any]) -> Iterator[Draft]:
        story, tool = loop.talk.story, words(data.get("name")) or "unnamed"
        name = call_name(tool, arguments_of(data.get("input")))
        waiting = loop.open_calls.get(name)
        again = None
        if waiting:
            call_id = waiting.popleft()
        elif (again := loop.unfinished.pop(name, None)) is not None:
            call_id = again
        else:
            call_id = f"span-{span.id}"
        self._calls[span.id] = call_id
        if len(self._calls) > _CALLS_KEPT:
            self._calls.popitem(last=False)
        if not story.knows(call_id):
            yield story.call(call_id, tool, data.get("input"))
        if again is not None:
            event = ApprovalDecided(
                approval_id=call_id,
                call_id=call_id,
                outcome="approved",
                decided_by="unknown",
                how="a first span of this call ended without result, and a later one ran it",
                evidence="inferred",
            )
            yield story.draft(event)
        if data.get("output") is not None or span.fields.get("error") is not None:
            yield from story.started(call_id)

    def _function_ended(
        self, loop: _Loop, span: Span, data: dict[str, Any], delegated: bool
    ) -> Iterator[Draft]:
        talk, output, error = loop.talk, data.get("output"), span.fields.get("error")
        call_id = self._calls.get(span.id) or f"span-{span.id}"
        if delegated:
            yield talk.returned(f"tool:{call_id}", None, output, error is not None)
        if output is None and error is None:
            # Either the call waits for an approval, or it gave nothing, or content was left out: nobody can say.
            name = call_name(words(data.get("name")) or "unnamed", arguments_of(data.get("input")))
            loop.unfinished[name] = call_id
            if len(loop.unfinished) > _UNFINISHED_KEPT:
                loop.unfinished.popitem(last=False)
            yield talk.story.kept("span:function", span.fields)
            return
        took = milliseconds_between(
            utc_time(span.fields.get("started_at")), utc_time(span.fields.get("ended_at"))
        )
        yield from talk.settle(
            call_id,
            output,
            outcome="failed" if error is not None else None,
            error=words(record(error).get("message")),
            details=error,
            duration_ms=took,
            rest={"mcp_data": data["mcp_data"]} if data.get("mcp_data") is not None else None,
        )
