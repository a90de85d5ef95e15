"""Receives OTLP export requests without HTTP: decodes, maps like the importer, answers after the commit.

One thread writes. It takes what waits as one group, so that many small requests share a commit. It stands beside the
importer whose decoding and mapping it uses, since capture and importers do not import each other.
"""

import contextlib
import hashlib
import queue
import threading
import zlib
from collections.abc import Iterator
from concurrent.futures import Future
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

from ledger.errors import LedgerError
from ledger.events import Draft, Source
from ledger.events import Record as Written
from ledger.events.canonical import canonical_json, decode_json
from ledger.importers import Desk, Importer, Item, otlp
from ledger.importers._intake import _Intake, _Plan
from ledger.importers._otlp import json_form, protobuf_form
from ledger.importers._otlp.companion import Beside
from ledger.importers._otlp.mapping import Mapper
from ledger.importers._otlp.records import Record
from ledger.importers._otlp.trace import Window
from ledger.recorder import Recorder

__all__ = [
    "MOST_BYTES",
    "Answer",
    "BusyError",
    "Receiver",
    "TooLargeError",
    "UndecodableError",
    "UnknownTypeError",
    "unpacked",
]

MOST_BYTES = 256 * 1024 * 1024
"""Largest request by default, unpacked."""

_WAITING = 64
_HELD_BYTES = 512 * 1024 * 1024
_GROUP = 16
_RENEWED_AFTER = 200_000
_MESSAGES = 5
_NAME = "otlp-receiver"
_DAMAGE_SESSION = "otlp-receiver-damage"


class UndecodableError(LedgerError):
    """Nothing of a request can be read."""


class TooLargeError(LedgerError):
    """A request is larger than this receiver takes."""


class UnknownTypeError(LedgerError):
    """A request's content type or encoding is none that OTLP/HTTP has."""


class BusyError(LedgerError):
    """The receiver holds as much as it may: try again later."""


@dataclass
class Answer:
    """What became of a request that was committed."""

    rejected: int = 0
    """Spans or log records that could not be read. Their bytes are kept as damage."""

    messages: list[str] = field(default_factory=list)
    """Why: the first few."""

    def reject(self, reason: str) -> None:
        """Count an item that could not be read."""
        self.rejected += 1
        if len(self.messages) < _MESSAGES:
            self.messages.append(reason)


@dataclass(frozen=True)
class _Broken:
    """An item that could not be read."""

    reason: str
    raw: bytes
    is_rejected: bool = True


_Entry = Record | _Broken


@dataclass
class _Request:
    entries: list[_Entry]
    answer: Answer = field(default_factory=Answer)
    done: "Future[Answer]" = field(default_factory=Future)


def unpacked(body: bytes, encoding: str, most: int = MOST_BYTES) -> bytes:
    """A body without its packing. Raises UndecodableError, or TooLargeError before it holds more than `most`."""
    if encoding in ("", "identity"):
        content = body
    elif encoding == "gzip":
        unpacker = zlib.decompressobj(wbits=31)
        try:
            content = unpacker.decompress(body, most + 1)
        except zlib.error as error:
            raise UndecodableError(f"expected a gzip body, found: {error}") from error
        if len(content) <= most and not unpacker.eof:
            raise UndecodableError(f"expected a whole gzip body, found one cut after {len(body)} bytes")
    else:
        raise UnknownTypeError(f"expected content encoding gzip or none, found {encoding[:80]!r}")
    if len(content) > most:
        raise TooLargeError(f"expected at most {most} bytes, found more")
    return content


