"""One's own loop on the Anthropic Messages protocol: the body of its next request."""

from pathlib import Path
from typing import Any

from ledger.events.session import SessionStarted
from replay.resume.closing import closed
from replay.resume.point import Point
from replay.resume.runtime import Resumption
from replay.resume.runtimes._anthropic import messages
from replay.resume.runtimes._body import body_file, own_parameters
from replay.resume.runtimes._schemas import schemas, system_words

__all__ = ["NAME", "TITLE", "resumption", "suits"]

NAME = "plain-anthropic"
TITLE = "Anthropic Messages, for a loop of your own"

_PROTOCOL = "anthropic.messages"
_MOST_TOKENS = 4096


def suits(started: SessionStarted) -> bool:
    """Never by itself: nothing tells which client a loop of one's own has."""
    return False


def resumption(point: Point, into: Path) -> Resumption:
    """`request.json`."""
    lost: set[str] = set()
    is_own = point.protocol == _PROTOCOL
    turns = closed(point.turns)
    said = messages(turns, lost, keeps_system=is_own)
    if not said:
        raise point.nothing_said("a model could be sent")
    body: dict[str, Any] = {"model": point.model, "max_tokens": _MOST_TOKENS}
    if is_own:
        body |= own_parameters(point)
        body |= {name: value for name, value in (("system", point.system), ("tools", point.tools)) if value}
    else:
        inside = [piece.text for turn in turns if turn.role == "system" for piece in turn.texts]
        words = [one for one in (system_words(point.system), *inside) if one]
        if words:
            body["system"] = "\n\n".join(words)
        offered = [
            {"name": one.name, "input_schema": one.arguments}
            | ({} if one.description is None else {"description": one.description})
            for one in schemas(point.tools, lost)
        ]
        if offered:
            body["tools"] = offered
    return body_file(point, {**body, "messages": said}, "/v1/messages", lost)
