"""AutoGen: messages of a team and entries of the event log. Reads records, knows no file."""

import re
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from typing import Any

from ledger.events import Draft
from ledger.events.canonical import canonical_json, decode_json
from ledger.events.delegation import DelegationStarted
from ledger.events.input import MessageReceived
from ledger.events.model_call import Usage
from ledger.importers import Desk, Item
from ledger.importers._frameworks.document import Loop
from ledger.importers._harness.values import items, number, record, rest, words
from ledger.importers._plain.scribe import utc_time
from ledger.protocols.drafting import Place
from ledger.protocols.exchanges import Ask
from ledger.protocols.tool_use import ToolResult

FORMAT = "autogen"
"""The importer's name."""

_KNOWN = frozenset(
    {
        "TextMessage",
        "ToolCallRequestEvent",
        "ToolCallExecutionEvent",
        "HandoffMessage",
        "ThoughtEvent",
        "ToolCallSummaryMessage",
        "StopMessage",
        "MultiModalMessage",
        "MemoryQueryEvent",
        "ModelClientStreamingChunkEvent",
        "StructuredMessage",
        "UserInputRequestedEvent",
        "SelectSpeakerEvent",
        "SelectorEvent",
        "CodeGenerationEvent",
        "CodeExecutionEvent",
    }
)
_ENTRIES = frozenset({"Message", "LLMCall", "LLMStreamStart", "LLMStreamEnd", "ToolCall", "MessageDropped"})
_OF_TEAM = re.compile(r"_[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$")
"""What the runtime puts behind an agent's name: the id of its team."""

_KEPT = 50_000
_UNSEEN = ("messages", "system", "tools", "parameters")


class Team:
    """The messages of one team: what its agents said, each model call without its request."""

    def __init__(self, desk: Desk, session: str) -> None:
        self.loop = Loop(desk, FORMAT, session)
        self._returned: dict[str, str] = {}

    def message(self, value: Any, line: int) -> Item:
        """One message."""
        fields = record(value)
        kind = words(fields.get("type")) or "none"
        tally = self.loop.desk.tally
        tally.lines += 1
        tally.native[kind[:60]] += 1
        key = words(fields.get("id")) or f"message:{line}"
        place = Place(key, line, utc_time(fields.get("created_at")))
        self.loop.scribe.agent = self.loop.scribe.word(fields.get("source"), "source")
        drafts = list(self._tell(kind, fields, place)) or [
            self.loop.kept(kind, value, place, recognized=kind in _KNOWN)
        ]
        return Item(self.loop.session, key, drafts, line, canonical_json(value))

    def _tell(self, kind: str, fields: dict[str, Any], place: Place) -> Iterator[Draft]:
        loop, source = self.loop, words(fields.get("source"))
        content, used = fields.get("content"), record(fields.get("models_usage"))
        if kind == "ToolCallRequestEvent":
            yield from self._called(fields, {"role": "assistant", "tool_calls": chat_calls(content)}, place)
        elif kind == "ToolCallExecutionEvent":
            self._returned = returned(fields)
            yield from executed(loop, fields, place)
        elif kind == "HandoffMessage":
            yield handed_over(loop, fields, place, self._returned)
        elif kind in ("TextMessage", "MultiModalMessage") and used and source != "user":
            yield from self._called(fields, {"role": "assistant", "content": content}, place)
        elif kind in ("TextMessage", "MultiModalMessage"):
            yield said(loop, fields, place)

    def _called(self, fields: dict[str, Any], message: dict[str, Any], place: Place) -> Iterator[Draft]:
        ask = Ask(place.key, "openai.chat", completeness="none", not_seen=_UNSEEN)
        yield from self.loop.exchanges.requested(ask, {"messages": []}, place)
        usage = usage_of(fields.get("models_usage"))
        beside = rest(fields, "id", "type", "source", "created_at", "models_usage", "content")
        yield from self.loop.exchanges.answered(ask, message, place, rest=beside, usage=usage)


