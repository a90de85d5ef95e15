"""Gemini: POST .../models/MODEL:generateContent, :streamGenerateContent and :countTokens."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from ..script import Ask, Block, Error, JsonObject, Text, Thinking
from .reply import Reply, compact, pieces, texts

NAME = "gemini"

FINISH = {"end_turn": "STOP", "tool_use": "STOP", "max_tokens": "MAX_TOKENS", "refusal": "SAFETY"}


def serves(path: str) -> bool:
    """True for both ways to ask for content."""
    return path.endswith((":generateContent", ":streamGenerateContent"))


def counts(path: str) -> bool:
    """True for the path that only counts tokens."""
    return path.endswith(":countTokens")


def count(body_size: int) -> JsonObject:
    """Four bytes to the token."""
    return {"totalTokens": body_size // 4}


def ask(path: str, headers: Mapping[str, str], body: JsonObject) -> Ask:
    """What the request asks; the model and the wish to stream are in the path."""
    contents = body.get("contents", [])
    system = body.get("systemInstruction") or body.get("system_instruction") or {}
    declared = [
        function
        for tool in body.get("tools", [])
        for function in tool.get("functionDeclarations", tool.get("function_declarations", []))
    ]
    return Ask(
        protocol=NAME,
        path=path,
        model=path.rpartition("/")[2].partition(":")[0],
        system=texts(system.get("parts", [])),
        tools=[str(function.get("name", "")) for function in declared],
        users=[texts(c.get("parts")) for c in contents if c.get("role", "user") == "user"],
        stream=path.endswith(":streamGenerateContent"),
        headers=headers,
    )


def whole(path: str, body: JsonObject, reply: Reply) -> Any:
    """A response object with one candidate."""
    return _response(reply, [_part(block) for block in reply.blocks], last=True)


def stream(path: str, body: JsonObject, reply: Reply) -> Iterator[str]:
    """Data lines, each a whole response with the next parts; the last one says how it ended."""
    for block in reply.blocks:
        match block:
            case Text() | Thinking():
                parts = [_part(replace(block, text=piece)) for piece in pieces(block.text)]
            case _:
                parts = [_part(block)]
        for part in parts:
            yield f"data: {compact(_response(reply, [part], last=False))}\r\n\r\n"
    yield f"data: {compact(_response(reply, [{'text': ''}], last=True))}\r\n\r\n"


def error(error: Error) -> JsonObject:
    """The error envelope of this protocol."""
    body = {"code": error.status, "message": error.message, "status": error.type.upper()}
    return {"error": body}


def _part(block: Block) -> JsonObject:
    match block:
        case Text():
            return {"text": block.text}
        case Thinking():
            return {"text": block.text, "thought": True, "thoughtSignature": block.signature}
    return {"functionCall": {"id": block.id, "name": block.name, "args": block.arguments}}


def _response(reply: Reply, parts: list[JsonObject], *, last: bool) -> JsonObject:
    candidate: JsonObject = {"content": {"role": "model", "parts": parts}, "index": 0}
    if last:
        candidate["finishReason"] = FINISH[reply.stop]
    usage = reply.usage
    given = usage.input_tokens + usage.cache_read_tokens + usage.cache_write_tokens
    return {
        "candidates": [candidate],
        "usageMetadata": {
            "promptTokenCount": given,
            "cachedContentTokenCount": usage.cache_read_tokens,
            "candidatesTokenCount": usage.output_tokens,
            "thoughtsTokenCount": usage.reasoning_tokens,
            "totalTokenCount": given + usage.output_tokens + usage.reasoning_tokens,
        },
        "modelVersion": reply.model,
        "responseId": f"gem_{reply.number}",
    }
