"""Claude Code sessions and how they hang together: sub-agents, compaction, rewinds, resumption, forks."""

from pathlib import Path
from typing import Any

import pytest

from ledger.events.compaction import CompactionDone
from ledger.events.delegation import DelegationReturned, DelegationStarted
from ledger.events.input import MessageReceived
from ledger.events.model_call import ModelCallAnswered, ModelCallRequested
from ledger.events.recovery import RolledBack
from ledger.events.session import SessionForked, SessionResumed, SessionStarted
from ledger.home import Ledger
from ledger.store import verify
from tests.ledger.importers.claude_rows import (
    FORK,
    SESSION,
    Session,
    bring_in,
    call,
    context_of,
    events,
    records,
    simple_session,
    text,
    uuid,
    write,
)

# Sub-agents


def delegating(**result: Any) -> Session:
    """A session that hands work to one sub-agent."""
    log = Session()
    log.says("Ask the agent.")
    log.answers("msg_1", call("call_task", "Task", prompt="Look at the file.", subagent_type="explorer"))
    log.result("call_task", "Report.", **result)
    log.answers("msg_2", text("Done."))
    return log


def side_rows(log: Session, **fields: Any) -> list[dict[str, Any]]:
    """A side chain of the session, with its own root."""
    side = Session(log.session, first=500)
    side.says("Look at the file.")
    side.answers("msg_side", call("call_side", "Read"))
    side.result("call_side", "text of the file")
    side.answers("msg_side2", text("Report."))
    return [row | {"isSidechain": True} | fields for row in side.rows]


def check_side_chain(ledger: Ledger, child: str, call_id: str | None = "call_task") -> None:
    """The sub-agent is a session of its own, and joined to the call that started it."""
    (started,) = events(ledger, child, SessionStarted)
    assert (started.parent, started.parent_call) == (SESSION, call_id)
    assert all(record.depth == 1 for record in ledger.store.read(child) if record.type != "ledger.imported")
    assert {event.purpose for event in events(ledger, child, ModelCallRequested)} == {"sub-agent"}
    assert len(events(ledger, child, ModelCallAnswered)) == 2
    assert len(events(ledger, SESSION, ModelCallAnswered)) == 2
    (delegated,) = events(ledger, SESSION, DelegationStarted)
    assert (delegated.call_id, delegated.to_agent) == ("call_task", "explorer")
    (returned,) = events(ledger, SESSION, DelegationReturned)
    assert returned.delegation_id == "call_task"


def test_a_side_chain_inside_the_file_is_joined_by_its_prompt(ledger: Ledger, tmp_path: Path) -> None:
    log = delegating()
    log.rows[2:2] = side_rows(log)
    bring_in(ledger, log.write(tmp_path))
    check_side_chain(ledger, f"{SESSION}.side-{uuid(500)[:13]}")
    prompt = events(ledger, f"{SESSION}.side-{uuid(500)[:13]}", MessageReceived)[0]
    assert prompt.origin == "agent"


def test_two_side_chains_with_equal_prompts_are_joined_to_two_calls(ledger: Ledger, tmp_path: Path) -> None:
    log = Session()
    log.says("Ask twice.")
    log.answers("msg_1", *(call(f"call_{n}", "Task", prompt="Same.") for n in (1, 2)))
    for number in (1, 2):
        side = Session(first=100 * number)
        side.says("Same.", isSidechain=True)
        log.rows.extend(side.rows)
    bring_in(ledger, log.write(tmp_path))
    children = [name for name in ledger.store.sessions() if ".side-" in name]
    assert [events(ledger, child, SessionStarted)[0].parent_call for child in children] == [
        "call_1",
        "call_2",
    ]


def test_a_side_chain_in_a_file_beside_the_session(ledger: Ledger, tmp_path: Path) -> None:
    log = delegating(toolUseResult={"status": "completed", "agentId": "0123abcd"})
    side = write(tmp_path / "agent-0123abcd.jsonl", side_rows(log, agentId="0123abcd"))
    bring_in(ledger, log.write(tmp_path), side)
    child = f"{SESSION}.agent-0123abcd"
    check_side_chain(ledger, child, None)
    assert events(ledger, SESSION, DelegationReturned)[0].from_session == child


def test_a_side_chain_in_a_folder_of_the_session_with_its_description(ledger: Ledger, tmp_path: Path) -> None:
    log = delegating(toolUseResult={"status": "completed", "agentId": "a1"})
    folder = tmp_path / SESSION / "subagents"
    write(folder / "agent-a1.jsonl", side_rows(log, agentId="a1"))
    write(
        folder / "agent-a1.meta.json", [{"agentType": "explorer", "toolUseId": "call_task", "spawnDepth": 1}]
    )
    log.write(tmp_path)
    bring_in(ledger, tmp_path)
    check_side_chain(ledger, f"{SESSION}.agent-a1")
    assert events(ledger, f"{SESSION}.agent-a1", SessionStarted)[0].agent == "explorer"


def test_a_sub_agent_in_the_background_returns_when_the_harness_says_so(
    ledger: Ledger, tmp_path: Path
) -> None:
    log = delegating(toolUseResult={"status": "async_launched", "agentId": "a1"})
    assert bring_in(ledger, log.write(tmp_path))["tool_results"] == 1
    assert events(ledger, SESSION, DelegationReturned) == []
    log.says(
        "<task-notification>\n<task-id>a1</task-id>\n<tool-use-id>call_task</tool-use-id>\n"
        "<status>completed</status>\n<result>Report.</result>\n</task-notification>"
    )
    bring_in(ledger, log.write(tmp_path))
    (returned,) = events(ledger, SESSION, DelegationReturned)
    assert (returned.outcome, returned.from_session) == ("returned", f"{SESSION}.agent-a1")