def _decoded(body: bytes, content_type: str) -> list[_Entry]:
    """The entries of a request. Raises UndecodableError when nothing of it can be read."""
    if content_type == "application/json":
        return list(_from_json(body))
    if content_type != "application/x-protobuf":
        raise UnknownTypeError(
            f"expected application/x-protobuf or application/json, found {content_type[:80]!r}"
        )
    entries: list[_Entry] = []
    is_request = not body
    for entry in protobuf_form.request_records(body):
        if isinstance(entry, protobuf_form.Torn):
            entries.append(_Broken(f"byte {entry.offset}: {entry.reason}", entry.raw))
            is_request = is_request or entry.reason.startswith("expected a span or log record")
        else:
            entries.append(entry)
            is_request = True
    if entries and not is_request:
        first = entries[0]
        raise UndecodableError(first.reason if isinstance(first, _Broken) else "expected an export request")
    return entries


def _from_json(body: bytes) -> Iterator[_Entry]:
    try:
        value = decode_json(body)
    except ValueError as error:
        raise UndecodableError(f"expected a JSON export request, found: {error}") from error
    if not isinstance(value, dict):
        raise UndecodableError(f"expected an export request, found {type(value).__name__}")
    records = list(json_form.request_records(value))
    for record in records:
        record.size = len(body) // len(records)
        yield record
    if others := json_form.others_of(value):
        is_torn = not (others.keys() - {"resourceSpans", "resource_spans", "resourceLogs", "resource_logs"})
        names = ", ".join(sorted(others))[:100]
        yield _Broken(
            f"expected spans or log records, found others in {names}", canonical_json(others), is_torn
        )


class _LiveIntake(_Intake):
    """The importer's way into the ledger, held open; every commit is durable."""

    def __init__(self, recorder: Recorder) -> None:
        super().__init__(
            recorder, cast(Importer, otlp), Path(_NAME), _NAME, otlp.read, lambda path, lines: None
        )
        self.mapper = Mapper(self._desk, file=None, sender=_NAME, beside=Beside(None))

    @property
    def desk(self) -> Desk:
        """Where content is kept and things are counted."""
        return self._desk

    def take(self, items: list[Item]) -> None:
        """Take items in; they are committed at the next `commit` at the latest."""
        for item in items:
            self._take(item)

    def commit(self) -> None:
        """Write what was taken in."""
        self._flush()

    def _write(self, plan: _Plan, between_items: bool) -> list[Written]:
        if not plan.keys:
            return super()._write(plan, between_items)
        return self._recorder.append_many(plan.drafts, self._keeper, keys=plan.keys, durable=True)


