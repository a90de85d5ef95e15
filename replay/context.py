"""Rebuilds a model request from what the ledger holds. Names what is not there, never guesses it.

`layout` is a small program, a JSON object, for what joining the parts cannot express. In this order:

- `"merge": "same-role"`: messages of one role that follow each other become one, their contents joined;
- `"texts": "lone-string"`: contents that are texts become one block each before `"set"`; after it, a lone text
  block without marks in a message that is no answer becomes a text again;
- `"set": [[pointer, value], ...]`: sets fields of the body by JSON pointer, such as the cache marks that
  move from message to message: `["/messages/3/content/0/cache_control", {"type": "ephemeral"}]`;
- `"key_order": [name, ...]`: top-level fields of the body in the order of the wire; others follow.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ledger.errors import ContentMissingError, InputError, LedgerError
from ledger.events import ContentRef, Event, Record
from ledger.events.canonical import canonical_json
from ledger.events.model_call import (
    ModelCallAnswered,
    ModelCallChunk,
    ModelCallFailed,
    ModelCallRequested,
)
from ledger.store import EventStore
from ledger.store.content import content_digest
from replay.conversation import decode_content
from replay.pointer import set_value
from replay.raw import raw_matches, raw_request

_LAYOUT_STEPS = frozenset({"merge", "texts", "set", "key_order"})
_LAYOUT_RULES = {"merge": "same-role", "texts": "lone-string"}
_STRETCH = 200


@dataclass(frozen=True)
class RebuiltRequest:
    """A model request as the ledger can show it."""

    session: str
    """Session of the call."""

    seq: int
    """Record of the request."""

    asked_seq: int
    """Seq that was asked for; where it is another, the request is that of its call, or the last before."""

    call_id: str
    """The call."""

    purpose: str
    """What it was for."""

    protocol: str
    """Shape of messages and body."""

    model: str | None
    """Model asked for."""

    messages: list[Any]
    """The messages, each in the protocol's own shape."""

    system: Any
    """System prompt; None when there is none or it was not seen."""

    tools: Any
    """Tool schemas; None when there are none or they were not seen."""

    parameters: dict[str, Any] | None
    """All other fields; None when they were not seen."""

    body: dict[str, Any] | None
    """The whole, as far as it was seen; None when nothing of it was."""

    completeness: str
    """What of the body is true to the wire: `body`, `messages`, `partial`, `none`."""

    not_seen: tuple[str, ...]
    """Parts that the source does not hold."""

    body_digest: str | None
    """Keyed digest of the body as it was recorded; None when the body was not seen."""

    body_matches: bool | None
    """Whether the rebuilt body has that digest; None when there is none to compare with."""

    raw_matches: bool | None
    """Whether the bytes of the body can be rebuilt as they were sent; None where these were not kept."""

    def as_json(self) -> dict[str, Any]:
        """For `--json`."""
        return {
            name: list(value) if isinstance(value, tuple) else value for name, value in vars(self).items()
        }


def rebuild_request(store: EventStore, session: str, seq: int) -> RebuiltRequest:
    """The request recorded at a seq, or that of the record's model call, or the last one before it.

    Raises RecordNotFoundError; InputError when no request stands there or before; ContentMissingError when a
    part was erased or lost.
    """
    record = _request_at(store, session, seq)
    event = record.event
    assert isinstance(event, ModelCallRequested)
    parts = _Parts(store, record.place, event)
    body = parts.body()
    matches = None
    if event.body_digest is not None:
        matches = (
            body is not None and content_digest(store.salt, canonical_json(body)).hex() == event.body_digest
        )
    return RebuiltRequest(
        session=session,
        seq=record.seq,
        asked_seq=seq,
        call_id=event.call_id,
        purpose=event.purpose,
        protocol=event.protocol,
        model=event.model,
        messages=parts.messages,
        system=parts.system,
        tools=parts.tools,
        parameters=parts.parameters,
        body=body,
        completeness=event.completeness,
        not_seen=event.not_seen,
        body_digest=event.body_digest,
        body_matches=matches,
        raw_matches=raw_matches(store, event, raw_request(store, event)),
    )


def rebuild_raw(store: EventStore, session: str, seq: int) -> bytes:
    """The bytes of a request's body as they were sent, redacted. Raises as `rebuild_request`."""
    record = _request_at(store, session, seq)
    assert isinstance(record.event, ModelCallRequested)
    raw = raw_request(store, record.event)
    if raw is None:
        raise InputError(f"{record.place} is a request of which no bytes were seen; --body shows its value")
    if raw_matches(store, record.event, raw) is False:
        raise LedgerError(f"{record.place}: the rebuilt bytes do not have the digest that was recorded")
    return raw


def _request_at(store: EventStore, session: str, seq: int) -> Record:
    record = store.record(session, seq)
    event: Event = record.event
    if isinstance(event, ModelCallRequested):
        return record
    call_id = (
        event.call_id if isinstance(event, ModelCallAnswered | ModelCallChunk | ModelCallFailed) else None
    )
    for earlier in _backwards(store, session, seq):
        if isinstance(earlier.event, ModelCallRequested) and call_id in (None, earlier.event.call_id):
            return earlier
    wanted = "model request" if call_id is None else f"request of model call {call_id!r}"
    raise InputError(
        f"{session} has no {wanted} at or before seq {seq}; `loopledger events {session}` lists its records"
    )


