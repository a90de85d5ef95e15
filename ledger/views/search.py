"""Full text search over messages, arguments and results: an index beside the store, kept up with it, remade at will.

The index holds what the store holds: secrets were taken out before, and content that was erased is taken out of the
index, and out of its file, by the record that says so. A hit names a record; what it says there is the store's.
"""

import contextlib
import re
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import zstandard

from ledger.errors import LedgerError, StoreUnavailableError
from ledger.events import ContentRef, Record
from ledger.events.keeping import Erased
from ledger.lake.columns import CONTENTS
from ledger.store import EventStore
from ledger.store.content import unpack_blob
from ledger.store.mapper import decode_record
from ledger.views.search_text import BEGIN, END, Wanted, indexed, readable, shown, wanted
from ledger.views.view_file import ViewFile, column, told_at

VERSION = 1
"""Number of what the rows mean: another number is another file."""

PAGE = 20
"""Hits of a page, unless told."""

SEARCHED = {name: field for name, field in CONTENTS.items() if name != "ledger.imported"}
"""The field of each event whose content is searched."""

_DIGEST = re.compile("[0-9a-f]{64}")
_BATCH = 2000
_BATCH_BYTES = 2**25
_LARGEST_CONTENT = 2**26
_AROUND = 32  # words of a snippet; FTS5 takes 64 at most
_CHARACTERS_AROUND = 80

_TABLES = """
pragma secure_delete = on;
create table if not exists sessions (
    number integer primary key,
    id text not null unique
);
create table if not exists places (
    position integer primary key,
    session integer not null,
    seq integer not null,
    type text not null,
    tool text,
    happened_at text not null,
    digest blob not null,
    body blob not null
);
create index if not exists places_by_digest on places (digest);
create table if not exists unclean (only_one integer primary key check (only_one = 1));
create view if not exists texts as
    select position, unpacked(body) as text, facets_of(session, type) as facets
    from places;
create virtual table if not exists words using fts5 (
    text, facets, content = 'texts', content_rowid = 'position', tokenize = 'unicode61 remove_diacritics 2'
);
"""

_HITS = f"""
select places.position, sessions.id, places.seq, places.type, places.tool, places.happened_at, places.body,
    snippet(words, 0, '{BEGIN}', '{END}', '…', {_AROUND})
from words
join places on places.position = words.rowid
join sessions on sessions.number = places.session
where words match ? and words.rowid < ?
order by words.rowid desc
"""  # noqa: S608 - our own marks

_ALL = """
select places.position, sessions.id, places.seq, places.type, places.tool, places.happened_at, places.body, null
from places
join sessions on sessions.number = places.session
where places.position < ?
order by places.position desc
"""


class Piece(NamedTuple):
    """A part of a snippet."""

    text: str
    """What it says, as it came: hostile, like all content."""

    is_hit: bool
    """Whether it is what was searched for."""


class Hit(NamedTuple):
    """A record that has all words."""

    position: int
    """Place in the whole ledger: give it as `before` to get the hits after this one."""

    session: str
    """Session."""

    seq: int
    """Place in the session."""

    type: str
    """Name of the event."""

    tool: str | None
    """Tool, where the event names one: a request does, a result does not."""

    happened_at: str
    """When, as the source says; of a live record, when it was recorded."""

    snippet: tuple[Piece, ...]
    """The words, with some others around them."""

    @property
    def text(self) -> str:
        """The snippet without marks."""
        return "".join(piece.text for piece in self.snippet)


class Page(NamedTuple):
    """Some hits, the last recorded first."""

    hits: list[Hit]
    """They."""

    before: int | None
    """Where the next page goes on; None: there are no more."""

    position: int
    """Position of the last record that the index knows of."""


