"""A request body as a file, for one's own loop."""

import json
from typing import Any

from replay.resume.point import Point
from replay.resume.runtime import Resumption

_OF_THE_RUN = frozenset(
    {
        "stream",
        "stream_options",
        "metadata",
        "client_metadata",
        "previous_response_id",
        "prompt_cache_key",
        "user",
    }
)
"""Fields that belong to the run which was recorded, not to the conversation."""


def own_parameters(point: Point, *taken: str) -> dict[str, Any]:
    """The other fields of the last request, where they go with the conversation."""
    return {name: value for name, value in point.parameters.items() if name not in _OF_THE_RUN.union(taken)}


def body_file(point: Point, body: dict[str, Any], address: str, lost: set[str]) -> Resumption:
    """What goes on from the point: `request.json`."""
    notes = [f"request.json is the body of `POST {address}`."]
    last = point.turns[-1].role if point.turns else None
    if last == "assistant" and not point.open_calls:
        notes.append("It ends with an answer: append the next message of the user.")
    if point.open_calls:
        notes.append(f"{len(point.open_calls)} tool calls had no result there: their results say so.")
    content = json.dumps(body, ensure_ascii=False, indent=1).encode("utf-8", "surrogatepass") + b"\n"
    return Resumption({"request.json": content}, not_carried=tuple(sorted(lost)), notes=tuple(notes))
