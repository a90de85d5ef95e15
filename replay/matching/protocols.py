"""What does not count in a body of a protocol, whoever sent it."""

from typing import Any

from ledger.protocols.tool_use import text
from replay.matching.places import call_order, is_result
from replay.matching.rules import Rule, Work

_CHAT_RESULTS = ("tool", "function")


def _drop_cache_marks(work: Work) -> bool:
    """Marks stand on the body, on tools, on blocks of the system prompt and of messages, and inside tool results."""
    body = work.body
    listed: list[Any] = [body, *_list(body.get("tools")), *_list(body.get("system"))]
    for message in _list(body.get("messages")):
        blocks = _list(message.get("content")) if isinstance(message, dict) else []
        listed += [message, *blocks]
        listed += [inner for block in blocks if is_result(block) for inner in _list(block.get("content"))]
    return sum(isinstance(one, dict) and one.pop("cache_control", None) is not None for one in listed) > 0


def _drop_good_marks(work: Work) -> bool:
    changed = False
    for message in _list(work.body.get("messages")):
        for block in _list(message.get("content")) if isinstance(message, dict) else []:
            if is_result(block) and block.get("is_error") is False:
                del block["is_error"]
                changed = True
    return changed


def _order_result_blocks(work: Work) -> bool:
    """Parallel results come in the order in which the tools ended."""
    messages = _list(work.body.get("messages"))
    changed = False
    for index in range(1, len(messages)):
        content = messages[index].get("content") if isinstance(messages[index], dict) else None
        if isinstance(content, list):
            numbers = [at for at, block in enumerate(content) if is_result(block)]
            order = call_order(messages[index - 1 : index])
            ids = [text(content[at].get("tool_use_id")) for at in numbers]
            changed |= _put_in_order(work, ("messages", index, "content"), content, numbers, ids, order)
    return changed


def _order_chat_results(work: Work) -> bool:
    """The run of tool messages after an answer that calls tools."""
    messages = _list(work.body.get("messages"))
    results = [isinstance(one, dict) and one.get("role") in _CHAT_RESULTS for one in messages]
    ids = [text(one.get("tool_call_id")) if isinstance(one, dict) else None for one in messages]
    return _order_runs(work, "messages", messages, results, ids)


def _order_outputs(work: Work) -> bool:
    """The run of outputs after the calls of tools."""
    items = _list(work.body.get("input"))
    results = [
        isinstance(one, dict) and (text(one.get("type")) or "").endswith("_call_output") for one in items
    ]
    ids = [text(one.get("call_id")) if isinstance(one, dict) else None for one in items]
    return _order_runs(work, "input", items, results, ids)


def _order_runs(work: Work, name: str, listed: list[Any], results: list[bool], ids: list[str | None]) -> bool:
    changed = False
    at = 0
    while at < len(listed):
        end = at
        while end < len(listed) and results[end]:
            end += 1
        if end - at > 1:
            start = at
            while start > 0 and not results[start - 1]:
                start -= 1
            order = call_order(listed[start:at])
            numbers = list(range(at, end))
            changed |= _put_in_order(work, (name,), listed, numbers, ids[at:end], order)
        at = end + 1
    return changed


def _order_parts(work: Work) -> bool:
    contents = _list(work.body.get("contents"))
    changed = False
    for index in range(1, len(contents)):
        parts = contents[index].get("parts") if isinstance(contents[index], dict) else None
        if isinstance(parts, list):
            answers = {
                at: part.get("functionResponse") for at, part in enumerate(parts) if isinstance(part, dict)
            }
            found = {at: answer for at, answer in answers.items() if isinstance(answer, dict)}
            order = call_order(contents[index - 1 : index])
            ids = [text(answer.get("id")) for answer in found.values()]
            path = ("contents", index, "parts")
            changed |= _put_in_order(work, path, parts, list(found), ids, order)
    return changed


def _put_in_order(
    work: Work,
    path: tuple[str | int, ...],
    listed: list[Any],
    numbers: list[int],
    ids: list[str | None],
    order: dict[str, int],
) -> bool:
    """Sort some items of a list by the calls that they answer; unless an id is missing, or answers no call."""
    ranks = [order.get(one) if one is not None else None for one in ids]
    known = [rank for rank in ranks if rank is not None]
    if len(known) < len(ranks) or known == sorted(known):
        return False
    sent = work.moved.setdefault(path, list(range(len(listed))))
    items, sources = [listed[at] for at in numbers], [sent[at] for at in numbers]
    for at, (_, rank) in zip(numbers, sorted((rank, place) for place, rank in enumerate(known)), strict=True):
        listed[at], sent[at] = items[rank], sources[rank]
    return True


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


CACHE_MARKS = Rule("cache-marks", "cache_control on blocks, messages, tools", _drop_cache_marks)
"""They walk to the newest message at each turn, and say nothing to the model."""

RULES: dict[str, tuple[Rule, ...]] = {
    "anthropic.messages": (
        CACHE_MARKS,
        Rule("not-an-error", "/messages/*/content/*/is_error", _drop_good_marks),
        Rule("result-order", "tool_result blocks of one message", _order_result_blocks),
    ),
    "openai.chat": (
        CACHE_MARKS,
        Rule("result-order", "tool messages after one answer", _order_chat_results),
    ),
    "openai.responses": (Rule("result-order", "outputs after the calls of one answer", _order_outputs),),
    "gemini": (Rule("result-order", "functionResponse parts of one content", _order_parts),),
}
"""Protocol -> its rules, in order."""
