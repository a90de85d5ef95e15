"""The request journal of Claude Code 2.1.3xx: shapes, message blobs, and requests that name them by hash.

A request lists the first `keep` messages of its base request and a tail of hashes. A hash is SHA-256 of the
RFC 8785 form of `{content, role}`, where content is a list of blocks. Only messages that no rows hold have
a blob of their own: an answer is the rows of one message id, a user message the `user` rows between two
answers, or some.
"""

import hashlib
from collections import OrderedDict
from typing import Any, NamedTuple

from ledger.events import ContentRef, Event
from ledger.events.canonical import canonical_json
from ledger.events.governance import ArtifactChanged
from ledger.events.keeping import SourceKept
from ledger.events.model_call import ModelCallRequested, Purpose
from ledger.importers._claude.answers import Answer
from ledger.importers._claude.row import Row, name_of
from ledger.intake import Desk
from ledger.recorder import ContextChain

_MESSAGES_KEPT = 20_000
_REQUESTS_KEPT = 32
_SHAPES_KEPT = 64
_RUN_ROWS = 60
_RUN_BYTES = 16 * 1024 * 1024
_HASHED_BYTES = 64 * 1024 * 1024


class _Shape(NamedTuple):
    system: ContentRef | None
    tools: ContentRef | None
    others: dict[str, Any]


class _RunRow(NamedTuple):
    blocks: list[Any]
    message: ContentRef
    size: int


