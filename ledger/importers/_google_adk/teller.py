"""One session told as events of ours, from ADK's events in the order in which they were written."""

from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ledger.events import Draft
from ledger.events.approval import ApprovalAsked, ApprovalDecided
from ledger.events.compaction import CompactionDone
from ledger.events.delegation import DelegationStarted
from ledger.events.keeping import SourceKept
from ledger.events.model_call import ModelCallRequested
from ledger.events.recovery import CheckpointTaken, RolledBack
from ledger.events.session import SessionStarted
from ledger.importers import Desk, Item
from ledger.importers._google_adk.fields import (
    CONFIRMATION,
    FORMAT,
    FRAMEWORK_CALLS,
    calls_of,
    get,
    is_framework,
    parts_of,
    responses_of,
    seconds,
    usage_of,
)
from ledger.importers._google_adk.window import Window
from ledger.importers._harness.story import Place, Story
from ledger.importers._harness.values import items, record, rest, words
from ledger.importers._plain.scribe import utc_time

_TOLD = ("content", "usage_metadata", "usageMetadata", "id", "timestamp", "author")
_QUOTED = (
    "messages: turns of other agents are sent as quoted text, with responses that stood in for later ones"
)
_REJECTED = "This tool call is rejected."
_NAMELESS_KEPT = 1000
_REQUEST = ("contents", "config", "model")


@dataclass(frozen=True, slots=True)
class SessionFacts:
    """What a source says of a session beside its events."""

    name: str
    """Our session."""
    app: str | None = None
    user: str | None = None
    created: str | None = None
    """Time as RFC 3339."""


