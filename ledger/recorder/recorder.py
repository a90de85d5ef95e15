"""Stamps drafts and appends them: clock and ids come in as arguments, content through a Keeper."""

import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

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
    seconds, nanoseconds = divmod(time.time_ns(), 1_000_000_000)
    return f"{_to_the_second(seconds)}.{nanoseconds // 1000:06d}Z"


@lru_cache(maxsize=2)
def _to_the_second(seconds: int) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds))


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
        cleaned = self._cleaned(drafts, keeper)
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

    def _cleaned(self, drafts: Mapping[str, Sequence[Draft]], keeper: Keeper) -> dict[str, list[Draft]]:
        """Secrets can also stand in an event's own words: a path, a target, an error text."""
        if self._is_clean([draft for group in drafts.values() for draft in group]):
            return {session: list(group) for session, group in drafts.items()}
        return {session: [self._clean(draft, keeper) for draft in group] for session, group in drafts.items()}

    def _is_clean(self, drafts: Sequence[Draft]) -> bool:
        """Whether the words of some drafts hold no secret: asked once for all of them."""
        texts: list[str | None] = []
        for draft in drafts:
            for value in draft.event.__dict__.values():
                if type(value) is str:
                    texts.append(value)
                elif type(value) is tuple:
                    texts += [item for item in value if type(item) is str]
            texts += draft.agent, draft.correlation
            if draft.actor is not None:
                texts.append(draft.actor.id)
            if draft.source is not None:
                texts += draft.source.file, draft.source.item
        return self.redactor.are_clean([text for text in texts if text and not _is_digest(text)])

    def _clean(self, draft: Draft, keeper: Keeper) -> Draft:
        if self._is_clean([draft]):
            return draft
        event, actor = draft.event, draft.actor
        changes: dict[str, Any] = {}
        for name, value in event.__dict__.items():
            clean = value
            if type(value) is str:
                clean = _clean_text(value, keeper, f"{event.TYPE}.{name}")
            elif type(value) is tuple:
                clean = tuple(
                    _clean_text(item, keeper, f"{event.TYPE}.{name}/{index}") if type(item) is str else item
                    for index, item in enumerate(value)
                )
            if clean != value:
                changes[name] = clean
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


def _clean_text(text: str, keeper: Keeper, where: str) -> str:
    return text if _is_digest(text) else keeper.scalar(text, where)


def _is_digest(text: str) -> bool:
    return len(text) == 64 and text.isalnum()


def _must_be_durable(event: Event) -> bool:
    if isinstance(event, ToolCallRequested):
        return event.effect_class not in _SAFE_CLASSES
    return isinstance(event, _DURABLE)
