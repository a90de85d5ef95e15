"""Messages of the Microsoft Agent Framework, and the approvals in them. Tells one session; knows no file."""

from collections.abc import Iterable, Iterator
from typing import Any, Literal

from ledger.events import Draft
from ledger.events.approval import ApprovalAsked, ApprovalDecided
from ledger.events.input import ContextInjected, MessageReceived
from ledger.events.model_call import Usage
from ledger.importers import Desk, Item
from ledger.importers._frameworks.document import Loop
from ledger.importers._harness.values import items, number, record, rest, words
from ledger.importers._plain.scribe import identity
from ledger.protocols.drafting import Place
from ledger.protocols.exchanges import Ask
from ledger.protocols.tool_use import ToolResult, ToolUse, arguments_of

FORMAT = "agent-framework"
"""The importer's name."""

PROTOCOL = "agent-framework"
"""Messages have the framework's own shape."""

_UNSEEN = ("messages", "system", "tools", "parameters")


class Talk:
    """The messages of one session."""

    def __init__(self, desk: Desk, session: str) -> None:
        self.loop = Loop(desk, FORMAT, session)
        self.errors: dict[str, str] = {}
        """What a tool raised, by call id, until its result shows up."""
        self.told: set[str] = set()
        """Approval requests that a history holds."""
        self._refused: set[str] = set()

    def message(self, value: Any, place: Place, *, usage: Usage | None = None, **facts: Any) -> list[Draft]:
        """A message of a history: an answer of a model, whose request was not seen, or what led to one."""
        fields, loop = record(value), self.loop
        loop.scribe.agent = loop.scribe.word(fields.get("author_name"), "author")
        role = fields.get("role")
        drafts = list(self.results([value], place))
        if role == "assistant":
            ask = Ask(place.key, PROTOCOL, completeness="none", not_seen=_UNSEEN)
            drafts += loop.exchanges.requested(ask, {"messages": []}, place)
            drafts += self.answer(ask, value, place, usage=usage, **facts)
        elif role == "user":
            event = MessageReceived(origin="human", message=loop.keep.json(value, "message"))
            drafts.append(loop.scribe.draft(place, event, "human"))
        elif role == "system":
            injected = ContextInjected(provenance="system", message=loop.keep.json(value, "message"))
            drafts.append(loop.scribe.draft(place, injected))
        drafts += self._decisions(value, place)
        return drafts or [loop.kept(f"message:{words(role)}", value, place, recognized=role == "tool")]

    def answer(
        self, ask: Ask, message: Any, place: Place, *, more: Any = None, **facts: Any
    ) -> Iterator[Draft]:
        """An answer, the tools that it asks for, and the approvals that these wait for."""
        loop = self.loop
        yield from loop.exchanges.answered(ask, message, place, rest=more, **facts)
        for index, content in enumerate(contents_of(message)):
            if content.get("type") == "function_call":
                yield from loop.note_calls([self.call(content, place, index)])
            elif content.get("type") == "function_approval_request":
                call = record(content.get("function_call"))
                if self.loop.tools.find(words(call.get("call_id")) or "") is None:
                    yield from loop.note_calls([self.call(call, place, index)])
                self.told.add(approval_id(content, place))
                yield self.asked(content, place)

    def call(self, content: dict[str, Any], place: Place, index: int) -> Draft:
        """A tool call."""
        use = ToolUse(
            words(content.get("call_id")),
            words(content.get("name")) or "unnamed",
            arguments_of(content.get("arguments")),
            provider_executed=content.get("hosted") is True,
        )
        return self.loop.tools.requested(use, place, index)

    def results(self, messages: Iterable[Any], place: Place) -> Iterator[Draft]:
        """Results of tools in messages that go to a model, each once."""
        for message in messages:
            for content in contents_of(message):
                if content.get("type") != "function_result":
                    continue
                call_id = words(content.get("call_id"))
                error = self.errors.pop(call_id or "", None) or words(content.get("exception"))
                result = ToolResult(call_id, None, content.get("result"), error is not None or None)
                outcome: Literal["denied"] | None = "denied" if call_id in self._refused else None
                yield from self.loop.settle(result, place, outcome=outcome, error=error)

    def asked(self, content: dict[str, Any], place: Place) -> Draft:
        """A call waits for a decision."""
        loop, call = self.loop, record(content.get("function_call"))
        arguments = arguments_of(call.get("arguments"))
        event = ApprovalAsked(
            approval_id=approval_id(content, place),
            call_id=loop.scribe.word(call.get("call_id"), "call id"),
            tool=loop.scribe.word(call.get("name"), "tool"),
            arguments_digest=loop.tools.content(arguments, "arguments").digest,
            context=loop.keep.json(content, "approval request"),
        )
        return loop.scribe.draft(place, event)

    def _decisions(self, message: Any, place: Place) -> Iterator[Draft]:
        """Answers to approval requests, where a history holds them."""
        for content in contents_of(message):
            if content.get("type") == "function_approval_response":
                call, approved = record(content.get("function_call")), content.get("approved")
                if approved is False and (call_id := words(call.get("call_id"))) is not None:
                    self._refused.add(call_id)
                event = ApprovalDecided(
                    approval_id=approval_id(content, place),
                    call_id=self.loop.scribe.word(call.get("call_id"), "call id"),
                    outcome="approved" if approved is True else "denied" if approved is False else "unknown",
                    decided_by="unknown",
                )
                yield self.loop.scribe.draft(place, event)


