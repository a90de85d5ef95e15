"""Takes a LangGraph thread back, in your own process and with your own graph. Imports nothing of LangGraph.

    from replay.resume.langgraph import resume_thread

    config = resume_thread(graph, "back/thread.json")     # what `loopledger rollback ... --into back` wrote
    graph.invoke(None, config)                            # goes on; a graph that had ended takes new input instead

The graph needs its checkpointer. What is written is a copy of the checkpoint, by the graph's own `update_state`: the
thread goes on from the copy, and whatever was answered or written after the checkpoint stays with the old one. So a
question that was open there is asked again. Nothing is deleted. `aresume_thread` is the same for an async saver.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

FORMAT = "loopledger-langgraph/1"
"""Mark of the file."""

_COPY = "__copy__"
_SEARCHED = 10_000
_REDACTED = "[redacted:"
_ROLES = {"user": "human", "assistant": "ai", "developer": "system"}


class ThreadNotFoundError(LookupError):
    """The graph's checkpointer does not hold the point."""


class _Found(NamedTuple):
    """A checkpoint to copy."""

    state: Any
    results: frozenset[str]


def resume_thread(graph: Any, path: str | Path) -> dict[str, Any]:
    """Take the thread back to the point that the file names; gives the config with which the graph goes on.

    Raises ThreadNotFoundError when the graph's checkpointer does not hold that point.
    """
    told = _load(path)
    config = _config(told)
    if told["checkpoint_id"] is not None:
        found = _only(graph.get_state(_at(config, told["checkpoint_id"])), told)
    else:
        found = _best(graph.get_state_history(config), told)
    copied = graph.update_state(found.state.config, None, as_node=_COPY)
    if found.results:
        saver = graph.checkpointer
        rows = saver.get_tuple(found.state.config).pending_writes or []
        for task_id, task_path, writes in _kept(rows, found, graph.get_state(copied)):
            saver.put_writes(copied, writes, task_id, task_path)
    return config


async def aresume_thread(graph: Any, path: str | Path) -> dict[str, Any]:
    """The same, for a graph whose checkpointer is an async one."""
    told = _load(path)
    config = _config(told)
    if told["checkpoint_id"] is not None:
        found = _only(await graph.aget_state(_at(config, told["checkpoint_id"])), told)
    else:
        states: list[Any] = []
        async for state in graph.aget_state_history(config):
            states.append(state)
            if len(states) >= _SEARCHED:
                break
        found = _best(states, told)
    copied = await graph.aupdate_state(found.state.config, None, as_node=_COPY)
    if found.results:
        saver = graph.checkpointer
        rows = (await saver.aget_tuple(found.state.config)).pending_writes or []
        for task_id, task_path, writes in _kept(rows, found, await graph.aget_state(copied)):
            await saver.aput_writes(copied, writes, task_id, task_path)
    return config


def shape(message: Any) -> list[Any] | None:
    """What tells a message from others: role, digest of its words, ids of its calls, id of the call it answers.

    The digest is None where a secret was taken out: then any words will do. None for a system prompt, which is no part
    of a thread.
    """
    role = _field(message, "type") or _field(message, "role")
    role = _ROLES.get(str(role), str(role))
    if role == "system":
        return None
    content = _field(message, "content")
    words = content if isinstance(content, str) else "".join(_texts(content))
    digest = None if _REDACTED in words else hashlib.sha256(words.encode("utf-8", "replace")).hexdigest()[:24]
    calls = _field(message, "tool_calls")
    ids = sorted(str(_field(call, "id")) for call in calls) if isinstance(calls, list) else []
    answered = _field(message, "tool_call_id") or _field(message, "call_id")  # the ledger's own word
    return [role, digest, ids, answered]


def _field(value: Any, name: str) -> Any:
    return value.get(name) if isinstance(value, Mapping) else getattr(value, name, None)


def _texts(content: Any) -> Iterable[str]:
    for block in content if isinstance(content, list) else ():
        words = block if isinstance(block, str) else _field(block, "text")
        if isinstance(words, str):
            yield words


def _load(path: str | Path) -> dict[str, Any]:
    told: dict[str, Any] = json.loads(Path(path).read_text(encoding="utf-8"))
    if told.get("format") != FORMAT:
        raise ValueError(f"{path} is no file of a thread: expected {FORMAT}, found {told.get('format')!r}")
    return told


def _config(told: Mapping[str, Any]) -> dict[str, Any]:
    return {"configurable": {"thread_id": told["thread_id"], "checkpoint_ns": ""}}


def _at(config: Mapping[str, Any], checkpoint_id: str) -> dict[str, Any]:
    return {"configurable": {**config["configurable"], "checkpoint_id": checkpoint_id}}


def _only(state: Any, told: Mapping[str, Any]) -> _Found:
    if state.created_at is None:
        raise ThreadNotFoundError(
            f"thread {told['thread_id']!r} has no checkpoint {told['checkpoint_id']}: is this the graph's own database?"
        )
    return _Found(state, frozenset(told["results"]))


def _best(states: Iterable[Any], told: Mapping[str, Any]) -> _Found:
    """The newest checkpoint that holds what was said up to the point, but for results of tools that still ran."""
    wanted = told["messages"]
    best: _Found | None = None
    most = -1
    for number, state in enumerate(states):
        if number >= _SEARCHED:
            break
        if told["before"] is not None and state.created_at is not None and state.created_at > told["before"]:
            continue
        messages = state.values.get("messages") if isinstance(state.values, Mapping) else None
        held = [one for message in messages or () if (one := shape(message)) is not None]
        left = wanted[len(held) :]
        if len(held) > most and _same(held, wanted) and all(message[0] == "tool" for message in left):
            best, most = _Found(state, frozenset(str(message[3]) for message in left)), len(held)
    if best is None:
        raise ThreadNotFoundError(
            f"no checkpoint of thread {told['thread_id']!r} holds the {len(wanted)} messages of {told['session']}"
            f"#{told['seq']}: is this the graph's own database?"
        )
    return best


def _same(held: list[list[Any]], wanted: list[list[Any]]) -> bool:
    if len(held) > len(wanted):
        return False
    return all(
        one[0] == other[0] and (other[1] is None or one[1] == other[1]) and one[2:] == other[2:]
        for one, other in zip(held, wanted, strict=False)
    )


def _kept(
    rows: Iterable[tuple[str, str, Any]], found: _Found, copied: Any
) -> Iterable[tuple[str, str, list[tuple[str, Any]]]]:
    """What tasks wrote that ended before the point, for the same tasks of the copy: they are not run again."""
    written: dict[str, list[tuple[str, Any]]] = {}
    for task_id, channel, value in rows:
        if not channel.startswith("__"):
            written.setdefault(task_id, []).append((channel, value))
    places = {task.id: (task.name, task.path) for task in found.state.tasks}
    tasks = {(task.name, task.path): task for task in copied.tasks}
    for task_id, writes in written.items():
        ids = {str(_field(message, "tool_call_id")) for _, value in writes for message in _listed(value)}
        task = tasks.get(places.get(task_id, ("", ())))
        if task is not None and ids & found.results:
            yield task.id, "", writes


def _listed(value: Any) -> list[Any]:
    inner = value.get("messages") if isinstance(value, Mapping) else value
    return inner if isinstance(inner, list) else [inner]
