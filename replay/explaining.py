"""Why a request was not served: which recorded one is nearest, where the two differ, and what that likely means."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from ledger.errors import LedgerError
from replay.divergence import Candidate, Difference, Divergence, Kind, Side, count_differences, differences
from replay.matching import Canonical, ModelRequest
from replay.pointer import steps_of
from replay.recordings import Recording, Recordings

_COMPARED = 6
_RESULTS = ("tool_result", "function_call_output", "functionResponse")


class Asked(NamedTuple):
    """A request that nothing recorded fits."""

    request: ModelRequest
    """As it came, without secrets."""

    form: Canonical
    """Its canonical form."""

    digest: str
    """Keyed digest of its body."""


class _Near(NamedTuple):
    entry: Recording
    form: Canonical
    places: int


def explain(recordings: Recordings, asked: Asked, session: str, last_seq: int | None) -> Divergence:
    """The divergence that a request is. `last_seq`: the record that was served last."""
    nearest = _nearest(recordings, asked)
    replayed = Side(digest=asked.digest)
    if not nearest:
        return Divergence(
            "extra",
            session,
            last_seq,
            replayed=replayed,
            cause="every recorded request of this kind has had its answer: the replay asks for one more",
        )
    same = [one for one in nearest if one.places == 0]
    if same:
        return _once_more(same[0], session, replayed)
    best = min((one for one in nearest if not one.entry.is_used), key=lambda one: one.places, default=None)
    if best is None:
        near = nearest[0].entry
        return Divergence(
            "extra",
            session,
            near.seq,
            recorded=Side(near.session, near.seq, near.mark.hex()),
            replayed=replayed,
            cause="every recorded request of this kind has had its answer: the replay asks for one more",
            candidates=tuple(_candidate(one) for one in nearest[:3]),
        )
    found = differences(best.form.body, asked.form.body)
    shown = tuple(one._replace(pointer=best.form.as_sent(one.pointer)) for one in found)
    first = shown[0]
    kind, cause = _kind_and_cause(best, asked, found)
    return Divergence(
        kind,
        session,
        best.entry.seq,
        first.pointer,
        Side(best.entry.session, best.entry.seq, best.entry.mark.hex(), first.recorded),
        replayed._replace(excerpt=first.replayed),
        cause,
        shown,
        tuple(_candidate(one, asked) for one in sorted(nearest, key=lambda one: one.places)[:5]),
    )


def _once_more(same: _Near, session: str, replayed: Side) -> Divergence:
    entry = same.entry
    where = Side(entry.session, entry.seq, entry.mark.hex())
    cause = "the same request was recorded once less often: it has had its answer"
    return Divergence("extra", session, entry.seq, None, where, replayed, cause, (), (_candidate(same),))


def _nearest(recordings: Recordings, asked: Asked) -> list[_Near]:
    """The recorded requests worth a comparison: of the same lane, of the same length, and the next in line."""
    entries = [one for one in recordings.entries if one.protocol == asked.request.protocol]
    count = asked.form.lane.turn
    unused = [one for one in entries if not one.is_used]
    known = [one for one in entries if one.form is not None and one.form.key == asked.form.key]
    chosen: dict[int, Recording] = {}
    for group in (
        known[:2],
        [one for one in unused if one.count == count][:_COMPARED],
        unused[:2],
        sorted(unused, key=lambda one: abs(one.count - count))[:2],
        [one for one in reversed(entries) if one.is_used and one.count == count][:1],
    ):
        for one in group:
            chosen.setdefault(id(one), one)
    found: list[_Near] = []
    for entry in list(chosen.values())[: 2 * _COMPARED]:
        try:
            form = recordings.canonical(entry)
        except LedgerError:  # a part was erased: it cannot be compared
            continue
        places = 0 if form.key == asked.form.key else max(1, count_differences(form.body, asked.form.body))
        if form.lane.purpose == asked.form.lane.purpose or places == 0:
            found.append(_Near(entry, form, places))
    return found


def _candidate(near: _Near, asked: Asked | None = None) -> Candidate:
    entry = near.entry
    if near.places == 0:
        return Candidate(entry.seq, "equal, but it has had its answer already", None, 0)
    found = differences(near.form.body, asked.form.body, 1) if asked is not None else []
    first = near.form.as_sent(found[0].pointer) if found else None
    used = "has had its answer already; " if entry.is_used else ""
    places = f"differs in {near.places} place{'s' if near.places > 1 else ''}"
    return Candidate(entry.seq, f"{used}{places}, first {first or 'in the whole'}", first, near.places)


def _kind_and_cause(near: _Near, asked: Asked, found: Sequence[Difference]) -> tuple[Kind, str | None]:
    """What differs by the first place, and what such a difference comes from."""
    steps = steps_of(found[0].pointer)
    top = steps[0] if steps else ""
    if all(one.draw is not None for one in found):
        what = found[0].draw
        return "undeclared_input", f"a draw that was not recorded: {what}"
    if all(steps_of(one.pointer)[:1] == ["tools"] for one in found):
        return "schema", f"an artifact changed: the schema of tool {_tool(near.form.body, steps)!r}"
    if top in ("system", "instructions", "systemInstruction") or _is_system(near.form.body, steps):
        return "request", "an artifact changed: the system prompt"
    if near.form.lane.turn > asked.form.lane.turn and near.form.lane.turn > 2:
        return (
            "request",
            "a compaction, or another cut of the context: the recorded request holds more messages",
        )
    if result := _result(near.form.body, steps):
        return "request", f"the result of {result} differs: the tool ran again and said something else"
    if top in ("messages", "input", "contents"):
        return "request", _cause_in_message(near.form.body, steps)
    return "request", f"another setting of the request: {top}" if top else None


def _cause_in_message(body: dict[str, Any], steps: list[str]) -> str:
    message = _at(body, steps[:2])
    role = message.get("role") if isinstance(message, dict) else None
    if role in ("assistant", "model"):
        return "the client sent the model's answer back otherwise than it was recorded"
    return "another message of the user, or another text that the loop put in"


def _is_system(body: dict[str, Any], steps: list[str]) -> bool:
    message = _at(body, steps[:2]) if len(steps) > 1 else None
    return isinstance(message, dict) and message.get("role") in ("system", "developer")


def _result(body: dict[str, Any], steps: list[str]) -> str | None:
    """The tool call whose result a place lies in."""
    for length in range(len(steps), 1, -1):
        inner = _at(body, steps[:length])
        if not isinstance(inner, dict):
            continue
        if isinstance(answer := inner.get("functionResponse"), dict):
            return f"tool {answer.get('name')!r}"
        if inner.get("type") in _RESULTS or inner.get("role") == "tool":
            call = inner.get("tool_use_id") or inner.get("call_id") or inner.get("tool_call_id")
            return f"tool call {call!r}"
    return None


def _tool(body: dict[str, Any], steps: list[str]) -> str:
    tool = _at(body, steps[:2])
    inner = tool.get("function", tool) if isinstance(tool, dict) else None
    return str(inner.get("name") or inner.get("type")) if isinstance(inner, dict) else "/".join(steps[:2])


def _at(value: Any, steps: list[str]) -> Any:
    for step in steps:
        if isinstance(value, list):
            value = value[int(step)] if step.isdigit() and int(step) < len(value) else None
        elif isinstance(value, dict):
            value = value.get(step)
        else:
            return None
    return value
