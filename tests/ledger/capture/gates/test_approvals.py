"""Approvals that are enforced: asked on record, answered in another process, good for what was asked and once."""

import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from ledger.capture import record_loop
from ledger.capture.gates.deciding import Told, Verdict, decide
from ledger.capture.gates.questions import Question
from ledger.capture.loop import RecordedLoop
from ledger.effects.loop_policy import ApprovalRule, LoopPolicy
from ledger.errors import InputError, NotApprovedError
from ledger.events.approval import ApprovalAsked, ApprovalDecided, ApprovalUsed
from ledger.events.tool_call import ToolCallSettled
from ledger.home import Ledger, open_ledger
from ledger.views.approvals import ApprovalsView
from tests.commands import answer, run
from tests.ledger.capture.gates.waiting_loop import SESSION
from tests.ledger.capture.loops import only, records, types

YES, NO = Verdict("approved", "alice"), Verdict("denied", "bob", reason="not to them")
DAY = ApprovalRule(tool="*", timeout=86400, scopes=("once", "session", "rule"))


def waits_for(condition: Callable[[], Any], seconds: float = 120) -> Any:
    """What the condition gives once that is true; fails after a while."""
    ends_at = time.monotonic() + seconds
    while time.monotonic() < ends_at:
        if found := condition():
            return found
        time.sleep(0.02)
    raise AssertionError("it did not come true in time")


def queue(ledger: Ledger) -> list[Question]:
    """All questions for whose answers a loop asks the ledger, first asked first."""
    with ApprovalsView(ledger.home, ledger.store) as view:
        view.catch_up()
        return list(view.questions([row for row in view.rows() if row.is_queued]))


@contextmanager
def answering(ledger: Ledger, *verdicts: Verdict) -> Iterator[list[Told]]:
    """Somebody who answers each question that comes up, in another thread."""
    told: list[Told] = []

    def work() -> None:
        for verdict in verdicts:
            question = waits_for(lambda: next((one for one in queue(ledger) if one.is_open), None))
            told.append(decide(ledger.recorder, question.session, question.asked.approval_id, verdict))

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield told
    finally:
        thread.join()


@contextmanager
def loop(ledger: Ledger, **options: Any) -> Iterator[tuple[RecordedLoop, list[Any]]]:
    """A loop, and what its tool sent."""
    with record_loop(ledger, harness="test", session="s", **options) as run:
        yield run, []


def send(run: RecordedLoop, sent: list[Any], to: str, **options: Any) -> Any:
    """A call of the tool."""
    options = {"name": "send_mail", "needs_approval": DAY, **options}
    return run.tool(lambda **mail: sent.append(mail), {"to": to}, **options)


def test_a_call_waits_for_a_yes_and_runs_under_it(ledger: Ledger) -> None:
    with loop(ledger) as (run, sent), answering(ledger, YES):
        send(run, sent, "a@example.org", effect_class="external")
    assert sent == [{"to": "a@example.org"}]
    assert types(ledger, "s")[1:-1] == [
        "tool_call.requested",
        "approval.asked",
        "approval.decided",
        "approval.used",
        "tool_call.started",
        "tool_call.settled",
    ]
    asked, used = only(ledger, "s", ApprovalAsked), only(ledger, "s", ApprovalUsed)
    assert asked.arguments_digest == used.arguments_digest
    assert asked.target == "a@example.org"
    assert only(ledger, "s", ApprovalDecided).decider == "alice"


def test_a_no_stops_the_call_and_is_told_with_its_reason(ledger: Ledger) -> None:
    told = pytest.raises(NotApprovedError, match="bob denied it: not to them")
    with loop(ledger) as (run, sent), answering(ledger, NO), told:
        send(run, sent, "a@example.org")
    assert sent == []
    assert only(ledger, "s", ToolCallSettled).outcome == "denied"


def test_nobody_answers_and_it_counts_as_denied(ledger: Ledger) -> None:
    with loop(ledger) as (run, sent), pytest.raises(NotApprovedError, match="nobody answered in time"):
        send(run, sent, "a", needs_approval=ApprovalRule(tool="*", timeout=1))
    decided = only(ledger, "s", ApprovalDecided)
    assert (decided.outcome, decided.decided_by, sent) == ("timed_out", "system", [])


def test_an_answer_for_some_arguments_is_none_for_others(ledger: Ledger) -> None:
    with loop(ledger) as (run, sent):
        with answering(ledger, YES):
            approval = run.gate("send_mail", {"to": "a"}, rule=DAY)
        with pytest.raises(NotApprovedError, match="other arguments"):
            send(run, sent, "b", approval=approval)
        send(run, sent, "a", approval=approval)
        with pytest.raises(NotApprovedError, match="reused"):
            send(run, sent, "a", approval=approval)
    assert sent == [{"to": "a"}]


