"""A2A messages: JSON-RPC between agents, single, listed, or lines of a tap. A task is work handed to another agent."""

from collections import OrderedDict
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

from ledger.events import Draft
from ledger.events.canonical import spelled
from ledger.events.delegation import DelegationReturned, DelegationStarted
from ledger.events.input import MessageReceived
from ledger.events.keeping import SourceKept
from ledger.events.record import Grade
from ledger.events.session import SessionStarted
from ledger.importers import Desk, Item, Sniff
from ledger.importers._jsonl import Damage
from ledger.importers._plain.json_rpc import framed, rpc_messages
from ledger.importers._plain.scribe import Scribe, utc_time
from ledger.protocols.drafting import Place
from ledger.protocols.json_rpc import Rpc, is_message
from ledger.protocols.tool_use import text

FORMAT = "a2a-messages"
TITLE = "A2A messages (JSON-RPC, 0.2 to 1.0; single, listed, or lines of a tap)"
GRADE: Grade = "near-wire"
CANNOT_SHOW = (
    "What the other agent did: its model calls, tools and approvals are on no wire that the client sees.",
    "Why work was handed over: the model call behind it is not on this wire.",
    "Who answered a question that the other agent put back.",
    "HTTP headers, tokens, and pushes to another address.",
)

_SENDS = frozenset(
    {
        "message/send",
        "message/stream",
        "tasks/send",
        "tasks/sendSubscribe",
        "SendMessage",
        "SendStreamingMessage",
    }
)
_OTHERS = frozenset(
    """
    tasks/get tasks/list tasks/cancel tasks/resubscribe tasks/pushNotificationConfig/set
    tasks/pushNotificationConfig/get tasks/pushNotification/set tasks/pushNotification/get
    agent/getAuthenticatedExtendedCard GetTask ListTasks CancelTask SubscribeToTask GetExtendedAgentCard
    """.split()
)
_SURE = (_SENDS | _OTHERS) - {"tasks/get", "tasks/list", "tasks/cancel"}
_ENDS: dict[str, Literal["returned", "failed", "aborted"]] = {
    "completed": "returned",
    "failed": "failed",
    "rejected": "failed",
    "canceled": "aborted",
    "cancelled": "aborted",
}
_KEPT = 20_000


def recognizes(sniff: Sniff) -> bool:
    """JSON-RPC with a method of A2A, or an answer that holds a task or a message of an agent."""
    value = sniff.json
    if isinstance(value, list):
        value = value[0] if value else None
    message = framed(value)
    if message is None:
        return False
    method = message.get("method")
    if isinstance(method, str):
        params = message.get("params")
        known = isinstance(params, dict) and bool(params.keys() & {"historyLength", "contextId"})
        return method in _SURE or (method in _OTHERS and known)
    return _task_of(message.get("result")) is not None


def _task_of(result: Any) -> dict[str, Any] | None:
    """The task, update or message in a result, whichever way the version wraps it."""
    if not isinstance(result, dict):
        return None
    for name in ("task", "message", "msg", "statusUpdate", "artifactUpdate"):
        inner = result.get(name)
        if isinstance(inner, dict) and len(result) == 1:
            return {**inner, "kind": inner.get("kind") or name}
    if result.get("kind") in (
        "task",
        "message",
        "status-update",
        "artifact-update",
        "statusUpdate",
        "artifactUpdate",
    ):
        return result
    status = result.get("status")
    return result if isinstance(status, dict) and "state" in status and "id" in result else None


def read(path: Path, desk: Desk) -> Iterator[Item]:
    """The messages in file order, streaming."""
    wires = _Wire(Scribe(desk, FORMAT, desk.fallback_session(FORMAT), GRADE))
    for index, found in enumerate(rpc_messages(path), start=1):
        desk.tally.lines += 1
        key = f"message:{index}"
        if isinstance(found, Damage):
            event = desk.damage(found.number, found.reason, found.raw)
            draft = wires.scribe.draft(Place(key, found.number), event)
            yield Item(wires.scribe.session, key, [draft], found.number, found.raw)
        else:
            yield from wires.items(found, key)