# Compaction, rewind, resume, fork


def test_a_compaction_leaves_the_summary_and_what_it_preserved(ledger: Ledger, tmp_path: Path) -> None:
    log = simple_session()
    kept = log.rows[-1]["uuid"]
    log.compacts("In short.", trigger="manual", preservedMessages={"uuids": [kept, "never-seen"]})
    log.says("Go on.")
    log.answers("msg_after", text("Yes."))
    report = bring_in(ledger, log.write(tmp_path))
    (done,) = events(ledger, SESSION, CompactionDone)
    assert (report["compactions"], done.trigger, done.tokens_before, done.tokens_after) == (
        1,
        "manual",
        1000,
        10,
    )
    assert (done.messages_before, done.messages_after) == (8, 2)
    last = events(ledger, SESSION, ModelCallRequested)[-1]
    assert context_of(ledger, last) == ["In short.", [text("Done 1.")], "Go on."]


def test_a_compaction_without_summary_is_one_all_the_same(ledger: Ledger, tmp_path: Path) -> None:
    log = simple_session()
    log.compacts(None)
    log.says("Go on.")
    assert bring_in(ledger, log.write(tmp_path))["compactions"] == 1
    (done,) = events(ledger, SESSION, CompactionDone)
    assert (done.trigger, done.summary, done.messages_after) == ("auto", None, 0)


def test_a_prompt_that_continues_an_older_row_is_a_rewind(ledger: Ledger, tmp_path: Path) -> None:
    log = simple_session()
    log.says("Other way.", parentUuid=log.rows[4]["uuid"])
    log.answers("msg_other", text("As you like."))
    bring_in(ledger, log.write(tmp_path))
    (back,) = events(ledger, SESSION, RolledBack)
    assert back.evidence == "inferred"
    target = ledger.store.record(SESSION, back.to_seq)
    assert target.source is not None
    assert target.source.line == 5
    last = events(ledger, SESSION, ModelCallRequested)[-1]
    assert [content for content in context_of(ledger, last) if isinstance(content, str)] == [
        "Please do 0.",
        "Other way.",
    ]


def test_branches_of_parallel_results_are_no_rewind(ledger: Ledger, tmp_path: Path) -> None:
    log = Session()
    log.says("Go.")
    first, second = log.answers("msg_1", call("call_1"), call("call_2"))
    log.result("call_2", parentUuid=second["uuid"])
    last = log.result("call_1", parentUuid=first["uuid"])
    log.says("And now?", parentUuid=log.rows[3]["uuid"])
    log.says("Really?", parentUuid=last["uuid"])
    bring_in(ledger, log.write(tmp_path))
    assert len(events(ledger, SESSION, RolledBack)) == 1  # only "Really?" leaves a message behind


def test_a_new_version_of_the_harness_is_a_resumption(ledger: Ledger, tmp_path: Path) -> None:
    log = simple_session(turns=1)
    log.version = "2.1.332"
    log.says("Again.")
    bring_in(ledger, log.write(tmp_path))
    assert [event.how for event in events(ledger, SESSION, SessionResumed)] == ["version 2.1.332"]


def forked() -> tuple[Session, Session]:
    """A session, and its fork after the first turn."""
    origin = simple_session()
    fork = Session(FORK, first=700)
    fork.bare("queue-operation", operation="enqueue", timestamp="2026-03-01T05:00:00.000Z")
    fork.rows.extend(row | {"sessionId": FORK} for row in origin.rows[:5])
    fork.leaf = origin.rows[4]["uuid"]
    fork.says("Other way.", timestamp="2026-03-01T05:00:01.000Z")
    fork.answers("msg_fork", text("As you like."), timestamp="2026-03-01T05:00:02.000Z")
    return origin, fork


@pytest.mark.parametrize("origin_first", [True, False])
def test_a_fork_names_its_origin_in_either_order(ledger: Ledger, tmp_path: Path, origin_first: bool) -> None:
    origin, fork = forked()
    paths = [origin.write(tmp_path), fork.write(tmp_path)]
    bring_in(ledger, *(paths if origin_first else reversed(paths)))
    (found,) = events(ledger, FORK, SessionForked)
    assert (found.origin, found.origin_item) == (SESSION, origin.rows[4]["uuid"])
    shared = ledger.store.record(SESSION, found.origin_seq)
    assert shared.source is not None
    assert shared.source.item == origin.rows[4]["uuid"]
    assert events(ledger, SESSION, SessionForked) == []
    before = ledger.store.last_position()
    bring_in(ledger, *paths)
    assert ledger.store.last_position() == before


def test_a_fork_of_a_fork_names_the_fork(ledger: Ledger, tmp_path: Path) -> None:
    origin, fork = forked()
    third = Session("33333333-3333-4333-8333-333333333333", first=900)
    third.bare("queue-operation", operation="enqueue", timestamp="2026-03-01T06:00:00.000Z")
    third.rows.extend(row | {"sessionId": third.session} for row in fork.rows[1:])
    third.leaf = fork.leaf
    third.says("Third way.", timestamp="2026-03-01T06:00:01.000Z")
    bring_in(ledger, *(one.write(tmp_path) for one in (origin, fork, third)))
    (found,) = events(ledger, third.session, SessionForked)
    assert found.origin == FORK
    assert found.origin_seq is not None


def test_everything_verifies(ledger: Ledger, tmp_path: Path) -> None:
    origin, fork = forked()
    bring_in(ledger, origin.write(tmp_path), fork.write(tmp_path))
    assert verify(ledger.store).problems == []
    assert (
        records(ledger, lambda record: record.source is not None and record.source.format != "claude-code")
        == []
    )
