"""One MCP connection: what was asked and waits for its answer, and what each message tells."""

from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import Any, Literal, NamedTuple

from ledger.events import Draft, Event
from ledger.events.approval import ApprovalAsked, ApprovalDecided
from ledger.events.capability import CapabilityLoaded, CapabilityUnloaded
from ledger.events.governance import ArtifactChanged
from ledger.events.input import MessageReceived
from ledger.events.session import SessionStarted
from ledger.events.tool_call import ToolCallRequested, ToolCallStarted
from ledger.protocols.drafting import Drafter, Place
from ledger.protocols.exchanges import Ask, Exchanges
from ledger.protocols.json_rpc import Rpc, id_of, is_message, word
from ledger.protocols.tool_use import ToolResult, ToolUse, text

_METHODS = (
    "initialize",
    "ping",
    "tools/",
    "resources/",
    "prompts/",
    "completion/",
    "logging/",
    "sampling/",
    "elicitation/",
    "roots/",
    "notifications/",
    "subscriptions/",
    "server/",
    "tasks/",
)
_OF_A2A = frozenset({"tasks/send", "tasks/sendSubscribe", "tasks/resubscribe"})
_OPEN_KEPT = 20_000
_TOOLS_KEPT = 20_000
_TOOL_USE = "claudecode/toolUseId"
"""Where Claude Code says which of its model's calls a call belongs to."""


def is_method(method: str) -> bool:
    """Whether a method is one of MCP."""
    return method.startswith(_METHODS) and method not in _OF_A2A


class _Asked(NamedTuple):
    """A question that waits for its answer."""

    method: str
    """What was asked."""
    key: str
    """Key of the message."""
    call_id: str
    """For a tool call: its id in the ledger."""
    is_whole: bool
    """For a list: whether it was asked for from its beginning."""


class Told(NamedTuple):
    """What a message told."""

    name: str
    """Its kind: a method, or that of the question which it answers."""
    drafts: list[Draft]
    """Facts; none when it tells of no loop action."""
    cause: str | None
    """Key of the message that it answers."""
    known: bool
    """Whether it is a message of MCP."""


