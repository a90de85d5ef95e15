"""A saved `RunState`: the whole of one run so far, written anew at each interruption.

Its steps are put in the order in which they happened: the items of the run, each model response in place of its first
item, each approval, and the decision that it got, which stands elsewhere in the file.
"""

from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ledger.events import Draft
from ledger.events.approval import ApprovalAsked, ApprovalDecided
from ledger.events.canonical import canonical_json
from ledger.events.delegation import DelegationStarted
from ledger.events.recovery import CheckpointTaken
from ledger.events.session import SessionEnded, SessionStarted
from ledger.importers import Desk, Item
from ledger.importers._frameworks.histories import course_of, fork_event, step_digest, step_items
from ledger.importers._harness.story import Place
from ledger.importers._harness.values import items, record, rest, words
from ledger.importers._openai_agents.items import FORMAT, identity, input_items, is_output, usage_of
from ledger.importers._openai_agents.talk import Talk
from ledger.protocols.tool_use import arguments_of

_TOLD = ("original_input", "model_responses", "generated_items", "session_items", "trace")
_ONCE_MORE = ("last_model_response", "last_processed_response")


@dataclass(frozen=True, slots=True)
class _Step:
    kind: str
    body: Any
    digest: str
    agent: str | None = None


@dataclass(frozen=True, slots=True)
class _Decision:
    call_id: str
    outcome: str
    is_sticky: bool
    message: str | None


def state_items(state: dict[str, Any], desk: Desk) -> Iterator[Item]:
    """The run of one state."""
    steps = list(_steps(state))
    base = _base(state, desk)
    course = course_of(desk, base, [step.digest for step in steps])
    talk = Talk(desk, course.session)
    talk.story.session = course.session
    teller = _Teller(talk, state)
    for number, step in enumerate(steps):
        desk.tally.lines += 1
        desk.tally.native[step.kind] += 1
        key = f"step:{number}"
        talk.story.place = Place(key, number + 1)
        talk.story.agent = step.agent
        drafts = list(teller.tell(step, number))
        if number == course.shared and (forked := fork_event(desk, course)) is not None:
            drafts.insert(0, talk.story.draft(forked))
        yield from step_items(course, number, step.digest, drafts, canonical_json(step.body))
    yield from _beside(state, desk, talk)


def _base(state: dict[str, Any], desk: Desk) -> str:
    """A name for the run that every later save of it gives too."""
    first = record(next(iter(items(state.get("model_responses"))), None))
    if not first:
        return desk.fallback_session(FORMAT)
    told = [identity(item) for item in items(first.get("output"))]
    return f"{FORMAT}-run-{step_digest(state.get('original_input'), first.get('response_id'), told)[:16]}"


def _steps(state: dict[str, Any]) -> Iterator[_Step]:
    """The run in order."""
    yield _Step("start", None, step_digest("start"))
    for number, item in enumerate(input_items(state.get("original_input"))):
        yield _Step("input", item, step_digest("input", number, item))
    responses = _Responses(items(state.get("model_responses")))
    decisions = _decisions(record(state.get("context")))
    told = items(state.get("session_items")) or items(state.get("generated_items"))
    for item in told:
        fields = record(item)
        raw, kind = record(fields.get("raw_item")), words(fields.get("type")) or "item"
        agent = words(record(fields.get("agent")).get("name"))
        if kind == "tool_approval_item":
            call_id = words(raw.get("call_id")) or words(raw.get("id")) or "unnamed"
            yield _Step("approval", fields, step_digest("approval", call_id), agent)
            decision = decisions.pop(call_id, None) or _sticky(decisions, words(fields.get("tool_name")))
            if decision is not None:
                yield _decided(decision, call_id)
            continue
        if is_output(raw):
            yield from responses.up_to(raw, agent)
        if record(fields.get("tool_origin")).get("type") == "agent_as_tool" and is_output(raw):
            yield _Step("delegation", fields, step_digest("delegation", identity(raw)), agent)
        if kind == "handoff_output_item":
            yield _Step("handoff", fields, step_digest("handoff", identity(raw), raw.get("output")), agent)
        elif kind == "tool_call_output_item":
            yield _Step("result", fields, step_digest("result", identity(raw), raw.get("output")), agent)
        elif not is_output(raw) or not responses.has(raw):
            yield _Step("item", fields, step_digest("item", kind, identity(raw)), agent)
    yield from responses.rest()
    for call_id, decision in decisions.items():
        if not decision.is_sticky:
            yield _decided(decision, call_id)