class Log:
    """The entries of one event log: near the wire for model calls, without times and call ids."""

    def __init__(self, desk: Desk, session: str) -> None:
        self.loop = Loop(desk, FORMAT, session)
        self._messages: OrderedDict[str, None] = OrderedDict()
        self._results: dict[str, tuple[ToolResult, Place, str]] = {}
        self._told_before: list[Item] = []
        self._returned: dict[str, str] = {}

    def entry(self, value: Any, line: int) -> Item:
        """One entry."""
        fields = record(value)
        kind = words(fields.get("type")) or "none"
        tally = self.loop.desk.tally
        tally.lines += 1
        tally.native[kind[:60]] += 1
        place = Place(f"entry:{line}", line)
        agent = words(fields.get("agent_id")) or words(fields.get("sender")) or ""
        name = _OF_TEAM.sub("", agent.partition("/")[0])
        self.loop.scribe.agent = self.loop.scribe.word(name, "agent")
        if kind == "LLMCall" and isinstance(fields.get("messages"), list):
            drafts = list(self._model_call(fields, place))
        elif kind == "ToolCall":
            drafts = list(self._tool_call(fields, place))
        else:
            drafts = list(self._delivered(fields, place)) if kind == "Message" else []
            drafts.append(self.loop.kept(kind, value, place, recognized=kind in _ENTRIES))
        return Item(self.loop.session, place.key, drafts, line, canonical_json(value))

    def finish(self) -> Iterator[Item]:
        """Results of which the log does not go on to say whether they are errors."""
        yield from self._told_before
        for result, place, agent in self._results.values():
            if self.loop.tools.is_new(result):
                self.loop.scribe.agent = agent or None
                yield self._late(result, place)

    def _late(self, result: ToolResult, place: Place) -> Item:
        drafts = list(self.loop.settle(result, place, outcome="unknown"))
        return Item(self.loop.session, f"{place.key}:result", drafts, place.line)

    def _model_call(self, fields: dict[str, Any], place: Place) -> Iterator[Draft]:
        loop = self.loop
        response = record(fields.get("response"))
        body = {"messages": fields["messages"]}
        if isinstance(fields.get("tools"), list):
            body["tools"] = fields["tools"]
        for message in items(fields["messages"]):
            told = record(message)
            if told.get("role") == "tool" and words(told.get("tool_call_id")) in self._results:
                result, _, _ = self._results.pop(str(told["tool_call_id"]))
                yield from loop.settle(result, place, outcome="unknown")
        ask = Ask(
            place.key, "openai.chat", completeness="messages", not_seen=("parameters",), origin="unknown"
        )
        beside = rest(fields, "type", "messages", "tools", "response", "prompt_tokens", "completion_tokens")
        yield from loop.exchanges.requested(ask, body, place, rest=beside)
        given, written = number(fields.get("prompt_tokens")), number(fields.get("completion_tokens"))
        known = record(response.get("usage"))
        usage = None if known else Usage(input_tokens=given, output_tokens=written)
        yield from loop.note_calls(
            loop.exchanges.answered(ask, response or fields.get("response"), place, usage=usage)
        )

    def _tool_call(self, fields: dict[str, Any], place: Place) -> Iterator[Draft]:
        tool = words(fields.get("tool_name")) or "unnamed"
        call_id, drafts = self.loop.runs(tool, fields.get("arguments"), place)
        yield from drafts
        result = ToolResult(call_id, tool, fields.get("result"), None)
        if self.loop.desk.recorded(self.loop.session, f"{place.key}:result"):
            self._told_before.append(self._late(result, place))  # by an import of this log before it went on
            return
        self._results[call_id] = (result, place, self.loop.scribe.agent or "")

    def _delivered(self, fields: dict[str, Any], place: Place) -> Iterator[Draft]:
        """What a payload tells for the first time: it goes by several entries, from topic to agent."""
        for message in payload_messages(fields.get("payload")):
            name = words(message.get("id"))
            if name is None or name in self._messages:
                continue
            self._messages[name] = None
            if len(self._messages) > _KEPT:
                self._messages.popitem(last=False)
            kind = message.get("type")
            at = place._replace(time=utc_time(message.get("created_at")))
            if kind == "ToolCallExecutionEvent":
                for result in items(message.get("content")):
                    self._results.pop(words(record(result).get("call_id")) or "", None)
                self._returned = returned(message)
                yield from executed(self.loop, message, at)
            elif kind == "HandoffMessage":
                yield handed_over(self.loop, message, at, self._returned)
            elif kind == "TextMessage" and message.get("source") == "user":
                yield said(self.loop, message, at)


