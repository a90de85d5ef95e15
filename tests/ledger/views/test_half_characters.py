"""No text that a source may write keeps a list from being made: each text of each event ends in half a character."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from ledger.events import EVENTS, Actor, Draft, Event, Source
from ledger.events.canonical import decode_json
from ledger.home import Ledger, open_ledger
from ledger.store import EventStore
from ledger.views.approvals import ApprovalsView
from ledger.views.branches import BranchesView
from ledger.views.checkpoints import CheckpointsView
from ledger.views.events import EventsView
from ledger.views.findings_list import FindingsView
from ledger.views.replays import ReplaysView
from ledger.views.search import SearchView
from ledger.views.sessions import SessionsView
from ledger.views.standing import StandingView
from ledger.views.view_file import ViewFile
from tests.ledger.events.histories import read_golden

HALF = "\ud83d"


def _events_view(home: Path, store: EventStore) -> EventsView:
    return EventsView(home, store, lambda record: HALF)


VIEWS: tuple[Callable[[Path, EventStore], ViewFile], ...] = (
    ApprovalsView,
    BranchesView,
    CheckpointsView,
    _events_view,
    FindingsView,
    ReplaysView,
    SearchView,
    SessionsView,
    StandingView,
)


def _halved(value: Any) -> Any:
    if isinstance(value, str):
        return value + HALF
    if isinstance(value, dict):
        return {key: _halved(one) for key, one in value.items()}
    return [_halved(one) for one in value] if isinstance(value, list) else value


def _events() -> Iterator[Event]:
    """Each event with all its fields; those that may hold any text hold half a character."""
    kinds = {kind.TYPE: kind for kind in EVENTS}
    for line in read_golden():
        if line.fields == "all":
            fields = decode_json(line.state.encode())["data"]
            for name, value in fields.items():
                try:
                    kinds[line.event].model_validate(fields | {name: _halved(value)})
                except ValueError:
                    continue  # a digest, a number, a word of a closed set
                fields = fields | {name: _halved(value)}
            yield kinds[line.event].model_validate(fields)


@pytest.fixture(scope="module")
def ledger(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ledger]:
    """A ledger with all events."""
    with open_ledger(tmp_path_factory.mktemp("halves")) as opened:
        around: dict[str, Any] = {
            "occurred_at": HALF,
            "actor": Actor("human", HALF),
            "correlation": HALF,
            "agent": HALF,
            "source": Source(HALF, HALF, HALF),
        }
        drafts = [Draft(event, **around) for event in _events()]
        opened.recorder.append("a", drafts, opened.recorder.keeper())
        yield opened


@pytest.mark.parametrize("make", VIEWS)
def test_half_a_character_keeps_no_list_from_being_made(
    ledger: Ledger, make: Callable[[Path, EventStore], ViewFile]
) -> None:
    with make(ledger.home, ledger.store) as view:
        assert view.catch_up() == ledger.store.last_position()


def test_a_session_whose_parent_and_start_are_half_characters_is_listed(ledger: Ledger) -> None:
    with SessionsView(ledger.home, ledger.store) as view:
        view.catch_up()
        (row,) = view.rows()
        assert row.started_at == HALF
        assert list(view.newest()) == [row]
        assert list(view.newest(("?", "b"))) == [row]  # after another that started at the same time
