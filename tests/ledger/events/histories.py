"""Golden records: the bytes of every event of every released version, as they were first stored.

`python -m tests.ledger.events.histories` adds the lines that `events.jsonl` does not have yet, and changes none.
"""

import json
import types
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any, Literal, NamedTuple, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from ledger.events import EVENTS, Actor, Draft, Event, Source
from ledger.store.mapper import GENESIS, encode_state, record_hash

FILE = Path(__file__).parents[3] / "fixtures" / "histories" / "v1" / "events.jsonl"
"""One JSON object a line; see the README beside its folder."""

SESSION = "history"
"""Session that the golden records make up."""


class Golden(NamedTuple):
    """One line of the file."""

    event: str
    """Stored name."""
    version: int
    """Schema version."""
    fields: str
    """`all`: every field has a value that is not its default; `least`: only what has no default."""
    seq: int
    """Place in the session."""
    hash: str
    """Hash of the record."""
    state: str
    """The stored bytes, as text."""


def read_golden() -> list[Golden]:
    """The lines that there are."""
    if not FILE.exists():
        return []
    return [Golden(**json.loads(line)) for line in FILE.read_text(encoding="ascii").splitlines()]


def _value(annotation: Any, name: str, default: Any) -> Any:
    """A value of a field's type that is not its default; the same each time."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin in (Union, types.UnionType):
        return _value(next(one for one in arguments if one is not type(None)), name, default)
    if origin is Literal:
        return next(one for one in arguments if one != default)
    if origin is tuple:
        return (_value(arguments[0], name, None), _value(arguments[0], name, None))
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation(**{key: _given(field, key) for key, field in annotation.model_fields.items()})
    values: dict[Any, Any] = {
        str: f'{name}: ä \U0001f600 \u2028 "quoted" \\ \x01',
        int: 12345,
        bool: not default,
        Decimal: Decimal("0.012345"),
    }
    return values[annotation]


def _given(field: FieldInfo, name: str) -> Any:
    limits = {getattr(rule, "max_length", None) for rule in field.metadata} - {None}
    is_digest = 64 in limits or "Digest" in str(field.annotation) or "max_length=64" in str(field.annotation)
    if is_digest and get_origin(field.annotation) is not tuple:
        return (name.encode().hex() * 64)[:64]
    return _value(field.annotation, name, None if field.is_required() else field.default)


def _drafts(event: type[Event]) -> Iterator[tuple[str, Draft]]:
    given = {name: _given(field, name) for name, field in event.model_fields.items()}
    least = {name: given[name] for name, field in event.model_fields.items() if field.is_required()}
    yield "least", Draft(event(**least))
    yield (
        "all",
        Draft(
            event(**given),
            occurred_at="2026-01-02T03:04:05.678901Z",
            actor=Actor("human", "somebody"),
            cause=f"{SESSION}#1",
            correlation="turn 1",
            agent="helper",
            depth=2,
            source=Source("format", "folder/file.jsonl", "native id", 7, "ab" * 32),
            grade="semantic",
        ),
    )


def _told(line: Golden) -> dict[str, Any]:
    data: dict[str, Any] = json.loads(line.state)["data"]
    return data


def _add_missing() -> None:
    lines = read_golden()
    known = {(line.event, line.version, line.fields): line for line in lines}
    for event in EVENTS:
        for fields, draft in _drafts(event):
            line = known.get((event.TYPE, event.VERSION, fields))
            # A released event may gain optional fields: then it gets one more line with all that it has now.
            if line is not None and (fields == "least" or event.model_fields.keys() <= _told(line).keys()):
                continue
            previous = lines[-1].hash if lines else GENESIS.hex()
            cause = draft.cause
            assert cause is None or isinstance(cause, str)
            state = encode_state(draft, cause, "2026-01-02T03:04:06.000000Z", previous)
            seq = len(lines) + 1
            digest = record_hash(SESSION, seq, event.TYPE, state).hex()
            lines.append(Golden(event.TYPE, event.VERSION, fields, seq, digest, state.decode()))
    text = "".join(json.dumps(line._asdict()) + "\n" for line in lines)
    FILE.parent.mkdir(parents=True, exist_ok=True)
    FILE.write_text(text, encoding="ascii")


if __name__ == "__main__":
    _add_missing()