def _decided(decision: _Decision, call_id: str) -> _Step:
    body = {"call_id": call_id, "outcome": decision.outcome, "sticky": decision.is_sticky}
    if decision.message is not None:
        body["message"] = decision.message
    return _Step("decision", body, step_digest("decision", call_id, decision.outcome))


class _Responses:
    """The model responses of a state, each told once, before the first item that came from it."""

    def __init__(self, responses: list[Any]) -> None:
        self._waiting: OrderedDict[int, dict[str, Any]] = OrderedDict(
            (number, record(response)) for number, response in enumerate(responses)
        )
        self._owner: dict[str, int] = {}
        for number, response in self._waiting.items():
            for item in items(response.get("output")):
                self._owner.setdefault(step_digest(identity(item), _said(item)), number)

    def has(self, item: Any) -> bool:
        """Whether the item came from a response of this state."""
        return step_digest(identity(item), _said(item)) in self._owner

    def up_to(self, item: Any, agent: str | None) -> Iterator[_Step]:
        """The responses not told yet, up to the one that the item came from."""
        owner = self._owner.get(step_digest(identity(item), _said(item)))
        if owner is not None and owner in self._waiting:
            while self._waiting and (number := next(iter(self._waiting))) <= owner:
                yield self._step(number, agent)

    def rest(self) -> Iterator[_Step]:
        """Those that no item came from."""
        for number in list(self._waiting):
            yield self._step(number, None)

    def _step(self, number: int, agent: str | None) -> _Step:
        response = self._waiting.pop(number)
        told = [[identity(item), _said(item)] for item in items(response.get("output"))]
        digest = step_digest("response", words(response.get("response_id")), told)
        return _Step("response", response, digest, agent)


def _said(item: Any) -> Any:
    """Words and arguments of an item: of chat models, whose items share one made-up id."""
    fields = record(item)
    texts = [record(part).get("text") for part in items(fields.get("content"))]
    return [texts, fields.get("arguments"), fields.get("name")]


def _decisions(context: dict[str, Any]) -> dict[str, _Decision]:
    """Decisions by call id; those for all calls of a tool by `*` and the tool's key."""
    found: dict[str, _Decision] = {}
    listed = [(key, record(value)) for key, value in record(context.get("approvals")).items()]
    for name in ("function_tool_approvals", "hosted_mcp_approvals"):
        for entry in items(context.get(name)):
            fields = record(entry)
            listed.append((words(fields.get("tool_key")) or "", record(fields.get("decision"))))
    for tool, decision in listed:
        messages = record(decision.get("rejection_messages"))
        for outcome in ("approved", "rejected"):
            value = decision.get(outcome)
            if value is True:
                message = words(decision.get("sticky_rejection_message"))
                found[f"*{tool}"] = _Decision(f"*{tool}", outcome, True, message)
            for call_id in items(value):
                if isinstance(call_id, str):
                    message = words(messages.get(call_id))
                    found[call_id] = _Decision(call_id, outcome, False, message)
    return found


def _sticky(decisions: dict[str, _Decision], tool: str | None) -> _Decision | None:
    return decisions.get(f"*{tool}") if tool is not None else None


