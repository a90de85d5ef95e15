"""The point of a session from which a runtime is to go on: what it would know there. Reads only."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from typing import Any
from uuid import UUID

from ledger.errors import ContentMissingError, InputError
from ledger.events import Event, Record
from ledger.events.model_call import ModelCallRequested
from ledger.events.recovery import CheckpointTaken, RolledBack
from ledger.events.session import SessionStarted
from ledger.home import Ledger
from replay.cli import open_timeline
from replay.context import RebuiltRequest, rebuild_request
from replay.conversation import conversation, load_message
from replay.fold import checkpoint_target, go_back_target
from replay.resume.turns import Call, Turn, open_calls, turns_of
from replay.state import State

_MAIN = ("main", "sub-agent", "unknown")
"""Purposes of the model calls that carry the conversation on."""


@dataclass(frozen=True)
class Point:
    """A session as it stood after a record; nothing of what came later is in here."""

    ledger: Ledger
    """Where it lies: `ledger.store.content(digest)` gives content, `ledger.home` other files."""

    session: str
    """The session."""

    seq: int
    """Last record that counts."""

    state: State
    """The folded state after it."""

    started: SessionStarted
    """How the session began: harness, version, model, working directory."""

    messages: list[Any]
    """The conversation, first message first, each in the shape in which it was recorded; without system prompt."""

    request: RebuiltRequest | None
    """The last request of the conversation to a model; None where none was recorded, or its parts were erased."""

    @cached_property
    def turns(self) -> list[Turn]:
        """The conversation in one shape whatever the protocol: see `replay.resume.turns`."""
        return turns_of(self.messages)

    @cached_property
    def open_calls(self) -> list[Call]:
        """Tool calls that the conversation asks for and has no result of, in order."""
        return open_calls(self.turns)

    @property
    def protocol(self) -> str | None:
        """Protocol of the last request: `anthropic.messages`, `openai.responses`, `openai.chat`, ..."""
        return None if self.request is None else self.request.protocol

    @property
    def system(self) -> Any:
        """System prompt of the last request, in its protocol's shape; None where it was not seen."""
        return None if self.request is None else self.request.system

    @property
    def tools(self) -> Any:
        """Tool schemas of the last request, in its protocol's shape; None where they were not seen."""
        return None if self.request is None else self.request.tools

    @property
    def parameters(self) -> dict[str, Any]:
        """Other fields of the last request."""
        return {} if self.request is None else self.request.parameters or {}

    @property
    def model(self) -> str | None:
        """Model asked last, or the one that the session started with."""
        asked = None if self.request is None else self.request.model
        return asked or self.started.model

    @property
    def harness(self) -> str:
        """Program that ran the loop."""
        return self.started.harness

    @property
    def cwd(self) -> str | None:
        """Working directory: as the session started, or as its source told later."""
        mode = self.state.sections["modes"].get("cwd")
        return self.started.cwd or (None if mode is None else mode["value"])

    def cwd_for(self, why: str) -> str:
        """The working directory. Raises InputError, with why a runtime wants it, where nobody told it."""
        if self.cwd is None:
            raise InputError(f"{self.session}: its working directory is not known, {why}")
        return self.cwd

    def nothing_said(self, wanted: str) -> InputError:
        """The error of a point at which there is nothing to go on from."""
        return InputError(f"{self.session}#{self.seq}: nothing had been said there that {wanted}")

    def new_id(self) -> str:
        """An id that runtimes take for one of theirs."""
        return str(UUID(self.ledger.recorder.ids(), version=4))

    @property
    def began(self) -> datetime:
        """When the session began, in UTC; now, where its source gives no time that can be read."""
        told = self.state.sections["about"]["started_at"]
        try:
            moment = datetime.fromisoformat(told or "")
        except ValueError:
            moment = datetime.fromisoformat(self.ledger.recorder.clock())
        return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)

    def records(self) -> Iterator[Record]:
        """Records up to the point, without those that a rollback before it abandoned."""
        ranges = _lived(self.ledger, self.session, self.seq)
        for first, last in ranges:
            yield from self.ledger.store.read(self.session, after=first - 1, upto=last)

    def events(self) -> Iterator[Event]:
        """The events of these records."""
        return (record.event for record in self.records())


def start_of(ledger: Ledger, session: str) -> SessionStarted:
    """How a session began. Raises InputError where its first record does not tell."""
    first = ledger.store.record(session, 1)
    if not isinstance(first.event, SessionStarted):
        raise InputError(f"{first.place} is {first.type}: expected the start of a session")
    return first.event


def load_point(ledger: Ledger, session: str, seq: int, *, whole: bool = True) -> Point:
    """The point after a record of a session.

    Raises RecordNotFoundError; InputError where the conversation there is not whole: then nothing can go on from it.
    With `whole=False` it may be in part, for a runtime that reads the records themselves.
    """
    store = ledger.store
    started = start_of(ledger, session)
    first = store.record(session, 1)
    place = f"{session}#{seq}"
    if first.grade == "skeleton":
        raise InputError(f"{place}: its source holds only an outline (grade skeleton), not what was said")
    with open_timeline(ledger, session) as timeline:
        state = timeline.at(seq)
    seen = state.sections["seen"]
    if whole and seen["context_completeness"] in ("partial", "none"):
        lacks = ", ".join(seen["context_not_seen"]) or "its messages"
        raise InputError(f"{place}: the conversation is incomplete there; its source does not hold {lacks}")
    messages = []
    try:
        mentions = conversation(store, state).mentions
    except ContentMissingError as error:
        raise InputError(f"{place}: the conversation is incomplete there: {error}") from error
    for index, mention in enumerate(mentions):
        message = load_message(store, mention)
        if "content_missing" in message and message.keys() <= {"role", "call_id", "content_missing"}:
            raise InputError(
                f"{place}: the conversation is incomplete there: content {mention.digest} of message {index}"
                " is not in the store; `loopledger verify` tells whether it was erased or lost"
            )
        messages.append(message)
    return Point(ledger, session, seq, state, started, messages, _last_request(ledger, session, seq))


def _last_request(ledger: Ledger, session: str, seq: int) -> RebuiltRequest | None:
    """The last request that carried the conversation on and was not abandoned before the point."""
    for first, last in reversed(_lived(ledger, session, seq)):
        found = None
        for record in ledger.store.read(session, after=first - 1, upto=last):
            event = record.event
            if isinstance(event, ModelCallRequested) and event.purpose in _MAIN:
                found = record.seq
        if found is not None:
            try:
                return rebuild_request(ledger.store, session, found)
            except ContentMissingError:
                return None
    return None


def _lived(ledger: Ledger, session: str, seq: int) -> list[tuple[int, int]]:
    """Stretches of records, first and last, that a rollback before the point did not abandon."""
    stretches: list[tuple[int, int]] = []
    begins = 1
    named: dict[str, int] = {}
    for record in ledger.store.read(session, upto=seq):
        event = record.event
        if isinstance(event, CheckpointTaken):
            named[event.checkpoint_id] = checkpoint_target(event, record.seq)
        elif isinstance(event, RolledBack):
            target = go_back_target(event, named.get)
            if target is not None:
                stretches.append((begins, record.seq - 1))
                stretches = [(first, min(last, target)) for first, last in stretches if first <= target]
                begins = record.seq
    return [*stretches, (begins, seq)] if begins <= seq else stretches


def stamp(moment: datetime) -> str:
    """A moment of UTC as harnesses write it, in milliseconds."""
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{moment.microsecond // 1000:03d}Z"
