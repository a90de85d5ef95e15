"""Histories that a source writes whole at every save: what is new in one, and where it leaves the one known.

Two saves of one run share their first steps. One that goes on where another stopped adds to its session; one that
differs from a step on (the same state resumed with another answer) becomes a session of its own, forked there.
"""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from ledger.events import Draft
from ledger.events.canonical import canonical_json
from ledger.events.session import SessionForked
from ledger.importers import Desk, Item

_FORKS_FOLLOWED = 1000


@dataclass(frozen=True, slots=True)
class Course:
    """Where the steps of a history go."""

    session: str
    """Session that takes the new steps."""

    shared: int
    """Steps at the start that stand in the session that it was forked from."""

    origin: str | None = None
    """That session; None when it was not forked."""


def step_digest(*essentials: Any) -> str:
    """What tells one step from another. Leave out what a second save writes differently."""
    return hashlib.sha256(canonical_json(list(essentials))).hexdigest()


def course_of(desk: Desk, base: str, digests: Sequence[str]) -> Course:
    """The session that a history belongs to: `base`, or a fork where it differs from what is known."""
    course = Course(desk.session_name(base), 0)
    for _ in range(_FORKS_FOLLOWED):
        number = _first_other(desk, course, digests)
        if number is None:
            break
        name = desk.session_name(f"{base}.{digests[number][:12]}")
        if name == course.session:
            break
        course = Course(name, number, course.session)
    if course.origin is not None:
        desk.tally.notes.append(
            f"a fork: its first {course.shared} steps are those of session {course.origin}"
        )
    return course


def _first_other(desk: Desk, course: Course, digests: Sequence[str]) -> int | None:
    """The first step in whose place the session holds another one."""
    for number in range(course.shared, len(digests)):
        if desk.recorded(course.session, _key(number, digests[number])):
            continue
        return number if desk.recorded(course.session, _mark(number)) else None
    return None


def fork_event(desk: Desk, course: Course) -> SessionForked | None:
    """The event that begins a fork; None for a history that is none."""
    if course.origin is None:
        return None
    known = desk.lookup(course.origin, _mark(course.shared - 1)) if course.shared else None
    return SessionForked(
        origin=course.origin,
        origin_seq=known.seq if known is not None else None,
        origin_item=f"step {course.shared}",
    )


def step_items(
    course: Course, number: int, digest: str, drafts: Sequence[Draft], check: bytes = b""
) -> Iterator[Item]:
    """One step as items: itself, and a mark of its place. Steps that the origin holds give none."""
    if number >= course.shared and drafts:
        yield Item(course.session, _key(number, digest), list(drafts), number + 1, check)
        yield Item(course.session, _mark(number), [], None)


def _key(number: int, digest: str) -> str:
    return f"step:{number}:{digest[:32]}"


def _mark(number: int) -> str:
    return f"step:{number}"
