"""A recorded loop runs again, equal or with its first difference named. Nothing outside happens on the way."""

import asyncio
import functools
import random
import socket
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from ledger.capture import RecordedLoop, record_loop
from ledger.capture.calls import ToolCall
from ledger.errors import InputError
from ledger.events.replaying import ReplayDiverged, ReplayEnded, ReplayStarted
from ledger.home import Ledger
from replay.inprocess import ReplayedLoop, replay_loop
from tests.ledger.capture.loops import only, records, types
from tests.replay.inprocess.agents import World, again, an_agent, recorded


def test_the_same_loop_is_equal_and_touches_nothing(ledger: Ledger, world: World) -> None:
    session, result = recorded(ledger, an_agent(world))
    before = (world.asked, world.effects, len(records(ledger, session)))
    for _ in range(3):
        report, results = again(ledger, session, an_agent(world))
        assert (report.verdict, report.divergence, report.reason) == ("equal", None, None)
        assert results == [result]
        assert [request["match"] for request in report.requests] == ["raw"] * 4
        assert report.answers["live"] == report.answers["blocked"] == 0
    assert (world.asked, world.effects, len(records(ledger, session))) == before


def test_the_replay_is_a_session_that_can_be_replayed(ledger: Ledger, world: World) -> None:
    session, result = recorded(ledger, an_agent(world))
    first, _ = again(ledger, session, an_agent(world))
    started = only(ledger, first.replay_session, ReplayStarted)
    assert (started.origin, started.level, started.mode) == (session, "rerun", "in_process")
    assert only(ledger, first.replay_session, ReplayEnded).verdict == "equal"
    second, results = again(ledger, first.replay_session, an_agent(world))
    assert second.verdict == "equal"
    assert results == [result]


