"""Pydantic AI: message histories as JSON (`all_messages_json`, `ModelMessagesTypeAdapter`)."""

from collections.abc import Iterator
from pathlib import Path

from ledger.events import Draft, Source
from ledger.events.canonical import canonical_json
from ledger.events.record import Grade
from ledger.importers import Desk, Item, Sniff
from ledger.importers._files import open_source
from ledger.importers._frameworks.histories import course_of, fork_event, step_items
from ledger.importers._harness.values import items, record, words
from ledger.importers._json_pieces import Piece, Torn, json_pieces
from ledger.importers._pydantic_ai.teller import FORMAT, Teller, is_message, message_digest

__all__ = ["CANNOT_SHOW", "FORMAT", "GRADE", "TITLE", "read", "recognizes"]

TITLE = "Pydantic AI message histories (2.68)"
GRADE: Grade = "semantic"
CANNOT_SHOW = (
    "Requests as they were sent: tool schemas and settings, and what history processors changed.",
    "That an approval was asked for: a call without result may as well wait for a result from outside.",
    "Who approved a call: only that its result came in a later run, or that it was denied.",
    "Runs of agents inside tools: they have histories of their own.",
    "Failed and repeated requests below the model classes.",
    "Which agent a message belongs to.",
)


def recognizes(sniff: Sniff) -> bool:
    """A list of messages with kinds and parts."""
    first = sniff.json
    return isinstance(first, list) and bool(first) and is_message(first[0])


def read(path: Path, desk: Desk) -> Iterator[Item]:
    """The history, message by message. It is read twice: first to find where it goes on or forks."""
    digests: list[str] = []
    base: str | None = None
    for piece in _pieces(path):
        if isinstance(piece, Piece):
            digests.append(message_digest(piece.value))
            base = base or _name(piece.value)
    course = course_of(desk, base or desk.fallback_session(FORMAT), digests)
    teller = Teller(desk, course.session)
    number = 0
    for piece in _pieces(path):
        if isinstance(piece, Torn):
            yield _damage(desk, course.session, piece)
            continue
        desk.tally.lines += 1
        check = canonical_json(piece.value)
        begins = number == 0 and course.origin is None
        drafts = teller.message(piece.value, number + 1, check, is_first=begins)
        if number == course.shared and (forked := fork_event(desk, course)) is not None:
            drafts.insert(0, teller.story.draft(forked))
        yield from step_items(course, number, digests[number], drafts, check)
        number += 1


def _name(message: object) -> str | None:
    """A session is a conversation; histories of the first versions name none, or only the run."""
    fields = record(message)
    return words(fields.get("conversation_id")) or words(fields.get("run_id"))


def _pieces(path: Path) -> Iterator[Piece | Torn]:
    with open_source(path) as stream:
        for piece in json_pieces(stream):
            if isinstance(piece, Torn) or (len(piece.path) == 1 and isinstance(piece.path[0], int)):
                yield piece
            else:
                yield from (Piece((0,), one) for one in items([piece.value]))


def _damage(desk: Desk, session: str, torn: Torn) -> Item:
    event = desk.damage(None, torn.reason, torn.raw)
    draft = Draft(event, source=Source(FORMAT, desk.file, "damage"), grade=GRADE)
    return Item(session, f"damage:{desk.keep.digest(torn.raw)[:16]}", [draft], None, torn.raw)
