"""What `codex exec --json` prints, an outline of a run: `thread.started`, `item.*`, or the older `{id, msg}`.

It gets a session of its own (`<thread>.exec`): a run whose rollout is imported too is not counted twice.
"""

import hashlib
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from ledger.events import ContentRef, Draft
from ledger.events.governance import ModeChanged
from ledger.events.keeping import SourceKept
from ledger.events.model_call import ModelCallAnswered, ModelCallFailed, ModelCallRequested, Usage
from ledger.events.session import SessionStarted
from ledger.importers import Desk, Item
from ledger.importers._codex.calls import Calls, milliseconds
from ledger.importers._codex.events import Events, is_known_event
from ledger.importers._codex.outputs import Verdict
from ledger.importers._codex.row import Row, Scribe, text_or_none
from ledger.importers._codex.usage import UsageMeter, turn_usage

_TYPES = frozenset(
    {
        "thread.started",
        "turn.started",
        "turn.completed",
        "turn.failed",
        "item.started",
        "item.updated",
        "item.completed",
    }
)
_TOOLS = frozenset({"command_execution", "file_change", "mcp_tool_call", "web_search", "collab_tool_call"})
_SAID = frozenset({"agent_message", "reasoning", "assistant_message"})
_OLD_SAID = frozenset({"agent_message", "agent_reasoning"})
_KEPT_ITEMS = 5000
_RESULTS = ("aggregated_output", "result", "error", "stdout", "stderr", "formatted_output")


def is_stream(value: dict[str, Any]) -> bool:
    """Whether a line is one of an exec stream."""
    if isinstance(value.get("msg"), dict) and "id" in value:
        return True
    kind = value.get("type")
    if not isinstance(kind, str):
        return False
    return kind in _TYPES or (
        kind == "error" and "payload" not in value and isinstance(value.get("message"), str)
    )


