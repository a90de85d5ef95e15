"""Stored records -> an Arrow table of the lake's schema. Reads no clock, writes no file.

A record that cannot be read becomes a row that says so: the lake has every record, whatever its state.
"""

import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from decimal import Context, Decimal, InvalidOperation
from typing import Any, NamedTuple

import orjson
import pyarrow as pa
import pyarrow.compute as pc

from ledger.effects import inferred_class
from ledger.events import BY_NAME
from ledger.events.canonical import canonical_json, decode_json
from ledger.events.tool_call import EffectClass
from ledger.events.upcasts import upcast
from ledger.lake.columns import COLUMNS, CONTENTS, MONEY, PLANS, SCHEMA, SENT_AGAIN, Kind
from ledger.lake.feed import StoredRow

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
_Reference = tuple[str, int, str]  # digest, size and kind of a content

_TOGETHER = 1000
_LOADED = 2**24
_KINDS = {column.name: column.kind for column in COLUMNS}
_BARE = ("data", "grade", "prev", "recorded_at", "v")
_STAMPS = ("occurred_at", "correlation", "agent")
_SOURCE = {name: f"source_{name}" for name in ("format", "file", "item", "line")}


class _Plan(NamedTuple):
    """Where the fields of one event go."""

    version: int
    """Schema version of the event; 0 for one that is not known."""

    plain: dict[str, str]
    """Field -> column."""

    parts: dict[str, list[tuple[str, str]]]
    """Field that is a part -> the fields in it that are taken, each with its column."""

    defaults: list[tuple[str, str, Any]]
    """Field, column and what it says where it was left out."""

    content: str | None
    """Field whose content is shown as `text`."""

    sent_again: dict[str, str]
    """Field of a content that most calls repeat -> column of its text."""


def _plan(name: str) -> _Plan:
    version = BY_NAME[name].VERSION if name in BY_NAME else 0
    plan = _Plan(version, {}, {}, [], CONTENTS.get(name), {})
    for taken in PLANS.get(name, ()):
        if taken.part is not None:
            plan.parts.setdefault(taken.field, []).append((taken.part, taken.column))
            continue
        plan.plain[taken.field] = taken.column
        if taken.default is not None:
            plan.defaults.append((taken.field, taken.column, taken.default))
    plan.sent_again.update({field: text for field, (_, text) in SENT_AGAIN.get(name, {}).items()})
    return plan


_PLANS: dict[str, _Plan] = {name: _plan(name) for name in BY_NAME}
_UNKNOWN = _plan("")


class _Wanted:
    """Contents that rows wait for: what each is for, in lists side by side."""

    def __init__(self) -> None:
        self.places: list[int] = []
        """Row."""
        self.names: list[str] = []
        """Column that shows it, or name of the tool whose arguments it is."""
        self.digests: list[str | None] = []
        """The content; None where it cannot be read."""

    def add(self, place: int, name: str, digest: str | None) -> None:
        """One more."""
        self.places.append(place)
        self.names.append(name)
        self.digests.append(digest)

    def __iter__(self) -> Iterator[tuple[int, str, str | None]]:
        return zip(self.places, self.names, self.digests, strict=True)


