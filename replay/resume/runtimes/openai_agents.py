"""OpenAI Agents SDK: a saved `RunState` where the source kept one for the point, and the items of a session."""

import json
from pathlib import Path
from typing import Any

from ledger.events.keeping import SourceKept
from ledger.events.recovery import CheckpointTaken
from ledger.events.session import SessionStarted
from replay.conversation import decode_content
from replay.fold import checkpoint_target
from replay.resume.closing import closed
from replay.resume.point import Point
from replay.resume.runtime import Resumption
from replay.resume.runtimes._openai import items

NAME = "openai-agents"
TITLE = "OpenAI Agents SDK (0.24): run states and session items"

_STATE, _ITEMS = "state.json", "items.json"
_REDACTED = "[redacted:"


def suits(started: SessionStarted) -> bool:
    """A session that the importer or the tracing processor recorded."""
    return started.harness == NAME


def resumption(point: Point, into: Path) -> Resumption:
    """The run state, with its question open; and what was said as input items, for any other way to go on."""
    lost: set[str] = set()
    state, agent = _state(point), _agent(point)
    listed = items(closed(point.turns), lost)
    files = {_ITEMS: _bytes(listed)}
    notes = []
    not_carried = ["Instructions and tools: they are those of the agents that go on.", *sorted(lost)]
    if state is not None:
        files[_STATE] = _bytes(state)
        notes.append(
            f"In your program: from agents import RunState, Runner; state = await RunState.from_json(agent, "
            f"json.load(open({str(into / _STATE)!r}))); state.approve(...) or state.reject(...) what "
            "state.get_interruptions() asks; result = await Runner.run(agent, state)"
        )
        if _REDACTED.encode() in files[_STATE]:
            not_carried.append("Secrets in the saved state, which were taken out when it was imported.")
    elif point.open_calls:
        not_carried.append(
            "Open tool calls and questions: no run state was saved there; the model is told that no result is known."
        )
    acting = f" (the agent that was acting is {agent!r})" if agent else ""
    notes.append(
        f"Without a run state: items = json.load(open({str(into / _ITEMS)!r})); "
        f"await session.add_items(items), or Runner.run(agent, items + [your next message]){acting}"
    )
    return Resumption(files, not_carried=tuple(not_carried), notes=tuple(notes))


def _bytes(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, indent=1).encode() + b"\n"


def _state(point: Point) -> dict[str, Any] | None:
    """The state that was saved at the point; None where none was, or a part of it was erased."""
    body: str | None = None
    for record in point.ledger.store.read(point.session, upto=point.seq + 1):
        event, left = record.event, None if record.source is None else record.source.rest
        if isinstance(event, SourceKept) and event.native_type == "state":
            body = event.body.digest
        elif not isinstance(event, CheckpointTaken) or left is None or body is None:
            continue
        elif checkpoint_target(event, record.seq) == point.seq:
            parts = [decode_content(point.ledger.store.content(digest)) for digest in (body, left)]
            return {**parts[0], **parts[1]} if all(isinstance(part, dict) for part in parts) else None
    return None


def _agent(point: Point) -> str | None:
    """Who acted last."""
    agents = [record.agent for record in point.records() if record.type == "model_call.requested"]
    return agents[-1] if agents else point.started.agent
