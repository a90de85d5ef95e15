"""A model's answer as events: the state before it as the request, the answer, and the calls that it asks for."""

from collections.abc import Iterator

from ledger.events import Draft, Sibling
from ledger.events.model_call import ModelCallAnswered, ModelCallRequested
from ledger.events.tool_call import ToolCallRequested, ToolCallSettled
from ledger.importers import Item
from ledger.importers._langgraph.lanes import Lane
from ledger.importers._langgraph.messages import Message, ToolRequest, text_or_none
from ledger.importers._langgraph.scribe import Scribe, Step

_NOT_SEEN = ("tools", "parameters", "what a node changed before it asked the model")
_OWN_IDS = ("run-", "lc_run-")


def call_key(key: str, index: int) -> str:
    """Item that holds a call of the answer in the item `key`."""
    return f"{key}:call:{index}"


def answer_items(scribe: Scribe, step: Step, lane: Lane, message: Message, key: str) -> Iterator[Item]:
    """The request, the answer and its calls, each caused by the one before."""
    told = message.response
    call_id = message.id or key.removeprefix("message:")
    model = text_or_none(told.get("model_name")) or text_or_none(told.get("model"))
    has_system = bool(lane.messages) and lane.messages[0].kind == "system"
    request = ModelCallRequested(
        call_id=call_id,
        protocol="langchain",
        model=model,
        provider=text_or_none(told.get("model_provider")),
        context=lane.chain.head,
        context_length=len(lane.chain),
        context_added=lane.chain.take_added(),
        completeness="messages",
        not_seen=_NOT_SEEN if has_system else ("system", *_NOT_SEEN),
    )
    native = text_or_none(told.get("id"))
    if native is None and message.id is not None and not message.id.startswith(_OWN_IDS):
        native = message.id
    answer = ModelCallAnswered(
        call_id=call_id,
        model=model,
        message=message.ref,
        stop_reason=text_or_none(told.get("finish_reason")) or text_or_none(told.get("stop_reason")),
        usage=message.usage(),
        response_id=native,
    )
    draft, item, asked = scribe.draft, scribe.item, f"request:{key}"
    yield item(asked, [draft(request, step.id, actor="system")], step.line)
    yield item(key, [draft(answer, step.id, time=step.time, actor="agent")], step.line, cause=asked)
    for index, call in enumerate(message.calls()):
        yield item(call_key(key, index), list(_requested(scribe, step, call)), step.line, cause=key)


def _requested(scribe: Scribe, step: Step, call: ToolRequest) -> Iterator[Draft]:
    keep, given = scribe.desk.keep, call.arguments
    kept = keep.text(given, "arguments") if isinstance(given, str) else keep.json(given, "arguments")
    event = ToolCallRequested(call_id=call.call_id, tool=call.tool, arguments=kept)
    yield scribe.draft(event, step.id, time=step.time, actor="agent")
    if call.error is not None:
        unread = ToolCallSettled(call_id=call.call_id, outcome="not_started", error=call.error[:500])
        yield scribe.draft(unread, step.id, time=step.time, actor="system", cause=Sibling(0))
