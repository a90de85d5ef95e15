"""The tree of branches: forks, runs on recorded answers, futures that rollbacks gave up, and what each cost."""

from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ledger.capture import record_loop
from ledger.events import Draft, Event
from ledger.events.input import MessageReceived
from ledger.events.model_call import ModelCallAnswered, Usage
from ledger.events.recovery import CheckpointTaken, RolledBack
from ledger.events.replaying import ReplayAnswered
from ledger.events.session import SessionEnded, SessionForked, SessionStarted
from ledger.home import Ledger, open_ledger
from ledger.store import EventStore
from ledger.views.branch_tree import Branch, branch_tree, walk
from ledger.views.branches import BranchesView
from ledger.views.sessions import SessionsView
from replay.inprocess import branch_loop
from tests.ledger.capture.loops import chat_answer
from tests.replay.histories import fresh_ledger


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    """An empty ledger."""
    with open_ledger(tmp_path) as opened:
        yield opened


def append(ledger: Ledger, session: str, *events: Event) -> int:
    """Append; the last seq."""
    drafts = [Draft(event) for event in events]
    return ledger.recorder.append(session, drafts, ledger.recorder.keeper())[-1].seq


def said(ledger: Ledger, text: str = "x") -> MessageReceived:
    return MessageReceived(origin="human", message=ledger.recorder.keeper().text(text))


def answered(ledger: Ledger, call_id: str, tokens: int = 1, **fields: Any) -> ModelCallAnswered:
    message = ledger.recorder.keeper().json(call_id)
    usage = Usage(input_tokens=tokens)
    return ModelCallAnswered(call_id=call_id, message=message, usage=usage, **fields)


def tree_of(ledger: Ledger, session: str) -> Branch:
    with (
        SessionsView(ledger.home, ledger.store) as sessions,
        BranchesView(ledger.home, ledger.store) as view,
    ):
        sessions.catch_up()
        view.catch_up()
        return branch_tree(sessions, view, session)


def outline(tree: Branch) -> list[tuple[int, str, str, int | None, int]]:
    """Depth, id, kind, place, input tokens."""
    return [
        (depth, one.id, one.kind, one.at_seq, one.spent.tokens.get("input", 0)) for depth, one in walk(tree)
    ]


def test_forks_stand_where_they_left_and_each_pays_for_itself(ledger: Ledger) -> None:
    append(ledger, "root", SessionStarted(harness="h", name="a title"), said(ledger))
    at = append(ledger, "root", answered(ledger, "m1", 10))
    append(ledger, "fork", SessionStarted(harness="h"), SessionForked(origin="root", origin_seq=at))
    append(ledger, "fork", said(ledger, "else"), answered(ledger, "m1", 5, cost_usd=Decimal("0.5")))
    append(ledger, "inner", SessionStarted(harness="h"), SessionForked(origin="fork", origin_seq=3))
    append(ledger, "root", answered(ledger, "m2", 100), SessionEnded(outcome="completed"))
    expected = [
        (0, "root", "root", None, 110),
        (1, "fork", "fork", 3, 5),
        (2, "inner", "fork", 3, 0),
    ]
    for name in ("root", "fork", "inner"):
        assert outline(tree_of(ledger, name)) == expected
    tree = tree_of(ledger, "inner")
    assert (tree.name, tree.outcome, tree.head_seq) == ("a title", "completed", 5)
    fork = tree.branches[0]
    assert (fork.spent.cost_usd, fork.head_seq) == (Decimal("0.5"), 4)
    assert fork.difference is not None and fork.difference.here and fork.difference.there
    assert (fork.difference.here.seq, fork.difference.here.type) == (3, "input.message_received")
    assert (fork.difference.there.seq, fork.difference.there.type) == (4, "model_call.answered")
    inner = fork.branches[0].difference
    assert inner is not None and inner.here is None and inner.there and inner.there.seq == 4


def test_a_head_moves_with_each_append(ledger: Ledger) -> None:
    append(ledger, "root", SessionStarted(harness="h"))
    append(ledger, "fork", SessionStarted(harness="h"), SessionForked(origin="root", origin_seq=1))
    for seq in range(3, 9):
        append(ledger, "fork", said(ledger))
        assert tree_of(ledger, "root").branches[0].head_seq == seq
    assert tree_of(ledger, "root").head_seq == 1


def test_a_future_that_was_given_up_is_a_branch_with_its_own_cost(ledger: Ledger) -> None:
    append(ledger, "s", SessionStarted(harness="h"), answered(ledger, "m1", 1), said(ledger, "wrong"))
    append(ledger, "s", CheckpointTaken(checkpoint_id="c", seq=2))
    append(ledger, "s", answered(ledger, "m2", 10))
    append(ledger, "other", SessionStarted(harness="h"), SessionForked(origin="s", origin_seq=5))
    rolled = append(ledger, "s", RolledBack(checkpoint_id="c"))
    append(ledger, "s", said(ledger, "right"), answered(ledger, "m3", 100))
    tree = tree_of(ledger, "s")
    assert outline(tree) == [
        (0, "s", "root", None, 101),
        (1, f"s~{rolled}", "abandoned", 2, 10),
        (2, "other", "fork", 5, 0),
    ]
    given_up = tree.branches[0]
    assert (given_up.head_seq, given_up.outcome, given_up.parent) == (rolled - 1, "rolled_back", "s")
    assert given_up.difference is not None and given_up.difference.here and given_up.difference.there
    assert (given_up.difference.here.seq, given_up.difference.there.seq) == (3, rolled + 1)
    assert tree.branches[0].branches[0].parent == given_up.id


