"""The list of sessions: kept up in any steps, remade at will, bound to its store, never counting twice."""

import sqlite3
from collections.abc import Generator, Iterator
from contextlib import closing
from decimal import Decimal
from pathlib import Path

import pytest

from ledger.errors import StoreUnavailableError
from ledger.events import Draft, Event, Source
from ledger.events.model_call import ModelCallAnswered, ModelCallFailed, ModelCallRequested, Usage
from ledger.events.review import FindingRaised
from ledger.events.session import SessionEnded, SessionResumed, SessionStarted
from ledger.events.tool_call import ToolCallRequested
from ledger.home import Ledger, open_ledger
from ledger.store import Problem
from ledger.views.session_row import SessionRow
from ledger.views.sessions import VERSION, SessionsView


def _append(ledger: Ledger, session: str, *events: Event, time: str | None = None) -> None:
    source = Source("a-format", "file") if time else None
    drafts = [Draft(event, occurred_at=time, source=source) for event in events]
    ledger.recorder.append(session, drafts, ledger.recorder.keeper())


def _answer(
    ledger: Ledger, call_id: str, tokens: int, revision: int = 0, **fields: object
) -> ModelCallAnswered:
    keeper = ledger.recorder.keeper()
    return ModelCallAnswered.model_validate(
        {
            "call_id": call_id,
            "message": keeper.json("x"),
            "usage": Usage(input_tokens=tokens, output_tokens=1),
            "revision": revision,
            **fields,
        }
    )


def _rows(ledger: Ledger) -> list[SessionRow]:
    with SessionsView(ledger.home, ledger.store) as view:
        view.catch_up()
        return list(view.rows())


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    """An empty ledger."""
    with open_ledger(tmp_path) as opened:
        yield opened


def test_a_row_tells_what_the_records_tell(ledger: Ledger) -> None:
    keeper = ledger.recorder.keeper()
    call = ToolCallRequested(call_id="\ud83d", tool="t", arguments=keeper.json({}))
    finding = FindingRaised(
        finding_id="f", detector="d", severity="low", witnesses=("a#1",), message=keeper.text("!")
    )
    _append(ledger, "a", SessionStarted(harness="h", name="\ud83d", parent="p"), time="2026-01-02T00:00:00Z")
    _append(ledger, "a", call, finding, SessionEnded(outcome="failed"), SessionResumed())
    _append(ledger, "a", SessionEnded(outcome="completed"), time="2026-01-01T00:00:00Z")
    (row,) = _rows(ledger)
    assert (row.harness, row.parent, row.outcome, row.tool_calls, row.findings) == (
        "h",
        "p",
        "completed",
        1,
        1,
    )
    assert (row.started_at, row.last_at) == (
        "2026-01-02T00:00:00Z",
        "2026-01-01T00:00:00Z",
    )  # as given, never sorted
    assert (row.head_seq, row.integrity, row.as_json()["cost_usd"]) == (6, "unknown", None)


def test_a_revised_answer_takes_the_place_of_the_one_before(ledger: Ledger) -> None:
    _append(ledger, "a", _answer(ledger, "1", 100, cost_usd=Decimal("0.1")), _answer(ledger, "2", 7))
    assert _rows(ledger)[0].tokens["input"] == 107
    _append(ledger, "a", _answer(ledger, "1", 30, 1, cost_usd=Decimal("0.3")))
    _append(
        ledger, "a", _answer(ledger, "1", 40, 2, cost_usd=Decimal("0.4")), _answer(ledger, "\ud83d", 1, 1)
    )
    _append(ledger, "a", _answer(ledger, "3", 1000, synthetic=True))
    (row,) = _rows(ledger)
    assert row.tokens == {"input": 48, "output": 3, "cache_read": None, "cache_write": None}
    assert (row.model_calls, row.cost_usd) == (3, "0.4")


