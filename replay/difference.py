"""What changed between two seqs of a session, and which record made each change."""

from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from typing import Any, NamedTuple

from ledger.store import EventStore
from replay.conversation import Conversation, Mention, conversation, load_message
from replay.pointer import Change, pointer
from replay.state import State, Trail
from replay.timeline import Timeline

_MATCHED_PAIRS = 4_000_000
_ABSENT = object()


class View(NamedTuple):
    """What a diff compares."""

    parts: dict[str, Any]
    """The JSON form of a state without session, seq, digest and conversation."""

    said: Conversation
    """The conversation, by digests."""


def difference(timeline: Timeline, store: EventStore, first: int, second: int) -> list[Change]:
    """The changes that make the state at `first` that at `second`; either may be the earlier one.

    Covers the whole JSON form but for `seq` and `digest`. It is the net change: what was changed and changed
    back is not in it; `seq` is the last record that changed the value. Applied in order to one state, it
    gives the other.
    """
    if first > second:
        return [change.inverse() for change in reversed(difference(timeline, store, second, first))]
    state = timeline.at(first)
    before = View(state.parts(), conversation(store, state))
    state.trail = trail = Trail()
    for _ in timeline.walk(state, timeline.checked(second)):
        pass
    after = View(state.parts(), conversation(store, state))
    changes = list(_part_changes(before.parts, after.parts, trail))
    changes.extend(_load(store, _context_changes(before.said, after.said, state, trail)))
    return changes


def _part_changes(before: dict[str, Any], after: dict[str, Any], trail: Trail) -> Iterator[Change]:
    """Changes of everything but the conversation, by path."""
    made = trail.made()
    found: list[tuple[tuple[str, ...], Any, Any]] = []
    stack: list[tuple[tuple[str, ...], Any, Any]] = [((), before, after)]
    while stack:
        path, old, new = stack.pop()
        if isinstance(old, dict) and isinstance(new, dict):
            stack.extend(
                ((*path, key), old.get(key, _ABSENT), new.get(key, _ABSENT))
                for key in old.keys() | new.keys()
            )
        elif old != new:
            found.append((path, old, new))
    for path, old, new in sorted(found, key=lambda one: one[0]):
        seq = _maker(path, made)
        if old is _ABSENT:
            yield Change("add", pointer(path), None, new, seq)
        elif new is _ABSENT:
            yield Change("remove", pointer(path), old, None, seq)
        else:
            yield Change("replace", pointer(path), old, new, seq)


def _maker(path: tuple[str, ...], made: dict[tuple[str, ...], int]) -> int:
    """The record that changed a value: itself, or the whole that it is part of."""
    for length in range(len(path), 0, -1):
        if path[:length] in made:
            return made[path[:length]]
    raise AssertionError(f"no record changed {pointer(path)}: the fold changed it without saying so")


def _context_changes(
    before: Conversation, after: Conversation, state: State, trail: Trail
) -> Iterator[Change]:
    """Changes of the conversation, with mentions in the place of messages."""
    maker = _ContextMaker(after, state, trail)
    old, new = before.mentions, after.mentions
    for old_start, old_end, start, end in _unequal(old, new):
        # What stands before `start` is already as it shall be, so indices are those of the new list.
        both = min(old_end - old_start, end - start)
        for step in range(both):
            left, right = old[old_start + step], new[start + step]
            yield Change("replace", f"/context/{start + step}", left, right, maker.of(start + step))
        for index in range(start + both, end):
            yield Change("add", f"/context/{index}", None, new[index], maker.of(index))
        for gone in old[old_start + both : old_end]:
            yield Change("remove", f"/context/{start + both}", gone, None, maker.of_removal())


def _unequal(old: Sequence[Mention], new: Sequence[Mention]) -> Iterator[tuple[int, int, int, int]]:
    """Stretches in which two lists differ: (start and end in the old one, start and end in the new one)."""
    shorter = min(len(old), len(new))
    start = 0
    while start < shorter and old[start] == new[start]:
        start += 1
    end = 0
    while end < shorter - start and old[-1 - end] == new[-1 - end]:
        end += 1
    left, right = old[start : len(old) - end], new[start : len(new) - end]
    if not left and not right:
        return
    if len(left) * len(right) > _MATCHED_PAIRS:
        # Exact either way; a search for what the two share could take for ever.
        yield start, start + len(left), start, start + len(right)
        return
    for tag, i, j, k, m in SequenceMatcher(None, left, right, autojunk=False).get_opcodes():
        if tag != "equal":
            yield start + i, start + j, start + k, start + m


class _ContextMaker:
    """Tells which record brought a message into a conversation, or took one out."""

    def __init__(self, after: Conversation, state: State, trail: Trail) -> None:
        self._after = after
        self._said = {digest: list(seqs) for digest, seqs in trail.said.items()}
        self._seq = state.seq
        places = {node: index for index, node in enumerate(after.nodes)}
        self._bases: list[tuple[int, int]] = []
        """(seq, last message) of the last requests whose contexts are beginnings of the final one."""
        for seq, node in reversed(trail.bases):
            if node not in places:
                break
            self._bases.append((seq, places[node]))
        self._bases.reverse()
        self._last = trail.bases[-1][0] if trail.bases else None

    def of(self, index: int) -> int:
        """The record that said the message, or else the first request that had it."""
        seqs = self._said.get(self._after.mentions[index].digest)
        if seqs:
            return seqs.pop(0) if len(seqs) > 1 else seqs[0]
        if index < len(self._after.nodes):
            for seq, last in self._bases:
                if last >= index:
                    return seq
        return self._last or self._seq

    def of_removal(self) -> int:
        """The record that set the conversation anew."""
        return self._bases[0][0] if self._bases else self._last or self._seq


def _load(store: EventStore, changes: Iterator[Change]) -> Iterator[Change]:
    for change in changes:
        old = load_message(store, change.old) if change.old is not None else None
        new = load_message(store, change.new) if change.new is not None else None
        if change.op != "replace" or old != new:
            yield change._replace(old=old, new=new)