class Teller:
    """One session."""

    def __init__(self, desk: Desk, facts: SessionFacts) -> None:
        self._desk = desk
        self._facts = facts
        self.story = Story(desk, FORMAT, desk.session_name(facts.name), "gemini")
        self._window = Window(desk.keep, self.story.context)
        self._confirmations: dict[str, str | None] = {}
        self._unanswered: OrderedDict[str, str] = OrderedDict()
        self._has_user = False
        self._count = 0
        self._nameless: OrderedDict[str, str | None] = OrderedDict()

    def begin(self, line: int | None) -> Item:
        """The session itself."""
        facts, story = self._facts, self.story
        story.place = Place("session", line, facts.created)
        about = {name: one for name, one in (("app", facts.app), ("user", facts.user)) if one is not None}
        environment = self._desk.keep.json(about, "session") if about else None
        return story.item(
            [story.draft(SessionStarted(harness=FORMAT, name=facts.app, environment=environment))]
        )

    def beside(self, name: str, body: Any, line: int | None) -> Item:
        """A part of the session that is no event: its state, say."""
        kept = self.story.keep.json(body, name)
        self.story.place = Place(f"{name}:{kept.digest[:32]}", line)
        return self.story.item([self.story.kept(name, body)])

    def event(self, event: dict[str, Any], line: int, check: bytes, log: Any = None) -> Item:
        """One event. `log`: request and response of its model call, which early versions kept."""
        self._count += 1
        story, author = self.story, words(get(event, "author"))
        name = words(get(event, "id"))
        key = f"event:{name or self._count}"
        story.place = Place(key, line, utc_time(get(event, "timestamp")), check)
        story.agent = author if author != "user" else None
        story.turn = words(get(event, "invocation_id"))
        self._window.invocation(story.turn, key)
        content, actions = get(event, "content"), record(get(event, "actions"))
        cause = next(
            (self.story.key_of(words(get(one, "id"))) for one in responses_of(content) if get(one, "id")),
            None,
        )
        drafts = list(self._drafts(event, record(content), actions, author, log))
        if not drafts:
            drafts = [story.kept("event", event)]
        return story.item(drafts, cause if cause != key else None)

    def _drafts(
        self,
        event: dict[str, Any],
        content: dict[str, Any],
        actions: dict[str, Any],
        author: str | None,
        log: Any,
    ) -> Iterator[Draft]:
        native = rest(event, *_TOLD)
        compaction, rewind = get(actions, "compaction"), words(get(actions, "rewind_before_invocation_id"))
        if isinstance(compaction, dict):
            self._desk.tally.native["event:compaction"] += 1
            yield from self._compacted(event, compaction, native)
        elif rewind is not None:
            self._desk.tally.native["event:rewind"] += 1
            yield from self._rewound(rewind, native)
        elif get(event, "partial") is True:
            self._desk.tally.native["event:partial"] += 1
            yield self.story.kept("event:partial", event)
        elif author == "user":
            self._desk.tally.native["event:user"] += 1
            yield from self._user(content, event, native)
        else:
            yield from self._agent(event, content, actions, native, log)

    def _user(self, content: dict[str, Any], event: dict[str, Any], native: Any) -> Iterator[Draft]:
        responses = responses_of(content)
        self._has_user = True
        for response in responses:
            yield from self._response(response, {}, native)
        if len(responses) < len(parts_of(content)):
            yield self.story.received(self.story.keep.json(content, "content"), rest=native)
        if content and not is_framework(content):
            self._window.add(content, "user", seconds(get(event, "timestamp")))

    def _agent(
        self, event: dict[str, Any], content: dict[str, Any], actions: dict[str, Any], native: Any, log: Any
    ) -> Iterator[Draft]:
        story, responses, calls = self.story, responses_of(content), calls_of(content)
        time = seconds(get(event, "timestamp"))
        from_model = any(
            get(event, name) is not None for name in ("usage_metadata", "model_version", "finish_reason")
        )
        asked = [call for call in calls if words(get(call, "name")) in FRAMEWORK_CALLS]
        error = get(event, "error_code")
        kind = (
            "response" if responses else "question" if asked else "model" if from_model or calls else "other"
        )
        self._desk.tally.native[f"event:{kind}"] += 1
        if responses:
            waiting = record(get(actions, "requested_tool_confirmations"))
            for response in responses:
                yield from self._response(response, waiting, native)
            if not is_framework(content):
                pending = any(words(get(one, "id")) in waiting for one in responses)
                self._window.add(content, story.agent, time, pending=pending)
        elif asked:
            yield from self._questions(asked, native)
        elif log is not None or from_model or calls:
            if error is not None and not parts_of(content):
                yield from self._failed(event, native)
            else:
                yield from self._answered(event, content, native, log)
                self._window.add(content, story.agent, time)
        elif parts_of(content):
            yield story.heard(story.keep.json(content, "content"), story.agent, rest=native)
            self._window.add(content, story.agent, time)
        elif error is not None:
            yield from self._failed(event, native)
        target = words(get(actions, "transfer_to_agent"))
        if target is not None:
            call_id = next((words(get(one, "id")) for one in responses), None)
            name = f"handoff:{call_id or story.place.key}"
            handoff = DelegationStarted(delegation_id=name, to_agent=target, how="handoff", call_id=call_id)
            yield story.draft(handoff, "agent")

    def _answered(
        self, event: dict[str, Any], content: dict[str, Any], native: Any, log: Any
    ) -> Iterator[Draft]:
        story = self.story
        call_id = f"model-{story.place.key}"
        usage, stop = usage_of(get(event, "usage_metadata")), words(get(event, "finish_reason"))
        if log is not None:
            usage = (
                self._logged(record(get(log, "model_request")), record(get(log, "model_response"))) or usage
            )
            yield story.asked(call_id, not_seen=("bytes of the body",))
        else:
            story.model = words(get(event, "model_version"))
            story.unseen = ("system", "tools", "parameters")
            story.missing = (
                None if self._has_user else "turns of the user, which a stream of events leaves out"
            )
            quoted = self._window.others(story.agent)
            yield story.asked(call_id, whole=not quoted, not_seen=(_QUOTED,) if quoted else ())
        message = story.keep.json(content, "content")
        yield story.answered(call_id, message, usage=usage, stop=stop, rest=native)
        for number, call in enumerate(calls_of(content)):
            tool_id = words(get(call, "id")) or self._minted(words(get(call, "name")), number)
            yield story.call(tool_id, words(get(call, "name")), get(call, "args"))

    def _logged(self, request: dict[str, Any], response: dict[str, Any]) -> Any:
        """The request as an early version logged it."""
        story, config = self.story, record(request.get("config"))
        story.context.replace([story.keep.json(one, "content") for one in items(request.get("contents"))])
        story.model = words(request.get("model"))
        system, tools = config.get("system_instruction"), config.get("tools")
        story.system = story.keep.json(system, "system") if system is not None else None
        story.tools = story.keep.json(tools, "tools") if tools is not None else None
        parameters = {**rest(config, "system_instruction", "tools"), **rest(request, *_REQUEST)}
        story.parameters = story.keep.json(parameters, "parameters")
        story.unseen = ()
        return usage_of(response.get("usage_metadata"))

    def _minted(self, tool: str | None, number: int) -> str:
        """An id for a call that has none: the response of the same tool will find it."""
        call_id = f"{self.story.place.key}.{number}"
        self._nameless[call_id] = tool
        if len(self._nameless) > _NAMELESS_KEPT:
            self._nameless.popitem(last=False)
        return call_id

    def _unnamed(self, tool: str | None) -> str | None:
        """The oldest open call of a tool that has no id."""
        call_id = next((name for name, its in self._nameless.items() if its == tool), None)
        if call_id is not None:
            del self._nameless[call_id]
        return call_id

    def _response(self, response: dict[str, Any], waiting: dict[str, Any], native: Any) -> Iterator[Draft]:
        story, tool = self.story, words(get(response, "name"))
        call_id = words(get(response, "id")) or self._unnamed(tool) or f"{story.place.key}.response"
        body = get(response, "response")
        if tool == CONFIRMATION:
            yield self._decided(call_id, record(body), native)
            return
        if tool in FRAMEWORK_CALLS:
            yield story.kept(f"response:{tool}", response)
            return
        if call_id in waiting:  # a stand-in until a person has answered: the call did not run
            kept = SourceKept(
                native_type="response:pending",
                recognized=True,
                body=story.keep.json(response, "response:pending"),
            )
            yield story.draft(kept, rest=native)
            return
        error = get(body, "error") if isinstance(body, dict) else None
        rejected = error == _REJECTED
        if (approval := self._unanswered.pop(call_id, None)) is not None:
            yield self._inferred(approval, call_id, rejected)
        if not rejected:
            yield from story.started(call_id)
        yield story.settled(
            call_id,
            "denied" if rejected else "failed" if error is not None else "returned",
            story.keep.json(body, "response"),
            error="rejected" if rejected else "error in the response" if error is not None else None,
            rest=native,
        )

    def _questions(self, asked: list[dict[str, Any]], native: Any) -> Iterator[Draft]:
        story = self.story
        for call in asked:
            name, question, args = words(get(call, "name")), words(get(call, "id")), record(get(call, "args"))
            if name != CONFIRMATION:
                yield story.kept(f"question:{name}", call)
                continue
            original = record(get(args, "original_function_call"))
            call_id = words(get(original, "id"))
            approval = question or f"{story.place.key}.question"
            self._confirmations[approval] = call_id
            if call_id is not None:
                self._unanswered[call_id] = approval
            arguments = story.keep.json(get(original, "args"), "arguments")
            event = ApprovalAsked(
                approval_id=approval,
                call_id=call_id,
                tool=words(get(original, "name")),
                arguments_digest=arguments.digest,
                context=story.keep.json(args, "confirmation"),
            )
            yield story.draft(event, rest=native)

    def _decided(self, approval: str, body: dict[str, Any], native: Any) -> Draft:
        confirmed = body.get("confirmed")
        if confirmed is None and isinstance(body.get("response"), str):
            confirmed = '"confirmed": true' in body["response"] or '"confirmed":true' in body["response"]
        call_id = self._confirmations.get(approval)
        self._unanswered.pop(call_id or "", None)
        event = ApprovalDecided(
            approval_id=approval,
            call_id=call_id,
            outcome="approved" if confirmed is True else "denied" if confirmed is False else "unknown",
            decided_by="human",
            decider=self._facts.user,
            how=CONFIRMATION,
            scope="once",
        )
        return self.story.draft(event, "human", rest={**(native or {}), "response": body})

    def _inferred(self, approval: str, call_id: str, rejected: bool) -> Draft:
        """An answer that the source leaves out: the call ended all the same."""
        event = ApprovalDecided(
            approval_id=approval,
            call_id=call_id,
            outcome="denied" if rejected else "approved",
            decided_by="unknown",
            how="the response of the call says that it was rejected"
            if rejected
            else "the call gave a result",
            evidence="inferred",
        )
        return self.story.draft(event)

    def _failed(self, event: dict[str, Any], native: Any) -> Iterator[Draft]:
        story, call_id = self.story, f"model-{self.story.place.key}"
        story.unseen = ("system", "tools", "parameters")
        yield story.asked(call_id)
        detail = {"code": get(event, "error_code"), "message": get(event, "error_message"), **(native or {})}
        yield story.failed(call_id, words(get(event, "error_code")) or "error", detail)

    def _compacted(self, event: dict[str, Any], compaction: dict[str, Any], native: Any) -> Iterator[Draft]:
        story = self.story
        story.agent = None
        usage, call_id = usage_of(get(event, "usage_metadata")), None
        summary = get(compaction, "compacted_content")
        if usage is not None:
            call_id = f"model-{story.place.key}"
            asked = ModelCallRequested(
                call_id=call_id,
                purpose="compaction",
                protocol="gemini",
                completeness="none",
                not_seen=("messages", "system", "tools", "parameters", "model"),
            )
            yield story.draft(asked, "agent")
            yield story.answered(call_id, story.keep.json(summary, "summary"), usage=usage)
        head = story.context.head
        start, end = seconds(get(compaction, "start_timestamp")), seconds(get(compaction, "end_timestamp"))
        before, after = self._window.compact(start, end, summary)
        done = CompactionDone(
            compaction_id=story.place.key,
            trigger="auto",
            evidence="logged",
            context_before=head,
            context_after=story.context.head,
            context_added=story.context.take_added(),
            messages_before=before,
            messages_after=after,
            summary=story.keep.json(summary, "summary"),
            call_id=call_id,
        )
        yield story.draft(done, rest=native)

    def _rewound(self, invocation: str, native: Any) -> Iterator[Draft]:
        """The place that was gone back to, which may be gone back to again; and that it was."""
        first = self._window.first_of(invocation)
        known = self._desk.lookup(self.story.session, first) if first is not None else None
        found = self._window.rewind(invocation)
        reason = f"rewind to before invocation {invocation}"
        to_seq = known.seq - 1 if known is not None and known.seq > 1 else None
        name = f"before {invocation}"
        if to_seq is not None:
            yield self.story.draft(CheckpointTaken(checkpoint_id=name, seq=to_seq, label="rewind"))
        event = RolledBack(
            to_seq=to_seq,
            checkpoint_id=None if to_seq is None else name,
            reason=reason if found else f"{reason}, which was not seen",
        )
        yield self.story.draft(event, "human", rest=native)