class Rows:
    """Rows of one segment.

    Column by column for some hundred rows at a time, whatever their events: each list becomes an array at once, and
    the contents that they show are read together. What waits is kept in lists of plain values: of objects for each
    row, there would soon be so many that Python looked for garbage among them, again and again.
    """

    def __init__(
        self, contents: Contents, columns: Collection[str] | None = None, given: set[str] | None = None
    ) -> None:
        """`columns` are those that are made; None: all. No content is read for one that is not.

        `given` holds digests of contents that most calls repeat, and that were given before: it grows with them.
        """
        self._contents = contents
        self._columns_made = columns
        self._schema = SCHEMA if columns is None else pa.schema([SCHEMA.field(name) for name in columns])
        self._batches: list[pa.RecordBatch] = []
        self._given = set() if given is None else given
        self._begin()
        self.size = 0
        """Rows so far."""
        self.text_size = 0
        """Length of all texts and payloads together: what decides how much memory they take."""
        self.last: StoredRow | None = None
        """The record that came last."""
        self.erased: set[str] = set()
        """Digests of contents that the records say were destroyed."""

    def _begin(self) -> None:
        self._place = 0
        self._columns: defaultdict[str, list[Any]] = defaultdict(lambda: [None] * _TOGETHER)
        self._shown = _Wanted()
        self._guessed = _Wanted()
        self._waiting = 0

    def add(self, row: StoredRow) -> None:
        """One more row."""
        if self._place == _TOGETHER or self._waiting >= _LOADED:
            self._finish()
        place, columns = self._place, self._columns
        self._place += 1
        self.size += 1
        self.last = row
        position, session, seq, name, raw = row
        self.text_size += len(raw)
        columns["position"][place] = position
        columns["session"][place] = session
        columns["seq"][place] = seq
        columns["type"][place] = name
        plan: _Plan = _PLANS.get(name, _UNKNOWN)
        version, plain, parts, defaults, content_field, sent_again = plan
        content: _Reference | None = None
        try:
            state, is_exact = _decoded(raw)
            fields = state["data"]
            payload = (
                _readable(canonical_json(fields).decode()) if is_exact else orjson.dumps(fields).decode()
            )
            if name == "ledger.erased":  # what is no digest names no content
                self.erased.update(filter(_DIGEST.fullmatch, map(str, fields["digests"])))
            if version and state["v"] < version:
                fields = upcast(name, state["v"], version, fields)
            if content_field is not None and (value := fields.get(content_field)) is not None:
                content = _reference(value)
            recorded_at, grade, items = state["recorded_at"], state["grade"], fields.items()
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            columns["damage"][place] = f"{type(error).__name__}: {error}"
            return
        columns["recorded_at"][place] = recorded_at
        columns["grade"][place] = grade
        columns["payload"][place] = payload
        if tuple(state) == _BARE:
            columns["depth"][place] = 0
        else:
            self._stamp(place, state)
        for field, value in items:
            if (column := plain.get(field)) is not None:
                columns[column][place] = value
            elif field in parts and isinstance(value, dict):
                for part, column in parts[field]:
                    if part in value:
                        columns[column][place] = value[part]
        for field, column, default in defaults:
            if field not in fields:
                columns[column][place] = default
        if content is not None:
            columns["content_field"][place] = content_field
            self._show(place, content)
            if content_field == "arguments" and "effect_class" not in fields:
                self._guess_effect(place, fields.get("tool"), content)
        for field, column in sent_again.items():
            if field in fields:
                self._show_first(place, column, fields[field])

    def _stamp(self, place: int, state: dict[str, Any]) -> None:
        """What stands beside the fields of an event."""
        columns = self._columns
        columns["depth"][place] = state.get("depth", 0)
        for name in _STAMPS:
            if name in state:
                columns[name][place] = state[name]
        if isinstance(actor := state.get("actor"), dict):
            columns["actor_kind"][place] = actor.get("kind")
            columns["actor"][place] = actor.get("id")
        if (cause := state.get("cause")) is not None:
            columns["cause_seq" if isinstance(cause, int) else "cause_elsewhere"][place] = cause
        if isinstance(source := state.get("source"), dict):
            for name, column in _SOURCE.items():
                if name in source:
                    columns[column][place] = source[name]

    def _show(self, place: int, content: _Reference) -> None:
        """The content that a row shows."""
        digest, size, kind = content
        self._columns["content_digest"][place] = digest
        self._columns["content_size"][place] = size
        if kind != "bytes":
            self._want(place, "text", digest, size)

    def _guess_effect(self, place: int, tool: Any, arguments: _Reference) -> None:
        """The effect class of a call that declares none."""
        digest, size, kind = arguments
        if isinstance(tool, str) and self._makes("effect_guess"):
            self._guessed.add(
                place, tool, digest if kind == "json" and 0 <= size <= LARGEST_CONTENT else None
            )
            if not self._makes("text"):  # else it is counted as what the row shows
                self._waiting += size

    def _show_first(self, place: int, column: str, value: Any) -> None:
        """The text of a content at the first record that names it; nothing where it was given before."""
        if not isinstance(value, dict) or not isinstance(digest := value.get("digest"), str):
            return
        if digest not in self._given:
            self._given.add(digest)
            size = value.get("size")
            self._want(place, column, digest, size if isinstance(size, int) else 0)

    def _makes(self, column: str) -> bool:
        return self._columns_made is None or column in self._columns_made

    def _want(self, place: int, column: str, digest: str, size: int) -> None:
        if 0 <= size <= LARGEST_CONTENT and self._makes(column):
            self._shown.add(place, column, digest)
            self._waiting += size
            self.text_size += size if size < LONGEST_TEXT else LONGEST_TEXT

    def _finish(self) -> None:
        """Make a batch of the rows that wait."""
        columns, size = self._columns, self._place
        wanted = filter(None, (*self._shown.digests, *self._guessed.digests))
        found = self._contents(list(dict.fromkeys(wanted)))
        for place, column, digest in self._shown:
            if digest is not None and (content := found.get(digest)) is not None:
                columns[column][place] = _text(content)
        for place, tool, digest in self._guessed:
            columns["effect_guess"][place] = _guess(tool, None if digest is None else found.get(digest))
        arrays = [
            _array(_KINDS[field.name], columns[field.name][:size], field.type)
            if field.name in columns
            else pa.nulls(size, field.type)
            for field in self._schema
        ]
        self._batches.append(pa.RecordBatch.from_arrays(arrays, schema=self._schema))
        self._begin()

    def table(self) -> pa.Table:
        """The rows as a table of the schema, in the order in which they came."""
        if self._place:
            self._finish()
        return pa.Table.from_batches(self._batches, self._schema)


