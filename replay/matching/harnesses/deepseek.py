"""DeepSeek Harness: Anthropic's messages, and its own session log in each body."""

from ledger.events.model_call import Purpose
from replay.matching.request import ModelRequest
from replay.matching.rules import Rule, collected, dropped

NAME = "deepseek-harness"

_UUID = r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"


def recognizes(request: ModelRequest) -> bool:
    """By its headers, or by the log in the body."""
    named = request.header("x-deepseek-harness-session-id") or request.header("x-deepseek-harness-user-id")
    return bool(named) or "dsh_session_log" in request.body or "dsh_plugin_packages" in request.body


def purpose(request: ModelRequest) -> Purpose:
    """A title is asked for without tools. Child sessions look like the main one but for their first message."""
    return "main" if request.tools() else "title"


BEFORE: tuple[Rule, ...] = (dropped("session-log", "dsh_session_log", "dsh_plugin_packages", "metadata"),)
"""Before the rules of the protocol."""

RULES: tuple[Rule, ...] = (
    collected("session-ids", "tool results", rf"(?P<value>\b{_UUID}\b)", "result"),
    collected(
        "agent-ids",
        "what the harness tells parents and children of each other",
        rf"(?:agent id is \"|agent_id: \"|Background subagent )(?P<value>(?:session-)?{_UUID})\b",
        "user",
    ),
)
