"""Takes a model request apart: context, system, tools, parameters. Must lose nothing that the body holds."""

import hashlib
from collections import OrderedDict
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

from ledger.events import ContentRef
from ledger.events.canonical import canonical_json, decode_json, spelled
from ledger.events.session import ArtifactInForce
from ledger.protocols.plain import fingerprint, is_omitted, plain
from ledger.recorder import ContextChain, Keeper

_SHAPES = {
    "anthropic.messages": ("messages", "system"),
    "openai.responses": ("input", "instructions"),
    "openai.chat": ("messages", None),
    "gemini": ("contents", "systemInstruction"),
}
"""Protocol -> names of the messages and of the system prompt in the body."""

_SYSTEM_ROLES = ("system", "developer")
_MESSAGES_KEPT = 20_000


class Kept(NamedTuple):
    """A message that is kept already."""

    ref: ContentRef
    """Its content."""

    content: bytes | None
    """Its bytes as kept; None where they are those of its fingerprint."""


class RequestParts(NamedTuple):
    """The fields of `ModelCallRequested` that tell what was sent."""

    model: str | None
    messages: list[ContentRef]
    system: ContentRef | None
    tools: ContentRef | None
    parameters: ContentRef | None
    layout: ContentRef | None
    body_digest: str | None
    completeness: Literal["body", "messages", "partial"]
    not_seen: tuple[str, ...]
    artifacts: tuple[ArtifactInForce, ...]


class _Messages(NamedTuple):
    refs: list[ContentRef]
    system: ContentRef | None = None
    layout: ContentRef | None = None


class RequestTaker:
    """Keeps the requests of one loop. A message seen before costs a fingerprint and no more."""

    def __init__(self, keeper: Keeper) -> None:
        self._keeper = keeper
        self._known: OrderedDict[bytes, Kept] = OrderedDict()
        self._in_force: dict[str, str] = {}

    def take(self, protocol: str, request: Mapping[str, Any]) -> RequestParts:
        """Keep a request's parts."""
        fields = {name: value for name, value in request.items() if not is_omitted(value)}
        messages_name, system_name = _SHAPES.get(protocol, ("messages", "system"))
        model = fields.pop("model") if isinstance(fields.get("model"), str) else None
        if model is not None:
            model = self._keeper.scalar(model, "request/model")
        listed = fields.pop(messages_name, None)
        body: dict[str, bytes] = {}
        if model is not None and protocol != "gemini":  # Gemini names the model in the address
            body["model"] = canonical_json(model)
        listed_messages = self._messages(protocol, listed, messages_name, body)
        system = listed_messages.system
        if system_name is not None and fields.get(system_name) is not None:
            system, body[system_name] = self._keep(fields.pop(system_name), f"request/{system_name}")
        tools = None
        if fields.get("tools") is not None:
            tools, body["tools"] = self._keep(fields.pop("tools"), "request/tools")
        parameters = None
        if fields:
            parameters, content = self._keep(fields, "request/parameters")
            body |= {name: canonical_json(value) for name, value in decode_json(content).items()}
        is_whole = protocol in _SHAPES and listed is not None
        return RequestParts(
            model=model,
            messages=listed_messages.refs,
            system=system,
            tools=tools,
            parameters=parameters,
            layout=listed_messages.layout,
            body_digest=self._keeper.digest(_joined(body)) if is_whole else None,
            completeness="body" if is_whole else "messages" if listed is not None else "partial",
            not_seen=() if listed is not None else ("messages",),
            artifacts=self._changed(system, tools, body.get("tools")),
        )

    def message(self, message: Any) -> ContentRef:
        """Keep one message."""
        return self._message(message)[0]

    def split(self, protocol: str, messages: list[Any]) -> list[ContentRef]:
        """Keep a list of messages as a request of that protocol would: without a system prompt at its head."""
        return self._messages(protocol, messages, "messages", {}).refs

    def _messages(self, protocol: str, listed: Any, name: str, body: dict[str, bytes]) -> _Messages:
        if listed is None:
            return _Messages([])
        if not isinstance(listed, list | tuple):
            # A lone text stands for one message of the user; the layout keeps the form that it was sent in.
            layout, content = self._keep({"set": [[f"/{name}", listed]]}, "request/layout")
            body[name] = canonical_json(decode_json(content)["set"][0][1])
            lone = {"role": "user", "content": listed} if isinstance(listed, str) else listed
            return _Messages([self.message(lone)], layout=layout)
        kept = [self._message(message) for message in listed]
        body[name] = b"[" + b",".join(content for _, content in kept) + b"]"
        refs = [ref for ref, _ in kept]
        first = listed[0] if listed else None
        if protocol == "openai.chat" and isinstance(first, Mapping) and first.get("role") in _SYSTEM_ROLES:
            return _Messages(refs[1:], system=refs[0])
        return _Messages(refs)

    def _message(self, message: Any, where: str = "request/message") -> tuple[ContentRef, bytes]:
        mark = fingerprint(message)
        if mark is None:
            message = plain(message)
            mark = canonical_json(message)
        key = hashlib.sha256(mark).digest()
        known = self._known.get(key)
        if known is None:
            ref, content = self._keeper.json_with_bytes(plain(message), where)
            known = Kept(ref, None if content == mark else content)
            self._known[key] = known
            if len(self._known) > _MESSAGES_KEPT:
                self._known.popitem(last=False)
        return known.ref, mark if known.content is None else known.content

    def _keep(self, value: Any, where: str) -> tuple[ContentRef, bytes]:
        """As for a message: system prompt and tools come again with every request."""
        return self._message(value, where)

    def _changed(
        self, system: ContentRef | None, tools: ContentRef | None, tools_content: bytes | None
    ) -> tuple[ArtifactInForce, ...]:
        """System prompt and tool schemas, where they are not those of the call before."""
        found: dict[str, str] = {}
        if system is not None:
            found["system_prompt"] = system.digest
        if tools is not None and tools_content is not None and self._in_force.get("tools") != tools.digest:
            self._in_force["tools"] = tools.digest
            for tool in _tools(decode_json(tools_content)):
                found[f"tool:{_tool_name(tool)}"] = self._keeper.json(tool, "request/tools").digest
        changed = {name: digest for name, digest in found.items() if self._in_force.get(name) != digest}
        self._in_force |= changed
        return tuple(ArtifactInForce(artifact=name, digest=digest) for name, digest in changed.items())


def follow(chain: ContextChain, messages: list[ContentRef]) -> dict[str, Any]:
    """Bring a context to exactly these messages; give the fields of a request that name it."""
    chain.replace(messages)
    return {
        "context": chain.head,
        "context_length": len(chain),
        "context_added": chain.take_added(),
    }


def _joined(members: dict[str, bytes]) -> bytes:
    """The canonical object of members that are canonical already."""
    names = sorted(members, key=lambda name: name.encode("utf-16-be", "surrogatepass"))
    return b"{" + b",".join(canonical_json(name) + b":" + members[name] for name in names) + b"}"


def _tools(tools: Any) -> list[Any]:
    """The single tools of a list of schemas; Gemini puts several into one entry."""
    found: list[Any] = []
    for entry in tools if isinstance(tools, list) else [tools]:
        declared = entry.get("functionDeclarations") if isinstance(entry, dict) else None
        found.extend(declared if isinstance(declared, list) else [entry])
    return found


def _tool_name(tool: Any) -> str:
    inner = tool.get("function", tool) if isinstance(tool, dict) else tool
    if isinstance(inner, dict):
        return spelled(inner.get("name") or inner.get("type") or "unnamed")
    return "unnamed"