class McpSession:
    """The messages between one client and its server, in their order."""

    def __init__(self, scribe: Drafter) -> None:
        self.scribe = scribe
        """Makes the drafts."""
        self._exchanges = Exchanges(scribe)
        self._open: OrderedDict[str, _Asked] = OrderedDict()
        self._server: str | None = None
        self._tools: dict[str, str] = {}
        self._listed: set[str] | None = None

    def tell(self, rpc: Rpc, place: Place) -> Told:
        """One message."""
        message = rpc.message
        method = text(message.get("method"))
        asked = None if method else self._take(rpc)
        name = method or (f"answer:{asked.method}" if asked else "answer" if is_message(message) else "other")
        params = _dict(message.get("params"))
        if method and "id" in message:
            self._open[_lane(rpc, method) + id_of(message)] = _Asked(
                method, place.key, _call_id(message, params), params.get("cursor") is None
            )
            if len(self._open) > _OPEN_KEPT:
                self._open.popitem(last=False)
        drafts: list[Draft] = []
        if method is not None:
            ask = _ASKED.get(method)
            drafts = list(ask(self, rpc, params, place)) if ask else []
        elif asked is not None:
            answer = _ANSWERED.get(asked.method)
            drafts = list(answer(self, rpc, asked, place)) if answer else []
        elif is_message(message):
            drafts = list(self._unasked(rpc, place))
        known = bool(drafts) or name.startswith("answer") or (method is not None and is_method(method))
        return Told(name, drafts, asked.key if asked else None, known)

    def abandoned(self, place: Place, reason: str) -> list[Draft]:
        """The connection is gone: what became of the calls that wait for an answer nobody can say."""
        drafts = []
        for asked in self._open.values():
            call = self._exchanges.tools.find(asked.call_id) if asked.method == "tools/call" else None
            if call is not None and not call.settled:
                found = ToolResult(asked.call_id, None, None, None)
                drafts.append(self._exchanges.tools.settled(found, place, outcome="unknown", error=reason)[0])
        self._open.clear()
        return drafts

    def _take(self, rpc: Rpc) -> _Asked | None:
        """The question that an answer belongs to: both sides count their ids for themselves."""
        lanes = (">", "<") if rpc.to_server is None else ("<",) if rpc.to_server else (">",)
        for lane in lanes:
            if (asked := self._open.pop(lane + id_of(rpc.message), None)) is not None:
                return asked
        return None

    def started(self, rpc: Rpc, **facts: Any) -> Event:
        """The first message: who the client says it is."""
        params = _dict(rpc.message.get("params"))
        client = _dict(params.get("clientInfo")) or _dict(
            _dict(params.get("_meta")).get("io.modelcontextprotocol/clientInfo")
        )
        return SessionStarted(
            harness=self.scribe.word(client.get("name"), "client") or "mcp-client",
            harness_version=self.scribe.word(client.get("version"), "client"),
            **facts,
        )

    def _call(self, rpc: Rpc, params: dict[str, Any], place: Place) -> Iterator[Draft]:
        """The client calls a tool: it is on its way when it is seen here."""
        native = _call_id(rpc.message, params) if "id" in rpc.message else None
        server = rpc.server or self._server
        name = text(params.get("name")) or "unnamed"
        rest = {key: part for key, part in params.items() if key not in ("name", "arguments")}
        use = ToolUse(native, name, params.get("arguments"), server)
        draft = self._exchanges.tools.requested(use, place, rest=rest)
        yield draft
        assert isinstance(draft.event, ToolCallRequested)
        yield self.scribe.draft(place, ToolCallStarted(call_id=draft.event.call_id))

    def _called(self, rpc: Rpc, asked: _Asked, place: Place) -> Iterator[Draft]:
        """The server answers a call."""
        result, error = rpc.message.get("result"), rpc.message.get("error")
        shown: Any = error if error is not None else result
        outcome: Literal["failed", "unknown"] | None = None
        kind = None
        body = _dict(result)
        if error is not None:
            outcome, kind = "failed", f"JSON-RPC {_dict(error).get('code')}"
        elif body.get("isError") is True:
            outcome, kind = "failed", "isError"
        elif body.get("resultType") == "input_required" or "task" in body:
            # Not the end: the server asks something first, or works on.
            self._open.setdefault(">" + id_of(rpc.message), asked)
            yield from self._needs_input(body, place)
            return
        found = ToolResult(asked.call_id, None, shown, None)
        yield self._exchanges.tools.settled(found, place, outcome=outcome, error=kind)[0]

    def _needs_input(self, result: dict[str, Any], place: Place) -> Iterator[Draft]:
        """Questions that come in place of a result."""
        for name, request in _dict(result.get("inputRequests")).items():
            if isinstance(request, dict) and request.get("method") == "elicitation/create":
                yield self._question(f"{place.key}.{name}", _dict(request.get("params")), place)

    def _unasked(self, rpc: Rpc, place: Place) -> Iterator[Draft]:
        """An answer whose question is not in the file: of a tool, if it looks like one."""
        result = rpc.message.get("result")
        if isinstance(result, dict) and isinstance(result.get("content"), list):
            failed = result.get("isError") is True
            found = ToolResult(id_of(rpc.message), None, result, failed)
            yield self._exchanges.tools.settled(found, place)[0]

    def _initialized(self, rpc: Rpc, asked: _Asked, place: Place) -> Iterator[Draft]:
        """The server says who it is, and what it tells the model to do."""
        result = _dict(rpc.message.get("result"))
        info = _dict(result.get("serverInfo"))
        scribe = self.scribe
        self._server = rpc.server or text(info.get("name")) or self._server
        if not result:
            return
        server = scribe.word(self._server, "server")
        loaded = CapabilityLoaded(
            kind="mcp_server",
            capability=server or "unnamed",
            when="always",
            definition=scribe.keep.json(result, "initialize"),
            server=server,
        )
        yield scribe.draft(place, loaded)
        if instructions := text(result.get("instructions")):
            told = ArtifactChanged(
                artifact=f"mcp:{server or 'unnamed'}:instructions",
                kind="prompt",
                content=scribe.keep.text(instructions, "instructions"),
                cause="harness",
            )
            yield scribe.draft(place, told)

    def _tools_listed(self, rpc: Rpc, asked: _Asked, place: Place) -> Iterator[Draft]:
        """The server offers its tools; one whose schema is another than before was changed."""
        scribe = self.scribe
        result = _dict(rpc.message.get("result"))
        tools = result.get("tools")
        server = scribe.word(rpc.server or self._server, "server")
        self._listed = set() if asked.is_whole else self._listed
        for tool in tools if isinstance(tools, list) else ():
            name = scribe.word(tool.get("name"), "tool") if isinstance(tool, dict) else None
            if name is None:
                continue
            if self._listed is not None:
                self._listed.add(name)
            kept = scribe.keep.json(tool, "tool")
            before = self._tools.get(name)
            if before is not None or len(self._tools) < _TOOLS_KEPT:
                self._tools[name] = kept.digest
            if before is None:
                offered = CapabilityLoaded(kind="tool", capability=name, definition=kept, server=server)
                yield scribe.draft(place, offered)
            elif before != kept.digest:
                changed = ArtifactChanged(
                    artifact=f"tool:{name}", kind="tool_schema", old=before, content=kept, cause="harness"
                )
                yield scribe.draft(place, changed)
        if isinstance(tools, list) and result.get("nextCursor") is None and self._listed is not None:
            yield from self._withdrawn(self._listed, place)
            self._listed = None

    def _withdrawn(self, listed: set[str], place: Place) -> Iterator[Draft]:
        """Tools that a whole list does not have any more."""
        for name in [name for name in self._tools if name not in listed]:
            before = self._tools.pop(name)
            yield self.scribe.draft(place, CapabilityUnloaded(kind="tool", capability=name))
            gone = ArtifactChanged(artifact=f"tool:{name}", kind="tool_schema", old=before, cause="harness")
            yield self.scribe.draft(place, gone)

    def _elicits(self, rpc: Rpc, params: dict[str, Any], place: Place) -> Iterator[Draft]:
        """The server asks the person behind the client."""
        yield self._question(id_of(rpc.message) if "id" in rpc.message else place.key, params, place)

    def _question(self, name: str, params: dict[str, Any], place: Place) -> Draft:
        asked = ApprovalAsked(
            approval_id=f"elicitation-{name}", context=self.scribe.keep.json(params, "elicitation")
        )
        return self.scribe.draft(place, asked)

    def _elicited(self, rpc: Rpc, asked: _Asked, place: Place) -> Iterator[Draft]:
        """The person's answer; what was typed comes in as a message."""
        result = _dict(rpc.message.get("result"))
        action = text(result.get("action"))
        decided = ApprovalDecided(
            approval_id=f"elicitation-{id_of(rpc.message)}",
            outcome=_ACTIONS.get(action or "", "unknown"),
            decided_by="human" if action else "unknown",
            how=self.scribe.word(action, "action"),
            scope="once",
        )
        yield self.scribe.draft(place, decided, "human" if action else "system")
        if result.get("content") is not None:
            kept = self.scribe.keep.json(result["content"], "elicitation")
            yield self.scribe.draft(place, MessageReceived(origin="human", message=kept), "human")

    def _samples(self, rpc: Rpc, params: dict[str, Any], place: Place) -> Iterator[Draft]:
        """The server asks the client's model."""
        body = dict(params)
        if isinstance(body.get("systemPrompt"), str):
            body["system"] = body.pop("systemPrompt")
        yield from self._exchanges.requested(self._sampling(rpc), body, place)

    def _sampled(self, rpc: Rpc, asked: _Asked, place: Place) -> Iterator[Draft]:
        """The client's model answered, or the client would not have it."""
        result, error = rpc.message.get("result"), rpc.message.get("error")
        ask = self._sampling(rpc)
        if isinstance(result, dict):
            facts = {"model": text(result.get("model")), "stop_reason": text(result.get("stopReason"))}
            message = {name: result[name] for name in ("role", "content") if name in result}
            yield from self._exchanges.answered(ask, message, place, **facts)
        else:
            kind = f"JSON-RPC {_dict(error).get('code')}"
            yield self._exchanges.failed(ask, error, place, error=kind)

    @staticmethod
    def _sampling(rpc: Rpc) -> Ask:
        return Ask(
            call_id=f"sampling-{id_of(rpc.message)}",
            protocol="mcp.sampling",
            purpose="other",
            completeness="messages",
        )

    def _cancelled(self, rpc: Rpc, params: dict[str, Any], place: Place) -> Iterator[Draft]:
        """The client gives a call up: what became of it nobody can say."""
        native = word(params.get("requestId"))
        asked = self._open.pop(">" + native, None)
        native = native if asked is None else asked.call_id
        call = self._exchanges.tools.find(native)
        if call is not None and not call.settled:
            found = ToolResult(native, None, None, None)
            reason = text(params.get("reason")) or "cancelled"
            yield self._exchanges.tools.settled(found, place, outcome="unknown", error=reason)[0]


