"""What an asynchronous loop writes is in the order in which it was asked for, whatever the threads do."""

import asyncio
import threading
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

import pytest

from ledger.capture import record_loop
from ledger.capture.turns import Turns
from ledger.events.delegation import DelegationStarted
from ledger.events.tool_call import ToolCallRequested, ToolCallSettled
from ledger.home import Ledger
from tests.ledger.capture.loops import records

_WHO: ContextVar[str] = ContextVar("who", default="nobody")


def test_writes_come_in_the_order_in_which_they_were_asked_for() -> None:
    turns, written = Turns(), list[int]()

    async def ask() -> None:
        await asyncio.gather(*(turns.take(written.append, number) for number in range(500)))

    asyncio.run(ask())
    assert written == list(range(500))


def test_a_write_gives_its_result_or_its_error_to_the_task_that_asked() -> None:
    turns = Turns()

    def fail() -> None:
        raise KeyError("this one")

    async def ask() -> list[Any]:
        calls: list[Callable[..., Any]] = [lambda: 1, fail, lambda: 3]
        return await asyncio.gather(*(turns.take(call) for call in calls), return_exceptions=True)

    first, second, third = asyncio.run(ask())
    assert (first, third) == (1, 3)
    assert isinstance(second, KeyError)


def test_a_write_sees_the_context_of_the_task_that_asked() -> None:
    turns = Turns()

    async def task(name: str) -> str:
        _WHO.set(name)
        return await turns.take(_WHO.get)

    async def ask() -> list[str]:
        return list(await asyncio.gather(task("a"), task("b")))

    assert asyncio.run(ask()) == ["a", "b"]


def test_a_cancelled_write_that_waits_is_left_out_and_the_next_ones_are_made() -> None:
    turns, written = Turns(), list[str]()
    may_go_on = threading.Event()

    async def ask() -> None:
        first = asyncio.create_task(turns.take(may_go_on.wait))
        second = asyncio.create_task(turns.take(written.append, "second"))
        third = asyncio.create_task(turns.take(written.append, "third"))
        await asyncio.sleep(0)  # each has taken its place
        second.cancel()
        await asyncio.sleep(0)
        may_go_on.set()
        await asyncio.gather(first, third)
        with pytest.raises(asyncio.CancelledError):
            await second

    asyncio.run(ask())
    assert written == ["third"]


def test_event_loops_of_several_threads_share_the_turns() -> None:
    turns, written = Turns(), list[str]()

    async def ask(name: str) -> None:
        await asyncio.gather(*(turns.take(written.append, f"{name}{number:02}") for number in range(50)))

    threads = [threading.Thread(target=asyncio.run, args=(ask(name),)) for name in "ab"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for name in "ab":
        assert [one for one in written if one[0] == name] == [f"{name}{number:02}" for number in range(50)]


def test_calls_that_were_started_together_are_recorded_as_begun_together(ledger: Ledger) -> None:
    async def tool(number: int) -> int:
        return number

    async def loop() -> str:
        async with record_loop(ledger, harness="test") as run:
            await asyncio.gather(*(run.atool(tool, {"number": number}) for number in range(12)))
        return run.session

    events = [record.event for record in records(ledger, asyncio.run(loop()))]
    calls = [event for event in events if isinstance(event, ToolCallRequested | ToolCallSettled)]
    asked = [event.call_id for event in calls if isinstance(event, ToolCallRequested)]
    settled = [event.call_id for event in calls if isinstance(event, ToolCallSettled)]
    assert [type(event) for event in calls] == [ToolCallRequested] * 12 + [ToolCallSettled] * 12
    assert asked == settled


def test_hand_overs_that_were_started_together_are_recorded_in_their_order(ledger: Ledger) -> None:
    async def loop() -> str:
        async with record_loop(ledger, harness="test") as run:

            async def hand_over(agent: str) -> None:
                async with run.delegate(agent=agent) as child:
                    child.returns(agent)

            await asyncio.gather(*(hand_over(f"agent {number}") for number in range(8)))
        return run.session

    events = [record.event for record in records(ledger, asyncio.run(loop()))]
    started = [event.to_agent for event in events if isinstance(event, DelegationStarted)]
    assert started == [f"agent {number}" for number in range(8)]