def test_any_steps_give_the_rows_of_one(ledger: Ledger) -> None:
    for number in range(7):
        for session in ("a", "b"):
            _append(ledger, session, _answer(ledger, str(number % 3), number, revision=number // 3))
            _rows(ledger)
    stepwise = _rows(ledger)
    with SessionsView(ledger.home, ledger.store) as view:
        assert view.rebuild() == view.position == ledger.store.last_position()
        assert list(view.rows()) == stepwise


def test_two_views_at_once_count_once(ledger: Ledger) -> None:
    with SessionsView(ledger.home, ledger.store) as one, SessionsView(ledger.home, ledger.store) as other:
        for number in range(6):
            _append(ledger, "a", _answer(ledger, str(number), 1))
            (one if number % 2 else other).catch_up()
        assert [row.model_calls for row in one.rows()] == [6]


def test_a_crash_in_a_batch_leaves_no_half(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(5):
        _append(ledger, "a", _answer(ledger, str(number), 1))
    with SessionsView(ledger.home, ledger.store) as view:
        with monkeypatch.context() as patch:
            patch.setattr(SessionRow, "packed", lambda row: 1 / 0)
            with pytest.raises(ZeroDivisionError):
                view.catch_up()
        assert (view.position, list(view.rows())) == (0, [])
        view.catch_up()
        assert [row.model_calls for row in view.rows()] == [5]


def test_the_file_of_another_store_is_not_believed(ledger: Ledger, tmp_path: Path) -> None:
    _append(ledger, "a", SessionStarted(harness="h"))
    _rows(ledger)
    ledger.close()
    for path in tmp_path.glob("ledger.sqlite*"):
        path.unlink()
    with open_ledger(tmp_path) as fresh:
        assert _rows(fresh) == []
        _append(fresh, "b", SessionStarted(harness="h"))
        assert [row.id for row in _rows(fresh)] == ["b"]


def test_a_damaged_file_is_made_again(ledger: Ledger, tmp_path: Path) -> None:
    _append(ledger, "a", SessionStarted(harness="h"))
    expected = _rows(ledger)
    path = tmp_path / "views" / f"sessions-v{VERSION}.sqlite"
    path.write_bytes(b"not a database, but long enough to be taken for one" * 100)
    assert _rows(ledger) == expected
    path.unlink()
    assert _rows(ledger) == expected


def test_a_home_that_cannot_be_written_is_said(ledger: Ledger, tmp_path: Path) -> None:
    (tmp_path / "views").write_text("in the way")
    with pytest.raises(StoreUnavailableError, match="views cannot be made"):
        SessionsView(tmp_path, ledger.store)


def test_a_record_that_cannot_be_read_is_counted_and_does_not_stop(ledger: Ledger, tmp_path: Path) -> None:
    _append(ledger, "a", SessionStarted(harness="h"), SessionEnded(outcome="completed"))
    with closing(sqlite3.connect(tmp_path / "ledger.sqlite")) as connection:
        connection.execute("drop trigger records_are_not_updated")
        connection.execute("update stored_events set state = x'00' where nid = 1")
        connection.commit()
    (row,) = _rows(ledger)
    assert (row.damaged, row.outcome, row.head_seq, row.integrity) == (1, "completed", 2, "problems")


def test_verifications_are_shown_until_more_comes(ledger: Ledger) -> None:
    for session in ("a", "b"):
        _append(ledger, session, SessionStarted(harness="h"))
    with SessionsView(ledger.home, ledger.store) as view:
        view.catch_up()
        view.note_verification([Problem("record_changed", "b", 1, "")])
        assert [row.integrity for row in view.rows()] == ["ok", "problems"]
        view.note_verification([], "b")
        assert [row.integrity for row in view.rows()] == ["ok", "ok"]
        _append(ledger, "a", SessionEnded(outcome="completed"))
        view.catch_up()
        assert [row.integrity for row in view.rows()] == ["unknown", "ok"]
        view.note_verification([Problem("storage_damaged", None, None, "")])
        assert [row.integrity for row in view.rows()] == ["unknown", "unknown"]


def test_the_last_and_the_children(ledger: Ledger) -> None:
    for number in range(5):
        _append(ledger, f"s{number}", SessionStarted(harness="h", parent="s0" if number else None))
    with SessionsView(ledger.home, ledger.store) as view:
        view.catch_up()
        assert [row.id for row in view.rows(2)] == ["s3", "s4"]
        assert [row.id for row in view.children("s0")] == ["s1", "s2", "s3", "s4"]


def test_rows_that_nobody_reads_to_the_end_outlive_the_view(ledger: Ledger) -> None:
    for number in range(3):
        _append(ledger, f"s{number}", SessionStarted(harness="h"))
    with SessionsView(ledger.home, ledger.store) as view:
        view.catch_up()
        rows = view.newest()
        assert isinstance(rows, Generator)
        next(rows)
    rows.close()  # as the end of a program whose reader, such as `head`, went away


def test_a_session_says_whether_its_answers_are_all_there(ledger: Ledger) -> None:
    def asked(call: str) -> Event:
        return ModelCallRequested(call_id=call, protocol="genai", completeness="none")

    steps: list[tuple[Event, str]] = [
        (SessionStarted(harness="h"), "complete"),
        (asked("1"), "partial"),
        (_answer(ledger, "1", 1), "complete"),
        (asked("2"), "partial"),
        (ModelCallFailed(call_id="2", error="overloaded"), "complete"),
        (asked("3"), "partial"),
        (_answer(ledger, "3", 1, completeness="aborted"), "aborted"),
        (asked("4"), "aborted"),
        (_answer(ledger, "4", 1), "partial"),
        (_answer(ledger, "3", 1, revision=1), "complete"),
        (SessionEnded(outcome="aborted"), "aborted"),
    ]
    for event, expected in steps:
        _append(ledger, "a", event)
        assert [row.completeness for row in _rows(ledger)] == [expected]
    with SessionsView(ledger.home, ledger.store) as view:
        view.rebuild()
    assert [row.completeness for row in _rows(ledger)] == ["aborted"]
