"""MCP messages: single JSON-RPC messages, lists of them, and lines of a tap between client and server."""

import re
from collections import OrderedDict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Literal

from ledger.events import Draft, Event
from ledger.events.approval import ApprovalAsked, ApprovalDecided
from ledger.events.capability import CapabilityLoaded
from ledger.events.governance import ArtifactChanged
from ledger.events.input import MessageReceived
from ledger.events.keeping import SourceKept
from ledger.events.record import Grade
from ledger.events.session import SessionStarted
from ledger.events.tool_call import ToolCallRequested, ToolCallStarted
from ledger.importers import Desk, Item, Sniff
from ledger.importers._json_pieces import partial_json
from ledger.importers._jsonl import Damage
from ledger.importers._plain.exchanges import Ask, Exchanges
from ledger.importers._plain.json_rpc import Rpc, framed, is_message, rpc_messages
from ledger.importers._plain.scribe import Place, Scribe
from ledger.protocols.tool_use import ToolResult, ToolUse, text

FORMAT = "mcp-messages"
TITLE = "MCP messages (JSON-RPC, 2024-11-05 to 2026-07-28; single, listed, or lines of a tap)"
GRADE: Grade = "near-wire"
CANNOT_SHOW = (
    "Why a tool was called: the model call behind it is the client's, and not on this wire.",
    "Whether the client asked a person before it called a tool.",
    "What a tool did beside its result.",
    "Who a client is beyond the name that it gives itself; headers and tokens of HTTP.",
    "In a file with a single message: what came before and after it.",
)

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
_OF_MUSE = re.compile(rb'\\"method\\"\s*:\s*\\"(?:session|turn|item)/')
_OPEN_KEPT = 20_000


def recognizes(sniff: Sniff) -> bool:
    """JSON-RPC with a method of MCP, an answer beside such a one, or a bare request of it."""
    start = sniff.opening
    if start[:1] not in (b"{", b"["):
        return False
    value = partial_json(start)
    if isinstance(value, list):
        value = value[0] if value else None
    message = framed(value)
    if message is None:
        return isinstance(value, dict) and _is_bare(value)
    if value is not message and _OF_MUSE.search(sniff.start):
        return False  # the Muse Session Protocol opens with `initialize` too
    method = message.get("method")
    if isinstance(method, str):
        return _is_method(method)
    if value is not message or b'"method"' in sniff.start:
        return b'"tools/' in sniff.start or b'"initialize"' in sniff.start
    result = message.get("result")
    return isinstance(result, dict) and bool(
        result.keys()
        & {"resultType", "content", "tools", "resources", "resourceTemplates", "prompts", "contents"}
        or "protocolVersion" in result
        or "completion" in result
    )


def _is_method(method: str) -> bool:
    return method.startswith(_METHODS) and method not in _OF_A2A


def _is_bare(value: dict[str, Any]) -> bool:
    """A message without its envelope, as documents print it."""
    method = value.get("method")
    return isinstance(method, str) and _is_method(method) and value.keys() <= {"method", "params", "id"}


def read(path: Path, desk: Desk) -> Iterator[Item]:
    """The messages in file order, streaming."""
    taps = _Taps(desk)
    for index, found in enumerate(rpc_messages(path), start=1):
        desk.tally.lines += 1
        if isinstance(found, Damage):
            scribe = Scribe(desk, FORMAT, taps.session, GRADE)
            event = desk.damage(found.number, found.reason, found.raw)
            draft = scribe.draft(Place(f"damage:{index}", found.number), event)
            yield Item(scribe.session, f"damage:{index}", [draft], found.number, found.raw)
        else:
            yield from taps.of(found).items(found, f"message:{index}")


class _Taps:
    """The sessions of a file: one for each that its lines name, and one for the file."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._known: dict[str, _Tap] = {}

    @property
    def session(self) -> str:
        """The file's own session."""
        return self._desk.fallback_session(FORMAT)

    def of(self, rpc: Rpc) -> "_Tap":
        """The session of a message."""
        name = self.session if rpc.session is None else f"{FORMAT}-{rpc.session}"
        tap = self._known.get(name)
        if tap is None:
            tap = _Tap(Scribe(self._desk, FORMAT, name, GRADE))
            if len(self._known) < _OPEN_KEPT:
                self._known[name] = tap
        return tap


