"""Gemini CLI: ids of tool calls made by the client, and a date in the first message."""

from ledger.events.model_call import Purpose
from replay.matching.request import ModelRequest
from replay.matching.rules import Rule, Work, masked

NAME = "gemini-cli"

_CALLS = ("functionCall", "functionResponse")


def recognizes(request: ModelRequest) -> bool:
    """By the name of the client."""
    agent = request.header("user-agent") or ""
    return request.protocol == "gemini" and agent.lower().startswith(("geminicli", "gemini-cli"))


def purpose(request: ModelRequest) -> Purpose:
    """The router asks before each turn of a user, without tools and not as a stream."""
    return "routing" if request.operation == "generateContent" and not request.tools() else "main"


def _collect_call_ids(work: Work) -> bool:
    contents = work.body.get("contents")
    for content in contents if isinstance(contents, list) else ():
        parts = content.get("parts") if isinstance(content, dict) else None
        for part in parts if isinstance(parts, list) else ():
            for name in _CALLS:
                call = part.get(name) if isinstance(part, dict) else None
                found = call.get("id") if isinstance(call, dict) else None
                if isinstance(found, str):
                    work.note_ids([found])
    return False


BEFORE: tuple[Rule, ...] = ()
"""Before the rules of the protocol."""

RULES: tuple[Rule, ...] = (
    Rule("call-ids", "/contents/*/parts/*/functionCall/id", _collect_call_ids),
    masked(
        "date",
        "first message",
        r"Today's date is (?P<value>[A-Z][a-z]+, [A-Z][a-z]+ \d{1,2}, \d{4})",
        "date",
        "user",
        "system",
    ),
    masked(
        "process-groups", "output of the shell", r"Process Group PGID: (?P<value>\d+)", "number", "result"
    ),
)
