"""opencode: chat completions by the AI SDK; a date in the system prompt."""

from ledger.events.model_call import Purpose
from replay.matching.lanes import asks_for_title
from replay.matching.places import places
from replay.matching.request import ModelRequest
from replay.matching.rules import Rule, dropped, masked

NAME = "opencode"


def recognizes(request: ModelRequest) -> bool:
    """By the name of the client, its header, or the first words of its prompt."""
    agent = (request.header("user-agent") or "").lower()
    if agent.startswith("opencode") or request.header("x-session-affinity"):
        return True
    first = next(
        (place.text for place in places(request.protocol, request.body) if place.kind == "system"), ""
    )
    return first[:200].lower().startswith("you are opencode")


def purpose(request: ModelRequest) -> Purpose:
    """Titles are asked for without tools."""
    return "title" if asks_for_title(request) else "main"


BEFORE: tuple[Rule, ...] = (dropped("cache-key", "prompt_cache_key", "promptCacheKey"),)
"""Before the rules of the protocol."""

RULES: tuple[Rule, ...] = (
    masked(
        "date",
        "env block of the system prompt",
        r"Today's date: (?P<value>[A-Z][a-z]{2} [A-Z][a-z]{2} \d{1,2} \d{4}|\d{4}-\d\d-\d\d)",
        "date",
        "system",
    ),
)
