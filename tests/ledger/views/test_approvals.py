"""The queue of approvals: kept up in any steps, remade at will, as the records tell, and no use is given back."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from ledger.capture import record_loop
from ledger.capture.gates.deciding import Verdict, decide
from ledger.capture.gates.questions import Questions
from ledger.effects.loop_policy import ApprovalRule
from ledger.events import Draft, Event
from ledger.events.approval import ApprovalAsked, ApprovalDecided, ApprovalUsed
from ledger.events.input import MessageReceived
from ledger.events.recovery import RolledBack
from ledger.home import Ledger, open_ledger
from ledger.views.approvals import ApprovalsView, QuestionRow
from tests.commands import answer, run


def _append(ledger: Ledger, session: str, *events: Event) -> None:
    ledger.recorder.append(session, [Draft(event) for event in events], ledger.recorder.keeper())


def _asked(name: str, key: str | None = "k") -> ApprovalAsked:
    return ApprovalAsked(approval_id=name, tool="send", key=key, arguments_digest="a" * 64)


def _yes(name: str) -> ApprovalDecided:
    return ApprovalDecided(approval_id=name, outcome="approved", decided_by="human", scope="once")


def _no(name: str) -> ApprovalDecided:
    return ApprovalDecided(approval_id=name, outcome="denied", decided_by="human")


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    """An empty ledger."""
    with open_ledger(tmp_path) as opened:
        yield opened


def _rows(ledger: Ledger) -> list[QuestionRow]:
    with ApprovalsView(ledger.home, ledger.store) as view:
        view.catch_up()
        return view.rows()


def test_a_row_tells_what_the_records_tell_whatever_the_steps(ledger: Ledger) -> None:
    steps: list[tuple[str, Event]] = [
        ("s", _asked("one")),
        ("t", _asked("one", key=None)),
        ("s", _asked("two")),
        ("s", _yes("one")),
        ("s", _no("one")),
        ("s", _asked("one", key="again")),
        ("s", ApprovalUsed(approval_id="one", call_id="c")),
        ("t", _no("unasked")),
        ("t", _no("one")),
        ("s", ApprovalUsed(approval_id="one", call_id="d")),
    ]
    for session, event in steps:
        _append(ledger, session, event)
        _rows(ledger)
    by_steps = _rows(ledger)
    assert [(row.session, row.approval_id, row.asked, row.is_queued, row.decided, row.outcome, row.used)
            for row in by_steps] == [
        ("s", "one", 1, True, 3, "approved", 2),
        ("t", "one", 1, False, 3, "denied", 0),
        ("s", "two", 2, True, None, None, 0),
    ]  # fmt: skip
    with ApprovalsView(ledger.home, ledger.store) as view:
        view.rebuild()
        assert view.rows() == by_steps
        assert [row.approval_id for row in view.open_rows()] == ["two"]
        assert [row.session for row in view.rows(session="t")] == ["t"]
        assert len(view.rows(limit=2)) == 2
        from_rows = list(view.questions(by_steps))
    folded = Questions()
    folded.take_all(ledger.store.read_all())
    assert from_rows == list(folded.by_id.values())


def test_questions_are_found_by_the_start_of_their_id(ledger: Ledger) -> None:
    for name in ("abc", "abcd", "abz", "b%_", "\ud83d"):
        _append(ledger, "s", _asked(name))
    _append(ledger, "s", _asked("abx", key=None))
    with ApprovalsView(ledger.home, ledger.store) as view:
        view.catch_up()
        assert [row.approval_id for row in view.named("ab", 9)] == ["abc", "abcd", "abz"]
        assert [row.approval_id for row in view.named("abcd", 9)] == ["abcd"]
        assert [row.approval_id for row in view.named("abc", 1)] == ["abc"]
        assert [row.approval_id for row in view.named("b%", 9)] == ["b%_"]
        assert view.named("ab%", 9) == []


def test_a_rollback_gives_no_use_back(ledger: Ledger) -> None:
    rule = ApprovalRule(tool="send", timeout=3600)
    runs: list[str] = []
    with record_loop(ledger, harness="test", session="s"):
        _append(ledger, "s", MessageReceived(origin="human", message=ledger.recorder.keeper().text("x")))
        at = ledger.store.head("s").seq

    def attempt(verdict: Verdict) -> None:
        with record_loop(ledger, harness="test", session="s") as loop:
            approval_id = loop._gate.pose(loop._asked("send", {}, rule, "k", None, None, None)).approval_id
            decide(ledger.recorder, "s", approval_id, verdict)
            loop.tool(lambda: runs.append("sent"), {}, name="send", needs_approval=rule, approval_key="k")

    attempt(Verdict("approved", "alice"))
    _append(ledger, "s", RolledBack(to_seq=at))
    attempt(Verdict("approved", "bob"))
    assert runs == ["sent", "sent"]
    assert [(row.outcome, row.used) for row in _rows(ledger)] == [("approved", 1), ("approved", 1)], (
        "the second call had to ask anew"
    )


def test_the_commands_answer_from_the_queue(tmp_path: Path) -> None:
    with open_ledger(tmp_path) as ledger:
        _append(ledger, "s", _asked("first-one"), _asked("first-two"), _asked("other", key=None))
    listed = answer(tmp_path, "approvals")
    assert [one["id"] for one in listed] == ["first-one", "first-two"]
    assert "several questions" in run(tmp_path, "approve", "first").stderr
    assert run(tmp_path, "approve", "other").exit_code == 2
    assert run(tmp_path, "approve", "").exit_code == 2
    assert answer(tmp_path, "deny", "first-t", "--by", "alice")["status"] == "denied"
    assert [one["id"] for one in answer(tmp_path, "approvals")] == ["first-one"]
    assert [one["status"] for one in answer(tmp_path, "approvals", "--all")] == ["open", "denied"]
    (tmp_path / "views" / "approvals-v1.sqlite").write_bytes(b"no database")
    assert [one["id"] for one in answer(tmp_path, "approvals")] == ["first-one"]