class _Wire:
    """What goes between two agents."""

    def __init__(self, scribe: Scribe) -> None:
        self.scribe = scribe
        self._asked: OrderedDict[str, tuple[str, str]] = OrderedDict()
        self._tasks: OrderedDict[str, str] = OrderedDict()
        self._is_begun = False

    def items(self, rpc: Rpc, key: str) -> Iterator[Item]:
        """One message."""
        scribe, message = self.scribe, rpc.message
        place = Place(key, rpc.number, rpc.time)
        if not self._is_begun:
            self._is_begun = True
            yield Item(
                scribe.session,
                "start",
                [scribe.draft(place, SessionStarted(harness="a2a-client"))],
                rpc.number,
            )
        method = text(message.get("method"))
        native = spelled(message.get("id"))[:200]
        asked = None if method else self._asked.get(native)
        name = method or (f"answer:{asked[1]}" if asked else "answer" if is_message(message) else "other")
        scribe.desk.tally.native[name[:80]] += 1
        drafts: list[Draft] = []
        if method in _SENDS:
            drafts = list(self._sent(rpc, native, place))
        elif method is None and is_message(message):
            drafts = list(self._answered(rpc, native, place))
        if method is not None and "id" in message:
            self._asked[native] = (key, method)
            if len(self._asked) > _KEPT:
                self._asked.popitem(last=False)
        known = bool(drafts) or name.startswith("answer") or method in _SENDS | _OTHERS
        if not known:
            scribe.desk.tally.unknown[name[:80]] += 1
        if not drafts or rpc.around:
            body = scribe.keep.json(rpc.around if drafts else {"message": message, **rpc.around}, name)
            drafts.append(scribe.draft(place, SourceKept(native_type=name[:80], recognized=known, body=body)))
        yield Item(scribe.session, key, drafts, rpc.number, rpc.raw, cause=asked[0] if asked else None)

    def _sent(self, rpc: Rpc, native: str, place: Place) -> Iterator[Draft]:
        """Work, or an answer to a question, goes to the other agent."""
        params = rpc.message.get("params")
        params = params if isinstance(params, dict) else {}
        message = params.get("message")
        message = message if isinstance(message, dict) else {}
        kept = self.scribe.keep.json(params, "task")
        task = text(message.get("taskId")) or text(message.get("task_id")) or text(params.get("id"))
        if task is not None and task in self._tasks:
            yield self.scribe.draft(
                place, MessageReceived(origin="agent", message=kept), "agent", rest={"task": task}
            )
            return
        delegation = f"delegation-{place.key}"
        for name in (f"call:{native}", *((task,) if task is not None else ())):
            self._remember(name, delegation)
        agent = self.scribe.word(rpc.server, "agent")
        started = DelegationStarted(delegation_id=delegation, to_agent=agent, how="message", payload=kept)
        yield self.scribe.draft(place, started, "agent", rest={"task": task} if task else None)

    def _answered(self, rpc: Rpc, native: str, place: Place) -> Iterator[Draft]:
        """The other agent works on it, asks back, or comes back with a result."""
        message = rpc.message
        call = f"call:{native}"
        if message.get("error") is not None:
            delegation = self._tasks.pop(call, None)
            if delegation is not None:
                kept = self.scribe.keep.json(message["error"], "error")
                yield self._back(delegation, "failed", kept, place)
            return
        task = _task_of(message.get("result"))
        if task is None:
            return
        is_message_only = task.get("kind") in ("message", "msg")
        named = text(task.get("taskId")) or (None if is_message_only else text(task.get("id")))
        delegation = self._tasks.get(named or call) or self._tasks.pop(call, None)
        if delegation is not None and named is not None:
            self._remember(named, delegation)
        status = task.get("status")
        status = status if isinstance(status, dict) else {}
        state = spelled(status.get("state") or "").lower().removeprefix("task_state_").replace("_", "-")
        kept = self.scribe.keep.json(task, "task")
        time = utc_time(status.get("timestamp")) or place.time
        if is_message_only and delegation is not None:
            yield self._back(delegation, "returned", kept, place)
        elif state in _ENDS:
            self._tasks.pop(named or call, None)
            yield self._back(
                delegation or f"delegation-of-{named or native}", _ENDS[state], kept, place, time
            )
        elif state in ("input-required", "auth-required"):
            asked = MessageReceived(
                origin="agent", message=kept, sender=self.scribe.word(rpc.server, "agent")
            )
            yield self.scribe.draft(place, asked, "agent", time=time)

    def _back(
        self,
        delegation: str,
        outcome: Literal["returned", "failed", "aborted"],
        kept: Any,
        place: Place,
        time: str | None = None,
    ) -> Draft:
        event = DelegationReturned(delegation_id=delegation, outcome=outcome, result=kept, returned="result")
        return self.scribe.draft(place, event, time=time)

    def _remember(self, name: str, delegation: str) -> None:
        self._tasks[name] = delegation
        if len(self._tasks) > _KEPT:
            self._tasks.popitem(last=False)
