"""Windows of a list: whatever the filter, each event stands in exactly one, and the sums agree with the store."""

from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ledger.cli.records import outline
from ledger.events import Draft
from ledger.events.model_call import ModelCallAnswered, Usage
from ledger.events.session import SessionStarted
from ledger.home import open_ledger
from ledger.views.event_row import LEVELS, level_of
from ledger.views.events import EventsView, Wanted
from tests.webui.long_session import LONG, fill_long
from tests.webui.site import HOSTILE, PLAIN, Site, site
from webui.minimap import drawn
from webui.windows import ROWS, gap, neighbours, window_at

EVENTS = 1_234

WANTED = [
    Wanted(),
    Wanted(level="high"),
    Wanted(level="medium"),
    Wanted(kind="tool_call"),
    Wanted(kind="tool_call.settled", level="medium"),
    Wanted(text="SHELF_3"),
    Wanted(agent="shopkeeper"),
    Wanted(kind="nothing"),
    Wanted(first=60, last=333),
    Wanted(level="medium", first=1000),
]


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A site with a session of some windows."""
    with site(tmp_path_factory.mktemp("windows"), fill=lambda ledger: fill_long(ledger, EVENTS)) as made:
        yield made


@pytest.fixture(scope="module")
def view(shop: Site) -> Iterator[EventsView]:
    """Its list of events."""
    with EventsView(shop.ledger.home, shop.ledger.store, outline) as made:
        made.catch_up()
        yield made


@pytest.mark.parametrize("wanted", WANTED, ids=str)
def test_windows_partition_a_filtered_list(view: EventsView, wanted: Wanted) -> None:
    seen: list[int] = []
    at: int | None = 1
    while at is not None:
        window = window_at(view, LONG, wanted, at)
        assert window.number == len(seen) // ROWS
        seen += [row.seq for row in window.rows]
        at = window.later
    assert seen == [row.seq for row in view.window(LONG, wanted, first=1, count=EVENTS)]
    assert len(seen) == view.counts(LONG, wanted, 0)[0]
    assert seen[::ROWS] == view.bounds(LONG, wanted, ROWS)


def test_a_text_is_found_wherever_a_row_says_it_whatever_it_is_made_of(view: EventsView) -> None:
    rows = view.window(HOSTILE, Wanted(), first=1, count=10_000)
    assert any("\0" in row.said for row in rows)
    pieces = {row.said[place : place + 6] for row in rows for place in (0, 9, 30)} - {""}
    behind = {row.said.rpartition("\0")[2][:6] for row in rows if "\0" in row.said} - {""}
    for text in [*sorted(pieces)[::7], *sorted(behind), "%", "_", "\\", "%_", "SETTLED", "no such text"]:
        found = [row.seq for row in view.window(HOSTILE, Wanted(text=text), first=1, count=10_000)]
        small = lowered(text)
        assert found == [row.seq for row in rows if small in lowered(row.said) or small in row.type], repr(
            text
        )


def lowered(text: str) -> str:
    """In small letters as SQLite makes them: only those of ASCII."""
    return "".join(char.lower() if char.isascii() else char for char in text)


@given(at=st.integers(0, 2 * EVENTS), wanted=st.sampled_from(WANTED))
@settings(max_examples=60)
def test_any_place_gives_the_same_windows(view: EventsView, at: int, wanted: Wanted) -> None:
    window = window_at(view, LONG, wanted, at)
    if not window.rows:
        assert view.counts(LONG, wanted, 0)[0] == 0
        return
    assert len(window.rows) == min(ROWS, window.shown - window.number * ROWS)
    assert window.rows[0].seq == view.bounds(LONG, wanted, ROWS)[window.number]
    inside = [row.seq for row in window.rows]
    assert window.earlier is None or window_at(view, LONG, wanted, window.earlier).number == window.number - 1
    after = [row.seq for row in view.window(LONG, wanted, first=at, count=1)]
    assert not after or after[0] in inside


def test_sums_agree_with_the_store(shop: Site, view: EventsView) -> None:
    counts = dict.fromkeys(LEVELS, 0)
    for record in shop.ledger.store.read(LONG):
        counts[level_of(record.event)] += 1
    for most in (1, 7, 24, 120, 10_000):
        buckets = view.buckets(LONG, most)
        assert len(buckets) <= most
        sums = {level: sum(getattr(bucket, level) for bucket in buckets) for level in LEVELS}
        assert sums == counts
        assert [bucket.first for bucket in buckets] == sorted({bucket.first for bucket in buckets})
        drawing = drawn(buckets, EVENTS)
        assert (drawing.high, drawing.medium) == (counts["high"], counts["medium"])


def test_a_finding_raises_its_witnesses(view: EventsView) -> None:
    witness = view.window(PLAIN, Wanted(), first=3, count=1)[0]
    assert (witness.weight, witness.findings) == ("high", 1)


def test_neighbours_are_those_of_the_filter(view: EventsView) -> None:
    weighty = [row.seq for row in view.window(LONG, Wanted(level="medium"), first=1, count=10)]
    assert neighbours(view, LONG, Wanted(level="medium"), weighty[3]) == (weighty[2], weighty[4])
    assert neighbours(view, LONG, Wanted(level="medium"), 1) == (None, weighty[0])


def test_the_list_is_the_same_when_it_is_made_again(shop: Site, view: EventsView) -> None:
    before = view.window(PLAIN, Wanted(), first=1, count=500), view.buckets(PLAIN, 24), view.kinds(PLAIN)
    view.rebuild()
    assert before == (
        view.window(PLAIN, Wanted(), first=1, count=500),
        view.buckets(PLAIN, 24),
        view.kinds(PLAIN),
    )


@pytest.mark.parametrize(
    ("before", "at", "told"),
    [
        ("2026-01-01T10:00:00Z", "2026-01-01T12:14:59Z", "2 h 14 min"),
        ("2026-01-01T10:00:00Z", "2026-01-03T10:15:00Z", "2 d 15 min"),
        ("2026-01-01T10:00:00Z", "2026-01-01T10:14:00Z", ""),
        ("2026-01-01T10:00:00Z", "2026-01-01T09:00:00Z", ""),
        ("2026-01-01T10:00:00", "2026-01-01T12:00:00Z", ""),
        ("yesterday", "2026-01-01T12:00:00Z", ""),
        (None, "2026-01-01T12:00:00Z", ""),
    ],
)
def test_a_gap_is_told_in_words(before: str | None, at: str | None, told: str) -> None:
    assert gap(before, at) == told


def test_a_revised_answer_counts_once(tmp_path: Path) -> None:
    with open_ledger(tmp_path) as ledger, EventsView(ledger.home, ledger.store, outline) as view:
        keeper = ledger.recorder.keeper()

        def answer(revision: int, tokens: int) -> Draft:
            return Draft(
                ModelCallAnswered(
                    call_id="m1",
                    message=keeper.text(f"reading {revision}"),
                    usage=Usage(input_tokens=tokens),
                    cost_usd=Decimal(1),
                    revision=revision,
                )
            )

        ledger.recorder.append("revised", [Draft(SessionStarted(harness="test")), answer(0, 10)], keeper)
        view.catch_up()
        ledger.recorder.append("revised", [answer(1, 25), answer(2, 40)], keeper)
        view.catch_up()
        assert [row.tokens for row in view.window("revised", Wanted(), first=1, count=9)] == [0, 0, 0, 40]
        assert sum(bucket.tokens for bucket in view.buckets("revised", 10)) == 40
        assert view.costs("revised", 100) == [(1, 1.0)]