def test_a_future_given_up_on_a_future_given_up_stands_there(ledger: Ledger) -> None:
    append(ledger, "s", SessionStarted(harness="h"), answered(ledger, "m1", 1), answered(ledger, "m2", 2))
    append(ledger, "s", RolledBack(to_seq=2))  # 4 gives up 3
    append(ledger, "s", answered(ledger, "m3", 4))
    append(ledger, "s", RolledBack(to_seq=1))  # 6 gives up 2 to 5, and with them what 4 gave up
    append(ledger, "s", answered(ledger, "m4", 8))
    assert outline(tree_of(ledger, "s")) == [
        (0, "s", "root", None, 8),
        (1, "s~6", "abandoned", 1, 5),
        (2, "s~4", "abandoned", 2, 2),
    ]


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.one_of(st.none(), st.integers(0, 12)), min_size=1, max_size=25))
def test_every_answer_is_paid_for_on_one_branch(steps: list[int | None]) -> None:
    """A rollback takes from a line what came after its target, and each future ends up in one place."""
    with fresh_ledger() as ledger:
        alive: list[int] = []
        append(ledger, "s", SessionStarted(harness="h"))
        for step in steps:
            seq = ledger.store.head("s").seq + 1
            if step is None:
                append(ledger, "s", answered(ledger, f"m{seq}", 1))
                alive.append(seq)
            else:
                append(ledger, "s", RolledBack(to_seq=min(step, seq - 1)))
                alive = [one for one in alive if one <= step]
        tree = tree_of(ledger, "s")
        answers = steps.count(None)
        assert tree.spent.model_calls == len(alive)
        assert sum(one.spent.model_calls for _, one in walk(tree)) == answers
        assert len(list(walk(tree))) == 1 + len(steps) - answers


def test_a_run_on_recorded_answers_pays_only_for_what_it_asked(ledger: Ledger) -> None:
    def agent(run: Any) -> None:
        messages: list[Any] = []
        for turn in range(3):
            messages.append({"role": "user", "content": f"turn {turn}"})
            run.model(lambda **_: chat_answer(f"answer {turn}"), model="m", messages=messages)  # noqa: B023

    with record_loop(ledger, harness="test") as run:
        agent(run)
    asked = [record.seq for record in ledger.store.read(run.session, names=("model_call.requested",))]
    with branch_loop(ledger, run.session, at=asked[1] - 1) as branch:
        agent(branch)
    tree = tree_of(ledger, run.session)
    (made,) = tree.branches
    assert (made.kind, made.session) == ("run_again", branch.report.replay_session)
    assert (tree.spent.model_calls, tree.spent.tokens["input"]) == (3, 18)
    assert made.spent.tokens["input"] == 12, "two of its three answers were asked for"
    assert made.difference is not None and made.difference.here and made.difference.there
    assert made.difference.here.type == made.difference.there.type == "model_call.requested"
    assert made.difference.there.seq == asked[1]
    with SessionsView(ledger.home, ledger.store) as sessions:
        sessions.catch_up()
        row = sessions.row(made.session)
        assert row is not None and row.tokens["input"] == 12


def test_delegated_sessions_count_for_who_handed_over(ledger: Ledger) -> None:
    append(ledger, "s", SessionStarted(harness="h"), answered(ledger, "m", 1))
    append(ledger, "s.a", SessionStarted(harness="h", parent="s"), answered(ledger, "m", 10))
    append(ledger, "s.a.b", SessionStarted(harness="h", parent="s.a"), answered(ledger, "m", 100))
    append(ledger, "circle", SessionStarted(harness="h", parent="circle"), answered(ledger, "m", 7))
    tree = tree_of(ledger, "s")
    assert (tree.spent.tokens, tree.delegated.tokens) == ({"input": 1}, {"input": 110})
    assert tree_of(ledger, "circle").delegated.tokens == {}


def test_forks_in_a_circle_and_of_what_is_not_there_are_shown(ledger: Ledger) -> None:
    append(ledger, "one", SessionStarted(harness="h"), SessionForked(origin="other", origin_seq=1))
    append(ledger, "other", SessionStarted(harness="h"), SessionForked(origin="one", origin_seq=1))
    assert {one.id for _, one in walk(tree_of(ledger, "one"))} == {"one", "other"}
    append(ledger, "lost", SessionStarted(harness="h"), SessionForked(origin="gone", origin_seq=7))
    tree = tree_of(ledger, "lost")
    assert [(one.id, one.head_seq) for _, one in walk(tree)] == [("gone", 0), ("lost", 2)]


def test_the_view_loads_no_content(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    append(ledger, "s", SessionStarted(harness="h"), answered(ledger, "m", 1), RolledBack(to_seq=1))
    append(ledger, "f", SessionStarted(harness="h"), SessionForked(origin="s", origin_seq=1))

    def refuse(store: EventStore, digest: str) -> bytes:
        raise AssertionError(f"it loaded {digest}")

    monkeypatch.setattr(EventStore, "content", refuse)
    assert len(list(walk(tree_of(ledger, "s")))) == 3


def test_the_view_is_the_same_made_anew(ledger: Ledger) -> None:
    append(ledger, "s", SessionStarted(harness="h"), answered(ledger, "m", 1))
    tree_of(ledger, "s")
    append(ledger, "s", answered(ledger, "m", 5, revision=1), RolledBack(to_seq=1))
    append(ledger, "s", ReplayAnswered(call_id="n", source="recorded"), answered(ledger, "n", 50))
    by_steps = outline(tree_of(ledger, "s"))
    with BranchesView(ledger.home, ledger.store) as view:
        view.rebuild()
    assert (
        outline(tree_of(ledger, "s"))
        == by_steps
        == [(0, "s", "root", None, 0), (1, "s~4", "abandoned", 1, 5)]
    )
