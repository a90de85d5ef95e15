"""Proving a long session, and answering from a long recording: CPU for each event and request."""

import json
import tempfile
import time
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

from ledger.events import Draft, Event
from ledger.events.input import MessageReceived
from ledger.events.model_call import ModelCallAnswered, ModelCallRequested
from ledger.events.session import SessionStarted
from ledger.events.tool_call import ToolCallRequested, ToolCallSettled
from ledger.home import Ledger, open_ledger
from ledger.protocols.requests import RequestTaker, follow
from ledger.recorder import ContextChain
from replay.player import open_player
from replay.proving import prove_requests, prove_states
from tests.benchmarks.measure import Result

_EVENTS = 100_000
_KEPT_TURNS = 20


def fill(ledger: Ledger, events: int = _EVENTS) -> list[dict[str, object]]:
    """A session of that many events with whole requests, whose context is cut every so often; its last bodies."""
    keep = ledger.recorder.keeper()
    taker, chain = RequestTaker(keep), ContextChain(keep)
    drafts: list[Event] = [SessionStarted(harness="bench")]
    messages: list[dict[str, object]] = []
    last: list[dict[str, object]] = []
    index = written = 0
    while written < events:
        index += 1
        if index % _KEPT_TURNS == 0:
            messages = []
        messages.append({"role": "user", "content": f"Question {index}: " + "words of a user " * 20})
        drafts.append(MessageReceived(origin="human", message=taker.message(messages[-1])))
        body: dict[str, object] = {
            "model": "m",
            "system": "Be brief. " * 100,
            "messages": list(messages),
            "max_tokens": 100,
        }
        parts = taker.take("anthropic.messages", body)
        drafts.append(
            ModelCallRequested(
                call_id=f"m{index}",
                protocol="anthropic.messages",
                model=parts.model,
                system=parts.system,
                parameters=parts.parameters,
                body_digest=parts.body_digest,
                completeness=parts.completeness,
                **follow(chain, parts.messages),
            )
        )
        answer: dict[str, object] = {
            "role": "assistant",
            "content": [{"type": "text", "text": f"Answer {index}"}],
        }
        drafts.append(ModelCallAnswered(call_id=f"m{index}", message=keep.json(answer), duration_ms=5))
        drafts.append(
            ToolCallRequested(call_id=f"t{index}", tool="search", arguments=keep.json({"n": index}))
        )
        result = keep.json(f"result {index}")
        drafts.append(ToolCallSettled(call_id=f"t{index}", outcome="returned", result=result))
        messages.append(answer)
        last = [*last[-20:], body]
        if len(drafts) >= 1000:
            drafts = drafts[: events - written]
            ledger.recorder.append("long", [Draft(event) for event in drafts], keep)
            written += len(drafts)
            drafts = []
    return last


def run() -> Iterator[Result]:
    """The lines of this part."""
    with tempfile.TemporaryDirectory() as folder, open_ledger(Path(folder)) as ledger:
        last = fill(ledger)
        for name, proved in (("state", prove_states), ("request", prove_requests)):
            started = time.thread_time_ns()
            report = proved(ledger.store, "long")
            cost = (time.thread_time_ns() - started) / 1000 / _EVENTS
            assert report.divergence is None
            yield Result(f"replay of 100,000 events, level {name}", f"{cost:.1f} us CPU an event", "-", None)
        tracemalloc.start()
        prove_requests(ledger.store, "long")
        peak = tracemalloc.get_traced_memory()[1] / 1e6
        yield Result("memory of level request", f"{peak:.1f} MB", "< 50 MB", peak < 50)
        tracemalloc.reset_peak()
        player = open_player(ledger, "long", gate_timeout_s=0.0)
        peak = tracemalloc.get_traced_memory()[1] / 1e6
        tracemalloc.stop()
        yield Result("index of 20,000 recorded requests", f"{peak:.1f} MB", "< 50 MB", peak < 50)
        started = time.thread_time_ns()
        for body in last[:-1]:
            player.match("POST", "/v1/messages", [], json.dumps(body).encode())
        cost = (time.thread_time_ns() - started) / 1e6 / (len(last) - 1)
        yield Result("an answer from that recording", f"{cost:.2f} ms CPU a request", "-", None)