def contents_of(message: Any) -> list[dict[str, Any]]:
    """The contents of a message."""
    return [one for one in items(record(message).get("contents")) if isinstance(one, dict)]


def approval_id(content: dict[str, Any], place: Place) -> str:
    """The id that joins a request with its answer."""
    name = words(content.get("id"))
    return name[:200] if name is not None else f"{place.key}.approval"


def pending_approvals(session: Any) -> list[dict[str, Any]]:
    """The approval requests that a saved session waits for."""
    approval = record(record(record(session).get("state")).get("tool_approval"))
    return [one for one in items(approval.get("pending_approval_requests")) if isinstance(one, dict)]


def pending_items(talk: Talk, session: Any, line: int, time: str | None = None) -> Iterator[Item]:
    """Each pending approval as an item of its own: every save tells it again, and it counts once."""
    for content in pending_approvals(session):
        name = approval_id(content, Place(f"pending:{identity(content)}"))
        if name in talk.told:
            continue
        key = f"asked:{name}"
        call = record(content.get("function_call"))
        place = Place(key, line, time)
        drafts = []
        if talk.loop.tools.find(words(call.get("call_id")) or "") is None:
            drafts.append(talk.call(call, place, 0))
        drafts.append(talk.asked(content, place))
        yield Item(talk.loop.session, key, drafts, line)


def usage_of(value: Any) -> Usage | None:
    """Usage of a response; its input tokens include the cached ones."""
    fields = record(value)
    given, written = number(fields.get("input_token_count")), number(fields.get("output_token_count"))
    if given is None and written is None:
        return None
    read, wrote = (
        number(fields.get("cache_read_input_token_count")),
        number(fields.get("cache_creation_input_token_count")),
    )
    return Usage(
        input_tokens=None if given is None else max(0, given - (read or 0) - (wrote or 0)),
        output_tokens=written,
        cache_read_tokens=read,
        cache_write_tokens=wrote,
        reasoning_tokens=number(fields.get("reasoning_output_token_count")),
    )


def response_facts(response: dict[str, Any]) -> dict[str, Any]:
    """What a response tells beside its messages."""
    return {
        "usage": usage_of(response.get("usage_details")),
        "model": words(response.get("model")),
        "response_id": words(response.get("response_id")),
        "stop_reason": words(response.get("finish_reason")),
    }


def around(response: dict[str, Any]) -> dict[str, Any]:
    """The fields of a response that no event carries."""
    return rest(response, "messages", "usage_details", "model", "response_id", "finish_reason")
