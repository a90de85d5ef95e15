"""Compares two branches or sessions: what they share, where they part and why, what each came to."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, NamedTuple

from ledger.events import Record
from ledger.events.model_call import ModelCallRequested
from ledger.events.tool_call import ToolCallRequested
from ledger.home import Ledger
from ledger.store import EventStore
from ledger.views.branch_tree import Act, act_of, delegated_by
from ledger.views.branches import BranchesView
from ledger.views.session_row import SessionRow
from ledger.views.sessions import SessionsView
from replay.comparing.acts import REQUEST_PARTS, Side, Tally, request_parts
from replay.comparing.alignment import Alignment, align
from replay.comparing.paths import Path, path_of, rest, shared

Why = Literal[
    "ended",
    "other_request",
    "other_answer",
    "other_tool",
    "other_arguments",
    "other_result",
    "other_message",
    "other_decision",
    "other_step",
]
"""In what two sides part."""

_BY_KIND: dict[str, Why] = {
    "model_call.requested": "other_request",
    "model_call.answered": "other_answer",
    "tool_call.settled": "other_result",
    "input.message_received": "other_message",
    "input.context_injected": "other_message",
    "approval.decided": "other_decision",
}
_WORDS: dict[Why, str] = {
    "ended": "one side has nothing more",
    "other_request": "another model request",
    "other_answer": "another answer of the model",
    "other_tool": "another tool",
    "other_arguments": "the same tool with other arguments",
    "other_result": "another result",
    "other_message": "another message came in",
    "other_decision": "another decision",
    "other_step": "another step",
}


class Parting(NamedTuple):
    """A place where the two sides part; a side that has nothing more is None."""

    kind: Why
    """In what."""

    left: Act | None
    """What was done on the left."""

    right: Act | None
    """What was done on the right."""

    cause: str
    """The same in words."""

    def as_json(self) -> dict[str, Any]:
        """For `--json`."""
        return {
            "kind": self.kind,
            "left": None if self.left is None else self.left._asdict(),
            "right": None if self.right is None else self.right._asdict(),
            "cause": self.cause,
        }


class Hunk(NamedTuple):
    """Acts that both sides have, or that stand between such: by their indices."""

    is_common: bool
    """Whether both sides have them."""

    left: range
    """On the left."""

    right: range
    """On the right."""


@dataclass
class Comparison:
    """Two branches or sessions, side by side."""

    left: Path
    """The one."""

    right: Path
    """The other."""

    shared: Tally
    """Records that both begin with; they count for neither side."""

    sides: tuple[Side, Side]
    """What each did after those."""

    delegated: tuple[dict[str, Any], dict[str, Any]]
    """What each spent through sessions that it delegated to."""

    alignment: Alignment
    """What both did, in order."""

    divergence: Parting | None
    """The first act that differs, whatever by; None when there is none."""

    first_other_act: Parting | None
    """The first act that is another one: the same request about another day, or a result with another time, is none."""

    def hunks(self) -> Iterator[Hunk]:
        """All acts, in order."""
        x = y = 0
        ends = (len(self.sides[0]), len(self.sides[1]))
        for left, right, length in [*self.alignment.blocks, (*ends, 0)]:
            if left > x or right > y:
                yield Hunk(False, range(x, left), range(y, right))
            if length:
                yield Hunk(True, range(left, left + length), range(right, right + length))
            x, y = left + length, right + length

    def as_json(self) -> dict[str, Any]:
        """For `--json`; stretches are told by the seqs of their first and last act."""
        common = sum(block.length for block in self.alignment.blocks)
        left, right = self.sides
        return {
            "left": _side_json(self.left, left, self.delegated[0]),
            "right": _side_json(self.right, right, self.delegated[1]),
            "shared": _tally_json(self.shared),
            "common": common,
            "only_left": len(left) - common,
            "only_right": len(right) - common,
            "is_longest": self.alignment.is_longest,
            "divergence": None if self.divergence is None else self.divergence.as_json(),
            "first_other_act": None if self.first_other_act is None else self.first_other_act.as_json(),
            "stretches": [
                {
                    "common": hunk.is_common,
                    "left": _ends(left, hunk.left),
                    "right": _ends(right, hunk.right),
                    "acts": max(len(hunk.left), len(hunk.right)),
                }
                for hunk in self.hunks()
            ],
        }


def compare(ledger: Ledger, left: str, right: str) -> Comparison:
    """Compare two branches, by ids that `branches` shows, or sessions, by id or prefix.

    Raises SessionNotFoundError, AmbiguousSessionError, InputError.
    """
    store = ledger.store
    with BranchesView(ledger.home, store) as view, SessionsView(ledger.home, store) as sessions:
        view.catch_up()
        sessions.catch_up()
        one, other = path_of(store, view, left), path_of(store, view, right)
        delegated = tuple(delegated_by(sessions, path.session).as_json() for path in (one, other))
    common = shared(one, other)
    numbers: dict[bytes, int] = {}
    first, second = (Side(numbers).read(store, rest(path, common)) for path in (one, other))
    alignment = align(first.acts, second.acts)
    return Comparison(
        one,
        other,
        Side(numbers).read(store, common).tally,
        (first, second),
        (delegated[0], delegated[1]),
        alignment,
        _parting(store, first, second, first.exact, second.exact),
        _parting(store, first, second, first.acts, second.acts),
    )


def _parting(
    store: EventStore, left: Side, right: Side, ours: Sequence[int], theirs: Sequence[int]
) -> Parting | None:
    """The first place where two lists of acts differ."""
    both = min(len(ours), len(theirs))
    place = next((index for index in range(both) if ours[index] != theirs[index]), both)
    one = None if place >= len(left) else store.record(*left.place(place))
    other = None if place >= len(right) else store.record(*right.place(place))
    if one is None and other is None:
        return None
    kind, cause = _why(one, other)
    return Parting(
        kind, None if one is None else act_of(one), None if other is None else act_of(other), cause
    )


def _why(left: Record | None, right: Record | None) -> tuple[Why, str]:
    if left is None or right is None:
        return "ended", f"the {'left' if left is None else 'right'} side has nothing more"
    one, other = left.event, right.event
    if isinstance(one, ToolCallRequested) and isinstance(other, ToolCallRequested):
        kind: Why = "other_arguments" if one.tool == other.tool else "other_tool"
        return kind, _WORDS[kind]
    if left.type != right.type:
        return "other_step", f"{left.type} on the left, {right.type} on the right"
    kind = _BY_KIND.get(left.type, "other_step")
    if isinstance(one, ModelCallRequested) and isinstance(other, ModelCallRequested):
        pairs = zip(REQUEST_PARTS, request_parts(one), request_parts(other), strict=True)
        names = [name for name, before, after in pairs if before != after]
        if names:
            return kind, f"{_WORDS[kind]}: other {', '.join(names)}"
    return kind, _WORDS[kind]


def seconds_of(row: SessionRow) -> float | None:
    """Seconds from the first time that records tell to the last; None where they tell none."""
    try:
        first, last = datetime.fromisoformat(row.started_at or ""), datetime.fromisoformat(row.last_at or "")
        return (last - first).total_seconds()
    except (ValueError, TypeError):
        return None


def _tally_json(tally: Tally) -> dict[str, Any]:
    row = tally.row
    return {
        "records": tally.records,
        "model_calls": row.model_calls,
        "tokens": dict(row.tokens),
        "cost_usd": None if row.cost_usd is None else float(row.cost_usd),
        "tool_calls": row.tool_calls,
        "tools": dict(sorted(tally.tools.items())),
        "tools_not_returned": dict(sorted(Counter(tally.failed).items())),
        "started_at": row.started_at,
        "last_at": row.last_at,
        "seconds": seconds_of(row),
        "outcome": row.outcome,
    }


def _side_json(path: Path, side: Side, delegated: dict[str, Any]) -> dict[str, Any]:
    own = _tally_json(side.tally)
    return {"id": path.id, "session": path.session, **own, "acts": len(side), "delegated": delegated}


def _ends(side: Side, part: range) -> list[str] | None:
    """`SESSION#SEQ` of the first and last act of a stretch; None for an empty one."""
    if not part:
        return None
    return [f"{session}#{seq}" for session, seq in (side.place(part[0]), side.place(part[-1]))]
