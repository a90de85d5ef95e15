"""Claude Code: Anthropic's messages, with reminders of the harness glued into them."""

from typing import Any

from ledger.events.model_call import Purpose
from replay.matching.lanes import asks_for_title
from replay.matching.places import is_result, places, result_blocks
from replay.matching.request import ModelRequest
from replay.matching.rules import MASK, Rule, Work, collected, dropped, masked

NAME = "claude-code"

_OPEN, _CLOSE = "<system-reminder>", "</system-reminder>"
_SUMMARY = "Your task is to create a detailed summary of"
_SHORT = 1024
_BILLING = "x-anthropic-billing-header:"
_UUID = r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"


def recognizes(request: ModelRequest) -> bool:
    """By the name of the client, its own headers, or the billing block."""
    if request.protocol != "anthropic.messages":
        return False
    agent = request.header("user-agent") or ""
    if agent.startswith(("claude-cli/", "claude-code/")) or request.header("x-claude-code-session-id"):
        return True
    return any(isinstance(block, dict) and _is_billing(block.get("text")) for block in _system(request.body))


def purpose(request: ModelRequest) -> Purpose:
    """Sub-agents say so in a header or in the billing block; a title is asked for without tools."""
    if asks_for_title(request):
        return "title"
    if not request.tools() and request.body.get("max_tokens") in range(_SHORT):
        return "other"
    if _asks_for_summary(request):
        return "compaction"
    texts = [block.get("text") for block in _system(request.body) if isinstance(block, dict)]
    is_sub_agent = any(_is_billing(text) and "cc_is_subagent=true" in str(text) for text in texts)
    return "sub-agent" if is_sub_agent or request.header("x-claude-code-agent-id") else "main"


def _asks_for_summary(request: ModelRequest) -> bool:
    last = next(
        (
            place.text
            for place in reversed(list(places(request.protocol, request.body)))
            if place.kind == "user"
        ),
        "",
    )
    return _SUMMARY in last


def _system(body: dict[str, Any]) -> list[Any]:
    system = body.get("system")
    return system if isinstance(system, list) else []


def _is_billing(text: Any) -> bool:
    return isinstance(text, str) and text.startswith(_BILLING)


def _mask_billing(work: Work) -> bool:
    changed = False
    for block in _system(work.body):
        if isinstance(block, dict) and _is_billing(block.get("text")):
            block["text"] = MASK.format("billing header")
            changed = True
    return changed


def _lift_reminders(work: Work) -> bool:
    """Reminders at the end of a tool result belong to the message: they hang on the tool that ended last."""
    changed = False
    for message in work.request._replace(body=work.body).messages():
        lifted: list[str] = []
        for block in result_blocks(message):
            holder, key = _last_text(block)
            text = holder.get(key) if holder is not None else None
            while isinstance(text, str) and text.rstrip().endswith(_CLOSE) and _OPEN in text:
                start = text.rindex(_OPEN)
                lifted.append(text[start:].rstrip())
                text = text[:start].rstrip()
            if holder is not None and lifted and holder.get(key) != text:
                holder[key] = text
        if lifted:
            message["reminders"] = sorted(lifted)
            changed = True
    return changed


def _last_text(block: dict[str, Any]) -> tuple[dict[str, Any] | None, str]:
    content = block.get("content")
    if isinstance(content, str):
        return block, "content"
    if isinstance(content, list) and content and isinstance(content[-1], dict):
        return content[-1], "text"
    return None, ""


def _strip_results(work: Work) -> bool:
    return sum(place.put(place.text.rstrip()) for place in work.places("result")) > 0


def _drop_empty_marks(work: Work) -> bool:
    changed = False
    for message in work.request._replace(body=work.body).messages():
        for block in result_blocks(message):
            if is_result(block) and block.get("content") == "":
                del block["content"]
                changed = True
    return changed


BEFORE: tuple[Rule, ...] = (
    dropped("client-metadata", "metadata"),
    Rule("billing-header", "/system/*/text", _mask_billing),
    Rule("reminder-tails", "end of tool results", _lift_reminders),
    Rule("trailing-blanks", "tool results", _strip_results),
    Rule("empty-results", "tool results without content", _drop_empty_marks),
)
"""Before the rules of the protocol: results are put in order without what hangs on them."""

RULES: tuple[Rule, ...] = (
    masked(
        "date",
        "reminders and environment blocks",
        r"Today's date(?: is(?: now)?|:)?\s+(?P<value>\d{4}-\d\d-\d\d)",
        "date",
        "system",
        "user",
    ),
    masked(
        "tokens-left",
        "reminders",
        r"<total_tokens>(?P<value>\d[\d,]*) tokens left",
        "number",
        "user",
        "result",
    ),
    masked(
        "durations", "reports of sub-agents", r"duration_ms(?:>|: )(?P<value>\d+)", "number", "user", "result"
    ),
    masked(
        "tokens-spent",
        "reports of sub-agents",
        r"subagent_tokens: (?P<value>\d+)",
        "number",
        "user",
        "result",
    ),
    collected(
        "agent-ids", "reports of sub-agents", r"agentId: (?P<value>a[0-9a-f]{6,16})\b", "user", "result"
    ),
    collected("task-ids", "notices of tasks", r"<task-id>(?P<value>[\w-]{6,40})</task-id>", "user", "result"),
    collected(
        "session-ids",
        "paths of task output",
        rf"/claude-\d+/[^/\s]*/(?P<value>{_UUID})/",
        "user",
        "result",
    ),
)
