"""Stored records -> an Arrow table of the lake's schema. Reads no clock, writes no file.

A record that cannot be read becomes a row that says so: the lake has every record, whatever its state.
"""

from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from decimal import Context, Decimal, InvalidOperation
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.compute as pc

from ledger.effects import classify
from ledger.events import BY_NAME
from ledger.events.canonical import canonical_json, decode_json
from ledger.events.upcasts import upcast
from ledger.lake.columns import COLUMNS, CONTENTS, MONEY, PLANS, SCHEMA, Kind
from ledger.lake.feed import Stored

LONGEST_TEXT = 2**20
"""Characters of a content that `text` shows."""

LARGEST_CONTENT = 2**26
"""Bytes of a content that is loaded at all."""

_INT64 = 2**63
_EXACT = Context(prec=100)
_CENTS = Decimal(1).scaleb(-MONEY.scale)
_MOST = Decimal(10) ** (MONEY.precision - MONEY.scale)

Content = Callable[[str], bytes | None]
Shown = tuple[str | None, str | None, int | None, str | None, str | None]

_SHOWN = ("content_field", "content_digest", "content_size", "text", "effect_guess")
_SWEEP = 500
_NOTHING: Shown = (None,) * 5
_NO_FIELDS: dict[str, Any] = {}
_KINDS = {column.name: column.kind for column in COLUMNS}
_OF_DAMAGED = ("position", "session", "seq", "type", "damage")


class _Group:
    """Records of one event: their fields are the same, so a column is one sweep over them.

    Swept every few hundred records: what waits longer is moved from one generation of the garbage collector to the
    next, which costs more than the sweep.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._stored: list[Stored] = []
        self._states: list[dict[str, Any]] = []
        self._payloads: list[str] = []
        self._contents: list[Shown] = []
        self._columns: dict[str, list[Any]] = {}

    def add(self, stored: Stored, state: dict[str, Any], payload: str, content: Shown) -> None:
        self._stored.append(stored)
        self._states.append(state)
        self._payloads.append(payload)
        self._contents.append(content)
        if len(self._stored) >= _SWEEP:
            self._sweep()

    def columns(self) -> dict[str, list[Any]]:
        """All columns that this event has."""
        if self._stored:
            self._sweep()
        return self._columns

    def _sweep(self) -> None:
        for name, values in self._swept():
            self._columns.setdefault(name, []).extend(values)
        self._stored, self._states, self._payloads, self._contents = [], [], [], []

    def _swept(self) -> Iterator[tuple[str, Iterable[Any]]]:
        stored, states = self._stored, self._states
        actors = [_fields(state.get("actor")) for state in states]
        sources = [_fields(state.get("source")) for state in states]
        causes = [state.get("cause") for state in states]
        yield "position", [row.position for row in stored]
        yield "session", [row.session for row in stored]
        yield "seq", [row.seq for row in stored]
        yield "type", [self._name] * len(stored)
        yield "recorded_at", [state["recorded_at"] for state in states]
        yield "grade", [state["grade"] for state in states]
        for name in ("occurred_at", "correlation", "agent"):
            yield name, [state.get(name) for state in states]
        yield "depth", [state.get("depth", 0) for state in states]
        yield "actor_kind", [actor.get("kind") for actor in actors]
        yield "actor", [actor.get("id") for actor in actors]
        yield "cause_seq", [cause if isinstance(cause, int) else None for cause in causes]
        yield "cause_elsewhere", [None if isinstance(cause, int) else cause for cause in causes]
        for name in ("format", "file", "item", "line"):
            yield f"source_{name}", [source.get(name) for source in sources]
        yield "payload", self._payloads
        data = [state["data"] for state in states]
        for column, field, part, default in PLANS.get(self._name, ()):
            if part is None:
                yield column, [fields.get(field, default) for fields in data]
            else:
                yield column, [_fields(fields.get(field)).get(part) for fields in data]
        if self._name in CONTENTS:
            yield from zip(_SHOWN, zip(*self._contents, strict=True), strict=True)


class Rows:
    """Rows of one segment."""

    def __init__(self, content: Content) -> None:
        self._content = content
        self._groups: dict[str, _Group] = {}
        self._damaged: list[tuple[Stored, str]] = []
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
            payload = canonical_json(data).decode() if is_exact else orjson.dumps(data).decode()
            content = self._shown(row.type, data) if row.type in CONTENTS else _NOTHING
            if row.type == "ledger.erased":
                self.erased.update(map(str, data["digests"]))
            event = BY_NAME.get(row.type)
            if event is not None and state["v"] < event.VERSION:
                state["data"] = upcast(row.type, state["v"], event.VERSION, data)
            _ = state["recorded_at"], state["grade"], data.keys()
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            self._damaged.append((row, f"{type(error).__name__}: {error}"))
            return
        group = self._groups.get(row.type)
        if group is None:
            group = self._groups[row.type] = _Group(row.type)
        group.add(row, state, payload, content)

    def table(self) -> pa.Table:
        """The rows as a table of the schema, in the order of positions."""
        parts = [_table(group.columns()) for group in self._groups.values()]
        if self._damaged:
            columns = zip(*((*row[:4], damage) for row, damage in self._damaged), strict=True)
            parts.append(_table(dict(zip(_OF_DAMAGED, map(list, columns), strict=True))))
        table = pa.concat_tables([SCHEMA.empty_table(), *parts], promote_options="default")
        return table.combine_chunks().sort_by("position")

    def _shown(self, name: str, data: dict[str, Any]) -> Shown:
        field = CONTENTS[name]
        reference = data.get(field)
        if reference is None:
            return _NOTHING
        digest, size = reference["digest"], reference["size"]
        content = self._content(digest) if reference["kind"] != "bytes" and size <= LARGEST_CONTENT else None
        text = guess = None
        if content is not None:
            text = content.decode("utf-8", "replace")[:LONGEST_TEXT]
            self.text_size += len(text)
        if field == "arguments" and "effect_class" not in data:
            arguments = decode_json(content) if content is not None and reference["kind"] == "json" else None
            guess = classify(data["tool"], arguments).effect_class
        return field, digest, size, text, guess


def _table(columns: dict[str, list[Any]]) -> pa.Table:
    fields = [SCHEMA.field(name) for name in columns]
    arrays = [
        _array(_KINDS[field.name], values, field.type)
        for field, values in zip(fields, columns.values(), strict=True)
    ]
    return pa.Table.from_arrays(arrays, schema=pa.schema(fields))


def _fields(value: Any) -> dict[str, Any]:
    """The fields of a part; none where a damaged record has something else in its place."""
    return value if isinstance(value, dict) else _NO_FIELDS


def _decoded(state: bytes) -> tuple[dict[str, Any], bool]:
    """The fields of a stored record, and whether they need the exact way of writing."""
    try:
        fields = orjson.loads(state)
        if "exact" not in fields:
            return fields, False
    except orjson.JSONDecodeError:
        pass
    return decode_json(state), True


def _array(kind: Kind, values: list[Any], wanted: pa.DataType) -> pa.Array:
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
