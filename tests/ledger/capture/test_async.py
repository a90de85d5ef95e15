"""A loop in asyncio: parallel tools, streams, cancellation; the event loop is not held up."""

import asyncio
import threading
from collections.abc import AsyncIterator
from typing import Any

import pytest

from ledger.capture import record_loop
from ledger.events.model_call import ModelCallAnswered
from ledger.events.session import SessionEnded
from ledger.events.tool_call import ToolCallSettled
from ledger.home import Ledger
from tests.ledger.capture.loops import chat_answer, only, records, types, value
from tests.ledger.capture.test_streams import chat_chunks


async def scripted(**request: Any) -> dict[str, Any]:
    """A model that says how many messages it saw."""
    await asyncio.sleep(0)
    return chat_answer(f"saw {len(request['messages'])}")


async def stream_of(*texts: str) -> AsyncIterator[dict[str, Any]]:
    """An answer in pieces."""
    for chunk in chat_chunks(*texts):
        await asyncio.sleep(0)
        yield chunk


def test_parallel_tools_and_delegations(ledger: Ledger) -> None:
    meeting = 5

    async def loop() -> str:
        together = asyncio.Barrier(meeting)

        async def meet(number: int) -> int:
            await together.wait()  # passes only when all run at once
            return number * 2

        async with record_loop(ledger, harness="my-loop", agent="lead") as run:
            answer = await run.amodel(scripted, model="m", messages=[{"role": "user", "content": "go"}])
            assert answer["choices"][0]["message"]["content"] == "saw 1"
            calls = [
                run.atool(meet, {"number": number}, effect_class="external") for number in range(meeting)
            ]
            assert await asyncio.gather(*calls) == [0, 2, 4, 6, 8]
            async with run.delegate(agent="reader") as child:
                assert await child.aapprove(lambda: asyncio.sleep(0, True))
            assert await run.atool(lambda: "sync", {}) == "sync"
            return run.session

    session = asyncio.run(loop())
    found = types(ledger, session)
    assert found.count("tool_call.settled") == 6
    settled = [record for record in records(ledger, session) if isinstance(record.event, ToolCallSettled)]
    requested = {
        record.seq: record.event
        for record in records(ledger, session)
        if record.type == "tool_call.requested"
    }
    for record in settled:
        assert isinstance(record.cause, int)
        assert isinstance(record.event, ToolCallSettled)
        assert getattr(requested[record.cause], "call_id") == record.event.call_id  # noqa: B009 - of any event


def test_the_ledger_writes_in_other_threads(ledger: Ledger) -> None:
    writers: set[int] = set()
    stamp = ledger.recorder.clock

    def clock() -> str:
        writers.add(threading.get_ident())
        return stamp()

    ledger.recorder.clock = clock

    async def loop() -> None:
        async with record_loop(ledger, harness="my-loop") as run:
            await run.amodel(scripted, messages=[])
            await run.atool(scripted, {"messages": []})

    asyncio.run(loop())
    assert threading.get_ident() not in writers


def test_an_asynchronous_stream(ledger: Ledger) -> None:
    async def loop() -> str:
        async with record_loop(ledger, harness="my-loop") as run:
            stream = await run.amodel(lambda **request: stream_of("Wor", "ld"), messages=[])
            assert [chunk async for chunk in stream] == chat_chunks("Wor", "ld")
            cut = await run.amodel(lambda **request: stream_of("never ", "read"), messages=[])
            await anext(cut)
            await cut.aclose()
            return run.session

    session = asyncio.run(loop())
    answers = [
        record.event for record in records(ledger, session) if isinstance(record.event, ModelCallAnswered)
    ]
    assert [answer.completeness for answer in answers] == ["complete", "aborted"]
    assert [value(ledger, answer.message)["content"] for answer in answers] == ["World", "never "]


def test_a_cancelled_loop_says_so(ledger: Ledger) -> None:
    sessions: list[str] = []

    async def loop() -> None:
        begun = asyncio.Event()

        async def forever() -> None:
            begun.set()
            await asyncio.Event().wait()

        async def body() -> None:
            async with record_loop(ledger, harness="my-loop") as run:
                sessions.append(run.session)
                await run.atool(forever, {}, effect_class="external")

        task = asyncio.create_task(body())
        await begun.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(loop())
    assert only(ledger, sessions[0], ToolCallSettled).outcome == "unknown"
    assert only(ledger, sessions[0], SessionEnded).outcome == "cancelled"