CHANGES: dict[str, tuple[dict[str, Any], str, str, str | None]] = {
    "a word of the system prompt": (
        {"system": "You are careless."},
        "request",
        "model_call.requested",
        "/messages/0/content",
    ),
    "a tool's schema": (
        {"tools": [{"type": "function", "function": {"name": "send", "strict": True}}]},
        "schema",
        "model_call.requested",
        "/tools/0/function/strict",
    ),
    "an argument of a tool": ({"to": "c@example.org"}, "effect_arguments", "approval.asked", "/arguments"),
    "the order of two calls": ({"swapped": True}, "order", "approval.asked", None),
    "a draw before another": ({"extra_draw": True}, "undeclared_input", "draw.drawn", None),
    "what comes in": (
        {"question": "Send that."},
        "undeclared_input",
        "input.message_received",
        "/message/content",
    ),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_is_found_where_it_is(ledger: Ledger, world: World, change: str) -> None:
    options, kind, event_type, pointer = CHANGES[change]
    session, _ = recorded(ledger, an_agent(world))
    asked, effects = world.asked, world.effects
    report, results = again(ledger, session, an_agent(world, **options))
    assert report.verdict == "diverged"
    assert results == []
    divergence = report.divergence
    assert divergence is not None
    assert divergence.seq is not None
    assert (divergence.kind, divergence.pointer) == (kind, pointer)
    expected = next(record for record in records(ledger, session) if record.type == event_type)
    assert divergence.seq == expected.seq
    assert (world.asked, world.effects) == (asked, effects)
    told = only(ledger, report.replay_session, ReplayDiverged)
    assert (told.kind, told.origin_seq) == (kind, divergence.seq)
    assert types(ledger, report.replay_session)[-1] == "replay.ended"


def test_after_a_divergence_nothing_is_answered(ledger: Ledger, world: World) -> None:
    session, _ = recorded(ledger, an_agent(world))

    def stubborn(run: RecordedLoop) -> None:
        refused = 0
        for system in ("You are careless.", "You are careful.", "You are careful."):
            try:
                run.message("Send it.")
                run.model(world.model, model="m", messages=[{"role": "system", "content": system}])
            except Exception:  # noqa: BLE001 - a loop that carries on whatever happens
                refused += 1
        assert refused == 3

    report, _ = again(ledger, session, stubborn)
    assert report.verdict == "diverged"
    assert types(ledger, report.replay_session).count("model_call.requested") == 1
    assert "model_call.answered" not in types(ledger, report.replay_session)


def test_a_loop_that_stops_early_misses_a_step_and_one_that_goes_on_has_one_too_many(
    ledger: Ledger, world: World
) -> None:
    def twice(run: RecordedLoop) -> None:
        run.tool(world.send, {"to": "a"})
        run.tool(world.send, {"to": "b"})

    def once(run: RecordedLoop) -> None:
        run.tool(world.send, {"to": "a"})

    longer, _ = recorded(ledger, twice)
    report, _ = again(ledger, longer, once)
    assert report.divergence is not None
    assert (report.divergence.kind, report.divergence.seq) == ("missing", 5)
    shorter, _ = recorded(ledger, once)
    report, _ = again(ledger, shorter, twice)
    assert report.divergence is not None
    assert (report.divergence.kind, report.divergence.seq) == ("extra", None)
    assert world.effects == 3


def test_an_error_of_the_loop_goes_on_and_the_report_names_it(ledger: Ledger, world: World) -> None:
    session, _ = recorded(ledger, an_agent(world))
    with pytest.raises(ZeroDivisionError), replay_loop(ledger, session) as run:
        raise ZeroDivisionError
    assert run.report.verdict == "diverged"
    assert run.report.divergence is not None
    assert run.report.divergence.kind == "missing"
    assert "ZeroDivisionError" in str(run.report.reason)


def test_calls_that_overlapped_may_come_in_either_order_and_others_may_not(
    ledger: Ledger, world: World
) -> None:
    def parallel(run: RecordedLoop, names: Sequence[str], together: bool = True) -> list[Any]:
        barrier = threading.Barrier(len(names))
        found: dict[str, Any] = {}

        def send(to: str) -> Any:
            if together:
                barrier.wait(10)
            return world.send(to)

        threads = [
            threading.Thread(
                target=lambda name=name: found.update({name: run.tool(send, {"to": name}, name="s")})
            )
            for name in names
        ]
        for thread in threads:
            thread.start()
            if not together:
                thread.join()
        for thread in threads:
            thread.join()
        return [found.get(name, {}).get("sent") for name in sorted(names)]

    session, _ = recorded(ledger, lambda run: parallel(run, "abc"))
    for names in (("a", "b", "c"), ("c", "a", "b"), ("b", "c", "a")):
        report, results = again(ledger, session, functools.partial(parallel, names=names, together=False))
        assert report.verdict == "equal"
        assert results == [["a", "b", "c"]]
    alone, _ = recorded(ledger, lambda run: parallel(run, "ab", together=False))
    assert again(ledger, alone, lambda run: parallel(run, "ab", together=False))[0].verdict == "equal"
    report, _ = again(ledger, alone, lambda run: [run.tool(world.send, {"to": to}, name="s") for to in "ba"])
    assert report.divergence is not None
    assert report.divergence.kind == "order"


def test_asynchronous_loops_are_run_again_too(ledger: Ledger, world: World) -> None:
    async def model(**request: Any) -> dict[str, Any]:
        return world.model(**request)

    async def stream(**request: Any) -> Any:
        async def chunks() -> Any:
            for chunk in world.stream(**request):
                yield chunk

        return chunks()

    async def send(to: str) -> Any:
        return world.send(to)

    async def ask() -> bool:
        return True

    async def agent(run: RecordedLoop) -> Any:
        answer = await run.amodel(model, messages=[])
        allowed = await run.aapprove(ask, tool="send")
        results = await asyncio.gather(*(run.atool(send, {"to": to}, approval=allowed) for to in "abc"))
        pieces = await run.amodel(stream, messages=[{"role": "user", "content": "go"}], stream=True)
        text = [chunk["choices"][0]["delta"]["content"] async for chunk in pieces]
        return answer["choices"][0]["message"]["content"], [result["sent"] for result in results], text

    session, result = recorded(ledger, lambda run: asyncio.run(agent(run)))
    asked, effects = world.asked, world.effects
    report, results = again(ledger, session, lambda run: asyncio.run(agent(run)))
    assert (report.verdict, report.reason) == ("equal", None)
    assert results == [result]
    assert (world.asked, world.effects) == (asked, effects)


PASTS: dict[str, tuple[str, Callable[[World], Any]]] = {
    "a socket": ("extra", lambda _: socket.create_connection(("127.0.0.1", 9))),
    "a clock": ("undeclared_input", lambda _: time.time()),
    "randomness": ("undeclared_input", lambda _: random.random()),
    "an effect": ("extra", lambda world: world.send("past the recorder")),
}


@pytest.mark.parametrize("name", PASTS)
def test_a_frozen_loop_is_stopped_and_named_where_it_goes_past_the_recorder(
    ledger: Ledger, world: World, name: str
) -> None:
    kind, go_past = PASTS[name]
    honest = an_agent(world)

    def sly(run: RecordedLoop) -> Any:
        if isinstance(run, ReplayedLoop):
            go_past(world)
        return honest(run)

    session, _ = recorded(ledger, sly)
    effects = world.effects
    report, results = again(ledger, session, sly)
    assert report.verdict == "diverged"
    assert results == []
    assert report.divergence is not None
    assert report.divergence.kind == kind
    assert "/tests/replay/inprocess/" in str(report.divergence.cause)
    assert report.outside_calls == 1
    assert world.effects == effects


def test_a_tool_runs_only_where_it_is_named_for_that(ledger: Ledger, world: World) -> None:
    def agent(run: RecordedLoop) -> Any:
        return [run.tool(world.send, {"to": to}, name=to)["sent"] for to in ("live", "kept")]

    session, _ = recorded(ledger, agent)
    report, results = again(ledger, session, agent, tools={"live": "live"})
    assert (report.verdict, report.effects, dict(report.answers)) == ("equal", 1, {"live": 1, "recorded": 1})
    assert results == [["live", "kept"]]
    assert world.effects == 3

    def tolerant(run: RecordedLoop) -> Any:
        try:
            run.tool(world.send, {"to": "live"}, name="live")
        except InputError as error:
            return str(error)

    report, results = again(ledger, session, tolerant, tools={"*": "blocked"})
    assert "does not run tool 'live'" in results[0]
    assert (report.effects, report.answers["blocked"]) == (0, 1)
    assert world.effects == 3


def test_a_result_of_a_live_tool_that_differs_is_found_in_the_next_request(
    ledger: Ledger, world: World
) -> None:
    def agent(run: RecordedLoop) -> Any:
        text = run.tool(lambda: str(world.asked), {}, name="read")
        return run.model(
            world.model, messages=[{"role": "user", "content": "go"}, {"role": "tool", "content": text}]
        )

    session, _ = recorded(ledger, agent)
    report, _ = again(ledger, session, agent, tools={"read": "live"})
    assert report.divergence is not None
    assert (report.divergence.kind, report.divergence.pointer) == ("request", "/messages/1/content")
    assert report.divergence.cause == "the conversation changed"


def test_a_recording_that_stops_in_a_call_is_incomplete(ledger: Ledger, world: World) -> None:
    crashed = record_loop(ledger, harness="test")
    crashed.__enter__()
    crashed.tool(world.send, {"to": "a"})
    ToolCall(crashed._journal, world.send, {"to": "b"}, {})  # as far as it came before the process died

    def agent(run: RecordedLoop) -> None:
        run.tool(world.send, {"to": "a"})
        run.tool(world.send, {"to": "b"})

    report, _ = again(ledger, crashed.session, agent)
    assert (report.verdict, report.divergence) == ("incomplete", None)
    assert "the recording ends before" in str(report.reason)
    assert world.effects == 1
