"""A loop that waited for people is run again: nobody is asked, and every call has the answer that it had."""

import asyncio
from typing import Any

from ledger.capture import record_loop
from ledger.capture.gates.deciding import Verdict
from ledger.effects.loop_policy import ApprovalRule, LoopPolicy
from ledger.errors import NotApprovedError
from ledger.events.approval import ApprovalAsked
from ledger.home import Ledger
from replay.inprocess import replay_loop
from tests.ledger.capture.gates.test_approvals import answering
from tests.ledger.capture.loops import records, types

RULE = ApprovalRule(tool="send_*", timeout=86400, scopes=("once", "session"))
POLICY = LoopPolicy(approvals=(RULE,))


def send(to: str, number: int = 0) -> str:
    """The tool."""
    return f"sent {number} to {to}"


def a_loop(run: Any) -> list[str]:
    """Asks three times, of which one is refused; the fourth call needs no question."""
    said = []
    for to, number in (("a", 1), ("b", 1), ("c", 1), ("c", 2)):
        try:
            said.append(run.tool(send, {"to": to, "number": number}, name="send_mail"))
        except NotApprovedError as error:
            said.append(error.reason)
    approval = run.gate("pay", {"sum": 3})
    said.append(run.tool(lambda **given: "paid", {"sum": 3}, name="pay", approval=approval))
    return said


def recorded(ledger: Ledger) -> list[str]:
    """The loop, with people who answer."""
    yes, no = Verdict("approved", "alice"), Verdict("denied", "bob", reason="not to b")
    people = answering(ledger, yes, no, Verdict("approved", "alice", "session"), yes)
    with record_loop(ledger, harness="test", session="s", policy=POLICY) as run, people:
        return a_loop(run)


def test_a_replay_gives_the_answers_of_then(ledger: Ledger) -> None:
    said = recorded(ledger)
    assert said == ["sent 1 to a", "bob denied it: not to b", "sent 1 to c", "sent 2 to c", "paid"]
    with replay_loop(ledger, "s") as run:
        assert a_loop(run) == said
    report = run.report
    assert (report.verdict, report.outside_calls) == ("equal", 0)
    again = types(ledger, report.replay_session)
    assert again.count("approval.asked") == types(ledger, "s").count("approval.asked") == 4
    assert again.count("approval.used") == types(ledger, "s").count("approval.used") == 4


def test_an_asynchronous_loop_too(ledger: Ledger) -> None:
    async def loop(run: Any) -> Any:
        return await run.atool(send, {"to": "a"}, name="send_mail")

    async def main() -> Any:
        async with record_loop(ledger, harness="test", session="s", policy=POLICY) as run:
            return await loop(run)

    with answering(ledger, Verdict("approved", "alice")):
        said = asyncio.run(main())
    with replay_loop(ledger, "s", allow=["asyncio"]) as run:
        assert asyncio.run(loop(run)) == said
    assert run.report.verdict == "equal"


def test_a_loop_that_asks_for_something_else_diverges(ledger: Ledger) -> None:
    recorded(ledger)
    with replay_loop(ledger, "s") as run:
        run.tool(send, {"to": "z", "number": 1}, name="send_mail")
    assert run.report.verdict == "diverged"
    assert [
        one for one in records(ledger, run.report.replay_session) if isinstance(one.event, ApprovalAsked)
    ] == []