def test_the_loop_is_told_what_an_answer_is_bound_to(ledger: Ledger) -> None:
    until = "2099-01-01T00:00:00.000000Z"
    with loop(ledger) as (run, _), answering(ledger, Verdict("approved", "alice", expires_at=until)):
        approval = run.gate("send_mail", {"to": "a"}, rule=DAY)
    digest = only(ledger, "s", ApprovalAsked).arguments_digest
    assert digest is not None
    assert (approval.tool, approval.arguments_digest, approval.expires_at) == ("send_mail", digest, until)


def test_an_answer_of_the_loops_own_decider_is_bound_too(ledger: Ledger) -> None:
    with loop(ledger) as (run, sent):
        approval = run.approve(lambda: True, tool="send_mail", arguments={"to": "a"})
        with pytest.raises(NotApprovedError, match="other arguments"):
            send(run, sent, "b", approval=approval, needs_approval=None)
        old = run.approve(lambda: True, tool="send_mail", expires_at="2025-12-31T00:00:00Z")
        with pytest.raises(NotApprovedError, match="expired"):
            send(run, sent, "a", approval=old, needs_approval=None)
    assert sent == []


def test_an_answer_of_yesterday_does_not_count_today(tmp_path: Path, ids: Callable[[], str]) -> None:
    now = ["2026-01-01T12:00:00.000000Z"]
    with open_ledger(tmp_path / "home", clock=lambda: now[0], ids=ids) as ledger:
        with loop(ledger) as (run, sent):
            with answering(ledger, YES):
                approval = run.gate("send_mail", {"to": "a"}, rule=DAY)
            now[0] = "2026-01-02T12:00:00.000001Z"
            with pytest.raises(NotApprovedError, match="expired"):
                send(run, sent, "a", approval=approval)
        assert sent == []


@pytest.mark.parametrize(
    ("verdict", "again", "other"),
    [
        (Verdict("approved", "alice", "session"), {"to": "a", "text": "more"}, {"to": "b"}),
        (
            Verdict(
                "approved", "alice", "rule", ApprovalRule(tool="send_*", when={"/text": "hi"}, ask=False)
            ),
            {"to": "z", "text": "hi"},
            {"to": "a", "text": "bye"},
        ),
    ],
)
def test_a_wider_answer_covers_what_it_says_and_no_more(
    ledger: Ledger, verdict: Verdict, again: dict[str, str], other: dict[str, str]
) -> None:
    policy = LoopPolicy(approvals=(DAY,))
    sent: list[Any] = []
    with loop(ledger, policy=policy) as (run, _), answering(ledger, verdict, NO):
        for arguments in ({"to": "a", "text": "hi"}, again):
            run.tool(lambda **mail: sent.append(mail), arguments, name="send_mail")
        with pytest.raises(NotApprovedError):
            run.tool(lambda **mail: sent.append(mail), other, name="send_mail")
    assert sent == [{"to": "a", "text": "hi"}, again]
    assert len([one for one in records(ledger, "s") if isinstance(one.event, ApprovalUsed)]) == 2
    first = next(one.event for one in records(ledger, "s") if isinstance(one.event, ApprovalDecided))
    assert (first.rule is not None) == (verdict.scope == "rule")


def test_a_policy_says_who_may_decide_and_how_far(ledger: Ledger) -> None:
    rule = ApprovalRule.model_validate(
        {"tool": "send_*", "class": "external", "deciders": ["alice"], "timeout": "1d"}
    )
    policy = LoopPolicy(approvals=(rule,))
    with loop(ledger, policy=policy) as (run, sent):
        run.tool(lambda **given: None, {"path": "a"}, name="read_file")
        with answering(ledger, YES):
            send(run, sent, "a", needs_approval=None)
        asking = threading.Thread(target=lambda: _refused(run, sent))
        asking.start()
        question = waits_for(lambda: next((one for one in queue(ledger) if one.is_open), None))
        name = question.asked.approval_id
        with pytest.raises(InputError, match="'mallory' may not decide"):
            decide(ledger.recorder, "s", name, Verdict("approved", "mallory"))
        with pytest.raises(InputError, match="allows the scopes once"):
            decide(ledger.recorder, "s", name, Verdict("approved", "alice", "session"))
        decide(ledger.recorder, "s", name, Verdict("denied", "alice"))
        asking.join()
        with pytest.raises(InputError, match="'mallory' may not decide"):  # not even in a branch
            decide(ledger.recorder, "s", name, Verdict("approved", "mallory"))
    assert sent == [{"to": "a"}]
    assert len(only_all(ledger, ApprovalAsked)) == 2


def _refused(run: RecordedLoop, sent: list[Any]) -> None:
    with pytest.raises(NotApprovedError):
        send(run, sent, "b", needs_approval=None)


def only_all(ledger: Ledger, kind: type[Any]) -> list[Any]:
    """All events of a kind."""
    return [one.event for one in records(ledger, "s") if isinstance(one.event, kind)]


