"""State: what people ask of it at a seq, case by case."""

import tracemalloc
from collections.abc import Collection, Iterator
from decimal import Decimal
from typing import Any

import pytest

from ledger.errors import RecordDamagedError, RecordNotFoundError, SessionNotFoundError
from ledger.events import ContentRef, Event, Record, Source
from ledger.events.approval import ApprovalAsked, ApprovalDecided
from ledger.events.compaction import CompactionDone
from ledger.events.delegation import DelegationReturned, DelegationStarted
from ledger.events.effect import EffectCompensated, EffectDone
from ledger.events.governance import ArtifactChanged, ConstraintDeclared, ConstraintWithdrawn, ModeChanged
from ledger.events.input import ContextInjected, MessageReceived
from ledger.events.model_call import ModelCallAnswered, ModelCallRequested, Usage
from ledger.events.policy import BudgetCharged
from ledger.events.recovery import CheckpointTaken, RolledBack
from ledger.events.session import ArtifactInForce, SessionEnded, SessionStarted
from ledger.events.tool_call import ToolCallRequested, ToolCallSettled, ToolCallStarted
from ledger.home import Ledger
from replay.cli import state_json
from replay.fold import fold
from replay.state import State
from replay.timeline import Timeline, session_timeline

from .histories import SESSION, Writer

IMPORTED = Source("a-format", "file.jsonl")


def user(text: str) -> dict[str, Any]:
    """A message of a person."""
    return {"role": "user", "content": text}


def assistant(text: str) -> dict[str, Any]:
    """A message of a model."""
    return {"role": "assistant", "content": text}


def test_state_has_every_documented_part_from_the_start(ledger: Ledger, writer: Writer) -> None:
    writer.add(SessionStarted(harness="loop"))
    writer.flush()
    state = state_json(ledger, SESSION)
    assert set(state) >= {
        "session", "seq", "digest", "context", "constraints", "artifacts", "tools", "open_calls", "approvals",
        "budget", "usage", "files", "checkpoints", "delegations", "outcome", "started_at", "modes",
    }  # fmt: skip
    assert state["started_at"] == "2026-01-01T00:00:00.001Z"
    assert state["usage"]["tokens"]["input"] is None, "unknown is not 0"


def test_context_is_that_of_the_last_request_and_what_came_since(ledger: Ledger, writer: Writer) -> None:
    first = writer.keep.json(user("do it"))
    writer.chain.append(first)
    writer.add(MessageReceived(origin="human", message=first), writer.request("m1"))
    writer.add(
        writer.answer("m1", assistant("I call a tool")),
        ToolCallRequested(call_id="t1", tool="Bash", arguments=writer.keep.json({})),
        ToolCallSettled(call_id="t1", outcome="returned", result=writer.keep.text("42 files")),
        ContextInjected(provenance="reminder", message=writer.keep.text("be brief")),
    )
    writer.flush()
    assert state_json(ledger, SESSION)["context"] == [
        user("do it"),
        assistant("I call a tool"),
        {"role": "tool", "call_id": "t1", "content": "42 files"},
        {"role": "user", "content": "be brief"},
    ]
    assert state_json(ledger, SESSION, 2)["context"] == [user("do it")]
    assert state_json(ledger, SESSION, 0)["context"] == []


def test_calls_aside_do_not_touch_the_conversation(ledger: Ledger, writer: Writer) -> None:
    main = writer.keep.json(user("do it"))
    writer.add(MessageReceived(origin="human", message=main))
    writer.chain.append(writer.keep.json(user("give this talk a title")))
    writer.add(writer.request("title", purpose="title"), writer.answer("title", assistant("A title")))
    writer.flush()
    state = state_json(ledger, SESSION)
    assert state["context"] == [user("do it")]
    assert state["usage"]["model_calls"] == 1, "it was paid for all the same"


def test_compaction_replaces_the_context(ledger: Ledger, writer: Writer) -> None:
    for text in ("one", "two"):
        message = writer.keep.json(user(text))
        writer.chain.append(message)
        writer.add(MessageReceived(origin="human", message=message))
    writer.add(writer.request("m1"))
    writer.chain.replace([writer.keep.json(user("summary"))])
    done: dict[str, Any] = {"compaction_id": "c", "trigger": "auto", "evidence": "logged"}
    head, added = writer.chain.head, writer.chain.take_added()
    writer.add(CompactionDone(context_after=head, context_added=added, **done))
    writer.add(CompactionDone(summary=writer.keep.text("only a text"), **done))
    writer.add(CompactionDone(**done))
    writer.flush()
    assert state_json(ledger, SESSION, 4)["context"] == [user("summary")]
    assert state_json(ledger, SESSION, 5)["context"] == [{"role": "user", "content": "only a text"}]
    unseen = state_json(ledger, SESSION, 6)
    assert (unseen["context"], unseen["context_completeness"]) == ([], "none"), "what was not seen is said"


