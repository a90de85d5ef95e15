"""A generated ledger for the benchmarks of the lake, written as loops write it: streamed, with its contents.

Each session has 500 records: 98 turns of five, four compactions of two, a start and an end. Tools are few and many by
Zipf's law; some sessions read a secret and mail it, with or without a review between; every call fails one time in 50.
"""

import random
from collections.abc import Iterator
from datetime import date
from typing import Literal

import pyarrow as pa
import pyarrow.compute as pc

from ledger.events import ContentRef, Draft, Event
from ledger.events.compaction import CompactionDone, CompactionStarted
from ledger.events.model_call import ModelCallAnswered, ModelCallRequested, Usage
from ledger.events.session import SessionEnded, SessionStarted
from ledger.events.tool_call import ToolCallRequested, ToolCallSettled, ToolCallStarted
from ledger.lake import Lake
from ledger.lake.files import date_of, read_files, write_file
from ledger.lake.manifest import DataFile
from ledger.store import EventStore
from ledger.store.content import BlobRow, content_digest, pack_blob
from ledger.store.rows import Attachments

SESSION = 500
"""Records of a session."""

NEEDLE = "zq7needle"
"""A word that stands in one content of 5,000."""

SECRET, MAIL, REVIEW = "read_secret", "send_mail", "review"
"""The forbidden sequence: a secret is mailed without a review between."""

_TURNS = 98
_TOOLS = [SECRET, MAIL, REVIEW, *(f"tool_{number}" for number in range(57))]
_WEIGHTS = [1 / (2 + number) for number in range(len(_TOOLS))]
_AT_ONCE = 10
_ROUNDS = 10


def fill(store: EventStore, events: int, *, seed: int = 0, prefix: str = "session") -> None:
    """Append so many records, rounded to whole sessions."""
    chance = random.Random(seed)
    sentences = _sentences(chance)
    for first in range(0, events // SESSION, _AT_ONCE):
        blobs: list[BlobRow] = []
        drafts = {
            f"{prefix}-{number:06}": [
                Draft(event) for event in _session(number, chance, sentences, store.salt, blobs)
            ]
            for number in range(first, min(first + _AT_ONCE, events // SESSION))
        }
        day = first * SESSION * 10 // max(events, 1)  # ten days, one after the other
        stamp = f"2026-01-{day + 1:02}T00:00:00.000000Z"
        store.append(drafts, stamp=lambda: stamp, attachments=Attachments(blobs=blobs))  # noqa: B023


def grow(lake: Lake, base: int, events: int) -> None:
    """Make a lake of `base` events larger: its rows again and again, as other sessions, by the lake's own files.

    A file of each date holds ten rounds at most, merged and sorted as a compaction leaves it: memory stays bounded.
    """
    version = lake.manifest.read()
    files: dict[date, list[DataFile]] = {}
    for file in version.files.values():
        files.setdefault(date_of(file), []).append(file)
    last = events // base
    for start in range(1, last, _ROUNDS):
        for day, some in files.items():
            table = read_files(lake.folder, some)
            parts = [_again(table, number, base) for number in range(start, min(start + _ROUNDS, last))]
            added = write_file(lake.folder, day, pa.concat_tables(parts), "cmp", {})
            version = lake.manifest.commit(version, add=[added], remove=[]) or version
    lake.manifest.list_files()


def _again(table: pa.Table, number: int, base: int) -> pa.Table:
    """The rows as those of other sessions, at later positions.

    Sorted, the rounds lie behind each other: side by side, equal texts would be compressed away.
    """
    changed = {
        "session": pc.binary_join_element_wise(f"again-{number:06}", table["session"], "-"),
        "position": pc.add(table["position"], number * base),
    }
    for name, values in changed.items():
        place = table.schema.get_field_index(name)
        table = table.set_column(place, table.schema.field(place), values)
    return table


def _sentences(chance: random.Random) -> list[str]:
    words = ["".join(chance.choices("etaoinshrdlu", k=chance.randint(2, 9))) for _ in range(3000)]
    return [" ".join(chance.choices(words, k=12)) for _ in range(5000)]


def _session(
    number: int, chance: random.Random, sentences: list[str], salt: bytes, blobs: list[BlobRow]
) -> Iterator[Event]:
    def keep(role: str, count: int) -> ContentRef:
        word = NEEDLE if chance.random() < 0.0002 else str(chance.getrandbits(40))
        text = (
            f'{{"content":"{" ".join(chance.choices(sentences, k=count))} {word}","role":"{role}"}}'.encode()
        )
        digest = content_digest(salt, text)
        blobs.append(pack_blob(digest, text))
        return ContentRef(digest=digest.hex(), size=len(text), kind="json")

    yield SessionStarted(harness="bench")
    for turn, tool in enumerate(chance.choices(_TOOLS, _WEIGHTS, k=_TURNS)):
        model_call, tool_call = f"m{number}-{turn}", f"t{number}-{turn}"
        yield ModelCallRequested(
            call_id=model_call, protocol="anthropic.messages", completeness="messages", model="bench-1"
        )
        usage = Usage(input_tokens=1000 + turn, output_tokens=chance.randint(5, 500))
        yield ModelCallAnswered(
            call_id=model_call, message=keep("assistant", 5), usage=usage, duration_ms=900
        )
        yield ToolCallRequested(call_id=tool_call, tool=tool, arguments=keep("arguments", 2))
        yield ToolCallStarted(call_id=tool_call)
        outcome: Literal["failed", "returned"] = "failed" if chance.random() < 0.02 else "returned"
        yield ToolCallSettled(
            call_id=tool_call, outcome=outcome, result=keep("tool", 6), duration_ms=chance.randint(1, 5000)
        )
        if turn % 20 == 19:
            yield CompactionStarted(compaction_id=f"c{turn}", trigger="auto")
            yield CompactionDone(compaction_id=f"c{turn}", trigger="auto", evidence="logged")
    yield SessionEnded(outcome="completed")
