"""A branch begins as its origin was at the fork, with nothing from after it, and goes its own way from there."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ledger.capture import record_loop
from ledger.errors import InputError, RecordNotFoundError
from ledger.events import Record
from ledger.events.approval import ApprovalAsked, ApprovalDecided, ApprovalUsed
from ledger.events.delegation import DelegationReturned, DelegationStarted
from ledger.events.input import MessageReceived
from ledger.events.model_call import ModelCallRequested
from ledger.events.recovery import BranchOpened, RolledBack
from ledger.events.session import SessionForked, SessionStarted
from ledger.home import Ledger, open_ledger
from ledger.views.snapshots import SnapshotFile
from replay.cli import state_json
from replay.forking import fork_session
from replay.proving import prove_states
from replay.snapshots import StateSnapshots
from replay.state import INHERITED
from replay.timeline import session_timeline
from tests.commands import FIXTURES, answer
from tests.ledger.capture.loops import chat_answer

from .histories import SESSION, Writer

FIRST_SEQS = 50
OWN = frozenset({"session", "seq", "digest", "started_at", "last_at", "forked_from", "forked_from_seq",
                 "forked_from_item", "outcome", "outcome_reason", "usage", "checkpoints", "parent",
                 "approvals_decided", "budget", "breakers", "effects", "rollbacks", "context"})  # fmt: skip
"""Parts of a state that a branch has of its own."""


@pytest.fixture(scope="module")
def imported(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Ledger, str]]:
    """A session of Claude Code with sub-agents, imported."""
    home = tmp_path_factory.mktemp("imported")
    answer(home, "import", FIXTURES / "claude-code" / "subagents-2.1.332")
    rows = answer(home, "sessions")
    with open_ledger(home) as ledger:
        yield ledger, next(row["id"] for row in rows if row["parent"] is None)


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Ledger, str]]:
    """A recorded loop that hands work to a sub-agent, which hands on."""
    with open_ledger(tmp_path_factory.mktemp("live")) as ledger:
        yield ledger, nested(ledger)


def nested(ledger: Ledger) -> str:
    """Record it: more than 50 records, its sub-agent open in the midst of them."""
    with record_loop(ledger, harness="test", agent="boss") as run:
        messages: list[Any] = []
        for turn in range(4):
            messages.append({"role": "user", "content": f"turn {turn}"})
            run.message(messages[-1])
            reply = run.model(
                lambda turn=turn, **_: chat_answer(f"answer {turn}"), model="m", messages=messages
            )
            messages.append(reply["choices"][0]["message"])
            allowed = run.approve(lambda: True, tool="send", arguments={"turn": turn})
            run.tool(lambda turn: f"sent {turn}", {"turn": turn}, name="send", approval=allowed)
            with run.delegate(agent="reader", payload={"turn": turn}) as child:
                child.model(lambda **_: chat_answer("I read it."), model="m", messages=messages)
                run.tool(lambda: "beside", {}, name="look", effect_class="read")
                with child.delegate(agent="deeper") as below:
                    below.message(f"secret of {turn}")
                child.returns(f"read {turn}")
    return run.session


@pytest.mark.parametrize("at", range(1, FIRST_SEQS + 1))
@pytest.mark.parametrize("kind", ["imported", "live"])
def test_a_fork_at_any_seq_begins_with_what_was_asked_for_and_knows_nothing_later(
    kind: str, at: int, request: pytest.FixtureRequest
) -> None:
    ledger, session = request.getfixturevalue(kind)
    text = f"and now something else, after {at}"
    branch = fork_session(ledger, session, at, text, person="alice")
    records = list(ledger.store.read(branch))
    assert [type(record.event) for record in records] == [SessionStarted, SessionForked, MessageReceived]
    asked, was = state_json(ledger, branch), state_json(ledger, session, at)
    assert asked["context"] == [*was["context"], {"role": "user", "content": text}]
    assert without_marks(asked) == without_marks(was)
    assert (asked["forked_from"], asked["forked_from_seq"]) == (session, at)
    assert asked["usage"]["model_calls"] == asked["usage"]["tool_calls"] == 0
    later = later_only(ledger, session, at)
    with_all = json.dumps(session_timeline(ledger.store, branch).at().as_json())
    assert [name for name in later if name in with_all] == []
    open_then = {
        name for name, one in was["delegations"].items() if one["status"] == "open" and one["result"] is None
    }
    open_now = {name for name, one in asked["delegations"].items() if one["status"] == "open"}
    assert open_now == open_then
    assert prove_states(ledger.store, branch).divergence is None


def without_marks(state: dict[str, Any]) -> dict[str, Any]:
    """The parts that a branch has from its origin, without the mark of where they are from."""
    parts = {name: part for name, part in state.items() if name not in OWN}
    return dict(json.loads(json.dumps(parts), object_hook=_without_mark))


def _without_mark(one: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in one.items() if name != INHERITED}


def later_only(ledger: Ledger, session: str, at: int) -> set[str]:
    """Names and digests that the session and its sub-agents bring after a seq, and not before."""
    cut = ledger.store.record(session, at).position
    before: set[str] = set()
    after: set[str] = set()
    for name in ledger.store.sessions():
        if name == session or name.startswith(f"{session}."):
            for record in ledger.store.read(name):
                is_before = record.seq <= at if name == session else record.position <= cut
                (before if is_before else after).update(names_of(record))
    return after - before


def names_of(record: Record) -> Iterator[str]:
    event = record.event
    if isinstance(event, BranchOpened):
        return
    for value in event.model_dump(mode="json").values():
        if isinstance(value, dict) and "digest" in value:
            yield value["digest"]
    fields = ("call_id", "approval_id", "delegation_id", "to_session", "context", "arguments_digest")
    for field in fields:
        if isinstance(value := getattr(event, field, None), str):
            yield value


def test_sub_agents_are_open_at_some_of_these_seqs(
    imported: tuple[Ledger, str], live: tuple[Ledger, str]
) -> None:
    for ledger, session in (imported, live):
        kinds = [type(record.event) for record in ledger.store.read(session, upto=FIRST_SEQS)]
        assert len(kinds) == FIRST_SEQS
        assert kinds.index(DelegationStarted) + 1 < kinds.index(DelegationReturned)
        assert any(
            one["status"] == "open"
            for seq in range(1, FIRST_SEQS)
            for one in state_json(ledger, session, seq)["delegations"].values()
        )


def test_a_loop_goes_on_from_a_branch(live: tuple[Ledger, str]) -> None:
    ledger, session = live
    branch = fork_session(ledger, session, 9, "go on")
    messages = state_json(ledger, branch)["context"]
    with record_loop(ledger, harness="test", agent="boss", session=branch) as run:
        run.model(lambda **_: chat_answer("gladly"), model="m", messages=messages)
    state = state_json(ledger, branch)
    assert state["context"] == [*messages, {"role": "assistant", "content": "gladly"}]
    assert state["usage"]["model_calls"] == 1
    assert state_json(ledger, session, 9)["digest"] == state_json(ledger, session, 9)["digest"]


def test_a_fork_of_a_fork_goes_back_to_the_root(ledger: Ledger) -> None:
    root = nested(ledger)
    names = [root]
    for depth in range(300):
        names.append(fork_session(ledger, names[-1], 3 if depth else 5, f"fork {depth}"))
    state = state_json(ledger, names[-1])
    texts = [message["content"] for message in state["context"]]
    assert texts[-300:] == [f"fork {depth}" for depth in range(300)]
    assert texts[:-300] == [message["content"] for message in state_json(ledger, root, 5)["context"]]


def test_snapshots_of_the_origin_make_no_other_state(ledger: Ledger, tmp_path: Path) -> None:
    root = nested(ledger)
    branch = fork_session(ledger, root, 40, "else")
    plain = session_timeline(ledger.store, branch).at().digest()
    with SnapshotFile(tmp_path / "snapshots", b"key") as file:
        for _ in range(2):
            snapshots = StateSnapshots(file, ledger.store, branch, interval=7)
            assert session_timeline(ledger.store, branch, snapshots).at().digest() == plain


def test_what_a_branch_does_leaves_its_origin_as_it_was(ledger: Ledger, writer: Writer) -> None:
    root = nested(ledger)
    before = state_json(ledger, root)["digest"]
    branch = fork_session(ledger, root, 30, "else")
    with record_loop(ledger, harness="test", session=branch) as run:
        run.tool(lambda: None, {}, name="act")
    assert state_json(ledger, root, ledger.store.head(root).seq - 1)["digest"] == before


def test_a_rollback_of_a_branch_keeps_what_was_open_in_its_origin(ledger: Ledger) -> None:
    root = nested(ledger)
    at = next(record.seq for record in ledger.store.read(root) if isinstance(record.event, DelegationStarted))
    branch = fork_session(ledger, root, at, "else")
    writer = Writer(ledger, branch)
    writer.add(MessageReceived(origin="human", message=writer.keep.text("one more")), RolledBack(to_seq=3))
    writer.flush()
    state = state_json(ledger, branch)
    assert len(state["context"]) == len(state_json(ledger, branch, 3)["context"])
    assert state["abandoned_calls"] == {}
    assert [one["status"] for one in state["delegations"].values()] == ["open"]


@pytest.mark.parametrize(
    ("origin", "seq"), [(SESSION, 1), ("no-such-session", 1), ("session-0", 99), ("later", 1)]
)
def test_a_fork_of_what_was_not_there_begins_with_nothing_and_says_so(
    ledger: Ledger, writer: Writer, origin: str, seq: int
) -> None:
    first = Writer(ledger, "session-0")
    first.add(SessionStarted(harness="loop"))
    first.flush()
    writer.add(SessionStarted(harness="loop"), SessionForked(origin=origin, origin_seq=seq))
    writer.flush()
    later = Writer(ledger, "later")
    later.add(MessageReceived(origin="human", message=later.keep.text("too late")))
    later.flush()
    state = state_json(ledger, SESSION)
    assert state["context"] == []
    if origin != SESSION:
        assert (state["context_completeness"], state["context_not_seen"]) == (
            "none",
            ["state of the session that it was forked from"],
        )


def test_a_fork_that_is_found_out_late_or_runs_again_keeps_its_own_records(ledger: Ledger) -> None:
    root = nested(ledger)
    late = Writer(ledger, "late")
    message = late.keep.text("mine")
    late.add(SessionStarted(harness="loop"), MessageReceived(origin="human", message=message))
    late.add(SessionForked(origin=root, origin_seq=20))
    late.flush()
    assert [one["content"] for one in state_json(ledger, "late")["context"]] == ["mine"]
    again = Writer(ledger, "again")
    again.add(SessionStarted(harness="replay"), SessionForked(origin=root, origin_seq=20, runs_again=True))
    again.flush()
    assert state_json(ledger, "again")["context"] == []


def test_a_fork_in_a_circle_ends(ledger: Ledger) -> None:
    one, other = Writer(ledger, "one"), Writer(ledger, "other")
    one.add(SessionStarted(harness="loop"), SessionForked(origin="other", origin_seq=2))
    one.flush()
    other.add(SessionStarted(harness="loop"), SessionForked(origin="one", origin_seq=2))
    other.flush()
    assert state_json(ledger, "other")["forked_from"] == "one"
    assert state_json(ledger, "one")["context_completeness"] == "none"


def test_a_branch_needs_a_place_and_a_message(live: tuple[Ledger, str]) -> None:
    ledger, session = live
    with pytest.raises(RecordNotFoundError):
        fork_session(ledger, session, 10_000, "hi")
    with pytest.raises(InputError, match="expected one, found nothing"):
        fork_session(ledger, session, 1, "")


# -- approvals that were used before a rollback -----------------------------------------------------------------------


def test_a_used_approval_stays_used_after_a_rollback(ledger: Ledger, writer: Writer) -> None:
    asked = writer.add(ApprovalAsked(approval_id="a", tool="send"))
    decided = writer.add(
        ApprovalDecided(approval_id="a", outcome="approved", decided_by="human", scope="once")
    )
    writer.add(ApprovalUsed(approval_id="a", call_id="c"))
    for target in (asked, decided):
        writer.add(RolledBack(to_seq=target))
        writer.flush()
        approval = state_json(ledger, SESSION)["approvals"]["a"]
        assert (approval["used"], approval["status"], approval["decided"]) == (1, "approved", decided)
    assert state_json(ledger, SESSION, decided)["approvals"]["a"]["used"] == 0


def test_an_approval_asked_again_under_its_old_name_stays_used(ledger: Ledger, writer: Writer) -> None:
    writer.add(MessageReceived(origin="human", message=writer.keep.text("go")))
    for _ in range(2):
        writer.add(ApprovalAsked(approval_id="a", tool="send"))
        writer.add(ApprovalDecided(approval_id="a", outcome="approved", decided_by="human", scope="once"))
        writer.add(ApprovalUsed(approval_id="a", call_id="c"))
        writer.add(RolledBack(to_seq=1))
    writer.add(ApprovalAsked(approval_id="a", tool="send"))
    writer.flush()
    assert state_json(ledger, SESSION)["approvals"]["a"]["used"] == 2


def test_an_approval_of_wider_scope_stays_good_after_a_rollback(ledger: Ledger, writer: Writer) -> None:
    writer.add(ApprovalAsked(approval_id="a", tool="send"))
    at = writer.add(ApprovalDecided(approval_id="a", outcome="approved", decided_by="human", scope="session"))
    writer.add(ApprovalUsed(approval_id="a", call_id="c"), RolledBack(to_seq=at))
    writer.flush()
    state = session_timeline(ledger.store, SESSION).at()
    assert state.sections["approvals"]["a"]["used"] == 1, "it is in force, not among those of the past"
    assert prove_states(ledger.store, SESSION).divergence is None


def test_an_approval_used_long_ago_is_not_forgotten(ledger: Ledger, writer: Writer) -> None:
    for number in range(200):
        writer.add(ApprovalAsked(approval_id=f"a{number}", tool="send"))
        writer.add(
            ApprovalDecided(approval_id=f"a{number}", outcome="approved", decided_by="human", scope="once")
        )
    open_at = writer.seq
    for number in range(200):
        writer.add(ApprovalUsed(approval_id=f"a{number}", call_id=f"c{number}"))
    writer.add(RolledBack(to_seq=open_at))
    writer.flush()
    approvals = state_json(ledger, SESSION)["approvals"]
    assert {one["used"] for one in approvals.values()} == {1}


def test_requests_are_seen_in_the_nested_loop(live: tuple[Ledger, str]) -> None:
    ledger, session = live
    assert [one for one in ledger.store.read(session) if isinstance(one.event, ModelCallRequested)]
