"""pi: chat completions; a date in the system prompt."""

import re

from ledger.events.model_call import Purpose
from replay.matching.places import places
from replay.matching.request import ModelRequest
from replay.matching.rules import Rule, dropped, masked

NAME = "pi"

_PROMPT = re.compile(r"operating inside pi\b|\bpi, a coding agent|pi-coding-agent")


def recognizes(request: ModelRequest) -> bool:
    """By the name of the client, or by its prompt."""
    if (request.header("user-agent") or "").startswith(("pi/", "pi-coding-agent")):
        return True
    first = next(
        (place.text for place in places(request.protocol, request.body) if place.kind == "system"), ""
    )
    return "\nCurrent date" in first[-500:] and _PROMPT.search(first) is not None


def purpose(request: ModelRequest) -> Purpose:
    """It makes no side calls."""
    return "main"


BEFORE: tuple[Rule, ...] = (dropped("cache-key", "prompt_cache_key"),)
"""Before the rules of the protocol."""

RULES: tuple[Rule, ...] = (
    masked(
        "date",
        "end of the system prompt",
        r"(?m)^Current date(?: and time)?: (?P<value>[^\n]{1,80})$",
        "date",
        "system",
    ),
)
