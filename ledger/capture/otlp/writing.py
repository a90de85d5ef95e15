"""Records of requests into the ledger: mapped as the importer maps them, each once, every commit durable."""

import hashlib
from dataclasses import dataclass, field
from pathlib import Path

from ledger.capture.otlp.requests import Broken, Entry
from ledger.errors import StoreUnavailableError
from ledger.events import Draft, Source
from ledger.intake import Intake, Item
from ledger.otlp.beside import Beside
from ledger.otlp.draft import FORMAT, GRADE
from ledger.otlp.mapping import Mapper
from ledger.otlp.records import Record
from ledger.otlp.trace import Window
from ledger.recorder import Recorder

_RENEWED_AFTER = 200_000
_MESSAGES = 5
_NAME = "otlp-receiver"
_DAMAGE_SESSION = "otlp-receiver-damage"


@dataclass
class Answer:
    """What became of a request that was committed."""

    rejected: int = 0
    """Spans or log records that could not be read. Their bytes are kept as damage."""

    messages: list[str] = field(default_factory=list)
    """Why: the first few."""

    def note(self, broken: Broken) -> None:
        """Say what could not be read, and count it if it is a span or log record."""
        self.rejected += broken.is_rejected
        if len(self.messages) < _MESSAGES:
            self.messages.append(broken.reason)


class Writer:
    """Writes the entries of requests. For one thread."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._begin()

    def _begin(self) -> None:
        """Start over with nothing half done. What was written is looked up in the ledger."""
        self._intake = Intake(self._recorder, FORMAT, GRADE, name=_NAME, path=Path(_NAME), durable=True)
        self._mapper = Mapper(self._intake.desk, file=None, sender=_NAME, beside=Beside())

    def write(self, requests: list[list[Entry]]) -> list[Answer]:
        """Write requests with one commit, and answer each. Raises StoreUnavailableError: then try again."""
        try:
            answers = [self._taken(entries) for entries in requests]
            self._intake.commit()
        except BaseException:
            self._begin()
            raise
        if self._intake.desk.tally.lines > _RENEWED_AFTER:
            self._begin()  # its counts grow with what it saw
        return answers

    def write_one_by_one(self, entries: list[Entry]) -> Answer:
        """Write a request of which something cannot be written: a poisonous record must not cost the others."""
        answer = Answer()
        for entry in entries:
            try:
                (told,) = self.write([[entry]])
            except StoreUnavailableError:
                raise
            except Exception as error:  # noqa: BLE001  # whatever it is, its bytes are kept
                key = "a broken entry" if isinstance(entry, Broken) else entry.key
                reason = f"{key} could not be read: {type(error).__name__}: {error}"
                entry = Broken(reason, repr(entry).encode("utf-8", "backslashreplace"))
                (told,) = self.write([[entry]])
            answer.rejected += told.rejected
            answer.messages.extend(told.messages[: _MESSAGES - len(answer.messages)])
        return answer

    def _taken(self, entries: list[Entry]) -> Answer:
        answer = Answer()
        for item in self._items([entry for entry in entries if not isinstance(entry, Broken)]):
            self._intake.take(item)
        for entry in entries:
            if isinstance(entry, Broken):
                answer.note(entry)
                self._intake.take(self._damage(entry))
        return answer

    def _items(self, records: list[Record]) -> list[Item]:
        window, tally = Window(0, 0), self._intake.desk.tally
        for record in records:
            tally.lines += 1
            record.number = tally.lines
            window.add(record)
        return list(self._mapper.items(window.take_all()))

    def _damage(self, broken: Broken) -> Item:
        event = self._intake.desk.damage(None, broken.reason, broken.raw)
        draft = Draft(event, source=Source(FORMAT, None, None, None), grade=GRADE)
        key = f"damage:{hashlib.sha256(broken.raw).hexdigest()}"
        return Item(_DAMAGE_SESSION, key, [draft], check=broken.raw)