def test_a_request_whose_messages_were_not_seen_leaves_the_conversation(
    ledger: Ledger, writer: Writer
) -> None:
    writer.add(MessageReceived(origin="human", message=writer.keep.json(user("do it"))))
    writer.add(writer.request("m1", context=None, completeness="none", not_seen=("messages",)))
    writer.flush()
    state = state_json(ledger, SESSION)
    assert state["context"] == [user("do it")]
    assert (state["context_completeness"], state["context_not_seen"]) == ("none", ["messages"])


def test_usage_counts_each_token_once(ledger: Ledger, writer: Writer) -> None:
    def usage(given: int, written: int) -> Usage:
        return Usage(input_tokens=given, output_tokens=written, cache_read_tokens=7)

    writer.add(writer.request("m1"), writer.request("m2"), writer.request("m3"))
    writer.add(
        writer.answer(
            "m1", assistant("par"), usage=usage(100, 3), cost_usd=Decimal("0.1"), completeness="partial"
        ),
        writer.answer(
            "m1", assistant("partial no more"), usage=usage(100, 30), cost_usd=Decimal("0.3"), revision=1
        ),
        writer.answer("m2", assistant("other"), usage=usage(10, 1), cost_usd=Decimal("0.1")),
        writer.answer("m3", assistant("API error"), usage=usage(0, 0), synthetic=True),
    )
    writer.flush()
    state = state_json(ledger, SESSION)
    assert state["usage"]["tokens"] == {
        "input": 110, "output": 31, "cache_read": 14, "cache_write": None, "reasoning": None,
    }  # fmt: skip
    assert (state["usage"]["model_calls"], state["usage"]["cost_usd"]) == (2, "0.4"), (
        "exact: not 0.4000000001"
    )
    assert state["context"] == [assistant("partial no more"), assistant("other"), assistant("API error")]


def test_a_revision_of_long_ago_still_replaces_the_earlier_answer(ledger: Ledger, writer: Writer) -> None:
    for number in range(400):
        writer.add(writer.answer(f"m{number}", assistant("a"), usage=Usage(output_tokens=1)))
    writer.add(writer.answer("m0", assistant("revised"), usage=Usage(output_tokens=5), revision=1))
    writer.add(writer.answer("m0", assistant("again"), usage=Usage(output_tokens=7), revision=2))
    writer.flush()
    usage = state_json(ledger, SESSION)["usage"]
    assert (usage["model_calls"], usage["tokens"]["output"]) == (400, 406)
    assert state_json(ledger, SESSION)["context"][0] == assistant("again")


def test_a_call_without_result_is_never_good(ledger: Ledger, writer: Writer) -> None:
    arguments = writer.keep.json({})
    calls = [ToolCallRequested(call_id=f"t{number}", tool="Bash", arguments=arguments) for number in range(5)]
    writer.add(*calls[:3])
    writer.add(calls[4], source=IMPORTED)
    writer.add(ToolCallStarted(call_id="t1"), ToolCallSettled(call_id="t2", outcome="unknown"))
    writer.add(calls[3], ToolCallSettled(call_id="t3", outcome="failed", error="exit 1"))
    writer.flush()
    state = state_json(ledger, SESSION)
    assert {name: call["status"] for name, call in state["open_calls"].items()} == {
        "t0": "not_started",  # a live recorder would have said that it began
        "t1": "unknown",
        "t2": "unknown",
        "t4": "unknown",  # the source says nothing of starts
    }
    assert state["usage"]["tool_outcomes"] == {"unknown": 1, "failed": 1}


def test_a_result_that_comes_after_all_takes_the_place_of_unknown(ledger: Ledger, writer: Writer) -> None:
    writer.add(ToolCallRequested(call_id="t", tool="Bash", arguments=writer.keep.json({})))
    writer.add(ToolCallSettled(call_id="t", outcome="unknown"))
    writer.add(ToolCallSettled(call_id="t", outcome="returned", result=writer.keep.text("late")))
    writer.flush()
    state = state_json(ledger, SESSION)
    assert (state["open_calls"], state["usage"]["tool_outcomes"]) == ({}, {"unknown": 0, "returned": 1})