class StreamReader:
    """Turns the lines of a stream into items."""

    def __init__(self, desk: Desk, session: str) -> None:
        self.session = session
        self._desk = desk
        desk.tally.grade = "skeleton"
        self._scribe = Scribe(desk, session, "skeleton")
        self._calls = Calls(self._scribe)
        self._events = Events(self._scribe, self._calls, lambda row, turns: iter(()))
        self._usage = UsageMeter()
        self._said: list[Any] = []
        self._so_far = b""
        self._model: str | None = None
        self._started = False

    def finish(self) -> Iterator[Item]:
        """The end of the stream: what was said in a turn without an end is kept line by line."""
        yield from ()

    def damaged(self) -> None:
        """A line was lost. Nothing here builds on it."""

    def take(self, row: Row) -> Iterator[Item]:
        """One line of the stream. Its key tells all lines before it too: two runs of a thread may share a line."""
        self._so_far = hashlib.sha256(self._so_far + row.raw).digest()
        row = replace(row, key=f"{row.key}:{self._so_far.hex()[:16]}")
        message = row.payload.get("msg")
        if isinstance(message, dict) and "id" in row.payload:
            row = replace(row, kind="event_msg", sub=text_or_none(message.get("type")) or "", payload=message)
            self._desk.tally.native[row.native_type] += 1
            drafts = list(self._old(row))
        else:
            item = row.payload.get("item")
            kind = text_or_none(item.get("type")) if isinstance(item, dict) else None
            self._desk.tally.native[f"{row.kind}:{kind}" if kind is not None else row.kind] += 1
            drafts = list(self._new(row))
        yield Item(self.session, row.key, drafts, row.line, row.raw)

    def _new(self, row: Row) -> Iterator[Draft]:
        item = row.payload.get("item")
        name, known = row.kind, row.kind in _TYPES or row.kind == "error"
        if row.kind == "thread.started":
            yield from self._start(row)
        elif row.kind == "turn.started":
            self._said = []
            self._scribe.turn = f"{self.session}:{row.key}"
        elif row.kind == "turn.completed":
            yield from self._turn(row, turn_usage(row.payload.get("usage")))
        elif row.kind == "turn.failed":
            yield from self._failed(row, row.payload.get("error"))
        elif isinstance(item, dict):
            kind = text_or_none(item.get("type")) or "none"
            name = f"{name}:{kind}"
            known = kind in _TOOLS or kind in _SAID or kind in ("todo_list", "error")
            yield from self._item(row, item, kind)
        yield self._kept(row, name, known)

    def _item(self, row: Row, item: dict[str, Any], kind: str) -> Iterator[Draft]:
        done = row.kind == "item.completed"
        if kind in _SAID and done:
            self._say(item)
        elif kind in _TOOLS:
            call_id = text_or_none(item.get("id")) or row.key
            if not self._calls.knows(call_id):
                tool = text_or_none(item.get("tool")) or kind
                server = text_or_none(item.get("server"))
                asked = {
                    key: item[key]
                    for key in item
                    if key not in (*_RESULTS, "id", "type", "status", "exit_code")
                }
                yield self._calls.request(
                    row, call_id, tool, None, self._desk.keep.json(asked, "arguments"), server=server
                )
                if kind != "web_search":
                    yield from self._calls.started(row, call_id)
            if done:
                yield from self._settle(row, call_id, item)

    def _settle(self, row: Row, call_id: str, item: dict[str, Any]) -> Iterator[Draft]:
        code, status = item.get("exit_code"), item.get("status")
        code = code if isinstance(code, int) else None
        results = {key: item[key] for key in _RESULTS if item.get(key) is not None}
        shown: ContentRef | None = self._desk.keep.json(results, "result") if results else None
        verdict = Verdict("returned", None, code, milliseconds(item))
        if status == "declined":
            verdict = Verdict("denied", "declined", code, denied_by="unknown")
        elif status == "failed" or code:
            verdict = Verdict("failed", f"exit code {code}" if code else "failed", code, milliseconds(item))
        yield from self._calls.settle(row, call_id, verdict, shown)
        if verdict.outcome == "returned" and item.get("changes") is not None:
            yield from self._calls.changes(row, call_id, item["changes"])

    def _old(self, row: Row) -> Iterator[Draft]:
        message, sub = row.payload, row.sub
        call_id = text_or_none(message.get("call_id"))
        if sub == "session_configured":
            yield from self._start(row)
        elif sub in _OLD_SAID:
            self._say(message)
        elif sub == "token_count":
            if (usage := self._usage.count(row)) is not None:
                yield from self._turn(row, usage)
        elif (
            sub in ("exec_command_begin", "patch_apply_begin", "mcp_tool_call_begin") and call_id is not None
        ):
            yield from self._begin(row, call_id)
        elif sub in ("exec_command_end", "patch_apply_end", "mcp_tool_call_end") and call_id is not None:
            yield from self._end(row, call_id)
        elif sub == "error":
            yield from self._failed(row, message)
        elif sub in ("exec_approval_request", "apply_patch_approval_request", "shutdown_complete"):
            yield from self._events.drafts(row)
            return
        yield self._kept(row, row.native_type, is_known_event(sub))

    def _begin(self, row: Row, call_id: str) -> Iterator[Draft]:
        message = row.payload
        invocation = message.get("invocation")
        invocation = invocation if isinstance(invocation, dict) else {}
        tool = text_or_none(invocation.get("tool")) or row.sub.removesuffix("_begin")
        tool = {"exec_command": "shell", "patch_apply": "apply_patch"}.get(tool, tool)
        kept = self._desk.keep.json(row.rest(("type", "call_id")), "arguments")
        yield self._calls.request(
            row, call_id, tool, None, kept, server=text_or_none(invocation.get("server"))
        )
        yield from self._calls.started(row, call_id)

    def _end(self, row: Row, call_id: str) -> Iterator[Draft]:
        message = row.payload
        code = message.get("exit_code")
        code = code if isinstance(code, int) else None
        failed = bool(code) or message.get("success") is False
        error = f"exit code {code}" if code else "failed" if failed else None
        verdict = Verdict("failed" if failed else "returned", error, code, milliseconds(message))
        shown = self._desk.keep.json(row.rest(("type", "call_id")), "result")
        yield from self._calls.settle(row, call_id, verdict, shown)
        if message.get("changes") is not None and not failed:
            yield from self._calls.changes(row, call_id, message["changes"])

    def _start(self, row: Row) -> Iterator[Draft]:
        model = text_or_none(row.payload.get("model"))
        if not self._started:
            self._started = True
            self._model = model
            yield self._scribe.draft(
                row, SessionStarted(harness="codex", name="codex exec --json", model=model)
            )
        elif model is not None and model != self._model:
            event = ModeChanged(mode="model", old=self._model, new=model, cause="unknown")
            self._model = model
            yield self._scribe.draft(row, event)

    def _say(self, item: Any) -> None:
        if len(self._said) < _KEPT_ITEMS:
            self._said.append(item)

    def _request(self, row: Row) -> Draft:
        event = ModelCallRequested(
            call_id=f"model-{row.key}",
            protocol="openai.responses",
            model=self._model,
            completeness="none",
            not_seen=("messages", "system", "tools", "parameters", "how the turn divides into calls"),
        )
        return replace(self._scribe.draft(row, event, "agent"), occurred_at=None)

    def _turn(self, row: Row, usage: Usage | None) -> Iterator[Draft]:
        """One call that stands for those of a turn: the stream does not tell them apart."""
        said, self._said = self._said, []
        yield self._request(row)
        event = ModelCallAnswered(
            call_id=f"model-{row.key}",
            model=self._model,
            message=self._desk.keep.json(said, "model answer"),
            usage=usage,
            completeness="complete" if said else "partial",
        )
        yield self._scribe.draft(row, event, "agent")

    def _failed(self, row: Row, error: Any) -> Iterator[Draft]:
        yield self._request(row)
        detail = self._desk.keep.json(error, "error")
        yield self._scribe.draft(
            row, ModelCallFailed(call_id=f"model-{row.key}", error="turn failed", detail=detail)
        )

    def _kept(self, row: Row, name: str, recognized: bool) -> Draft:
        if not recognized:
            self._desk.tally.unknown[name] += 1
        body = self._desk.keep.json(row.payload, name)
        return self._scribe.draft(row, SourceKept(native_type=name, recognized=recognized, body=body))
