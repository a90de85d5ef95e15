"""Pydantic AI: a message history, for `message_history=` of the next run."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ledger.events.session import SessionStarted
from replay.resume.point import Point
from replay.resume.runtime import Resumption
from replay.resume.runtimes._anthropic import OTHERS_SPELLED, REASONING_LOST
from replay.resume.runtimes._openai import as_text
from replay.resume.turns import Call, Other, Piece, Result, Text, Thought, turns_of

NAME = "pydantic-ai"
TITLE = "Pydantic AI (2.68)"

_FILE = "messages.json"
_RETURNS = ("tool-return", "builtin-tool-return")


def suits(started: SessionStarted) -> bool:
    """A session that the importer or the capability recorded."""
    return started.harness == NAME


def resumption(point: Point, into: Path) -> Resumption:
    """The history as `ModelMessagesTypeAdapter` reads it; calls without a result stay open, for the next run."""
    lost: set[str] = set()
    messages = list(_messages(point.messages, lost))
    path = str(into / _FILE)
    notes = [
        (
            "In your program: from pydantic_ai.messages import ModelMessagesTypeAdapter; "
            f"history = ModelMessagesTypeAdapter.validate_json(open({path!r}, 'rb').read()); "
            "result = await agent.run('...', message_history=history)"
        )
    ]
    if point.open_calls or _has_open(messages):
        notes.append(
            "Tool calls are open there: leave the prompt out, and those that need an approval are asked about again, "
            "or answer with deferred_tool_results=; the others run."
        )
    return Resumption(
        {_FILE: json.dumps(messages, ensure_ascii=False, indent=1).encode() + b"\n"},
        not_carried=("Instructions and tools: they are those of the agent that goes on.", *sorted(lost)),
        notes=tuple(notes),
    )


def _messages(messages: list[Any], lost: set[str]) -> Iterator[dict[str, Any]]:
    tools: dict[str, str] = {}
    for message in messages:
        if isinstance(message, dict) and message.get("kind") in ("request", "response"):
            found = [{name: value for name, value in message.items() if value is not None}]
        else:
            found = list(_made(message, tools, lost))
        for one in found:
            for part in one.get("parts") or ():
                if isinstance(part, dict) and part.get("tool_call_id") and part.get("tool_name"):
                    tools[str(part["tool_call_id"])] = str(part["tool_name"])
            yield one


def _made(message: Any, tools: dict[str, str], lost: set[str]) -> Iterator[dict[str, Any]]:
    """A message of another protocol, or a result that no request has taken up yet."""
    for turn in turns_of([message]):
        parts = [part for piece in turn.pieces if (part := _part(piece, turn.role, tools, lost)) is not None]
        if parts:
            yield {"kind": "response" if turn.role == "assistant" else "request", "parts": parts}


def _part(piece: Piece, role: str, tools: dict[str, str], lost: set[str]) -> dict[str, Any] | None:
    said = {"assistant": "text", "system": "system-prompt"}.get(role, "user-prompt")
    match piece:
        case Text(words):
            return {"part_kind": said, "content": words}
        case Call(call_id, tool, arguments, _):
            given = arguments if isinstance(arguments, dict | str) else {"input": arguments}
            return {
                "part_kind": "tool-call",
                "tool_name": tool,
                "args": given,
                "tool_call_id": call_id or tool,
            }
        case Result(call_id, tool, content, _):
            name = tool or tools.get(call_id or "", "unknown")
            shown = content if isinstance(content, str) or not isinstance(content, list) else as_text(content)
            return {
                "part_kind": "tool-return",
                "tool_name": name,
                "content": shown,
                "tool_call_id": call_id or name,
            }
        case Thought():
            lost.add(REASONING_LOST)
            return None
        case Other(block):
            lost.add(OTHERS_SPELLED)
            return {"part_kind": said, "content": as_text(block)}


def _has_open(messages: list[dict[str, Any]]) -> bool:
    """Whether a call of the history has no result in it."""
    asked: set[Any] = set()
    for message in messages:
        for part in message.get("parts") or ():
            if isinstance(part, dict) and part.get("part_kind") == "tool-call":
                asked.add(part.get("tool_call_id"))
            elif isinstance(part, dict) and part.get("part_kind") in (*_RETURNS, "retry-prompt"):
                asked.discard(part.get("tool_call_id"))
    return bool(asked)
