"""Branches of a loop that took their time when they were recorded come to their steps in the same order again."""

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from ledger.capture import RecordedLoop
from ledger.home import Ledger
from replay.inprocess.order import Order
from replay.inprocess.script import Script
from tests.ledger.capture.loops import chat_answer
from tests.replay.inprocess.agents import World, again, recorded

Loop = Callable[[RecordedLoop], Any]


def _threads(names: str = "ab") -> Loop:
    """Branch `b` makes all its steps while the first of `a` is still at work."""
    is_over = threading.Event()

    def work(to: str) -> str:
        if to == "a0":
            assert is_over.wait(60)
        return to

    def loop(run: RecordedLoop) -> list[list[Any]]:
        def branch(name: str) -> list[Any]:
            done = [run.tool(work, {"to": f"{name}{number}"}) for number in range(3)]
            if name == "b":
                is_over.set()
            return done

        with ThreadPoolExecutor(len(names)) as pool:
            return list(pool.map(branch, names))

    return loop


def _tasks(names: str = "ab") -> Loop:
    """The same with tasks, questions, models, a stream, and a loop of its own for each branch."""

    async def agent(run: RecordedLoop) -> list[list[Any]]:
        is_over = asyncio.Event()

        async def work(to: str) -> str:
            if to == "a0":
                await is_over.wait()
            return to

        async def model(**request: Any) -> dict[str, Any]:
            return chat_answer(request["messages"][0]["content"])

        async def stream(**request: Any) -> Any:
            async def chunks() -> Any:
                for text in ("in", "pieces"):
                    delta = {"role": "assistant", "content": text}
                    yield {"id": "r", "choices": [{"index": 0, "delta": delta, "finish_reason": None}]}

            return chunks()

        async def yes() -> bool:
            return True

        async def branch(name: str) -> list[Any]:
            done: list[Any] = []
            async with run.delegate(agent=name) as child:
                for number in range(2):
                    given = {"to": f"{name}{number}"}
                    messages = [{"role": "user", "content": f"{name}{number}"}]
                    allowed = await run.aapprove(yes, tool="work", arguments=given)
                    done.append(await run.atool(work, given, approval=allowed))
                    answer = await child.amodel(model, messages=messages)
                    done.append(answer["choices"][0]["message"]["content"])
                    pieces = await run.amodel(stream, messages=messages, stream=True)
                    done += [chunk["choices"][0]["delta"]["content"] async for chunk in pieces]
            if name == "b":
                is_over.set()
            return done

        return await asyncio.gather(*(branch(name) for name in names))

    return lambda run: asyncio.run(agent(run))


@pytest.mark.parametrize("make", [_threads, _tasks])
def test_an_answer_waits_for_the_steps_that_had_come_before_it(
    ledger: Ledger, make: Callable[..., Loop]
) -> None:
    session, result = recorded(ledger, make())
    for _ in range(3):
        report, results = again(ledger, session, make())
        assert (report.verdict, report.divergence) == ("equal", None)
        assert results == [result]


@pytest.mark.parametrize("make", [_threads, _tasks])
def test_a_branch_that_never_comes_is_not_waited_for_forever(
    ledger: Ledger, make: Callable[..., Loop]
) -> None:
    session, _ = recorded(ledger, make())
    report, _ = again(ledger, session, make("a"))
    assert report.verdict == "diverged"
    assert report.divergence is not None


def test_an_answer_in_a_loop_without_branches_waits_for_nothing(ledger: Ledger, world: World) -> None:
    def sequence(run: RecordedLoop) -> None:
        for number in range(5):
            run.tool(world.send, {"to": str(number)})

    session, _ = recorded(ledger, sequence)
    script, order = Script(ledger.store.read(session)), Order(lambda step: True)
    order.follow(threading.RLock(), script)
    while (step := script.first()) is not None:
        assert script.take(step.event) is step
        assert script.ended(step) is not None
        assert list(order.looks(step.end_position)) == []


def test_an_answer_waits_as_long_as_steps_begin_and_no_longer(ledger: Ledger, world: World) -> None:
    session, _ = recorded(ledger, lambda run: run.tool(world.send, {"to": "a"}))
    script, order = Script(ledger.store.read(session)), Order(lambda step: True)
    order.follow(threading.RLock(), script)
    looks = order.looks(1_000_000)
    for _ in range(300):
        next(looks)
    order.begins()
    assert 490 <= len(list(looks)) <= 510
    assert list(order.looks(1_000_000)) == []