def test_constraints_and_artifacts_in_force(ledger: Ledger, writer: Writer) -> None:
    digest = f"{1:064x}"
    writer.add(
        SessionStarted(harness="loop", charter=(ArtifactInForce(artifact="system_prompt", digest=digest),))
    )
    rule = writer.keep.text("never delete")
    writer.add(ConstraintDeclared(constraint="no-delete", text=rule, modality="prohibition", origin="user"))
    content = writer.keep.text("new prompt")
    writer.add(ArtifactChanged(artifact="system_prompt", kind="prompt", content=content, cause="human"))
    writer.add(ConstraintWithdrawn(constraint="no-delete"))
    writer.add(ArtifactChanged(artifact="system_prompt", kind="prompt", cause="agent"))
    writer.flush()
    assert state_json(ledger, SESSION, 1)["artifacts"]["system_prompt"]["digest"] == digest
    in_force = state_json(ledger, SESSION, 3)
    assert in_force["artifacts"]["system_prompt"] == {
        "digest": content.digest, "kind": "prompt", "cause": "human", "seq": 3,
    }  # fmt: skip
    assert in_force["constraints"]["no-delete"]["modality"] == "prohibition"
    assert state_json(ledger, SESSION)["constraints"] == {} == state_json(ledger, SESSION)["artifacts"]


def test_tools_offered_are_those_of_the_last_request(ledger: Ledger, writer: Writer) -> None:
    tools = [{"name": "Bash"}, {"type": "function", "function": {"name": "read"}}, {"type": "web_search"}]
    writer.add(writer.request("m1", tools=writer.keep.json(tools)))
    writer.flush()
    assert state_json(ledger, SESSION)["tools"]["offered_names"] == ["Bash", "read", "web_search"]


def test_approvals_are_open_then_decided_and_the_state_does_not_keep_them_all(
    ledger: Ledger, writer: Writer
) -> None:
    writer.add(ApprovalAsked(approval_id="a", call_id="t", tool="Bash"))
    for number in range(200):
        call = f"t{number}"
        writer.add(
            ToolCallRequested(call_id=call, tool="Bash", arguments=writer.keep.json({})),
            ApprovalDecided(
                approval_id=call, call_id=call, outcome="approved", decided_by="human", scope="once"
            ),
            ToolCallSettled(call_id=call, outcome="returned", result=writer.keep.text("ok")),
        )
    rule = ApprovalDecided(
        approval_id="r", outcome="approved", decided_by="human", scope="session", how="always"
    )
    writer.add(rule)
    writer.flush()
    state = state_json(ledger, SESSION)
    assert (state["approvals"]["a"]["status"], state["approvals"]["r"]["scope"]) == ("open", "session")
    assert state["approvals_decided"] == {"approved": 201}
    assert len(state["approvals"]) < 60
    assert state_json(ledger, SESSION, 3)["approvals"]["t0"]["decided"] == 3


def test_budget_files_delegations_outcome(ledger: Ledger, writer: Writer) -> None:
    writer.add(BudgetCharged(budget="money", amount=Decimal("0.1"), unit="usd"))
    writer.add(BudgetCharged(budget="money", amount=Decimal("0.2"), unit="usd", remaining=Decimal("9.7")))
    done: dict[str, Any] = {"target": "src/a.py", "operation": "edit", "effect_class": "write"}
    writer.add(EffectDone(effect_id="e1", **done), EffectDone(effect_id="e2", **done))
    writer.add(EffectDone(effect_id="e3", target="https://x.org", operation="send", effect_class="external"))
    writer.add(EffectCompensated(effect_id="e2", how="git checkout"))
    writer.add(DelegationStarted(delegation_id="d1", to_agent="a"), DelegationStarted(delegation_id="d2"))
    writer.add(DelegationReturned(delegation_id="d1", outcome="returned"), SessionEnded(outcome="completed"))
    writer.flush()
    state = state_json(ledger, SESSION)
    assert (state["budget"]["money"]["charged"], state["budget"]["money"]["remaining"]) == ("0.3", "9.7")
    assert (state["files"]["src/a.py"]["times"], state["files"]["src/a.py"]["status"]) == (2, "compensated")
    assert list(state["files"]) == ["src/a.py"]
    assert list(state["outside"]) == ["https://x.org"]
    assert {name: one["status"] for name, one in state["delegations"].items()} == {
        "d1": "returned",
        "d2": "open",
    }
    assert state["outcome"] == "completed"


def test_rollback_brings_back_the_conversation_and_shows_what_was_in_flight(
    ledger: Ledger, writer: Writer
) -> None:
    writer.add(MessageReceived(origin="human", message=writer.keep.json(user("one"))))
    writer.add(CheckpointTaken(checkpoint_id="before"))
    writer.add(MessageReceived(origin="human", message=writer.keep.json(user("two"))))
    writer.add(ToolCallRequested(call_id="t", tool="Bash", arguments=writer.keep.json({})))
    writer.add(ToolCallStarted(call_id="t"))
    writer.add(RolledBack(checkpoint_id="before", reason="wrong way"))
    writer.add(ToolCallSettled(call_id="t", outcome="unknown"))
    writer.flush()
    state = state_json(ledger, SESSION, 6)
    assert (state["context"], state["open_calls"]) == ([user("one")], {})
    assert state["abandoned_calls"]["tool:t"]["status"] == "unknown", "its effect may be there all the same"
    assert state["rollbacks"]["6"]["to_seq"] == 1
    assert state["usage"]["tool_calls"] == 1, "what was done stays counted"


