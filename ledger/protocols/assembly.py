"""Puts a streamed answer together from its chunks, protocol by protocol. Must not fail on a chunk it does not know."""

from typing import Any

from ledger.events.canonical import decode_json, spelled


def assemble(protocol: str, chunks: list[Any]) -> Any:
    """The response body that the chunks make up, as far as they came; a text or the list itself otherwise."""
    match protocol:
        case "openai.chat":
            body = _chat(chunks)
        case "anthropic.messages":
            body = _anthropic(chunks)
        case "openai.responses":
            body = _responses(chunks)
        case "gemini":
            body = _gemini(chunks)
        case _:
            body = None
    if body is not None:
        return body
    if chunks and all(isinstance(chunk, str) for chunk in chunks):
        return "".join(chunks)
    return chunks


def _chat(chunks: list[Any]) -> dict[str, Any] | None:
    body: dict[str, Any] = {}
    choices: dict[int, dict[str, Any]] = {}
    for chunk in chunks:
        if not isinstance(chunk, dict) or not isinstance(chunk.get("choices"), list):
            return None
        body |= {name: value for name, value in chunk.items() if name != "choices" and value is not None}
        for part in chunk["choices"]:
            if not isinstance(part, dict):
                return None
            index = _index(part)
            choice = choices.setdefault(
                index, {"index": index, "message": {"role": "assistant", "content": None}}
            )
            if isinstance(delta := part.get("delta"), dict):
                _add_delta(choice["message"], delta)
            choice |= {
                name: value
                for name, value in part.items()
                if name not in ("delta", "index") and value is not None
            }
    if not choices:
        return None
    if body.get("object") == "chat.completion.chunk":
        body["object"] = "chat.completion"
    return {**body, "choices": [choices[index] for index in sorted(choices)]}


def _add_delta(message: dict[str, Any], delta: dict[str, Any]) -> None:
    for name, value in delta.items():
        if name == "tool_calls" and isinstance(value, list):
            calls = message.setdefault("tool_calls", [])
            for part in value:
                if isinstance(part, dict):
                    _add_call(calls, part)
        elif name == "role" or value is None:
            if value is not None:
                message[name] = value
        elif isinstance(value, str) and isinstance(message.get(name), str):
            message[name] += value
        else:
            message[name] = value


def _add_call(calls: list[dict[str, Any]], part: dict[str, Any]) -> None:
    """Parts of one call carry its index; it grows by the pieces of its arguments."""
    index = _index(part) if "index" in part else len(calls)
    while len(calls) <= index and index < 1000:
        calls.append({"function": {"name": "", "arguments": ""}})
    if index >= len(calls):
        return
    call = calls[index]
    call |= {
        name: value for name, value in part.items() if name not in ("index", "function") and value is not None
    }
    if isinstance(function := part.get("function"), dict):
        for name, value in function.items():
            known = call["function"].get(name)
            if isinstance(value, str):
                call["function"][name] = known + value if isinstance(known, str) else value


def _anthropic(chunks: list[Any]) -> dict[str, Any] | None:
    body: dict[str, Any] | None = None
    pieces: dict[int, dict[str, Any]] = {}
    for chunk in chunks:
        match chunk:
            case {"type": "message_start", "message": dict() as message}:
                body = {**message, "content": []}
            case {"type": "content_block_start", "content_block": dict() as block}:
                pieces[_index(chunk)] = {"block": dict(block), "json": ""}
            case {"type": "content_block_delta", "delta": dict() as delta} if _index(chunk) in pieces:
                _add_block_delta(pieces[_index(chunk)], delta)
            case {"type": "message_delta"} if body is not None:
                body |= _dict(chunk.get("delta"))
                told = {name: value for name, value in _dict(chunk.get("usage")).items() if value is not None}
                body["usage"] = {**_dict(body.get("usage")), **told}
    if body is None:
        return None
    body["content"] = [_block(pieces[index]) for index in sorted(pieces)]
    return body


def _add_block_delta(piece: dict[str, Any], delta: dict[str, Any]) -> None:
    block = piece["block"]
    for name, value in delta.items():
        if name == "partial_json" and isinstance(value, str):
            piece["json"] += value
        elif name == "citation":
            block["citations"] = [*(block.get("citations") or ()), value]
        elif name != "type":
            block[name] = (
                block[name] + value if isinstance(value, str) and isinstance(block.get(name), str) else value
            )


def _block(piece: dict[str, Any]) -> dict[str, Any]:
    block: dict[str, Any] = piece["block"]
    if piece["json"]:
        try:
            block["input"] = decode_json(piece["json"])
        except ValueError:  # the stream was cut inside it
            block["input"] = piece["json"]
    return block


def _responses(chunks: list[Any]) -> dict[str, Any] | None:
    """The last event holds the whole response; before it, finished items and pieces of text."""
    body: dict[str, Any] | None = None
    items: dict[int, Any] = {}
    for chunk in chunks:
        match chunk:
            case {"type": str() as kind, "response": dict() as response}:
                body = response
                if kind in ("response.completed", "response.incomplete", "response.failed"):
                    return response
            case {"type": "response.output_item.added" | "response.output_item.done", "item": item}:
                items[_index(chunk, "output_index")] = item
            case {"type": "response.output_text.delta", "delta": str() as text}:
                _add_text(items.get(_index(chunk, "output_index")), text)
    if body is None:
        return None
    return {**body, "output": [items[index] for index in sorted(items)]}


def _add_text(item: Any, text: str) -> None:
    if not isinstance(item, dict) or not isinstance(item.get("content"), list):
        return
    if not item["content"]:
        item["content"] = [{"type": "output_text", "text": ""}]
    last = item["content"][-1]
    if isinstance(last, dict) and isinstance(last.get("text"), str):
        last["text"] += text


def _gemini(chunks: list[Any]) -> dict[str, Any] | None:
    body: dict[str, Any] = {}
    first: dict[str, Any] = {}
    parts: list[Any] = []
    role = "model"
    for chunk in chunks:
        if not isinstance(chunk, dict):
            return None
        body |= {name: value for name, value in chunk.items() if name != "candidates" and value is not None}
        match chunk.get("candidates"):
            case [dict() as candidate, *_]:
                first |= {name: value for name, value in candidate.items() if name != "content"}
                content = _dict(candidate.get("content"))
                role = spelled(content.get("role") or role)
                for part in content.get("parts") or ():
                    _add_part(parts, part)
    if not body and not first and not parts:
        return None
    return {**body, "candidates": [{**first, "content": {"role": role, "parts": parts}}]}


def _add_part(parts: list[Any], part: Any) -> None:
    """Pieces of one text, or of one thought, become one part."""
    last = parts[-1] if parts else None
    if (
        isinstance(part, dict)
        and isinstance(last, dict)
        and isinstance(part.get("text"), str)
        and isinstance(last.get("text"), str)
        and part.keys() == last.keys()
        and part.get("thought") == last.get("thought")
    ):
        parts[-1] = {**last, "text": last["text"] + part["text"]}
    else:
        parts.append(part)


def _index(part: dict[str, Any], name: str = "index") -> int:
    index = part.get(name)
    return index if isinstance(index, int) and index >= 0 else 0


def _dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
