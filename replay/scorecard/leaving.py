"""What would be lost on leaving? What only the provider or the harness holds, by what the record shows or lacks."""

from typing import Any

from ledger.audit import Reader
from ledger.events import ContentRef, Record
from ledger.events.keeping import Imported
from ledger.events.model_call import ModelCallAnswered, ModelCallRequested
from ledger.events.recovery import DamageFound
from ledger.events.tool_call import ToolCallRequested
from replay.scorecard.answer import Answer, Asker, Evidence, nothing, some

_HELD = ("previous_response_id", "conversation", "container", "cachedContent", "thread_id")
_SEALED = (b'"encrypted_content"', b'"redacted_thinking"', b'"thoughtSignature"', b'"signature":"')
_UNSHOWN = "what the source cannot show"
_MOST_TEXTS = 30


class Leaving(Asker):
    """One session."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._seen = Evidence()
        self._whole = 0
        self._requests = 0
        self._answers = 0
        self._lacks: dict[str, None] = {}
        self._parameters: str | None = None
        self._held: str | None = None

    def take(self, record: Record) -> None:
        """One more record."""
        event = record.event
        match event:
            case ModelCallRequested():
                self._requests += 1
                self._whole += event.completeness == "body"
                if event.completeness in ("none", "partial"):
                    self._seen.add(record, "a request that is not on record, or not all of it")
                if (held := self._state_held(event.parameters)) is not None:
                    self._seen.add(record, f"the provider holds state: {held}")
            case ModelCallAnswered():
                self._answers += 1
                content = self._reader.content(event.message.digest) or b""
                if any(mark in content for mark in _SEALED):
                    self._seen.add(record, "reasoning that only the provider can read")
            case ToolCallRequested() if event.provider_executed:
                self._seen.add(record, f"the provider ran {event.tool}")
            case DamageFound() if not event.repaired:
                self._seen.add(record, "a part of the source that cannot be read")
            case Imported():
                report: Any = self._reader.value(event.report)
                texts = report.get("cannot_show") if isinstance(report, dict) else None
                for text in texts if isinstance(texts, list) else ():
                    if len(self._lacks) < _MOST_TEXTS:
                        self._lacks[str(text)] = None
                if self._lacks:
                    self._seen.add(record, _UNSHOWN)
            case _:
                pass

    def _state_held(self, reference: ContentRef | None) -> str | None:
        """A field by which the provider goes on from what it keeps itself."""
        if reference is None:
            return None
        if reference.digest != self._parameters:
            value = self._reader.value(reference)
            fields = value if isinstance(value, dict) else {}
            self._parameters = reference.digest
            self._held = next((name for name in _HELD if fields.get(name)), None)
        return self._held

    def answer(self) -> Answer:
        """The answer."""
        facts = {
            "requests": self._requests,
            "whole_requests": self._whole,
            "found": self._seen.counts,
            "source_cannot_show": list(self._lacks),
        }
        if not self._requests and not self._answers and not self._lacks:
            return nothing("leaving", "no model call and no import is on record", **facts)
        witnesses = tuple(self._seen.witnesses)
        if self._seen:
            found = {what: count for what, count in self._seen.counts.items() if what != _UNSHOWN}
            told = some([*(f"{what} ({count})" for what, count in found.items()), *self._lacks], 4)
            return Answer("leaving", "something", told, witnesses, facts)
        if self._requests and self._whole == self._requests:
            told = f"nothing that is known: all {self._requests} requests are here whole, with their answers"
            return Answer("leaving", "nothing known", told, witnesses, facts)
        told = f"the messages of {self._requests - self._whole} requests are here, not all of their bodies"
        return Answer("leaving", "parts of requests", told, witnesses, facts)
