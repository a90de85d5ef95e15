"""The check of approvals: a case in which each detector fires, and one in which it stays silent."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ledger.audit import ApprovalCheck, Finding
from ledger.events import ContentRef, Event, Record
from ledger.events.approval import ApprovalAsked, ApprovalDecided, ApprovalUsed
from ledger.events.canonical import canonical_json
from ledger.events.governance import ArtifactChanged, ModeChanged
from ledger.events.policy import PolicyEvaluated
from ledger.events.tool_call import ToolCallRequested, ToolCallSettled, ToolCallStarted
from tests.commands import FIXTURES, answer, run

A, B = "a" * 64, "b" * 64
TRACES = Path(os.environ.get("LOOPLEDGER_TRACES") or Path(__file__).parents[4] / "shared" / "traces")


def records(*events: Event, times: dict[int, str] | None = None) -> list[Record]:
    """A session of these events."""
    return [
        Record(
            "s",
            seq,
            seq,
            event,
            (times or {}).get(seq, f"2026-01-01T00:00:{seq:02}Z"),
            "",
            "",
            correlation="turn-7",
        )
        for seq, event in enumerate(events, 1)
    ]


def found(*events: Event, content: Callable[[str], bytes] | None = None, **options: Any) -> list[Finding]:
    """What is found in them."""
    check = ApprovalCheck(content=content)
    for record in records(*events, **options):
        check.take(record)
    return check.findings()


def names(findings: list[Finding]) -> list[str]:
    """Names of the detectors."""
    return [finding.detector.removeprefix("approval.") for finding in findings]


def requested(call: str = "c", digest: str = A) -> ToolCallRequested:
    """A call is asked for."""
    return ToolCallRequested(
        call_id=call,
        tool="pay",
        arguments=ContentRef(digest=digest, size=2, kind="json"),
        effect_class="irreversible",
    )


ASKED = ApprovalAsked(
    approval_id="q",
    call_id="c",
    tool="pay",
    arguments_digest=A,
    expires_at="2026-01-01T01:00:00Z",
    policy_version="1",
)
YES = ApprovalDecided(approval_id="q", call_id="c", outcome="approved", decided_by="human", scope="once")
NO = YES.model_copy(update={"outcome": "denied", "decider": "alice"})
USED = ApprovalUsed(approval_id="q", call_id="c", arguments_digest=A, policy_version="1")
STARTED, RETURNED = ToolCallStarted(call_id="c"), ToolCallSettled(call_id="c", outcome="returned")
REFUSED = ToolCallSettled(call_id="c", outcome="denied")
POLICY = canonical_json({"approvals": [{"tool": "pay", "ask": True}]})


def in_force(cause: Any = "harness") -> ArtifactChanged:
    """A policy that the loop recorded."""
    kept = ContentRef(digest=B, size=len(POLICY), kind="json")
    return ArtifactChanged(artifact="policy:loop", kind="policy", content=kept, cause=cause)


def content(digest: str) -> bytes:
    """The policy, and arguments."""
    return POLICY if digest == B else b"{}"


@pytest.mark.parametrize("events", [
    (requested(), ASKED, YES, USED, STARTED, RETURNED),
    (requested(), ASKED, NO, REFUSED),
    (requested(), STARTED, RETURNED),
    (requested(), PolicyEvaluated(rule="r", verdict="allow", call_id="c"), STARTED),
    (ModeChanged(mode="approval", new="never", cause="startup"), requested(), STARTED),
    (ModeChanged(mode="approval", old="never", new="untrusted", cause="agent"),),
    (in_force(), requested(), ASKED, YES, USED, STARTED),
])  # fmt: skip
def test_a_session_that_keeps_to_the_answers_is_left_alone(events: tuple[Event, ...]) -> None:
    assert found(*events, content=content) == []


def test_a_call_that_ran_after_a_no() -> None:
    (finding,) = found(requested(), ASKED, NO, STARTED, RETURNED)
    assert (finding.detector, finding.severity) == ("approval.ran_after_denial", "critical")
    assert finding.witnesses == (3, 4)
    assert finding.message == "pay ran although it was denied (by alice) at seq 3"


EARLY, EARLY_NO = (one.model_copy(update={"call_id": None}) for one in (ASKED, NO))


def test_a_call_that_ran_after_a_no_to_a_question_asked_before_there_was_the_call() -> None:
    (finding,) = found(EARLY, EARLY_NO, requested(), STARTED, RETURNED)
    assert (finding.detector, finding.witnesses) == ("approval.ran_after_denial", (2, 3, 4))
    assert finding.message == "pay ran with arguments that were denied at seq 2"


def test_a_no_to_other_arguments_or_one_taken_back_is_not_held_against_a_call() -> None:
    assert found(EARLY, EARLY_NO, requested(digest=B), STARTED) == []
    again = EARLY.model_copy(update={"approval_id": "r"})
    yes = YES.model_copy(update={"approval_id": "r", "call_id": None})
    assert found(EARLY, EARLY_NO, again, yes, requested(), STARTED) == []


def test_a_call_that_ran_while_its_question_was_open() -> None:
    assert names(found(requested(), ASKED, STARTED)) == ["ran_unanswered"]


@pytest.mark.parametrize("verdict", ["ask", "deny"])
def test_a_call_that_a_rule_would_not_have_let_run(verdict: Any) -> None:
    assert names(found(requested(), PolicyEvaluated(rule="r", verdict=verdict, call_id="c"), RETURNED)) == [
        "ran_without"
    ]


def test_a_call_that_the_loops_own_policy_demanded_an_answer_for() -> None:
    assert names(found(in_force(), requested(), STARTED, content=content)) == ["ran_without"]


def test_an_answer_that_nobody_gave_here() -> None:
    assert names(found(requested(), USED, STARTED)) == ["stale"]


def test_an_answer_of_yesterday() -> None:
    events = (requested(), ASKED, YES, USED, STARTED)
    assert names(found(*events, times={4: "2026-01-02T00:00:00Z"})) == ["expired"]


def test_an_answer_for_other_arguments_another_tool_or_under_another_policy() -> None:
    for changes, name in (
        ({"arguments_digest": B}, "other_arguments"),
        ({"tool": "refund"}, "other_tool"),
        ({"policy_version": "2"}, "other_policy"),
    ):
        assert names(found(requested(), ASKED, YES, USED.model_copy(update=changes), STARTED)) == [name]


def test_an_answer_that_was_used_twice() -> None:
    again = (requested("d"), USED.model_copy(update={"call_id": "d"}))
    assert names(found(requested(), ASKED, YES, USED, STARTED, *again)) == ["reused"]
    wide = YES.model_copy(update={"scope": "session"})
    assert found(requested(), ASKED, wide, USED, STARTED, *again) == []


def test_a_permission_that_was_relaxed_on_the_way_is_named_with_its_turn() -> None:
    relaxed = ModeChanged(mode="sandbox", old="read-only", new="danger-full-access", cause="agent")
    (finding,) = found(relaxed, requested(), STARTED)
    assert (finding.detector, finding.severity, finding.witnesses) == (
        "approval.mode_relaxed",
        "critical",
        (1, 3),
    )
    assert "with turn turn-7, by agent; 1 tool call ran under it" in finding.message


def test_a_policy_that_the_agent_itself_changed() -> None:
    assert names(found(in_force("agent"))) == ["rule_changed_by_agent"]


# -- imported sessions -----------------------------------------------------------------------------------------------


def test_the_write_that_ran_where_the_fork_said_reject(tmp_path: Path) -> None:
    sessions = answer(tmp_path, "import", FIXTURES / "langgraph" / "stale-approval")["sessions"]
    fork = next(session for session in sessions if ".fork-" in session)
    result = run(tmp_path, "approvals", "--check", fork)
    assert result.exit_code == 1
    assert "approval.ran_after_denial  seq 3, 6, 7" in result.stdout
    assert "place_order ran although it was denied" in result.stdout
    assert "approval.stale" in result.stdout
    assert "#32" in result.stdout
    for session in sessions:
        if session != fork:
            assert answer(tmp_path, "approvals", "--check", session)["findings"] == []


@pytest.mark.parametrize(("case", "expected"), [
    ("approvals", [("approval", "untrusted to never with turn 01a227e0-44f7-7b22-9a15-ee107081a622")]),
    ("sandbox", [
        ("sandbox", "read-only to workspace-write with turn 01a227e0-1908-77a2-bfe3-b37414eee663"),
        ("sandbox", "workspace-write to danger-full-access with turn 01a227e0-2e32-7e33-9a2d-997a0c9f1923"),
    ]),
    ("basic", []),
])  # fmt: skip
def test_the_turn_in_which_codex_was_relaxed(
    tmp_path: Path, case: str, expected: list[tuple[str, str]]
) -> None:
    (session,) = answer(tmp_path, "import", FIXTURES / "codex" / case)["sessions"]
    result = run(tmp_path, "approvals", "--check", session)
    messages = [line.strip() for line in result.stdout.splitlines() if " was relaxed from " in line]
    assert result.exit_code == (1 if expected else 0)
    assert len(messages) == len(expected)
    for (mode, words), message in zip(expected, messages, strict=True):
        assert message.startswith(f"{mode} mode was relaxed from {words}")


@pytest.mark.skipif(not (TRACES / "wild" / "codex").is_dir(), reason="needs the development traces")
def test_real_codex_sessions_that_kept_their_modes_are_left_alone(tmp_path: Path) -> None:
    folder = next((TRACES / "wild" / "codex").rglob("rollout-2025-09-25*")).parent
    for session in answer(tmp_path, "import", folder)["sessions"]:
        assert answer(tmp_path, "approvals", "--check", session)["findings"] == []
