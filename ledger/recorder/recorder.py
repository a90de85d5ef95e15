"""Stamps drafts and appends them: clock and ids come in as arguments, content through a Keeper."""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime

from ledger.events import Draft, Event, Record
from ledger.events.approval import ApprovalAsked, ApprovalDecided
from ledger.events.keeping import Erased, Sealed
from ledger.events.recovery import CheckpointTaken, RolledBack
from ledger.events.session import SessionEnded
from ledger.events.tool_call import ToolCallRequested
from ledger.recorder.keeper import Keeper
from ledger.redaction import Redactor
from ledger.store import EventStore, SourceKey

_DURABLE = (ApprovalAsked, ApprovalDecided, CheckpointTaken, RolledBack, SessionEnded, Sealed, Erased)
_SAFE_CLASSES = (None, "read", "write")


def utc_now() -> str:
    """The time, RFC 3339 UTC to the microsecond."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def new_id() -> str:
    """A random identifier: 16 bytes, hexadecimal."""
    return os.urandom(16).hex()


class Recorder:
    """The only writer of a ledger. Threads may share it, each with a Keeper of its own (`keeper()`)."""

    def __init__(
        self,
        store: EventStore,
        redactor: Redactor,
        *,
        clock: Callable[[], str] = utc_now,
        ids: Callable[[], str] = new_id,
    ) -> None:
        self.store = store
        self.redactor = redactor
        self.clock = clock
        self.ids = ids

    def keeper(self) -> Keeper:
        """A way in for content."""
        return Keeper(self.store.salt, self.redactor)

    def append(
        self,
        session: str,
        drafts: Sequence[Draft],
        keeper: Keeper,
        *,
        expect: int | None = None,
        durable: bool = False,
    ) -> list[Record]:
        """Append to one session, with the secrets that were found in its content as events of their own."""
        return self.append_many(
            {session: drafts}, keeper, expect=None if expect is None else {session: expect}, durable=durable
        )

    def append_many(
        self,
        drafts: Mapping[str, Sequence[Draft]],
        keeper: Keeper,
        *,
        expect: Mapping[str, int] | None = None,
        keys: Sequence[SourceKey] = (),
        durable: bool = False,
    ) -> list[Record]:
        """Append to several sessions, all or nothing. What returns is kept (durably, for facts that must be)."""
        cleaned = {
            session: [self._clean(draft, keeper) for draft in group] for session, group in drafts.items()
        }
        if findings := keeper.take_findings():
            group = next(reversed(cleaned.values()))
            group.extend(Draft(finding, grade=group[0].grade if group else "wire") for finding in findings)
        durable = durable or any(
            _must_be_durable(draft.event) for group in cleaned.values() for draft in group
        )
        records = self.store.append(
            cleaned,
            stamp=self.clock,
            expect=expect,
            attachments=keeper.attachments(durable=durable),
            keys=keys,
        )
        keeper.committed()
        return records

    def _clean(self, draft: Draft, keeper: Keeper) -> Draft:
        """Secrets can also stand in an event's own words: a path, a target, an error text."""
        event = draft.event
        texts = [value for value in event.__dict__.values() if type(value) is str and not _is_digest(value)]
        actor = draft.actor
        texts.extend(text for text in (draft.agent, draft.correlation, actor and actor.id) if text)
        if draft.source is not None:
            texts.extend(text for text in (draft.source.file, draft.source.item) if text)
        if not self.redactor.text("\n".join(texts))[1]:
            return draft
        changes = {
            name: clean
            for name, value in event.__dict__.items()
            if type(value) is str and not _is_digest(value)
            if (clean := keeper.scalar(value, f"{event.TYPE}.{name}")) != value
        }
        source = draft.source
        if source is not None:
            source = replace(
                source,
                file=source.file and keeper.scalar(source.file, "source.file"),
                item=source.item and keeper.scalar(source.item, "source.item"),
            )
        return replace(
            draft,
            event=type(event).model_validate(event.model_dump() | changes) if changes else event,
            agent=draft.agent and keeper.scalar(draft.agent, "agent"),
            correlation=draft.correlation and keeper.scalar(draft.correlation, "correlation"),
            actor=actor and replace(actor, id=actor.id and keeper.scalar(actor.id, "actor")),
            source=source,
        )


def _is_digest(text: str) -> bool:
    return len(text) == 64 and text.isalnum()


def _must_be_durable(event: Event) -> bool:
    if isinstance(event, ToolCallRequested):
        return event.effect_class not in _SAFE_CLASSES
    return isinstance(event, _DURABLE)
