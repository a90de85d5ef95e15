"""LangGraph: a thread that goes on from a checkpoint of its own database, through `replay.resume.langgraph`."""

import json
from pathlib import Path

from ledger.errors import InputError
from ledger.events.recovery import CheckpointTaken
from ledger.events.session import SessionStarted
from ledger.events.tool_call import ToolCallSettled
from replay.conversation import decode_content
from replay.fold import checkpoint_target
from replay.resume.langgraph import FORMAT, shape
from replay.resume.point import Point
from replay.resume.runtime import Resumption

NAME = "langgraph"
TITLE = "LangGraph (1.2), with the checkpointer that the thread was kept in"

_FILE = "thread.json"
_CALL = (
    "In your program: from replay.resume.langgraph import resume_thread; "
    "config = resume_thread(graph, {path!r}); graph.invoke(None, config)"
)
_ASKED = (
    "A question that was open there is asked again: answer it with Command(resume=...); "
    "a graph that had ended there takes new input in the place of None."
)


def suits(started: SessionStarted) -> bool:
    """A session that the importer or the callback handler recorded."""
    return started.harness == NAME


def resumption(point: Point, into: Path) -> Resumption:
    """A file that names thread and checkpoint; what was said stays in the graph's own database."""
    if point.started.parent is not None:
        raise InputError(
            f"{point.session} is a graph inside another: go back in {point.started.parent}, which runs it again"
        )
    checkpoint = _checkpoint(point)
    thread = _thread(point)
    if thread is None:
        raise InputError(f"{point.session} has no thread id: the graph ran without a checkpointer")
    told = {
        "format": FORMAT,
        "session": point.session,
        "seq": point.seq,
        "thread_id": thread,
        "checkpoint_id": None if checkpoint is None else checkpoint[1],
        "messages": [] if checkpoint else [one for message in point.messages if (one := shape(message))],
        "results": [] if checkpoint is None else _results(point, checkpoint[0]),
        "before": None if checkpoint else _next_time(point),
    }
    content = json.dumps(told, indent=2, ensure_ascii=False).encode() + b"\n"
    return Resumption(
        {_FILE: content},
        not_carried=("What a graph inside the graph had done in the step that was open: it begins anew.",)
        if point.state.sections["delegations"]
        else (),
        notes=(_CALL.format(path=str(into / _FILE)), _ASKED),
        native_id=thread,
    )


def _checkpoint(point: Point) -> tuple[int, str] | None:
    """The newest checkpoint of the source at the point or before it: the record that it stands for, and its id."""
    found: tuple[int, str] | None = None
    lived = {record.seq for record in point.records()}
    for record in point.ledger.store.read(point.session, upto=point.seq + 1):
        event = record.event
        if not isinstance(event, CheckpointTaken) or event.taken_by != "source" or record.source is None:
            continue
        target = checkpoint_target(event, record.seq)
        if target in lived and (found is None or target >= found[0]):
            found = (target, event.checkpoint_id)
    return found


def _results(point: Point, seq: int) -> list[str]:
    """Calls that ended after the checkpoint and before the point: their tools are not run again."""
    return [
        record.event.call_id
        for record in point.records()
        if isinstance(record.event, ToolCallSettled) and record.seq > seq
    ]


def _thread(point: Point) -> str | None:
    """The thread's id: the hook keeps it with the start, the importer with every record."""
    first = point.ledger.store.record(point.session, 1)
    if first.source is not None:
        return first.correlation
    if point.started.environment is None:
        return None
    about = decode_content(point.ledger.store.content(point.started.environment.digest))
    thread = about.get("conversation") if isinstance(about, dict) else None
    return thread if isinstance(thread, str) else None


def _next_time(point: Point) -> str | None:
    """When the first record after the point was made."""
    for record in point.ledger.store.read(point.session, after=point.seq, upto=point.seq + 1):
        return record.occurred_at or record.recorded_at
    return None