class Receiver:
    """Takes requests from any thread; its own thread writes them. Close it before the ledger."""

    def __init__(self, recorder: Recorder, *, waiting: int = _WAITING, held_bytes: int = _HELD_BYTES) -> None:
        """`waiting` requests and `held_bytes` of bodies at once are the most before `BusyError`."""
        self._recorder = recorder
        self._queue: queue.Queue[_Request | None] = queue.Queue(waiting)
        self._most_held = held_bytes
        self._held = 0
        self._lock = threading.Lock()
        self._is_closed = False
        self._intake = _LiveIntake(recorder)
        self._thread = threading.Thread(target=self._run, name="otlp-writer", daemon=True)
        self._thread.start()

    @contextlib.contextmanager
    def holding(self) -> Iterator["Hold"]:
        """A count of bytes that a request holds, given back at the end."""
        hold = Hold(self)
        try:
            yield hold
        finally:
            self._reserve(-hold.size)

    def _reserve(self, size: int) -> None:
        with self._lock:
            # The first comer always gets room: a request may be as large as its own limit allows.
            if size > 0 and self._held and self._held + size > self._most_held:
                raise BusyError(f"{self._held} bytes are waiting to be written")
            self._held += size

    def receive(self, body: bytes, content_type: str) -> Answer:
        """Record an unpacked request; what returns is committed. Raises UndecodableError, BusyError, or LedgerError."""
        request = _Request(_decoded(body, content_type))
        with self._lock:
            if self._is_closed:
                raise BusyError("the receiver is closing")
            try:
                self._queue.put_nowait(request)
            except queue.Full as error:
                raise BusyError(f"{self._queue.maxsize} requests are waiting to be written") from error
        return request.done.result()

    def close(self) -> None:
        """Write what waits, then end."""
        with self._lock:
            if self._is_closed:
                return
            self._is_closed = True
        self._queue.put(None)
        self._thread.join()

    def _run(self) -> None:
        while True:
            first = self._queue.get()
            group = [] if first is None else [first]
            is_last = first is None
            with contextlib.suppress(queue.Empty):
                while group and len(group) < _GROUP and not is_last:
                    following = self._queue.get_nowait()
                    if following is None:
                        is_last = True
                    else:
                        group.append(following)
            self._record(group)
            if is_last:
                return

    def _record(self, group: list[_Request]) -> None:
        """Record a group with one commit. One that fails is tried request by request."""
        try:
            for request in group:
                self._map(request)
            self._intake.commit()
        except Exception as error:  # noqa: BLE001  # senders wait for an answer, and later ones for this thread
            self._intake = _LiveIntake(self._recorder)
            if len(group) > 1:  # one of them may be the cause: it must not cost the others
                for request in group:
                    request.answer = Answer()
                    self._record([request])
                return
            for request in group:
                request.done.set_exception(
                    error
                    if isinstance(error, LedgerError)
                    else LedgerError(f"not recorded: {type(error).__name__}: {error}")
                )
            return
        for request in group:
            request.done.set_result(request.answer)
        if self._intake.desk.tally.lines > _RENEWED_AFTER:
            self._intake = _LiveIntake(
                self._recorder
            )  # its counts grow with what it saw; the ledger knows the rest

    def _map(self, request: _Request) -> None:
        records = [entry for entry in request.entries if not isinstance(entry, _Broken)]
        try:
            items = self._items(records)
        except LedgerError:
            raise
        except Exception:  # noqa: BLE001  # a poisonous record must not cost the others
            # What was mapped before is committed, and the half-mapped state dropped; then one by one.
            self._renew()
            self._one_by_one(records, request.answer)
        else:
            self._intake.take(items)
        for entry in request.entries:
            if isinstance(entry, _Broken):
                self._damaged(entry, request.answer)

    def _renew(self) -> None:
        self._intake.commit()
        self._intake = _LiveIntake(self._recorder)

    def _items(self, records: list[Record]) -> list[Item]:
        window = Window(0, 0)
        for record in records:
            self._intake.desk.tally.lines += 1
            record.number = self._intake.desk.tally.lines
            window.add(record)
        return list(self._intake.mapper.items(window.take_all()))

    def _one_by_one(self, records: list[Record], answer: Answer) -> None:
        for record in records:
            try:
                items = self._items([record])
            except LedgerError:
                raise
            except Exception as error:  # noqa: BLE001  # this is the poisonous one
                self._renew()
                reason = f"{record.key} could not be read: {type(error).__name__}: {error}"
                self._damaged(_Broken(reason, repr(record).encode("utf-8", "backslashreplace")), answer)
            else:
                self._intake.take(items)

    def _damaged(self, broken: _Broken, answer: Answer) -> None:
        if broken.is_rejected:
            answer.reject(broken.reason)
        elif len(answer.messages) < _MESSAGES:
            answer.messages.append(broken.reason)
        event = self._intake.desk.damage(None, broken.reason, broken.raw)
        draft = Draft(event, source=Source(otlp.FORMAT, None, None, None), grade=otlp.GRADE)
        key = f"damage:{hashlib.sha256(broken.raw).hexdigest()}"
        self._intake.take([Item(_DAMAGE_SESSION, key, [draft], check=broken.raw)])


class Hold:
    """Bytes that one request holds."""

    def __init__(self, receiver: Receiver) -> None:
        self._receiver = receiver
        self.size = 0
        """How many."""

    def add(self, size: int) -> None:
        """Hold more. Raises BusyError when there is no room."""
        self._receiver._reserve(size)
        self.size += size