class Journal:
    """What the journal of one session has said so far."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._messages: OrderedDict[str, ContentRef] = OrderedDict()
        self._shapes: OrderedDict[str, _Shape] = OrderedDict()
        self._requests: OrderedDict[str, list[ContentRef]] = OrderedDict()
        self._run: list[_RunRow] = []
        self._failed: tuple[str, int] | None = None
        self.unanswered: str | None = None
        """Id of the last request, until an answer to it comes."""

    def learn(self, row: Row) -> tuple[list[Event], str] | None:
        """Learn a shape or a message; give the events that keep it, and the field that these hold.

        None when the row is neither.
        """
        keep = self._desk.keep
        if row.kind == "api-request-blob":
            body = keep.json(row.data.get("message"), "journaled message")
            self._remember(str(name_of(row.data.get("hash"))), body)
            return [SourceKept(native_type=row.kind, recognized=True, body=body)], "message"
        if row.kind != "api-request-shape":
            return None
        shape = row.data.get("shape")
        if not isinstance(shape, dict):
            return [
                SourceKept(native_type=row.kind, recognized=True, body=keep.json(shape, row.kind))
            ], "shape"
        return self._learn_shape(str(name_of(row.data.get("shapeHash"))), shape), "shape"

    def _learn_shape(self, name: str, shape: dict[str, Any]) -> list[Event]:
        keep = self._desk.keep
        system = keep.json(shape["system"], "system prompt") if "system" in shape else None
        tools = keep.json(shape["tools"], "tools") if "tools" in shape else None
        others = {field: value for field, value in shape.items() if field not in ("system", "tools")}
        self._shapes[name] = _Shape(system, tools, others)
        if len(self._shapes) > _SHAPES_KEPT:
            self._shapes.popitem(last=False)
        events: list[Event] = []
        if system is not None:
            events.append(
                ArtifactChanged(artifact="system_prompt", kind="prompt", content=system, cause="harness")
            )
        if tools is not None:
            events.append(
                ArtifactChanged(artifact="tools", kind="tool_schema", content=tools, cause="harness")
            )
        if others or not events:
            body = keep.json(others, "api-request-shape")
            events.append(SourceKept(native_type="api-request-shape", recognized=True, body=body))
        return events

    def answered(self, answer: Answer, message: ContentRef) -> None:
        """Learn the hash under which later requests name this answer. Ends a run of user rows."""
        if (
            answer.call_id not in self._requests
        ):  # copied from another session: a later request may name any of it
            self._learn_run(None)
        self._run = []
        blocks = [block for row in answer.rows for block in row.all_blocks]
        self._remember(_hash("assistant", blocks), message)
        if self.unanswered == answer.call_id:
            self.unanswered = None

    def knows(self, call_id: str) -> bool:
        """Whether the request of this call was one of the last in this file."""
        return call_id in self._requests

    def asked(self, row: Row, message: ContentRef) -> None:
        """Learn a user row; what it is part of shows when a request names it."""
        self._run.append(_RunRow(row.all_blocks, message, len(row.raw)))
        while len(self._run) > _RUN_ROWS or (
            len(self._run) > 1 and sum(row.size for row in self._run) > _RUN_BYTES
        ):
            del self._run[0]

    def failed(self) -> str | None:
        """The last request got no answer: give its id, so that the next attempt is told from a new one."""
        call_id, self.unanswered = self.unanswered, None
        if call_id is not None:
            attempt = self._failed[1] + 1 if self._failed is not None and self._failed[0] == call_id else 1
            self._failed = (call_id, attempt)
        return call_id

    def _learn_run(self, wanted: set[str] | None) -> None:
        """Look for messages among the stretches of the run of user rows; None: learn all that there are."""
        budget = _HASHED_BYTES
        for start in range(len(self._run)):
            content: list[Any] = []
            for end in range(start, len(self._run)):
                content += self._run[end].blocks
                budget -= sum(row.size for row in self._run[start : end + 1])
                if budget < 0 or (wanted is not None and not wanted):
                    return
                name = _hash("user", content)
                if wanted is None or name in wanted:
                    joined = {"content": content, "role": "user"}
                    self._remember(
                        name, self._run[start].message if start == end else self._desk.keep.json(joined)
                    )
                    if wanted is not None:
                        wanted.discard(name)

    def request(self, row: Row, context: ContextChain, *, side: bool) -> ModelCallRequested:
        """The request of an `api-request` row; `context` becomes its messages."""
        data, keep = row.data, self._desk.keep
        call_id = name_of(data.get("id")) or row.key
        messages, missing = self._listed(data)
        context.replace(messages)
        self._requests[call_id] = messages
        if len(self._requests) > _REQUESTS_KEPT:
            self._requests.popitem(last=False)
        self.unanswered = call_id
        shape = self._shapes.get(str(name_of(data.get("shapeHash"))))
        params = data.get("params")
        parameters = dict(params) if isinstance(params, dict) else {}
        parameters.pop("betas", None)  # a header, not part of the body
        return ModelCallRequested(
            call_id=call_id,
            purpose=_purpose(data.get("querySource"), side=side),
            protocol="anthropic.messages",
            model=name_of(parameters.get("model")),
            provider="anthropic",
            context=context.head,
            context_length=len(context),
            context_added=context.take_added(),
            system=shape.system if shape else None,
            tools=shape.tools if shape else None,
            parameters=keep.json(
                {**parameters, **(shape.others if shape else {}), "stream": True}, "parameters"
            ),
            layout=self._layout([] if missing else data.get("cacheControl")),
            completeness="partial" if missing or shape is None else "body",
            not_seen=(*missing, *(() if shape else ("system", "tools")), "system[0]", "metadata"),
            attempt=self._attempt(call_id, data),
        )

    def _attempt(self, call_id: str, data: dict[str, Any]) -> int:
        """A retry names the request that failed as its base, and adds nothing to it."""
        if self._failed is None or data.get("base") != self._failed[0] or data.get("tail"):
            return 1
        self._failed = (call_id, self._failed[1])
        return self._failed[1] + 1

    def _listed(self, data: dict[str, Any]) -> tuple[list[ContentRef], list[str]]:
        """The messages that a request lists, and the places of those that are not there."""
        kept, tail = data.get("keep"), data.get("tail")
        missing: list[str] = []
        messages: list[ContentRef] = []
        if isinstance(kept, int) and kept > 0:
            messages = self._requests.get(str(name_of(data.get("base"))), [])[:kept]
            if len(messages) < kept:
                missing.append(f"messages[{len(messages)}:{kept}]")
        names = [str(name_of(name)) for name in tail] if isinstance(tail, list) else []
        self._learn_run({name for name in names if name not in self._messages})
        for name in names:
            ref = self._messages.get(name)
            if ref is not None:
                messages.append(ref)
            elif len(missing) < _RUN_ROWS:
                missing.append(f"messages[{len(messages)}]")
        return messages, missing

    def _layout(self, marks: Any) -> ContentRef:
        """The cache marks, which walk from message to message, as JSON pointers into the body."""
        changes = []
        for mark in marks if isinstance(marks, list) else ():
            path = mark.get("path") if isinstance(mark, dict) else None
            if isinstance(path, list) and all(isinstance(step, str | int) for step in path):
                steps = "".join(f"/{str(step).replace('~', '~0').replace('/', '~1')}" for step in path)
                changes.append([f"{steps}/cache_control", mark.get("value")])
        return self._desk.keep.json({"set": changes, "texts": "lone-string"}, "layout")

    def _remember(self, name: str, ref: ContentRef) -> None:
        self._messages[name] = ref
        if len(self._messages) > _MESSAGES_KEPT:
            self._messages.popitem(last=False)


def _purpose(source: Any, *, side: bool) -> Purpose:
    if isinstance(source, str) and source.startswith("compact"):
        return "compaction"
    return "sub-agent" if side or (isinstance(source, str) and source.startswith("agent:")) else "main"


def _hash(role: str, content: list[Any]) -> str:
    """The journal's name of a message."""
    return hashlib.sha256(canonical_json({"content": content, "role": role})).hexdigest()
