"""Turns as messages of the Anthropic protocol."""

import re
from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Any

from ledger.events.canonical import canonical_json
from replay.resume.turns import Call, Other, Piece, Result, Text, Thought, Turn, plain_text

_OWN = frozenset(
    {"image", "document", "search_result", "server_tool_use", "mcp_tool_use", "container_upload"}
)
_DATA_URL = "data:"
_NOT_ALLOWED = re.compile(r"[^A-Za-z0-9_-]")
REASONING_LOST = "Reasoning that another provider encrypted or did not sign: no other model may be shown it."
OTHERS_SPELLED = "Content of kinds that this protocol does not have: it is given as JSON text."


def messages(turns: Iterable[Turn], lost: set[str], *, keeps_system: bool = False) -> list[dict[str, Any]]:
    """User and assistant messages, alternating. What cannot be carried is told in `lost`."""
    spoken = [turn for turn in turns if keeps_system or turn.role != "system"]
    found = []
    for role, group in groupby(spoken, key=lambda turn: turn.role):
        content = [block for turn in group for piece in turn.pieces for block in blocks(piece, lost)]
        if role == "user":  # results stand first, or the protocol refuses them
            content.sort(key=lambda block: not str(block["type"]).endswith("tool_result"))
        if content:
            found.append({"role": role, "content": content})
    return found


def blocks(piece: Piece, lost: set[str]) -> Iterator[dict[str, Any]]:
    """A piece as content blocks: one, or none where it cannot be carried."""
    match piece:
        case Text(words):
            if words:
                yield {"type": "text", "text": words}
        case Thought(_, block):
            if block.get("signature") or block.get("type") == "redacted_thinking":
                yield block
            else:
                lost.add(REASONING_LOST)
        case Call(call_id, tool, arguments, block):
            if block.get("type") in ("tool_use", "server_tool_use", "mcp_tool_use"):
                yield block
            else:
                given = arguments if isinstance(arguments, dict) else {"input": arguments}
                yield {"type": "tool_use", "id": _allowed(call_id or tool), "name": tool, "input": given}
        case Result(call_id, tool, content, failed):
            block = {
                "type": "tool_result",
                "tool_use_id": _allowed(call_id or tool or ""),
                "content": shown(content, lost),
            }
            yield block | {"is_error": True} if failed else block
        case Other(block):
            yield from _other(block, lost)


def _allowed(call_id: str) -> str:
    """An id as the protocol allows it: pi joins two with a bar."""
    return _NOT_ALLOWED.sub("_", call_id)


def shown(content: Any, lost: set[str]) -> str | list[dict[str, Any]]:
    """A result's content."""
    if isinstance(content, str):
        return content
    if isinstance(content, list) and all(isinstance(block, dict) and "type" in block for block in content):
        words = plain_text(content)
        if words is not None and any(block["type"] != "text" for block in content):
            return words
        return [own for block in content for own in _result_block(block, lost)]
    return canonical_json(content).decode()


def _result_block(block: dict[str, Any], lost: set[str]) -> Iterator[dict[str, Any]]:
    if block["type"] in ("text", "image", "document", "search_result", "tool_reference"):
        yield block
    else:
        yield from _other(block, lost)


def _other(block: Any, lost: set[str]) -> Iterator[dict[str, Any]]:
    kind = block.get("type") if isinstance(block, dict) else None
    if isinstance(kind, str) and (kind in _OWN or kind.endswith("tool_result")):
        yield block
    elif (image := _image(block)) is not None:
        yield image
    else:
        lost.add(OTHERS_SPELLED)
        yield {"type": "text", "text": canonical_json(block).decode()}


def _image(block: Any) -> dict[str, Any] | None:
    """An image of OpenAI's protocols."""
    url = block.get("image_url") if isinstance(block, dict) else None
    url = url.get("url") if isinstance(url, dict) else url
    if not isinstance(url, str):
        return None
    if not url.startswith(_DATA_URL):
        return {"type": "image", "source": {"type": "url", "url": url}}
    kind, separator, data = url.removeprefix(_DATA_URL).partition(";base64,")
    if not separator:
        return None
    return {"type": "image", "source": {"type": "base64", "media_type": kind, "data": data}}
