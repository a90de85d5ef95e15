"""Records of sessions, rebuilt from the rows of a lake: for whoever has the Parquet files and no store.

What the files do not carry is not guessed: hashes are empty, and a content that is not there is told to whoever asks
what was `missing`. Not there are the contexts of model calls, contents that the table `events` names no column for,
bytes that are no text, and texts beyond their first mebibyte.
"""

from collections import OrderedDict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from typing import Any, NamedTuple, NoReturn

from pydantic import ValidationError

from ledger.errors import (
    AmbiguousSessionError,
    ContentMissingError,
    RecordDamagedError,
    SessionNotFoundError,
    UnknownEventError,
)
from ledger.events import BY_NAME, Actor, ContentRef, Event, Record, Source
from ledger.events.canonical import decode_json
from ledger.events.keeping import Erased
from ledger.lake.columns import CONTENTS, SENT_AGAIN
from ledger.lake.query import Rows
from ledger.lake.rows import LARGEST_CONTENT, LONGEST_TEXT

Ask = Callable[[str, Mapping[str, Any]], AbstractContextManager[Rows]]
"""Runs a query in DuckDB's dialect with values for its `$names`, on whatever engine."""

_MOST_ROWS = 10_000
_MOST_TEXT = 16 * 2**20
_GROUPS_HELD = 4
_CONTENTS_HELD = 64 * 2**20
_ABSENT_HELD = 100_000
_AROUND = 1000
"""What a row weighs beside its text, about."""


class _Row(NamedTuple):
    """What is read of a record."""

    position: int
    session: str
    seq: int
    type: str
    recorded_at: datetime | None
    occurred_at: datetime | None
    actor_kind: Any
    actor: str | None
    cause_seq: int | None
    cause_elsewhere: str | None
    correlation: str | None
    agent: str | None
    depth: int | None
    grade: Any
    source_format: str | None
    source_file: str | None
    source_item: str | None
    source_line: int | None
    payload: str | None
    damage: str | None
    content_digest: str | None
    content_size: int | None
    text: str | None
    system_digest: str | None
    system_prompt: str | None
    tools_digest: str | None
    tool_schemas: str | None


_NAMES = ", ".join(_Row._fields)

_SIZES = f"""
select session, max(seq) as last_seq, count(*) as records,
    cast(sum(least(coalesce(content_size, 0), {LONGEST_TEXT})) as bigint) as size
from events group by session order by session
"""  # noqa: S608 - a number

_CONTENT = """
select max(text) as text, max(content_size) as size, max(payload) as payload
from events where content_digest = $digest
union all
select max(system_prompt) as text, cast(null as bigint) as size, cast(null as varchar) as payload
from events where system_digest = $digest
union all
select max(tool_schemas) as text, cast(null as bigint) as size, cast(null as varchar) as payload
from events where tools_digest = $digest
"""


class _Part(NamedTuple):
    """Sessions that are read together, or one that is read in steps."""

    first: str
    """The first of them."""

    last: str
    """The last of them."""

    step: int | None
    """Records at a time of one that is too long to be read at once; None: all are."""


