"""Inspect logs: `.eval` archives, `.json` logs, and bare event lists. Each sample is a run of its own."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ledger.events import Event
from ledger.events.keeping import SourceKept
from ledger.events.record import Grade
from ledger.importers import Desk, Item, Sniff
from ledger.importers._files import open_source
from ledger.importers._inspect.archive import ARCHIVE_ERRORS, Archive, open_archive
from ledger.importers._inspect.sample import Run, read_sample
from ledger.importers._json_pieces import Torn, json_pieces
from ledger.importers._plain.scribe import Scribe
from ledger.protocols.drafting import Place

FORMAT = "inspect"
TITLE = "Inspect AI logs (.eval with deflate or zstandard, .json; 0.3.41 to 0.3.285)"
GRADE: Grade = "semantic"
CANNOT_SHOW = (
    "The bytes of model requests: where the log has a call it holds the arguments of the client, not the body.",
    "Chunks of streamed answers and their times; HTTP headers.",
    "Failed attempts of a model call before the one that is logged: only their number.",
    "Whether anybody was asked before a tool ran, unless an approver was set.",
    "The summary that a compaction wrote, unless the next request shows it.",
    "What an old log without events did between its messages.",
)

_SPREAD = frozenset({"samples"})
_HEADERS = (b"_journal/start.json", b"header.json", b"summaries.json", b"samples/")


def recognizes(sniff: Sniff) -> bool:
    """An archive with the members of an eval log, a log as JSON, or a list of Inspect's events."""
    start = sniff.start
    if start.startswith(b"PK\x03\x04"):
        return any(name in start for name in _HEADERS[:1]) or (
            sniff.path.suffix == ".eval" and any(name in start for name in _HEADERS)
        )
    value = sniff.json
    if not isinstance(value, dict):
        return False
    evaluation = value.get("eval")
    if (
        isinstance(evaluation, dict)
        and "status" in value
        and ("task" in evaluation or "task_id" in evaluation)
    ):
        return True
    events = value.get("events")
    if not isinstance(events, list):
        return False
    whole = events[:-1] or events
    if not whole:
        return value.keys() == {"description", "events", "expected"}
    return all(
        isinstance(event, dict) and isinstance(event.get("event"), str) and "timestamp" in event
        for event in whole[:5]
    )


def read(path: Path, desk: Desk) -> Iterator[Item]:
    """The file's samples, event by event."""
    with open_source(path) as stream:
        is_archive = stream.read(4) == b"PK\x03\x04"
    yield from _archive(path, desk) if is_archive else _document(path, desk)


def _archive(path: Path, desk: Desk) -> Iterator[Item]:
    log = _Log(desk)
    try:
        with open_archive(path) as archive:
            members = list(archive.members())
            for name in ("_journal/start.json", "header.json"):
                if any(member.name == name and member.refused is None for member in members):
                    yield from _header(archive, name, log)
            for member in members:
                if member.refused is not None:
                    yield log.damage(f"{member.name!r}: {member.refused}", None)
                elif member.name.startswith("samples/"):
                    yield from _member(archive, member.name, log)
                elif member.name not in ("header.json", "_journal/start.json"):
                    yield from _rest(archive, member.name, log)
    except ARCHIVE_ERRORS as error:
        yield log.damage(f"expected a whole archive, found: {error}", path.read_bytes()[:_KEPT])


_KEPT = 8 * 1024 * 1024


def _header(archive: Archive, name: str, log: "_Log") -> Iterator[Item]:
    """What the log says of the whole evaluation."""
    try:
        with archive.open(name) as stream:
            for piece in json_pieces(stream):
                if isinstance(piece, Torn):
                    yield log.damage(f"{name!r}: {piece.reason}", piece.raw)
                else:
                    log.field(str(piece.path[0]) if piece.path else "value", piece.value)
    except ARCHIVE_ERRORS as error:
        yield log.damage(f"{name!r}: {error}", None)


def _member(archive: Archive, name: str, log: "_Log") -> Iterator[Item]:
    """A sample, read twice: what its events share stands behind them."""
    try:
        yield from read_sample(log.run, lambda: archive.open(name), log.damage)
    except ARCHIVE_ERRORS as error:
        yield log.damage(f"{name!r}: {error}", None)


def _rest(archive: Archive, name: str, log: "_Log") -> Iterator[Item]:
    """Summaries and reductions: they repeat the samples, and are kept as they are."""
    try:
        with archive.open(name) as stream:
            content = stream.read(_KEPT + 1)
    except ARCHIVE_ERRORS as error:
        yield log.damage(f"{name!r}: {error}", None)
        return
    known = name in ("summaries.json", "reductions.json") or name.startswith("_journal/")
    native = name if known else "member"
    if not known:
        log.desk.tally.unknown[native] += 1
    if len(content) > _KEPT:
        log.desk.tally.notes.append(
            f"{name} is kept up to its first {_KEPT} bytes only; samples are complete"
        )
    body = log.desk.keep.raw(content[:_KEPT], native)
    yield log.item(f"member:{name}", SourceKept(native_type=native, recognized=known, body=body), content)


def _document(path: Path, desk: Desk) -> Iterator[Item]:
    """A log as one JSON document, or a list of events."""
    log = _Log(desk)
    late: dict[str, Any] = {}
    with open_source(path) as stream:
        for piece in json_pieces(stream, _SPREAD):
            if isinstance(piece, Torn):
                yield log.damage(piece.reason, piece.raw)
                continue
            match piece.path:
                case ("samples", int()):
                    yield from log.run.sample(piece.value)
                case (str() as name, *_) if name != "events" or "eval" in log.run.header:
                    log.field(name, piece.value)
                case _:
                    late[str(piece.path[0]) if piece.path else "value"] = piece.value
    if late:
        yield from log.run.sample({**late, **log.run.header}, is_bare=True)
    else:
        yield from log.end()


class _Log:
    """The log as a whole."""

    def __init__(self, desk: Desk) -> None:
        self.desk = desk
        self.run = Run(desk, FORMAT, GRADE)
        self._damaged = 0

    def field(self, name: str, value: Any) -> None:
        """A field of the header."""
        self.run.header[name] = value

    def end(self) -> Iterator[Item]:
        """What stands beside the samples, for a log without an archive around it."""
        if self.run.header:
            body = self.desk.keep.json(self.run.header, "header")
            self.desk.tally.native["header"] += 1
            event = SourceKept(native_type="header", recognized=True, body=body)
            yield self.item("header", event, body.digest.encode())

    def damage(self, reason: str, raw: bytes | None) -> Item:
        """A place that cannot be read."""
        self._damaged += 1
        return self.item(
            f"damage:{self._damaged}", self.desk.damage(None, reason, raw), raw or reason.encode()
        )

    def item(self, key: str, event: Event, check: bytes) -> Item:
        """Something of the log as a whole: goes to the session of its first sample."""
        scribe = Scribe(self.desk, FORMAT, self.run.first_session, GRADE)
        place = Place(key, self.desk.tally.lines or 1)
        return Item(scribe.session, key, [scribe.draft(place, event)], place.line, check)
