"""Turns as items of OpenAI's Responses protocol, and as messages of Chat Completions."""

from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Any

from ledger.events.canonical import canonical_json
from replay.resume.runtimes._anthropic import OTHERS_SPELLED, REASONING_LOST
from replay.resume.turns import Call, Other, Piece, Result, Text, Thought, Turn, plain_text

_INPUTS = ("input_image", "input_file", "input_audio")
_PARTS = ("image_url", "input_audio", "file")
_OTHER_ITEMS = ("agent_message", "compaction", "compaction_summary", "image_generation_call")


def items(turns: Iterable[Turn], lost: set[str]) -> list[dict[str, Any]]:
    """Input items. What cannot be carried is told in `lost`."""
    kinds: dict[str | None, str] = {}
    return [item for turn in turns for item in _items(turn, kinds, lost)]


def chat_messages(turns: Iterable[Turn], lost: set[str]) -> list[dict[str, Any]]:
    """Messages of Chat Completions. What cannot be carried is told in `lost`."""
    found: list[dict[str, Any]] = []
    for role, group in groupby(turns, key=lambda turn: turn.role):
        if role == "assistant":
            found.append(_chat_answer([piece for turn in group for piece in turn.pieces], lost))
        else:
            for turn in group:
                found += _chat_said(turn, lost)
    return found


def _items(turn: Turn, kinds: dict[str | None, str], lost: set[str]) -> Iterator[dict[str, Any]]:
    content: list[dict[str, Any]] = []
    role = "developer" if turn.role == "system" else turn.role
    for piece in turn.pieces:
        item = _item(piece, kinds, lost)
        if item is None:
            continue
        if item["type"] in ("input_text", *_INPUTS):
            is_answer = turn.role == "assistant" and item["type"] == "input_text"
            content.append(
                {"type": "output_text", "text": item["text"], "annotations": []} if is_answer else item
            )
            continue
        if content:
            yield {"type": "message", "role": role, "content": content}
            content = []
        yield item
    if content:
        yield {"type": "message", "role": role, "content": content}


def _item(piece: Piece, kinds: dict[str | None, str], lost: set[str]) -> dict[str, Any] | None:
    match piece:
        case Text(words):
            return {"type": "input_text", "text": words}
        case Thought(_, block):
            if block.get("type") == "reasoning" and block.get("encrypted_content"):
                return block
            lost.add(REASONING_LOST)
            return None
        case Call(call_id, tool, arguments, block):
            if str(block.get("type")).endswith("_call"):
                kinds[call_id] = str(block["type"])
                return block
            kinds[call_id] = "function_call"
            return {
                "type": "function_call",
                "call_id": call_id or tool,
                "name": tool,
                "arguments": as_text(arguments),
            }
        case Result(call_id, tool, content, _):
            kind = kinds.get(call_id, "function_call")
            return {"type": f"{kind}_output", "call_id": call_id or tool, "output": _output(content)}
        case Other(block):
            if isinstance(block, dict) and str(block.get("type")) in (*_INPUTS, *_OTHER_ITEMS):
                return block
            lost.add(OTHERS_SPELLED)
            return {"type": "input_text", "text": canonical_json(block).decode()}


def _output(content: Any) -> Any:
    """An output: a text, or parts of this protocol."""
    if isinstance(content, list) and any(
        isinstance(part, dict) and part.get("type") in _INPUTS for part in content
    ):
        return content
    return as_text(content)


def as_text(content: Any) -> str:
    """A content as one text: its words, or JSON."""
    words = plain_text(content)
    return canonical_json(content).decode() if words is None else words


def _chat_answer(pieces: list[Piece], lost: set[str]) -> dict[str, Any]:
    texts: list[str] = []
    calls: list[dict[str, Any]] = []
    for piece in pieces:
        match piece:
            case Text(words):
                texts.append(words)
            case Call(call_id, tool, arguments, block):
                calls.append(
                    block
                    if "function" in block or "custom" in block
                    else _chat_call(call_id, tool, arguments)
                )
            case Thought():
                lost.add(REASONING_LOST)
            case Other(block):
                lost.add(OTHERS_SPELLED)
                texts.append(canonical_json(block).decode())
            case Result():
                pass  # no protocol has results in an answer
    message: dict[str, Any] = {"role": "assistant", "content": "\n".join(texts) if texts else None}
    return message | {"tool_calls": calls} if calls else message


def _chat_call(call_id: str | None, tool: str, arguments: Any) -> dict[str, Any]:
    return {
        "id": call_id or tool,
        "type": "function",
        "function": {"name": tool, "arguments": as_text(arguments)},
    }


def _chat_said(turn: Turn, lost: set[str]) -> Iterator[dict[str, Any]]:
    parts: list[dict[str, Any]] = []
    for piece in turn.pieces:
        match piece:
            case Result(call_id, tool, content, _):
                yield {"role": "tool", "tool_call_id": call_id or tool, "content": as_text(content)}
            case Text(words):
                parts.append({"type": "text", "text": words})
            case Other(block) if isinstance(block, dict) and block.get("type") in _PARTS:
                parts.append(block)
            case Other(block):
                lost.add(OTHERS_SPELLED)
                parts.append({"type": "text", "text": canonical_json(block).decode()})
            case Thought() | Call():
                pass  # only answers hold them
    if parts:
        lone = parts[0]["text"] if len(parts) == 1 and parts[0]["type"] == "text" else parts
        yield {"role": turn.role, "content": lone}