def _backwards(store: EventStore, session: str, seq: int) -> Iterator[Record]:
    """Records from a seq to the first, in stretches that grow: what is asked for is nearly always near."""
    size = _STRETCH
    while seq > 0:
        after = max(0, seq - size)
        # Only requests are looked for, so a stretch holds no more of its records than these.
        stretch = store.read(session, after=after, upto=seq)
        yield from reversed([record for record in stretch if isinstance(record.event, ModelCallRequested)])
        seq, size = after, min(size * 2, 10_000)


class _Parts:
    """The parts of one request, loaded."""

    def __init__(self, store: EventStore, place: str, event: ModelCallRequested) -> None:
        self._store = store
        self._place = place
        self._event = event
        digests = store.context(event.context) if event.context is not None else []
        self.messages = [self._load(digest, f"message {index}") for index, digest in enumerate(digests)]
        self.system = self._part(event.system, "system prompt")
        self.tools = self._part(event.tools, "tools")
        self.parameters: dict[str, Any] | None = self._fields(event.parameters, "parameters")
        self._layout = self._fields(event.layout, "layout") or {}
        self._merge()

    def _part(self, ref: ContentRef | None, what: str) -> Any:
        return None if ref is None else self._load(ref.digest, what)

    def _fields(self, ref: ContentRef | None, what: str) -> dict[str, Any] | None:
        value = self._part(ref, what)
        if value is not None and not isinstance(value, dict):
            raise LedgerError(
                f"{what} of {self._place}: expected a JSON object, found {type(value).__name__}"
            )
        return value

    def _load(self, digest: str, what: str) -> Any:
        try:
            return decode_content(self._store.content(digest))
        except ContentMissingError as error:
            raise ContentMissingError(f"{what} of {self._place}: {error.what}", digest) from error

    def _merge(self) -> None:
        layout = self._layout
        found = sorted(layout.keys() - _LAYOUT_STEPS)
        found += [
            f"{step} {layout[step]!r}"
            for step, rule in _LAYOUT_RULES.items()
            if layout.get(step, rule) != rule
        ]
        if found:
            raise LedgerError(
                f"layout of {self._place} has {', '.join(found)}, which this version of loopledger does not know"
            )
        if "merge" in layout:
            self.messages = _merged(self.messages)

    def body(self) -> dict[str, Any] | None:
        """The parts joined, and the layout's steps."""
        event = self._event
        if event.completeness == "none":
            return None
        plain_texts = "texts" in self._layout
        messages = [_in_blocks(message) for message in self.messages] if plain_texts else self.messages
        body = _joined(event, messages, self.system, self.tools, self.parameters or {})
        if body is None:
            return None
        for path, value in self._layout.get("set", ()):
            try:
                set_value(body, path, value)
            except (LookupError, ValueError) as error:
                raise LedgerError(f"layout of {self._place} does not fit its body: {error}") from error
        if plain_texts and isinstance(listed := body.get("messages"), list):
            body["messages"] = [_with_lone_text(message) for message in listed]
        order = [name for name in self._layout.get("key_order", ()) if name in body]
        return {name: body[name] for name in dict.fromkeys((*order, *body))}


def _joined(
    event: ModelCallRequested, messages: list[Any], system: Any, tools: Any, parameters: dict[str, Any]
) -> dict[str, Any] | None:
    """The body of a protocol from its parts; None for a protocol whose bodies we do not know."""
    names = {
        "anthropic.messages": ("messages", "system"),
        "openai.responses": ("input", "instructions"),
        "openai.chat": ("messages", None),
        "gemini": ("contents", "systemInstruction"),
        "genai": ("messages", "system_instructions"),
    }.get(event.protocol)
    if names is None:
        return None
    messages_name, system_name = names
    body: dict[str, Any] = {}
    if event.model is not None and event.protocol != "gemini":  # Gemini names the model in the address
        body["model"] = event.model
    if event.context is not None or messages_name not in parameters:
        body[messages_name] = messages
    if event.system is not None:
        if system_name is not None:
            body[system_name] = system
        else:
            first = (
                system
                if isinstance(system, dict) and "role" in system
                else {"role": "system", "content": system}
            )
            body[messages_name] = [first, *messages]
    if event.tools is not None:
        body["tools"] = tools
    return body | parameters


def _merged(messages: list[Any]) -> list[Any]:
    """Neighbours of the same role as one message, their contents as one list of blocks."""
    merged: list[Any] = []
    for message in messages:
        last = merged[-1] if merged else None
        if isinstance(message, dict) and isinstance(last, dict) and message.get("role") == last.get("role"):
            merged[-1] = (
                last | message | {"content": _blocks(last.get("content")) + _blocks(message.get("content"))}
            )
        else:
            merged.append(message)
    return merged


def _in_blocks(message: Any) -> Any:
    """The message with its content as a list of blocks of its own, so that marks can be set in them."""
    if not isinstance(message, dict) or not isinstance(message.get("content"), str | list):
        return message
    blocks = [dict(block) if isinstance(block, dict) else block for block in _blocks(message["content"])]
    return message | {"content": blocks}


def _with_lone_text(message: Any) -> Any:
    """The message with a lone, unmarked text as plain text; answers keep their blocks."""
    content = message.get("content") if isinstance(message, dict) else None
    if not isinstance(content, list) or len(content) != 1 or message.get("role") == "assistant":
        return message
    block = content[0]
    if not isinstance(block, dict) or block.keys() != {"type", "text"} or block["type"] != "text":
        return message
    return message | {"content": block["text"]}


def _blocks(content: Any) -> list[Any]:
    if isinstance(content, list):
        return content
    return [] if content is None else [{"type": "text", "text": content}]