class SearchView(ViewFile):
    """The search index of one store, in a file of its own. Use as a context manager, or call `close()`."""

    def __init__(self, home: Path, store: EventStore) -> None:
        super().__init__(
            home, store, name=f"search-v{VERSION}", script=_TABLES, tables=("places", "sessions")
        )

    # -- searching ---------------------------------------------------------------------------------------------------

    def search(
        self,
        query: str,
        *,
        session: str | None = None,
        kind: str | None = None,
        before: int | None = None,
        limit: int = PAGE,
    ) -> Page:
        """A page of hits: records with all words of the query, the last recorded first. Raises InputError.

        `session` is a whole id, `kind` an event type or family, `before` the place where the page before ended.
        """
        asked = wanted(query)
        try:
            return self._page(asked, session, kind, before, limit)
        except sqlite3.OperationalError as error:
            raise StoreUnavailableError(f"{self._path} cannot be searched: {error}") from error
        except sqlite3.DatabaseError:
            self._replace()
            self.catch_up()
            return self._page(asked, session, kind, before, limit)

    def _page(
        self, asked: Wanted, session: str | None, kind: str | None, before: int | None, limit: int
    ) -> Page:
        position = self.position
        hits: list[Hit] = []
        for hit in self._hits(asked, session, kind, before):
            if len(hits) == limit:
                return Page(hits, hits[-1].position, position)
            hits.append(hit)
        return Page(hits, None, position)

    def _hits(
        self, asked: Wanted, session: str | None, kind: str | None, before: int | None
    ) -> Iterator[Hit]:
        facets = []
        if session is not None:
            number = self._connection.execute(
                "select number from sessions where id = ?", (column(session),)
            ).fetchone()
            if number is None:
                return
            facets.append(f"facets : s{number[0]}")
        if kind is not None:
            facets.append(f"facets : {_word(kind)}")
        match = " AND ".join([*facets, *([f"text : ({asked.match})"] if asked.match else [])])
        last = before if before is not None else 2**63 - 1
        query, values = (_HITS, (match, last)) if match else (_ALL, (last,))
        with contextlib.closing(self._connection.cursor()) as cursor:
            for position, name, seq, event, tool, time, body, marked in cursor.execute(query, values):
                text = shown(_unpacked(body)) if asked.exact else ""
                if asked.fits(text):
                    snippet = _pieces(marked) if asked.match else _around(asked, text)
                    yield Hit(position, name, seq, event, tool, time, snippet)

    # -- keeping up --------------------------------------------------------------------------------------------------

    def catch_up(self, progress: Callable[[int], None] = lambda position: None) -> int:
        """Take in all records that came since; give the position reached. What was erased is out of the file then."""
        reached = super().catch_up(progress)
        self._clean()
        return reached

    def _batch(self) -> bool:
        with self._transaction():
            position = self._checked_position()
            rows = self._store.recorder.select_notifications(
                position, _BATCH, None, (), inclusive_of_start=False
            )
            if not rows:
                return False
            waiting: list[tuple[Record, ContentRef]] = []
            size = 0
            shown_to = rows[-1].id
            for row in rows:
                record = _decoded(row)
                if record is not None and isinstance(record.event, Erased):
                    self._take_in(waiting)
                    waiting, size = [], 0
                    self._erase(record.event.digests)
                elif record is not None:
                    reference = getattr(record.event, SEARCHED[record.type], None)
                    if (
                        reference is not None
                        and reference.kind != "bytes"
                        and reference.size <= _LARGEST_CONTENT
                    ):
                        waiting.append((record, reference))
                        size += reference.size
                if size > _BATCH_BYTES:
                    shown_to = row.id
                    break
            self._take_in(waiting)
            self._show(shown_to)
        return len(rows) == _BATCH or shown_to < rows[-1].id

    def _take_in(self, waiting: Sequence[tuple[Record, ContentRef]]) -> None:
        """Index the contents of some records; what the store does not hold is not searched."""
        digests = list({bytes.fromhex(reference.digest) for _, reference in waiting})
        contents = {row.digest: row for row in self._store.recorder.get_blobs(digests)} if digests else {}
        numbers: dict[str, int] = {}
        packer = zstandard.ZstdCompressor()
        places: list[tuple[int, int, int, str, str | None, str, bytes, bytes]] = []
        words: list[tuple[int, str, str]] = []
        for record, reference in waiting:
            row = contents.get(bytes.fromhex(reference.digest))
            try:
                text = None if row is None else indexed(readable(unpack_blob(row), reference.kind))
            except (ValueError, TypeError, OverflowError):
                continue  # damaged; `verify` says so
            if row is None or not text:
                continue
            number = numbers.get(record.session) or self._number(record.session)
            numbers[record.session] = number
            tool = getattr(record.event, "tool", None)
            places.append(
                (
                    record.position,
                    number,
                    record.seq,
                    record.type,
                    column(tool) if isinstance(tool, str) else None,
                    told_at(record),
                    row.digest,
                    packer.compress(text.encode()),
                )
            )
            words.append((record.position, text, _facets(number, record.type)))
        self._connection.executemany("insert into places values (?, ?, ?, ?, ?, ?, ?, ?)", places)
        self._connection.executemany("insert into words (rowid, text, facets) values (?, ?, ?)", words)

    def _number(self, session: str) -> int:
        name = column(session)
        self._connection.execute("insert or ignore into sessions (id) values (?)", (name,))
        found = self._connection.execute("select number from sessions where id = ?", (name,)).fetchone()
        return int(found[0])

    # -- erasing -----------------------------------------------------------------------------------------------------

    def _erase(self, digests: Sequence[str]) -> None:
        """Take contents out of rows and index. A deletion leaves words in the index until its parts are merged."""
        gone = [
            position
            for digest in filter(_DIGEST.fullmatch, digests)  # what is none names no content
            for (position,) in self._connection.execute(
                "select position from places where digest = ?", (bytes.fromhex(digest),)
            ).fetchall()
        ]
        if not gone:
            return
        for position in gone:
            self._connection.execute(
                "insert into words (words, rowid, text, facets)"
                " select 'delete', position, text, facets from texts where position = ?",
                (position,),
            )
            self._connection.execute("delete from places where position = ?", (position,))
        self._connection.execute("insert into words (words) values ('optimize')")
        self._connection.execute("insert or ignore into unclean values (1)")

    def _clean(self) -> None:
        """Empty the write-ahead log, where erased words would stay; when somebody reads, at the next time."""
        if self._connection.execute("select 1 from unclean").fetchone() is None:
            return
        is_busy, *_ = self._connection.execute("pragma wal_checkpoint(truncate)").fetchone()
        if not is_busy:
            self._connection.execute("delete from unclean")

    def _forget(self) -> None:
        self._connection.execute("insert into words (words) values ('delete-all')")
        super()._forget()

    # -- the file ----------------------------------------------------------------------------------------------------

    def _open(self) -> sqlite3.Connection:
        connection = super()._open()
        connection.execute("pragma trusted_schema = on")  # the view calls our own function
        connection.create_function("unpacked", 1, _unpacked, deterministic=True)
        connection.create_function("facets_of", 2, _facets, deterministic=True)
        return connection

    def _replace(self) -> None:
        self._connection.close()
        self._connection = self._replaced()


