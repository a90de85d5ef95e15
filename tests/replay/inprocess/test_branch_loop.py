"""A loop leaves its recording where it is told to, and lives on. No tool runs in silence."""

from typing import Any

import pytest

from ledger.errors import InputError, RecordNotFoundError
from ledger.events.recovery import BranchOpened
from ledger.events.tool_call import ToolCallSettled
from ledger.home import Ledger
from replay.inprocess import branch_loop
from tests.ledger.capture.loops import records, types
from tests.replay.inprocess.agents import World, an_agent, recorded


def test_a_branch_lives_on_after_its_point_and_runs_no_tool_in_silence(ledger: Ledger, world: World) -> None:
    session, _ = recorded(ledger, an_agent(world))
    every = records(ledger, session)
    at = next(record.seq for record in every if record.type == "delegation.started") - 1
    asked, effects = world.asked, world.effects
    with branch_loop(ledger, session, at=at) as run:
        an_agent(world)(run)
    report = run.report
    assert (report.verdict, report.level) == ("equal", "branch")
    assert (world.asked - asked, report.outside_calls) == (3, 3)
    assert world.effects == effects
    forked = types(ledger, report.replay_session)
    assert forked[:3] == ["session.started", "session.forked", "replay.started"]
    opened = [record.event for record in ledger.store.read(session) if isinstance(record.event, BranchOpened)]
    assert [(event.branch, event.at_seq) for event in opened] == [(report.replay_session, at)]
    assert records(ledger, session)[: len(every)] == every

    with (
        pytest.raises(InputError, match="does not run tool 'send'"),
        branch_loop(ledger, session, at=2) as run,
    ):
        an_agent(world)(run)
    assert world.effects == effects


def test_a_branch_gives_another_answer_and_goes_its_own_way(ledger: Ledger, world: World) -> None:
    session, _ = recorded(ledger, an_agent(world))
    call = next(record.seq for record in records(ledger, session) if record.type == "tool_call.requested")
    seen: list[Any] = []

    def spy(**request: Any) -> Any:
        seen.append(request["messages"])
        return world.model(**request)

    spy_world = World(world.counter.parent)
    spy_world.model = spy  # type: ignore[method-assign]
    options: dict[str, Any] = {"answers": {call: {"sent": "nowhere", "ids": [7, 8]}}, "tools": {"*": "live"}}
    with branch_loop(ledger, session, at=call + 2, **options) as run:
        an_agent(spy_world)(run)
    assert {"role": "tool", "content": "nowhere 8"} in seen[-1]
    with (
        pytest.raises(InputError, match="begins no model or tool call"),
        branch_loop(ledger, session, at=9, answers={1: "x"}),
    ):
        pass
    with (
        pytest.raises(InputError, match="comes after the branch"),
        branch_loop(ledger, session, at=1, answers={call: "x"}),
    ):
        pass
    with pytest.raises(RecordNotFoundError), branch_loop(ledger, session, at=100_000):
        pass


@pytest.mark.parametrize("at", range(1, 31))
def test_a_branch_at_any_point_begins_live_right_after_it(ledger: Ledger, world: World, at: int) -> None:
    session, _ = recorded(ledger, an_agent(world))
    cut = ledger.store.record(session, at).position
    prefix = [record for record in ledger.store.read_all() if record.position <= cut]
    asked, effects = world.asked, world.effects
    with branch_loop(ledger, session, at=at, tools={"*": "live"}) as run:
        an_agent(world)(run)
    assert run.report.verdict == "equal"
    answered = [record for record in prefix if record.type in ("model_call.answered", "model_call.failed")]
    returned = [
        record
        for record in prefix
        if isinstance(record.event, ToolCallSettled) and record.event.outcome == "returned"
    ]
    assert world.asked == 2 * asked - len(answered)
    assert world.effects == 2 * effects - len(returned)
