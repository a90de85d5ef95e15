"""Who used what a call gave back: model calls, other calls, sessions, approvals. By call id, by digest, by value.

A value counts as used when it is distinctive (an id, an address, a long number) and did not stand in the call's own
arguments. The model may know it from elsewhere all the same: a consumer is where to look, no verdict.
"""

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from ledger.effects import EffectPolicy
from ledger.errors import ContentMissingError
from ledger.events import Record
from ledger.events.approval import ApprovalAsked, ApprovalDecided, ApprovalUsed
from ledger.events.delegation import DelegationStarted
from ledger.events.input import MessageReceived
from ledger.events.model_call import ModelCallRequested
from ledger.events.tool_call import ToolCallRequested
from ledger.protocols.tool_use import results_in
from ledger.store import EventStore
from replay.conversation import decode_content
from replay.recovery.effects import CallEffect, effects_of

_VALUES_KEPT = 500
_SEEN_AT_ONCE = 20_000
_WORD = re.compile(r"[\w.:/@+-]{6,200}")


class Consumer(NamedTuple):
    """One record that used the result of a call."""

    session: str
    """Its session."""

    seq: int
    """The record."""

    how: str
    """`message`: a model was shown it; `call`, `session`, `approval`: it went into one."""

    def as_json(self) -> dict[str, Any]:
        """For programs."""
        return self._asdict()


class ConsumerReader:
    """Takes records in order, after the calls that they may use are known."""

    def __init__(self, store: EventStore, calls: list[CallEffect]) -> None:
        self._store = store
        self._calls = {(call.session, call.call_id): call for call in calls}
        self._results: dict[str, list[CallEffect]] = {}
        self._by_value: dict[str, list[CallEffect]] = {}
        self._known: set[tuple[str, Consumer]] = set()
        self.found: dict[str, list[Consumer]] = {call.effect_id: [] for call in calls}
        """Effect -> who used it."""
        for call in calls:
            if call.result is None:
                continue
            self._results.setdefault(call.result.digest, []).append(call)
            result = self._text(call.result.digest)
            for value in distinctive(result) - distinctive(self._text(call.arguments.digest)):
                self._by_value.setdefault(value, []).append(call)

    def take(self, record: Record) -> None:
        """One more record."""
        match record.event:
            case ModelCallRequested() as event if event.context is not None:
                self._shows(record, event.context, event.context_added)
            case ToolCallRequested() as event:
                self._carries(record, event.arguments.digest, "call")
            case DelegationStarted() as event:
                self._named(record, event.call_id, "session")
                if event.payload is not None:
                    self._carries(record, event.payload.digest, "session")
            case MessageReceived() as event:
                self._carries(record, event.message.digest, "message")
            case ApprovalAsked() | ApprovalDecided() | ApprovalUsed() as event:
                self._named(record, event.call_id, "approval")
                if isinstance(event, ApprovalAsked):
                    if event.context is not None:
                        self._carries(record, event.context.digest, "approval")
                    if event.arguments_digest is not None:
                        self._carries(record, event.arguments_digest, "approval")

    def _shows(self, record: Record, context: str, added: int) -> None:
        """The messages that this request was the first to show."""
        node: bytes | None = bytes.fromhex(context)
        for _ in range(min(added, _SEEN_AT_ONCE)):
            row = None if node is None else self._store.recorder.get_node(node)
            if row is None:
                return
            node = row.parent
            self._carries(record, row.message.hex(), "message", by_value=False)
            for result in results_in(self._value(row.message.hex())):
                self._named(record, result.call_id, "message")

    def _named(self, record: Record, call_id: str | None, how: str) -> None:
        call = self._calls.get((record.session, call_id or ""))
        if call is not None and record.seq > call.seq:
            self._note(call, record, how)

    def _carries(self, record: Record, digest: str, how: str, *, by_value: bool = True) -> None:
        for call in self._results.get(digest, ()):
            self._note(call, record, how)
        if by_value and self._by_value:
            for value in distinctive(self._text(digest)):
                for call in self._by_value.get(value, ()):
                    self._note(call, record, how)

    def _note(self, call: CallEffect, record: Record, how: str) -> None:
        if record.session == call.session and record.seq <= (call.settled or call.seq):
            return
        consumer = Consumer(record.session, record.seq, how)
        if (call.effect_id, consumer) not in self._known:
            self._known.add((call.effect_id, consumer))
            self.found[call.effect_id].append(consumer)

    def _text(self, digest: str) -> str:
        try:
            return self._store.content(digest).decode("utf-8", "replace")
        except ContentMissingError:
            return ""

    def _value(self, digest: str) -> Any:
        try:
            return decode_content(self._store.content(digest))
        except ContentMissingError:
            return None


def effects_json(store: EventStore, session: str, policy: EffectPolicy | None = None) -> list[dict[str, Any]]:
    """The calls of a session, what they did, and who in the session used it; for programs."""
    calls = effects_of(store, session, policy)
    reader = ConsumerReader(store, calls)
    for record in store.read(session):
        reader.take(record)
    return [
        {**call.as_json(), "consumers": [one.seq for one in reader.found[call.effect_id]]} for call in calls
    ]


def distinctive(text: str) -> set[str]:
    """Words of a text that do not stand in another one by accident: ids, addresses, large numbers."""
    found: set[str] = set()
    for word in _words(text):
        has_digit = any(char.isdigit() for char in word)
        if has_digit or "@" in word:
            found.add(word)
            if len(found) >= _VALUES_KEPT:
                break
    return found


def _words(text: str) -> Iterator[str]:
    for found in _WORD.finditer(text):
        yield found.group().strip(".:/+-")