def test_of_two_who_decide_at_once_one_wins_and_the_other_is_told(ledger: Ledger) -> None:
    verdicts = [YES, NO] * 4
    told: list[Told] = []
    with loop(ledger) as (run, _):
        asking = threading.Thread(target=lambda: run.gate("send_mail", {"to": "a"}, rule=DAY))
        asking.start()
        pending = waits_for(lambda: next(iter(queue(ledger)), None))
        start = threading.Barrier(len(verdicts))

        def work(verdict: Verdict) -> None:
            start.wait()
            told.append(decide(ledger.recorder, "s", pending.asked.approval_id, verdict))

        threads = [threading.Thread(target=work, args=(verdict,)) for verdict in verdicts]
        for thread in threads:
            thread.start()
        for thread in [*threads, asking]:
            thread.join()
    winners = [one for one in told if one.counts]
    assert len(winners) == 1
    first = only(ledger, "s", ApprovalDecided)
    assert all(one.question.decided == first for one in told)
    branches = {one.branch for one in told if one.branch}
    assert len(branches) == 1  # what the losers said otherwise is kept, once
    (branch,) = branches
    second = only(ledger, branch, ApprovalDecided)
    assert {first.outcome, second.outcome} == {"approved", "denied"}
    assert types(ledger, branch) == ["session.started", "session.forked", "approval.decided"]
    assert types(ledger, "s").count("recovery.branch_opened") == 1


def test_of_many_threads_that_use_an_answer_at_once_one_runs(ledger: Ledger) -> None:
    with loop(ledger) as (run, sent):
        with answering(ledger, YES):
            approval = run.gate("send_mail", {"to": "a"}, rule=DAY)
        start, refused = threading.Barrier(6), []

        def work() -> None:
            start.wait()
            try:
                send(run, sent, "a", approval=approval)
            except NotApprovedError as error:
                refused.append(error.shortfalls)

        threads = [threading.Thread(target=work) for _ in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert sent == [{"to": "a"}]
    assert refused == [["reused"]] * 5


# -- over processes --------------------------------------------------------------------------------------------------


def process(home: Path, url: str, to: str = "a@example.org") -> subprocess.Popen[str]:
    """The waiting loop."""
    code = [sys.executable, "-m", "tests.ledger.capture.gates.waiting_loop", str(home), url, to]
    return subprocess.Popen(code, stdout=subprocess.PIPE, text=True)


def first_question(home: Path, *options: str) -> Any:
    """The question, once it is there."""
    waits_for(lambda: url_exists(home, *options))
    return waits_for(lambda: answer_or_none(home, *options))


def url_exists(home: Path, *options: str) -> bool:
    """Whether the ledger is there yet."""
    return bool(options) or (home / "ledger.sqlite").is_file()


def answer_or_none(home: Path, *options: str) -> Any:
    """The first question that is open."""
    found = answer(home, *options, "approvals")
    return found[0] if found else None


@pytest.mark.parametrize("store", ["sqlite", "postgres"])
def test_a_question_survives_the_death_of_who_asks_and_of_who_decides(
    tmp_path: Path, store: str, request: pytest.FixtureRequest
) -> None:
    url = "" if store == "sqlite" else request.getfixturevalue("postgres_database")
    options = ("--store", url) if url else ()
    asking = process(tmp_path, url)
    question = first_question(tmp_path, *options)
    with asking:
        asking.kill()
    told = answer(tmp_path, *options, "approve", question["id"][:8], "--by", "alice")
    assert (told["counts"], told["status"]) == (True, "approved")
    again = process(tmp_path, url)
    output, _ = again.communicate(timeout=120)
    assert json.loads(output) == {"sent": [{"to": "a@example.org"}]}
    kinds = [
        one["type"]
        for one in map(json.loads, run(tmp_path, *options, "events", SESSION, "--json").stdout.splitlines())
    ]
    assert (
        kinds.count("approval.asked") == kinds.count("approval.used") == kinds.count("tool_call.started") == 1
    )
    late = run(tmp_path, *options, "deny", question["id"], "--by", "bob", "--json")
    assert late.exit_code == 1
    second = json.loads(late.stdout)
    assert (second["counts"], second["decided"]["by"], second["decided"]["outcome"]) == (
        False,
        "alice",
        "approved",
    )
    assert second["branch"].startswith(f"{SESSION}.fork-")


def test_a_restarted_loop_with_other_arguments_asks_anew(tmp_path: Path) -> None:
    asking = process(tmp_path, "")
    question = first_question(tmp_path)
    answer(tmp_path, "approve", question["id"])
    assert json.loads(asking.communicate(timeout=120)[0])["sent"]
    other = process(tmp_path, "", "b@example.org")
    open_one = first_question(tmp_path)
    assert open_one["context"]["arguments"] == {"to": "b@example.org"}
    people = run(tmp_path, "deny", open_one["id"], "--reason", "no")
    assert people.stdout == f"denied: send_mail in session {SESSION}\n"
    refused = json.loads(other.communicate(timeout=120)[0])
    assert refused["sent"] == []
    assert refused["refused"].endswith("denied it: no")
    told = run(tmp_path, "approve", question["id"])
    assert (told.exit_code, "that answer stands" in told.stdout) == (1, True)