class _Teller:
    """Makes drafts of steps."""

    def __init__(self, talk: Talk, state: dict[str, Any]) -> None:
        self._talk = talk
        self._state = state

    def tell(self, step: _Step, number: int) -> Iterator[Draft]:
        """The events of one step."""
        body = step.body
        match step.kind:
            case "start":
                yield self._start()
            case "input":
                yield from self._talk.message(body)
            case "response":
                yield from self._response(body, number)
            case "result" | "handoff":
                yield from self._result(body, step.kind == "handoff")
            case "delegation":
                yield self._delegated(body)
            case "approval":
                yield self._asked(body)
            case "decision":
                yield self._decided(body)
            case _:
                raw = record(body.get("raw_item"))
                self._talk.story.say(raw)
                name = words(body.get("type")) or "item"
                known = name in ("reasoning_item", "compaction_item", "mcp_list_tools_item", "input_item")
                yield self._talk.story.kept(f"item:{name[:60]}", body, recognized=known)
                if is_output(raw):
                    yield from self._talk.calls([raw])

    def _start(self) -> Draft:
        state, trace = self._state, record(self._state.get("trace"))
        first = record(next(iter(items(state.get("session_items") or state.get("generated_items"))), None))
        agent = record(first.get("agent")) or record(state.get("current_agent"))
        version = words(state.get("$schemaVersion"))
        event = SessionStarted(
            harness=FORMAT,
            name=words(trace.get("workflow_name")),
            agent=words(agent.get("name")),
            environment=self._talk.keep.json(trace, "trace") if trace else None,
        )
        return self._talk.story.draft(event, rest={"state_schema": version})

    def _response(self, response: dict[str, Any], number: int) -> Iterator[Draft]:
        response_id = words(response.get("response_id"))
        yield from self._talk.answer(
            response_id or f"response-{number}",
            items(response.get("output")),
            usage=usage_of(response.get("usage")),
            response_id=response_id,
            request_id=words(response.get("request_id")),
            rest=rest(response, "output", "usage", "response_id", "request_id"),
        )

    def _result(self, body: dict[str, Any], is_handoff: bool) -> Iterator[Draft]:
        talk, raw = self._talk, record(body.get("raw_item"))
        yield from talk.message(raw if raw.get("type") else {**raw, "type": "function_call_output"})
        if is_handoff:
            target = record(arguments_of(raw.get("output")))
            to_agent = words(record(body.get("target_agent")).get("name")) or words(target.get("assistant"))
            yield from talk.handoff(words(raw.get("call_id")), to_agent, None)
        origin = record(body.get("tool_origin"))
        if origin.get("type") == "agent_as_tool":
            call_id = words(raw.get("call_id")) or talk.story.place.key
            yield talk.returned(f"tool:{call_id}", None, raw.get("output"), failed=False)

    def _delegated(self, body: dict[str, Any]) -> Draft:
        talk, raw = self._talk, record(body.get("raw_item"))
        call_id = words(raw.get("call_id")) or talk.story.place.key
        event = DelegationStarted(
            delegation_id=f"tool:{call_id}",
            to_agent=words(record(body.get("tool_origin")).get("agent_name")),
            how="tool",
            call_id=call_id,
            payload=talk.keep.json(arguments_of(raw.get("arguments")), "delegation"),
        )
        return talk.story.draft(event, "agent")

    def _asked(self, body: dict[str, Any]) -> Draft:
        talk, raw = self._talk, record(body.get("raw_item"))
        call_id = words(raw.get("call_id")) or words(raw.get("id")) or "unnamed"
        arguments = talk.keep.json(arguments_of(raw.get("arguments")), "arguments")
        return talk.story.draft(
            ApprovalAsked(
                approval_id=call_id,
                call_id=call_id,
                tool=words(body.get("tool_name")) or words(raw.get("name")),
                arguments_digest=arguments.digest,
                context=talk.keep.json(body, "approval"),
            )
        )

    def _decided(self, body: dict[str, Any]) -> Draft:
        story, call_id = self._talk.story, body["call_id"]
        event = ApprovalDecided(
            approval_id=call_id,
            call_id=call_id,
            outcome="approved" if body["outcome"] == "approved" else "denied",
            decided_by="unknown",
            how="always, for this tool" if body["sticky"] else "RunState.approve or reject",
            scope="session" if body["sticky"] else "once",
        )
        return story.draft(event, rest={"message": body["message"]} if "message" in body else None)


def _beside(state: dict[str, Any], desk: Desk, talk: Talk) -> Iterator[Item]:
    """What stands beside the steps, whole; a place to return to, with all else; that the run is over, where it is."""
    calls = record(record(state.get("context")).get("usage")).get("requests")
    seen = len(items(state.get("model_responses")))
    if isinstance(calls, int) and calls > seen:
        desk.tally.notes.append(
            f"the run counted {calls} model calls and the state holds {seen} responses: "
            "those of agents that were called as tools are not in it"
        )
    story, body = talk.story, rest(state, *_TOLD, *_ONCE_MORE)
    key = f"state:{step_digest(body)[:32]}"
    story.place, story.agent = Place(key, desk.tally.lines), None
    left = {name: state[name] for name in (*_TOLD, *_ONCE_MORE) if name in state}
    taken = CheckpointTaken(checkpoint_id=key, context=story.context.head, label="saved state")
    drafts = [story.kept("state", body), story.draft(taken, rest=left)]
    if "current_step" in state and state.get("current_step") is None and seen:
        event = SessionEnded(outcome="completed", reason="no step is left in the saved state")
        drafts.append(story.draft(event))
    yield Item(story.session, key, drafts, desk.tally.lines, canonical_json(body))
