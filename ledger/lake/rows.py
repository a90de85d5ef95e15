"""Stored records -> an Arrow table of the lake's schema. Reads no clock, writes no file.

A record that cannot be read becomes a row that says so: the lake has every record, whatever its state.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from decimal import Context, Decimal, InvalidOperation
from typing import Any, NamedTuple

import orjson
import pyarrow as pa
import pyarrow.compute as pc

from ledger.effects import classify
from ledger.events import BY_NAME
from ledger.events.canonical import canonical_json, decode_json
from ledger.events.tool_call import EffectClass
from ledger.events.upcasts import upcast
from ledger.lake.columns import COLUMNS, CONTENTS, MONEY, PLANS, SCHEMA, SENT_AGAIN, TEXTS, Kind
from ledger.lake.feed import Stored

LONGEST_TEXT = 2**20
"""Characters of a content that `text` shows."""

LARGEST_CONTENT = 2**26
"""Bytes of a content that is loaded at all."""

_DIGEST = re.compile("[0-9a-f]{64}")
_HALF = re.compile(r"(?<!\\)((?:\\\\)*)\\ud[89a-f][0-9a-f]{2}")
_INT64 = 2**63
_EXACT = Context(prec=100)
_CENTS = Decimal(1).scaleb(-MONEY.scale)
_MOST = Decimal(10) ** (MONEY.precision - MONEY.scale)

Contents = Callable[[list[str]], Mapping[str, bytes]]

_SWEEP = 200
_LOADED = 2**24
_NO_FIELDS: dict[str, Any] = {}
_KINDS = {column.name: column.kind for column in COLUMNS}
_OF_DAMAGED = ("position", "session", "seq", "type", "damage")


class _Reference(NamedTuple):
    """The content that `text` is to show."""

    digest: str
    size: int
    is_loaded: bool
    is_json: bool


class _Group:
    """Records of one event: their fields are the same, so a column is one sweep over them.

    Swept every few hundred records: what waits longer is walked by the garbage collector again and again, which costs
    more than the sweep. The contents of a sweep are read together.
    """

    def __init__(self, name: str, contents: Contents, given: set[str]) -> None:
        self._name = name
        self._contents = contents
        self._given = given
        self._stored: list[Stored] = []
        self._states: list[dict[str, Any]] = []
        self._payloads: list[str] = []
        self._references: list[_Reference | None] = []
        self._waiting = 0
        self._swept: list[pa.Table] = []

    def add(self, stored: Stored, state: dict[str, Any], payload: str, reference: "_Reference | None") -> int:
        """One more; give the length of the texts that were loaded by it."""
        if reference is not None and reference.is_loaded:
            self._waiting += reference.size
        self._references.append(reference)
        self._stored.append(stored)
        self._states.append(state)
        self._payloads.append(payload)
        if len(self._stored) >= _SWEEP or self._waiting >= _LOADED:
            return self._sweep()
        return 0

    def tables(self) -> list[pa.Table]:
        """All rows of this event."""
        if self._stored:
            self._sweep()
        return self._swept

    def _sweep(self) -> int:
        columns = dict(self._columns())
        size = sum(len(text) for name in TEXTS.values() for text in columns.get(name, ()) if text is not None)
        self._swept.append(_table(columns))
        self._stored, self._states, self._payloads, self._references = [], [], [], []
        self._waiting = 0
        return size

    def _columns(self) -> Iterator[tuple[str, Sequence[Any]]]:
        """The columns that any of them has something for."""
        stored, states = self._stored, self._states
        there = set().union(*states)
        yield "position", [row.position for row in stored]
        yield "session", [row.session for row in stored]
        yield "seq", [row.seq for row in stored]
        yield "type", [self._name] * len(stored)
        yield "recorded_at", [state["recorded_at"] for state in states]
        yield "grade", [state["grade"] for state in states]
        for name in ("occurred_at", "correlation", "agent"):
            if name in there:
                yield name, [state.get(name) for state in states]
        yield "depth", [state.get("depth", 0) for state in states]
        if "actor" in there:
            actors = [_fields(state.get("actor")) for state in states]
            yield "actor_kind", [actor.get("kind") for actor in actors]
            yield "actor", [actor.get("id") for actor in actors]
        if "cause" in there:
            causes = [state.get("cause") for state in states]
            yield "cause_seq", [cause if isinstance(cause, int) else None for cause in causes]
            yield "cause_elsewhere", [None if isinstance(cause, int) else cause for cause in causes]
        if "source" in there:
            sources = [_fields(state.get("source")) for state in states]
            for name in ("format", "file", "item", "line"):
                yield f"source_{name}", [source.get(name) for source in sources]
        yield "payload", self._payloads
        data = [state["data"] for state in states]
        told = set().union(*data)
        for column, field, part, default in PLANS.get(self._name, ()):
            if field not in told:
                if default is not None:
                    yield column, [default] * len(data)
            elif part is None:
                yield column, [fields.get(field, default) for fields in data]
            else:
                yield column, [_fields(fields.get(field)).get(part) for fields in data]
        if self._name in CONTENTS:
            yield from self._shown()
        for field, (_, column) in SENT_AGAIN.get(self._name, {}).items():
            if field in told:
                yield column, self._first_texts([fields.get(field) for fields in data])

    def _first_texts(self, values: list[Any]) -> list[str | None]:
        """The text of each content at the first record that names it; nothing where it was given before."""
        first: dict[str, int] = {}
        for place, value in enumerate(values):
            digest = _fields(value).get("digest")
            if isinstance(digest, str) and digest not in self._given:
                self._given.add(digest)
                first[digest] = place
        texts: list[str | None] = [None] * len(values)
        for digest, content in self._contents(list(first)).items():
            texts[first[digest]] = content.decode("utf-8", "replace")[:LONGEST_TEXT]
        return texts

    def _shown(self) -> Iterator[tuple[str, Sequence[Any]]]:
        """The columns of the content that each record shows."""
        field, references = CONTENTS[self._name], self._references
        found = self._contents([one.digest for one in references if one is not None and one.is_loaded])
        contents = [found.get(one.digest) if one is not None else None for one in references]
        yield "content_field", [field if one is not None else None for one in references]
        yield "content_digest", [one.digest if one is not None else None for one in references]
        yield "content_size", [one.size if one is not None else None for one in references]
        yield (
            "text",
            [
                None if content is None else content.decode("utf-8", "replace")[:LONGEST_TEXT]
                for content in contents
            ],
        )
        if field == "arguments":
            yield (
                "effect_guess",
                [
                    None if one is None else _guess(state["data"], content if one.is_json else None)
                    for one, state, content in zip(references, self._states, contents, strict=True)
                ],
            )


class Rows:
    """Rows of one segment."""

    def __init__(self, contents: Contents) -> None:
        self._contents = contents
        self._groups: dict[str, _Group] = {}
        self._damaged: list[tuple[Stored, str]] = []
        self._given: set[str] = set()
        self.size = 0
        """Rows so far."""
        self.text_size = 0
        """Length of all texts and payloads together: what decides how much memory they take."""
        self.last: Stored | None = None
        """The record that came last."""
        self.erased: set[str] = set()
        """Digests of contents that the records say were destroyed."""

    def add(self, row: Stored) -> None:
        """One more row."""
        self.size += 1
        self.text_size += len(row.state)
        self.last = row
        try:
            state, is_exact = _decoded(row.state)
            data = state["data"]
            payload = _readable(canonical_json(data).decode()) if is_exact else orjson.dumps(data).decode()
            if row.type == "ledger.erased":
                digests = filter(
                    _DIGEST.fullmatch, map(str, data["digests"])
                )  # what is none names no content
                self.erased.update(digests)
            event = BY_NAME.get(row.type)
            if event is not None and state["v"] < event.VERSION:
                state["data"] = upcast(row.type, state["v"], event.VERSION, data)
            reference = _reference(data.get(CONTENTS[row.type])) if row.type in CONTENTS else None
            _ = state["recorded_at"], state["grade"], state["data"].keys()
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            self._damaged.append((row, f"{type(error).__name__}: {error}"))
            return
        group = self._groups.get(row.type)
        if group is None:
            group = self._groups[row.type] = _Group(row.type, self._contents, self._given)
        self.text_size += group.add(row, state, payload, reference)

    def table(self) -> pa.Table:
        """The rows as a table of the schema, in the order of positions."""
        parts = [table for group in self._groups.values() for table in group.tables()]
        if self._damaged:
            columns = zip(*((*row[:4], damage) for row, damage in self._damaged), strict=True)
            parts.append(_table(dict(zip(_OF_DAMAGED, map(list, columns), strict=True))))
        table = pa.concat_tables([SCHEMA.empty_table(), *parts], promote_options="default")
        return table.combine_chunks().sort_by("position")


def _reference(value: Any) -> _Reference | None:
    """What a field points to. Raises for what is no reference: the record is damaged."""
    if value is None:
        return None
    digest, size, kind = value["digest"], value["size"], value["kind"]
    if not isinstance(digest, str):
        raise TypeError("a reference to content has no digest")
    return _Reference(digest, size, kind != "bytes" and 0 <= size <= LARGEST_CONTENT, kind == "json")


def _guess(data: dict[str, Any], content: bytes | None) -> EffectClass | None:
    """The effect class of a call that declares none, by its name and its arguments where they can be read."""
    if "effect_class" in data or not isinstance(data.get("tool"), str):
        return None
    arguments = None
    if content is not None:
        with suppress(ValueError, RecursionError):
            arguments = orjson.loads(content)
    return classify(data["tool"], arguments).effect_class


def _table(columns: Mapping[str, Sequence[Any]]) -> pa.Table:
    fields = [SCHEMA.field(name) for name in columns]
    arrays = [
        _array(_KINDS[field.name], values, field.type)
        for field, values in zip(fields, columns.values(), strict=True)
    ]
    return pa.Table.from_arrays(arrays, schema=pa.schema(fields))


def _fields(value: Any) -> dict[str, Any]:
    """The fields of a part; none where a damaged record has something else in its place."""
    return value if isinstance(value, dict) else _NO_FIELDS


def _readable(payload: str) -> str:
    """JSON that an engine can read: half a character, which none takes, becomes the sign for one that is lost."""
    return _HALF.sub(r"\1\\ufffd", payload)


def _decoded(state: bytes) -> tuple[dict[str, Any], bool]:
    """The fields of a stored record, and whether they need the exact way of writing."""
    try:
        fields = orjson.loads(state)
        if "exact" not in fields:
            return fields, False
    except orjson.JSONDecodeError:
        pass
    return decode_json(state), True


def _array(kind: Kind, values: Sequence[Any], wanted: pa.DataType) -> pa.Array:
    """An array of the wanted type. What does not fit it is NULL there; `payload` has it as it was."""
    try:
        if kind == "time":
            return pc.cast(pa.array(values, pa.string()), wanted)
        if kind == "money":
            return pa.array([_money(value) for value in values], wanted)
        return pa.array(values, wanted)
    except (pa.ArrowException, OverflowError, UnicodeEncodeError):
        return pa.array([_fitting(kind, value) for value in values], wanted)


def _fitting(kind: Kind, value: Any) -> Any:
    match kind, value:
        case "word" | "text", str():
            return value.encode("utf-8", "replace").decode()
        case "count", int() if not isinstance(value, bool) and -_INT64 <= value < _INT64:
            return value
        case "flag", bool():
            return value
        case "money", _:
            return _money(value)
        case "time", str():
            return moment(value)
        case _:
            return None


def _money(value: Any) -> Decimal | None:
    if value is None:
        return None
    try:
        amount = Decimal(value).quantize(_CENTS, context=_EXACT)
    except (InvalidOperation, TypeError, ValueError):
        return None
    return amount if abs(amount) < _MOST else None


def moment(text: str) -> datetime | None:
    """A time given as text, in UTC, cut to microseconds; None when it is no time."""
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        return None
    return time.replace(tzinfo=UTC) if time.tzinfo is None else time.astimezone(UTC)