class LakeRecords:
    """Reads the records of a lake as a store's are read: session by session, in order, in bounded memory.

    Small sessions are read many at a time, for each question to a cluster takes its while.
    """

    def __init__(self, ask: Ask) -> None:
        self._ask = ask
        self._parts: dict[str, _Part] = {}
        self._last_seqs: dict[str, int] = {}
        self._groups: OrderedDict[_Part, dict[str, list[_Row]]] = OrderedDict()
        self._contents: OrderedDict[str, bytes] = OrderedDict()
        self._held = 0
        self._absent: OrderedDict[str, bool] = OrderedDict()
        self.asking: tuple[str, str] | None = None
        """Who asks now, and about which session: under what a missing content is noted."""
        self.missing: dict[tuple[str, str], int] = {}
        """How often who asked for what the lake does not carry, by them and by session."""
        self._erased: set[str] = set()
        self._plan()
        self._erased = {
            digest
            for record in self.read_all(names=(Erased.TYPE,))
            if isinstance(record.event, Erased)
            for digest in record.event.digests
        }

    def _rows(self, query: str, values: Mapping[str, Any]) -> list[list[Any]]:
        """All rows of an answer: an engine answers one question after the other, and one row leads to the next."""
        with self._ask(query, values) as answer:
            return list(answer.rows())

    def _plan(self) -> None:
        """Which sessions are read together."""
        together: list[str] = []
        records = size = 0

        def close() -> None:
            if together:
                part = _Part(together[0], together[-1], None)
                self._parts.update(dict.fromkeys(together, part))
                together.clear()

        for session, last_seq, count, text in self._rows(_SIZES, {}):
            weight = text + count * _AROUND
            self._last_seqs[session] = last_seq
            if count > _MOST_ROWS or weight > _MOST_TEXT:
                close()
                step = max(1, min(_MOST_ROWS, count * _MOST_TEXT // weight))
                self._parts[session] = _Part(session, session, step)
                continue
            if records + count > _MOST_ROWS or size + weight > _MOST_TEXT or not together:
                close()
                records = size = 0
            together.append(session)
            records, size = records + count, size + weight
        close()

    # -- records -----------------------------------------------------------------------------------------------------

    def sessions(self) -> Iterator[str]:
        """Ids of all sessions, in order."""
        return iter(self._last_seqs)

    def resolve(self, name: str) -> str:
        """The session whose id is `name` or starts with it. Raises SessionNotFoundError, AmbiguousSessionError."""
        found = [session for session in self._last_seqs if name and session.startswith(name)]
        if not found:
            raise SessionNotFoundError(name)
        if name in found or all(other.startswith(found[0]) for other in found):
            return found[0]
        raise AmbiguousSessionError(name, found[:10])

    def read(
        self, session: str, *, after: int = 0, upto: int | None = None, names: Collection[str] = ()
    ) -> Iterator[Record]:
        """Records of a session in the order of seq; with event names, only those."""
        for row in self._rows_of(session, after, upto):
            if not names or row.type in names:
                yield self._record(row)

    def read_all(self, *, names: Sequence[str]) -> Iterator[Record]:
        """Records of these events in the whole lake, by position."""
        wanted = ", ".join(f"'{name}'" for name in names)
        query = f"select {_NAMES} from events where type in ({wanted}) order by position"  # noqa: S608 - our own names
        for row in self._rows(query, {}):
            yield self._record(_Row._make(row))

    def _rows_of(self, session: str, after: int, upto: int | None) -> Iterator[_Row]:
        part = self._parts.get(session)
        if part is None:
            return
        if part.step is None:
            for row in self._group(part).get(session, ()):
                if row.seq > after and (upto is None or row.seq <= upto):
                    yield row
            return
        last = self._last_seqs[session] if upto is None else min(upto, self._last_seqs[session])
        query = f"select {_NAMES} from events where session = $session and seq > $after and seq <= $upto order by seq"  # noqa: S608
        while after < last:
            reached = min(after + part.step, last)
            rows = self._rows(query, {"session": session, "after": after, "upto": reached})
            yield from map(_Row._make, rows)
            after = reached

    def _group(self, part: _Part) -> dict[str, list[_Row]]:
        if part not in self._groups:
            while len(self._groups) >= _GROUPS_HELD:
                self._groups.popitem(last=False)
            query = f"select {_NAMES} from events where session >= $first and session <= $last order by session, seq"  # noqa: S608
            group: dict[str, list[_Row]] = {}
            for row in map(_Row._make, self._rows(query, {"first": part.first, "last": part.last})):
                group.setdefault(row.session, []).append(row)
            self._groups[part] = group
        self._groups.move_to_end(part)
        return self._groups[part]

    def _record(self, row: _Row) -> Record:
        self._take_contents(row)
        record = record_of(row)
        self._note_uncarried(record.event)
        return record

    # -- contents ----------------------------------------------------------------------------------------------------

    def content(self, digest: str) -> bytes:
        """Content of a blob. Raises ContentMissingError for what was gone when its record was exported, and for what
        the lake does not carry; the latter is `missing`.
        """
        if digest in self._contents:
            self._contents.move_to_end(digest)
            return self._contents[digest]
        if digest not in self._absent:
            found = self._found(digest)
            if found is not None:
                return found
        if self._absent[digest]:
            self._note_missing()
        raise ContentMissingError("blob", digest)

    def context(self, node: str) -> NoReturn:
        """Raises ContentMissingError: a lake has no contexts."""
        self._note_missing()
        raise ContentMissingError("context node", node)

    def _note_missing(self) -> None:
        if self.asking is not None:
            self.missing[self.asking] = self.missing.get(self.asking, 0) + 1

    def _take_contents(self, row: _Row) -> None:
        """What a row shows is asked for next, most likely."""
        if row.content_digest is not None and row.text is not None:
            self._take(row.content_digest, row.text, row.content_size)
        if row.system_digest is not None and row.system_prompt is not None:
            self._take(row.system_digest, row.system_prompt, None)
        if row.tools_digest is not None and row.tool_schemas is not None:
            self._take(row.tools_digest, row.tool_schemas, None)

    def _note_uncarried(self, event: Event) -> None:
        """Contents that have no column are not looked for elsewhere: on a cluster each look takes its while."""
        carried = (CONTENTS.get(event.TYPE), *SENT_AGAIN.get(event.TYPE, ()))
        for name in event.model_fields_set:
            value = getattr(event, name)
            if isinstance(value, ContentRef) and name not in carried:
                digest = value.digest
                if digest not in self._erased and digest not in self._contents:
                    self._absent_is(digest, True)

    def _absent_is(self, digest: str, is_missing: bool) -> None:
        self._absent[digest] = is_missing
        if len(self._absent) > _ABSENT_HELD:
            self._absent.popitem(last=False)

    def _take(self, digest: str, text: str, size: int | None) -> bytes | None:
        """Hold a content; None where its text is not the whole of it."""
        if digest in self._contents:
            return self._contents[digest]
        content = text.encode()
        if len(content) != size if size is not None else len(text) >= LONGEST_TEXT:
            return None
        self._contents[digest] = content
        self._absent.pop(digest, None)
        self._held += len(content)
        while self._held > _CONTENTS_HELD and len(self._contents) > 1:
            self._held -= len(self._contents.popitem(last=False)[1])
        return content

    def _found(self, digest: str) -> bytes | None:
        """A content that some row shows; None where none does, and why is in `_absent`."""
        is_missing = digest not in self._erased
        for text, size, payload in self._rows(_CONTENT, {"digest": digest}):
            if text is not None:
                content = self._take(digest, text, size)
                if content is not None:
                    return content
            elif payload is not None:
                is_missing &= not _would_be_shown(digest, payload)
        self._absent_is(digest, is_missing)
        return None


def record_of(row: _Row) -> Record:
    """The record of a row, without its hashes. Raises RecordDamagedError or UnknownEventError."""
    place = f"{row.session}#{row.seq}"
    if row.damage is not None or row.payload is None or row.recorded_at is None:
        raise RecordDamagedError(place, row.damage or "the row has no payload")
    event_class = BY_NAME.get(row.type)
    if event_class is None:
        raise UnknownEventError(place, row.type, 0)
    try:
        event = event_class.__pydantic_validator__.validate_python(decode_json(row.payload))
    except (ValidationError, ValueError, RecursionError) as error:
        raise RecordDamagedError(place, f"{type(error).__name__}: {error}") from error
    source = None
    if row.source_format is not None:
        source = Source(row.source_format, row.source_file, row.source_item, row.source_line)
    return Record(
        session=row.session,
        seq=row.seq,
        position=row.position,
        event=event,
        recorded_at=_stamp(row.recorded_at),
        previous="",
        hash="",
        occurred_at=None if row.occurred_at is None else _stamp(row.occurred_at),
        actor=None if row.actor_kind is None else Actor(row.actor_kind, row.actor),
        cause=row.cause_seq if row.cause_seq is not None else row.cause_elsewhere,
        correlation=row.correlation,
        agent=row.agent,
        depth=row.depth or 0,
        source=source,
        grade=row.grade,
    )


def _stamp(time: datetime) -> str:
    return time.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


def _would_be_shown(digest: str, payload: str) -> bool:
    """Whether the content of a record would stand in its row if the store had had it."""
    for value in decode_json(payload).values():
        if isinstance(value, dict) and value.get("digest") == digest:
            return value.get("kind") != "bytes" and 0 <= value.get("size", -1) <= LARGEST_CONTENT
    return False
