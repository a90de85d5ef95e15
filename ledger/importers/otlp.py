"""OpenTelemetry traces and logs of agents: OTLP in protobuf or JSON, as exporters and collectors write it to files.

Times are kept as given and never reorder what the source orders otherwise: children follow their parent, log records
their span. Only siblings, which an export writes in the order of their ends, follow in the order of their starts.

Lines of the report are spans and log records; a record's line is its number in the file. Requests are read one after
another, and records held until their trace is whole or 16 MB are waiting; one huge document is one message, and is
held whole.
"""

from collections.abc import Iterator
from pathlib import Path

from ledger.events import Draft, Source
from ledger.events.keeping import SourceKept
from ledger.importers import Desk, Item, Sniff
from ledger.importers._otlp.companion import beside, companion_of, sender_of
from ledger.importers._otlp.reading import Broken, Other, entries, looks_like_otlp
from ledger.otlp.draft import FORMAT, GRADE
from ledger.otlp.mapping import Mapper
from ledger.otlp.trace import Window

__all__ = ["CANNOT_SHOW", "FORMAT", "GRADE", "TITLE", "read", "recognizes"]

TITLE = (
    "OTLP traces and logs (GenAI conventions to 1.30 and current, OpenInference, OpenLLMetry, Vercel AI SDK)"
)
CANNOT_SHOW = (
    "The request and the raw response as they were on the wire.",
    "Retries inside a client library, and calls that the instrumentation does not wrap.",
    "Approvals: there is no word for them. A question that leaks, as exception or tool result, is recorded; no answer.",
    "Compaction, but for ADK: elsewhere it is inferred from the next request that holds fewer messages.",
    "Content, where the sender did not switch its capture on.",
    "What an SDK dropped at its limits (128 attributes a span by default): only how much.",
    "Rewinds and forks of a conversation: both ways are traces of the same session.",
    "Whether another process went on with a conversation whose id is no unique one: there it is another session.",
    "An order of parallel spans other than that of their starts.",
)

_HELD_BYTES = 16 * 1024 * 1024
_HELD_RECORDS = 20_000


def recognizes(sniff: Sniff) -> bool:
    """An export request of traces or logs, in either encoding."""
    return looks_like_otlp(sniff.start)


def read(path: Path, desk: Desk) -> Iterator[Item]:
    """The file's items: trace by trace, each with children after parents."""
    mapper = Mapper(desk, file=desk.file, sender=sender_of(path), beside=beside(companion_of(path)))
    window = Window(_HELD_BYTES, _HELD_RECORDS)
    fallback = desk.fallback_session(FORMAT)
    places = 0
    for entry in entries(path):
        if isinstance(entry, Broken | Other):
            places += 1
            yield _not_read(entry, desk, fallback, places)
            continue
        desk.tally.lines += 1
        entry.number = desk.tally.lines
        window.add(entry)
        if window.is_full:
            yield from mapper.items(window.take())
    yield from mapper.items(window.take_all())
    mapper.note()


def _not_read(entry: Broken | Other, desk: Desk, session: str, place: int) -> Item:
    """A place without records: damage, or something that is no trace and no log."""
    source = Source(FORMAT, desk.file, None, entry.line)
    if isinstance(entry, Broken):
        event = desk.damage(entry.line, entry.reason, entry.raw or None, repaired=entry.repaired)
        draft = Draft(event, source=source, grade=GRADE)
        return Item(session, f"damage:{place}", [draft], entry.line or 0, entry.raw)
    native = ", ".join(sorted(entry.value))[:100]
    desk.tally.unknown[native] += 1
    kept = SourceKept(native_type=native, recognized=False, body=desk.keep.json(entry.value, "request"))
    return Item(
        session,
        f"other:{place}",
        [Draft(kept, source=source, grade=GRADE)],
        entry.line or 0,
        kept.body.digest.encode(),
    )
