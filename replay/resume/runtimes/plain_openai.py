"""One's own loop on OpenAI's protocols: the body of its next request, of Responses where it was recorded so."""

from pathlib import Path
from typing import Any

from ledger.events.session import SessionStarted
from replay.resume.closing import closed
from replay.resume.point import Point
from replay.resume.runtime import Resumption
from replay.resume.runtimes._body import body_file, own_parameters
from replay.resume.runtimes._openai import chat_messages, items
from replay.resume.runtimes._schemas import schemas, system_words

__all__ = ["NAME", "TITLE", "resumption", "suits"]

NAME = "plain-openai"
TITLE = "OpenAI Chat Completions or Responses, for a loop of your own"


def suits(started: SessionStarted) -> bool:
    """Never by itself: nothing tells which client a loop of one's own has."""
    return False


def resumption(point: Point, into: Path) -> Resumption:
    """`request.json`."""
    lost: set[str] = set()
    if point.protocol == "openai.responses":
        address, body = "/v1/responses", _responses(point, lost)
    else:
        address, body = "/v1/chat/completions", _chat(point, lost)
    if not body.get("messages", body.get("input")):
        raise point.nothing_said("a model could be sent")
    return body_file(point, body, address, lost)


def _responses(point: Point, lost: set[str]) -> dict[str, Any]:
    body: dict[str, Any] = {"model": point.model, **own_parameters(point)}
    body |= {name: value for name, value in (("instructions", point.system), ("tools", point.tools)) if value}
    return {**body, "input": items(closed(point.turns), lost)}


def _chat(point: Point, lost: set[str]) -> dict[str, Any]:
    is_own = point.protocol == "openai.chat"
    body: dict[str, Any] = {"model": point.model}
    if is_own:
        body |= own_parameters(point)
    offered = point.tools if is_own else [_function(*one) for one in schemas(point.tools, lost)]
    if offered:
        body["tools"] = offered
    said = chat_messages(closed(point.turns), lost)
    words = system_words(point.system)
    if words:
        said.insert(0, {"role": "system", "content": words})
    return {**body, "messages": said}


def _function(name: str, description: str | None, arguments: dict[str, Any]) -> dict[str, Any]:
    told = {} if description is None else {"description": description}
    return {"type": "function", "function": {"name": name, **told, "parameters": arguments}}
