"""The catalogue: every event is named and described, and every released record reads as it was written."""

import re
from typing import Any

import pytest
from eventsourcing.persistence import Notification

from ledger.events import BY_NAME, EVENTS, Draft, Event, Record
from ledger.events.canonical import canonical_json, decode_json
from ledger.events.record import Part
from ledger.events.upcasts import UPCASTS, upcast
from ledger.store.mapper import GENESIS, decode_record, encode_state
from tests.ledger.events.histories import SESSION, Golden, read_golden

_GOLDEN = read_golden()


def _decoded(line: Golden) -> Record:
    return decode_record(Notification(SESSION, line.seq, line.event, line.state.encode(), line.seq))


@pytest.mark.parametrize(
    "line", _GOLDEN, ids=[f"{line.event}-{line.version}-{line.fields}" for line in _GOLDEN]
)
def test_a_released_record_reads_as_it_was_written(line: Golden) -> None:
    record = _decoded(line)
    assert record.type == line.event
    assert record.hash == line.hash
    assert canonical_json(decode_json(line.state)) == line.state.encode()
    if line.version < BY_NAME[line.event].VERSION:
        return  # written anew, it would be of the newer version
    again = Draft(
        record.event,
        occurred_at=record.occurred_at,
        actor=record.actor,
        correlation=record.correlation,
        agent=record.agent,
        depth=record.depth,
        source=record.source,
        grade=record.grade,
    )
    state = encode_state(again, record.cause, record.recorded_at, record.previous)
    assert state == line.state.encode()


def test_the_released_records_are_one_chain() -> None:
    previous = GENESIS.hex()
    for line in _GOLDEN:
        assert _decoded(line).previous == previous
        previous = line.hash


@pytest.mark.parametrize("event", EVENTS, ids=lambda event: str(event.TYPE))
def test_every_event_has_golden_records(event: type[Event]) -> None:
    lines = {
        line.fields: line for line in _GOLDEN if (line.event, line.version) == (event.TYPE, event.VERSION)
    }
    assert lines.keys() == {"least", "all"}, (
        f"{event.TYPE} of version {event.VERSION} has no golden records yet:"
        " run python -m tests.ledger.events.histories, which adds them"
    )
    defaults = {name: field.default for name, field in event.model_fields.items() if not field.is_required()}
    least, everything = (_decoded(lines[fields]).event for fields in ("least", "all"))
    assert {name: getattr(least, name) for name in defaults} == defaults
    assert all(getattr(everything, name) != default for name, default in defaults.items())


def _parts() -> list[type[Part]]:
    found: list[type[Part]] = []
    waiting: list[Any] = [Part]
    while waiting:
        part = waiting.pop()
        waiting.extend(part.__subclasses__())
        if part.__module__.startswith("ledger."):
            found.append(part)
    return found


@pytest.mark.parametrize("part", _parts(), ids=lambda part: str(part.__name__))
def test_every_event_and_field_is_described(part: type[Part]) -> None:
    assert part.__doc__, (
        f"{part.__name__} needs a docstring of one sentence: what is a fact when it is recorded?"
    )
    for name, field in part.model_fields.items():
        assert field.description, f"{part.__name__}.{name} needs a docstring under it: what does it mean?"


def test_names_are_nouns_and_what_happened() -> None:
    assert len(BY_NAME) == len(EVENTS)
    for name in BY_NAME:
        assert re.fullmatch(r"[a-z]+(_[a-z]+)*\.[a-z]+(_[a-z]+)*", name), f"{name} is not noun.verbed"


def test_every_event_class_is_in_the_catalogue() -> None:
    classes = {part for part in _parts() if issubclass(part, Event)} - {Event, BY_NAME.get("unknown", Event)}
    strangers = {part.__name__ for part in classes - set(EVENTS)} - {"UnknownEvent"}
    assert not strangers, f"{strangers} need a line in ledger/events/catalog.py"


@pytest.mark.parametrize("event", EVENTS, ids=lambda event: str(event.TYPE))
def test_events_are_frozen_and_refuse_what_they_do_not_know(event: type[Event]) -> None:
    record = _decoded(next(line for line in _GOLDEN if line.event == event.TYPE))
    name = next(iter(event.model_fields))
    with pytest.raises(ValueError, match="frozen"):
        setattr(record.event, name, getattr(record.event, name))
    with pytest.raises(ValueError, match="Extra inputs"):
        event.model_validate(record.event.model_dump() | {"surely_no_field": 1})


class _Renamed(Event, name="test.renamed", version=3):
    """An event that had another shape in versions 1 and 2."""

    title: str
    """Was `name` in version 1."""

    count: int
    """Was a text in version 2."""


def test_older_versions_are_brought_up_step_by_step(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(BY_NAME, "test.renamed", _Renamed)
    monkeypatch.setitem(
        UPCASTS, ("test.renamed", 1), lambda old: {"title": old["name"], "count": old["count"]}
    )
    monkeypatch.setitem(UPCASTS, ("test.renamed", 2), lambda old: old | {"count": int(old["count"])})
    stored = {
        1: {"name": "x", "count": "7"},
        2: {"title": "x", "count": "7"},
        3: {"title": "x", "count": 7},
    }
    for version, fields in stored.items():
        state = {"data": fields, "grade": "wire", "prev": "0" * 64, "recorded_at": "", "v": version}
        record = decode_record(Notification("s", 1, "test.renamed", canonical_json(state), 1))
        assert record.event == _Renamed(title="x", count=7)
        assert fields == stored[version]


def test_a_missing_step_is_an_error() -> None:
    with pytest.raises(KeyError):
        upcast("test.never_was", 1, 2, {})


def test_every_step_leads_to_a_version_that_there_is() -> None:
    for name, version in UPCASTS:
        assert version < BY_NAME[name].VERSION
