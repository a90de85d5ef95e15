"""Lanes: which conversation of a run a request belongs to. Side calls have lanes of their own."""

import hashlib
from typing import Any, NamedTuple

from ledger.events.canonical import canonical_json
from ledger.events.model_call import Purpose
from ledger.protocols.recognition import is_compaction, is_count
from replay.conversation import tool_names
from replay.matching.places import places
from replay.matching.request import ModelRequest

SIDE = frozenset({"title", "routing", "compaction", "token-count", "summary", "embedding", "other"})
"""Purposes of side calls: they never use up a recording of the conversation."""


_TITLE_WORDS = ("generate", "generator", "concise", "summary", "summarize")


class Lane(NamedTuple):
    """A conversation of a run."""

    purpose: Purpose
    """What its calls are for."""

    key: bytes
    """Equal for requests with equal model, system prompt, names of tools and first user message."""

    turn: int
    """Messages of the request: where in the lane it stands."""

    @property
    def is_side(self) -> bool:
        """Whether it is a side call and no part of a conversation."""
        return self.purpose in SIDE


def lane_of(request: ModelRequest, body: dict[str, Any], purpose: Purpose, turn: int) -> Lane:
    """The lane of a request, from its canonical body."""
    texts = places(request.protocol, body)
    system: list[str] = []
    first = ""
    for place in texts:
        if place.kind == "system" and place.message < 0:
            system.append(place.text)
        elif place.kind == "user":
            first = place.text
            if not first.startswith(
                "<"
            ):  # the harness puts blocks of its own, in tags, before the user's words
                break
    named = [
        request.protocol,
        request.operation,
        request.model,
        purpose,
        system,
        tool_names(body.get("tools")),
        first,
    ]
    return Lane(purpose, hashlib.sha256(canonical_json(named)).digest(), turn)


def purpose_of_operation(request: ModelRequest) -> Purpose | None:
    """What the address alone tells."""
    target = f"/{request.operation}" if request.protocol != "gemini" else f":{request.operation}"
    if is_count(target):
        return "token-count"
    if request.operation == "compact" or is_compaction(target):
        return "compaction"
    return None


def asks_for_title(request: ModelRequest) -> bool:
    """Whether a request without tools asks for a title, by its schema or its instructions."""
    if request.tools():
        return False
    body = request.body
    output = body.get("output_config")
    schema = output.get("format") if isinstance(output, dict) else body.get("response_format")
    if isinstance(schema, dict) and b'"title"' in canonical_json(schema):
        return True
    words = [place.text[:4000].lower() for place in places(request.protocol, body) if place.kind == "system"]
    return any("title" in text and (any(word in text for word in _TITLE_WORDS)) for text in words)