def _reference(value: Any) -> _Reference:
    """What a field points to. Raises for what is no reference: the record is damaged."""
    digest, size, kind = value["digest"], value["size"], value["kind"]
    if not isinstance(digest, str) or not isinstance(size, int):
        raise TypeError("a reference to content has no digest or no size")
    return digest, size, kind


def _guess(tool: str, content: bytes | None) -> EffectClass:
    """The effect class of a call that declares none, by its name and its arguments where they can be read."""
    arguments = None
    if content is not None:
        try:
            arguments = orjson.loads(content)
        except (ValueError, RecursionError):
            arguments = None
    return inferred_class(tool, arguments)


def _text(content: bytes) -> str | bytes:
    """What is shown of a content. The bytes of a short one are its text, or `_fitting` makes them so."""
    return content if len(content) <= LONGEST_TEXT else content.decode("utf-8", "replace")[:LONGEST_TEXT]


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
        match kind:
            case "time":
                return pc.cast(pa.array(values, pa.string()), wanted)
            case "money":
                return pa.array([_money(value) for value in values], wanted)
            case "count" | "flag":  # as whole numbers, an array would take fractions too, and cut them
                found = pa.array(values)
                if found.type in (wanted, pa.null()):
                    return found.cast(wanted)
            case _:
                return pa.array(values, wanted)
    except (pa.ArrowException, OverflowError, UnicodeEncodeError):
        pass
    return pa.array([_fitting(kind, value) for value in values], wanted)


def _fitting(kind: Kind, value: Any) -> Any:
    match kind, value:
        case "word" | "text", str():
            return value.encode("utf-8", "replace").decode()
        case "text", bytes():
            return value.decode("utf-8", "replace")
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