class _Tap:
    """One session: what was asked, and waits for its answer."""

    def __init__(self, scribe: Scribe) -> None:
        self.scribe = scribe
        self.exchanges = Exchanges(scribe)
        self._open: OrderedDict[str, tuple[str, str, dict[str, Any]]] = OrderedDict()
        self._server: str | None = None
        self._is_begun = False
        self._tools: dict[str, str] = {}

    def items(self, rpc: Rpc, key: str) -> Iterator[Item]:
        """One message."""
        scribe, message = self.scribe, rpc.message
        place = Place(key, rpc.number, rpc.time)
        method = text(message.get("method"))
        asked = None if method else self._take(rpc)
        name = method or (f"answer:{asked[0]}" if asked else "answer" if is_message(message) else "other")
        tally = scribe.desk.tally
        tally.native[name[:80]] += 1
        if not self._is_begun:
            self._is_begun = True
            yield Item(scribe.session, "start", [scribe.draft(place, self._started(rpc))], rpc.number)
        if method and "id" in message:
            self._open[_lane(rpc, method) + _id(message)] = (method, key, message)
            if len(self._open) > _OPEN_KEPT:
                self._open.popitem(last=False)
        params = _dict(message.get("params"))
        drafts: list[Draft] = []
        if method is not None:
            ask = _ASKED.get(method)
            drafts = list(ask(self, rpc, params, place)) if ask else []
        elif asked is not None:
            answer = _ANSWERED.get(asked[0])
            drafts = list(answer(self, rpc, asked, place)) if answer else []
        elif is_message(message):
            drafts = list(self._unasked(rpc, place))
        known = bool(drafts) or name.startswith("answer") or (method is not None and _is_method(method))
        if not known:
            tally.unknown[name[:80]] += 1
        if not drafts or rpc.around:
            body = scribe.keep.json({"message": message, **rpc.around} if drafts == [] else rpc.around, name)
            kept = SourceKept(native_type=name[:80], recognized=known, body=body)
            drafts.append(scribe.draft(place, kept))
        yield Item(scribe.session, key, drafts, rpc.number, rpc.raw, cause=asked[1] if asked else None)

    def _take(self, rpc: Rpc) -> tuple[str, str, dict[str, Any]] | None:
        """The question that an answer belongs to: both sides count their ids for themselves."""
        lanes = (">", "<") if rpc.to_server is None else ("<",) if rpc.to_server else (">",)
        for lane in lanes:
            if (asked := self._open.pop(lane + _id(rpc.message), None)) is not None:
                return asked
        return None

    def _started(self, rpc: Rpc) -> Event:
        params = _dict(rpc.message.get("params"))
        client = _dict(params.get("clientInfo")) or _dict(
            _dict(params.get("_meta")).get("io.modelcontextprotocol/clientInfo")
        )
        word = self.scribe.word
        return SessionStarted(
            harness=word(client.get("name"), "client") or "mcp-client",
            harness_version=word(client.get("version"), "client"),
        )

    def _call(self, rpc: Rpc, params: dict[str, Any], place: Place) -> Iterator[Draft]:
        """The client calls a tool: it is on its way when it is seen here."""
        native = _id(rpc.message) if "id" in rpc.message else None
        server = rpc.server or self._server
        name = text(params.get("name")) or "unnamed"
        rest = {key: part for key, part in params.items() if key not in ("name", "arguments")}
        use = ToolUse(native, name, params.get("arguments"), server)
        draft = self.exchanges.tools.requested(use, place, rest=rest)
        yield draft
        assert isinstance(draft.event, ToolCallRequested)
        yield self.scribe.draft(place, ToolCallStarted(call_id=draft.event.call_id))

    def _called(self, rpc: Rpc, asked: tuple[str, str, dict[str, Any]], place: Place) -> Iterator[Draft]:
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
            self._open.setdefault(">" + _id(rpc.message), asked)
            yield from self._needs_input(body, place)
            return
        found = ToolResult(_id(rpc.message), None, shown, None)
        yield self.exchanges.tools.settled(found, place, outcome=outcome, error=kind)[0]

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
            found = ToolResult(_id(rpc.message), None, result, failed)
            yield self.exchanges.tools.settled(found, place)[0]

    def _initialized(self, rpc: Rpc, asked: tuple[str, str, dict[str, Any]], place: Place) -> Iterator[Draft]:
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

    def _listed(self, rpc: Rpc, asked: tuple[str, str, dict[str, Any]], place: Place) -> Iterator[Draft]:
        """The server offers its tools; one whose schema is another than before was changed."""
        scribe = self.scribe
        tools = _dict(rpc.message.get("result")).get("tools")
        server = scribe.word(rpc.server or self._server, "server")
        for tool in tools if isinstance(tools, list) else ():
            name = scribe.word(tool.get("name"), "tool") if isinstance(tool, dict) else None
            if name is None:
                continue
            kept = scribe.keep.json(tool, "tool")
            before = self._tools.get(name)
            self._tools[name] = kept.digest
            if before is None:
                offered = CapabilityLoaded(kind="tool", capability=name, definition=kept, server=server)
                yield scribe.draft(place, offered)
            elif before != kept.digest:
                changed = ArtifactChanged(
                    artifact=f"tool:{name}", kind="tool_schema", old=before, content=kept, cause="harness"
                )
                yield scribe.draft(place, changed)

    def _elicits(self, rpc: Rpc, params: dict[str, Any], place: Place) -> Iterator[Draft]:
        """The server asks the person behind the client."""
        yield self._question(_id(rpc.message) if "id" in rpc.message else place.key, params, place)

    def _question(self, name: str, params: dict[str, Any], place: Place) -> Draft:
        asked = ApprovalAsked(
            approval_id=f"elicitation-{name}", context=self.scribe.keep.json(params, "elicitation")
        )
        return self.scribe.draft(place, asked)

    def _elicited(self, rpc: Rpc, asked: tuple[str, str, dict[str, Any]], place: Place) -> Iterator[Draft]:
        """The person's answer; what was typed comes in as a message."""
        result = _dict(rpc.message.get("result"))
        action = text(result.get("action"))
        decided = ApprovalDecided(
            approval_id=f"elicitation-{_id(rpc.message)}",
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
        yield from self.exchanges.requested(self._sampling(rpc), body, place)

    def _sampled(self, rpc: Rpc, asked: tuple[str, str, dict[str, Any]], place: Place) -> Iterator[Draft]:
        """The client's model answered, or the client would not have it."""
        result, error = rpc.message.get("result"), rpc.message.get("error")
        ask = self._sampling(rpc)
        if isinstance(result, dict):
            facts = {"model": text(result.get("model")), "stop_reason": text(result.get("stopReason"))}
            message = {name: result[name] for name in ("role", "content") if name in result}
            yield from self.exchanges.answered(ask, message, place, **facts)
        else:
            kind = f"JSON-RPC {_dict(error).get('code')}"
            yield self.exchanges.failed(ask, error, place, error=kind)

    @staticmethod
    def _sampling(rpc: Rpc) -> Ask:
        return Ask(
            call_id=f"sampling-{_id(rpc.message)}",
            protocol="mcp.sampling",
            purpose="other",
            completeness="messages",
        )

    def _cancelled(self, rpc: Rpc, params: dict[str, Any], place: Place) -> Iterator[Draft]:
        """The client gives a call up: what became of it nobody can say."""
        native = _word(params.get("requestId"))
        call = self.exchanges.tools.find(native)
        self._open.pop(">" + native, None)
        if call is not None and not call.settled:
            found = ToolResult(native, None, None, None)
            reason = text(params.get("reason")) or "cancelled"
            yield self.exchanges.tools.settled(found, place, outcome="unknown", error=reason)[0]


_Asked = Callable[[_Tap, Rpc, dict[str, Any], Place], Iterator[Draft]]
_Answered = Callable[[_Tap, Rpc, tuple[str, str, dict[str, Any]], Place], Iterator[Draft]]
_ASKED: dict[str, _Asked] = {
    "tools/call": _Tap._call,
    "elicitation/create": _Tap._elicits,
    "sampling/createMessage": _Tap._samples,
    "notifications/cancelled": _Tap._cancelled,
}
_ANSWERED: dict[str, _Answered] = {
    "tools/call": _Tap._called,
    "initialize": _Tap._initialized,
    "server/discover": _Tap._initialized,
    "tools/list": _Tap._listed,
    "elicitation/create": _Tap._elicited,
    "sampling/createMessage": _Tap._sampled,
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


def _id(message: dict[str, Any]) -> str:
    return _word(message.get("id"))


def _word(value: Any) -> str:
    return value if isinstance(value, str) else str(value)[:200]


def _dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