def test_wrong_places_are_refused(ledger: Ledger, writer: Writer) -> None:
    writer.add(SessionStarted(harness="loop"))
    writer.flush()
    with pytest.raises(RecordNotFoundError, match="records 1 to 1"):
        state_json(ledger, SESSION, 2)
    with pytest.raises(SessionNotFoundError):
        state_json(ledger, "nobody")
    record = ledger.store.record(SESSION, 1)
    with pytest.raises(RecordDamagedError, match="does not follow"):
        fold(fold(State(SESSION), record), record)


def test_fold_without_a_past_says_so_where_it_needs_one(ledger: Ledger, writer: Writer) -> None:
    writer.add(SessionStarted(harness="loop"), RolledBack(to_seq=0))
    writer.flush()
    first, second = ledger.store.read(SESSION)
    with pytest.raises(ValueError, match="needs its past"):
        fold(fold(State(SESSION), first), second)


def test_erased_messages_are_named(ledger: Ledger, writer: Writer) -> None:
    gone = ContentRef(digest=f"{5:064x}", size=3, kind="json")
    writer.add(MessageReceived(origin="human", message=gone))
    writer.flush()
    assert state_json(ledger, SESSION)["context"] == [{"content_missing": gone.digest}]


def test_many_rollbacks_cost_passes_not_squares(ledger: Ledger, writer: Writer) -> None:
    for number in range(400):
        writer.add(MessageReceived(origin="human", message=writer.keep.json(user(str(number)))))
        if number % 2:
            writer.add(RolledBack(to_seq=writer.seq - 2))
    writer.flush()
    reads = 0

    def read(after: int, upto: int, names: Collection[str] = ()) -> Iterator[Record]:
        nonlocal reads
        for record in ledger.store.read(SESSION, after=after, upto=upto):
            reads += 1
            yield record

    state = Timeline(SESSION, writer.seq, read).at()
    assert state.digest() == session_timeline(ledger.store, SESSION).at().digest()
    assert reads <= 4 * writer.seq


def endless(length: int) -> Iterator[Record]:
    """Turns of a loop, made as they are read: request, answer, tool call, result."""
    digest = f"{7:064x}"
    ref = ContentRef(digest=digest, size=10, kind="json")
    for seq in range(1, length + 1):
        turn = seq // 4
        events: tuple[Event, ...] = (
            ModelCallRequested(
                call_id=f"m{turn}",
                protocol="genai",
                context=digest,
                context_length=turn,
                completeness="messages",
            ),
            ModelCallAnswered(
                call_id=f"m{turn}", message=ref, usage=Usage(output_tokens=1), cost_usd=Decimal("0.01")
            ),
            ToolCallRequested(call_id=f"t{turn}", tool="Bash", arguments=ref),
            ToolCallSettled(call_id=f"t{turn}", outcome="returned", result=ref),
        )
        yield Record(SESSION, seq, seq, events[seq % 4], "2026-01-01T00:00:00Z", "", "")


def fold_peak(length: int) -> int:
    """Most memory at once, in bytes, while a session of so many records is folded."""
    tracemalloc.start()
    try:
        Timeline(SESSION, length, lambda after, upto, names=(): endless(upto)).at()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_memory_does_not_grow_with_the_number_of_records() -> None:
    fold_peak(1000)
    assert fold_peak(100_000) < 1.5 * fold_peak(10_000)


def test_a_rollback_to_nobody_knows_where_says_so(ledger: Ledger, writer: Writer) -> None:
    writer.add(MessageReceived(origin="human", message=writer.keep.json(user("one"))))
    writer.add(RolledBack(reason="the source does not tell"), RolledBack(checkpoint_id="never taken"))
    writer.flush()
    for seq in (2, 3):
        state = state_json(ledger, SESSION, seq)
        assert (state["context"], state["context_completeness"]) == ([user("one")], "none")
        assert state["rollbacks"][str(seq)]["to_seq"] is None


def test_each_of_several_rollbacks_finds_its_own_state(ledger: Ledger, writer: Writer) -> None:
    for number in range(6):
        writer.add(ModeChanged(mode="plan", new=str(number), cause="human"))
    writer.add(RolledBack(to_seq=2), RolledBack(to_seq=5), RolledBack(to_seq=0), RolledBack(to_seq=8))
    writer.flush()
    found = [state_json(ledger, SESSION, seq)["modes"].get("plan", {}).get("value") for seq in (7, 8, 9, 10)]
    assert found == ["1", "4", None, "4"]