_Asking = Callable[[McpSession, Rpc, dict[str, Any], Place], Iterator[Draft]]
_Answering = Callable[[McpSession, Rpc, _Asked, Place], Iterator[Draft]]
_ASKED: dict[str, _Asking] = {
    "tools/call": McpSession._call,
    "elicitation/create": McpSession._elicits,
    "sampling/createMessage": McpSession._samples,
    "notifications/cancelled": McpSession._cancelled,
}
_ANSWERED: dict[str, _Answering] = {
    "tools/call": McpSession._called,
    "initialize": McpSession._initialized,
    "server/discover": McpSession._initialized,
    "tools/list": McpSession._tools_listed,
    "elicitation/create": McpSession._elicited,
    "sampling/createMessage": McpSession._sampled,
}
_ACTIONS: dict[str, Literal["approved", "denied", "cancelled"]] = {
    "accept": "approved",
    "decline": "denied",
    "cancel": "cancelled",
}


def _lane(rpc: Rpc, method: str) -> str:
    """Which way a question goes: as the tap says, or as only one side may ask it."""
    if rpc.to_server is not None:
        return ">" if rpc.to_server else "<"
    return "<" if method.startswith(("sampling/", "elicitation/", "roots/")) else ">"


def _dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _call_id(message: dict[str, Any], params: dict[str, Any]) -> str:
    """The id of a call: that of the model, where the client tells it; else that of the message."""
    return text(_dict(params.get("_meta")).get(_TOOL_USE)) or id_of(message)