def payload_messages(payload: Any) -> list[dict[str, Any]]:
    """The messages in an entry's payload, which is JSON in a text."""
    try:
        body = record(decode_json(payload)) if isinstance(payload, str) else record(payload)
    except ValueError:
        return []
    listed = [*items(body.get("messages")), body.get("message")]
    for response in (record(body.get("response")), record(body.get("agent_response"))):
        inner = record(response.get("response")) or response
        listed += [*items(inner.get("inner_messages")), inner.get("chat_message")]
    return [one for one in listed if isinstance(one, dict)]


def executed(loop: Loop, fields: dict[str, Any], place: Place) -> Iterator[Draft]:
    """Results of tool calls, with the mark of an error."""
    for entry in items(fields.get("content")):
        told = record(entry)
        failed = told.get("is_error")
        result = ToolResult(
            words(told.get("call_id")),
            words(told.get("name")),
            told.get("content"),
            failed if isinstance(failed, bool) else None,
        )
        yield from loop.settle(result, place, outcome=None if isinstance(failed, bool) else "unknown")


def returned(fields: dict[str, Any]) -> dict[str, str]:
    """The calls that returned last, by what they returned."""
    told = [record(entry) for entry in items(fields.get("content"))]
    named = [(words(one.get("content")), words(one.get("call_id"))) for one in told]
    return {text: call for text, call in named if text and call}


def handed_over(loop: Loop, fields: dict[str, Any], place: Place, calls: Mapping[str, str]) -> Draft:
    """The conversation went to another agent, by the call that returned the same words."""
    event = DelegationStarted(
        call_id=loop.scribe.word(calls.get(words(fields.get("content")) or ""), "call id"),
        delegation_id=f"handoff:{loop.scribe.word(fields.get('id')) or place.key}",
        to_agent=loop.scribe.word(fields.get("target"), "target"),
        how="handoff",
        payload=loop.keep.json(fields, "handoff"),
    )
    return loop.scribe.draft(place, event, "agent")


def said(loop: Loop, fields: dict[str, Any], place: Place) -> Draft:
    """A message of a person or of an agent that no model wrote."""
    source = words(fields.get("source"))
    is_user = source == "user"
    event = MessageReceived(
        origin="human" if is_user else "agent",
        message=loop.keep.json(fields, "message"),
        sender=loop.scribe.word(source, "source"),
    )
    return loop.scribe.draft(place, event, "human" if is_user else "agent")


def chat_calls(content: Any) -> list[Any]:
    """Calls as a chat model writes them."""
    return [
        {
            "id": one.get("id"),
            "type": "function",
            "function": {"name": one.get("name"), "arguments": one.get("arguments")},
        }
        if isinstance(one, dict)
        else one
        for one in items(content)
    ]


def usage_of(value: Any) -> Usage | None:
    """Usage as messages carry it."""
    fields = record(value)
    given, written = number(fields.get("prompt_tokens")), number(fields.get("completion_tokens"))
    return None if given is None and written is None else Usage(input_tokens=given, output_tokens=written)