def _decoded(row: Any) -> Record | None:
    """The record, when it has something to search or says that something was erased."""
    if row.topic not in SEARCHED and row.topic != Erased.TYPE:
        return None
    try:
        return decode_record(row)
    except LedgerError:
        return None


def _facets(number: int, event: str) -> str:
    """What a text is narrowed down by, as words of the index."""
    return f"s{number} {_word(event)} {_word(event.partition('.')[0])}"


def _word(kind: str) -> str:
    return "k" + "".join(filter(str.isalnum, kind))


def _unpacked(body: bytes) -> str:
    return zstandard.decompress(body).decode()


def _pieces(marked: str) -> tuple[Piece, ...]:
    """The parts of a snippet of the index. The marks are ours: the index has no text with them."""
    pieces: list[Piece] = []
    for part in marked.split(BEGIN):
        hit, mark, rest = part.partition(END)
        pieces += (
            [Piece(shown(hit), True), Piece(shown(rest), False)] if mark else [Piece(shown(part), False)]
        )
    return tuple(piece for piece in pieces if piece.text)


def _around(asked: Wanted, text: str) -> tuple[Piece, ...]:
    """The first of the words that only signs make up, and what is around it."""
    word = asked.exact[0]
    at = max(text.find(word), 0)
    start = max(at - _CHARACTERS_AROUND, 0)
    end = at + len(word)
    parts: list[Any] = [
        ("…" * (start > 0) + text[start:at], False),
        (text[at:end], True),
        (text[end : end + _CHARACTERS_AROUND] + "…" * (end + _CHARACTERS_AROUND < len(text)), False),
    ]
    return tuple(Piece(part, is_hit) for part, is_hit in parts if part)
