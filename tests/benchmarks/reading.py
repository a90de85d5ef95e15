"""Rebuilding state: CPU and memory for each event of a long session."""

import sys
import tempfile
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

from ledger.events import ContentRef, Draft, Event
from ledger.events.input import MessageReceived
from ledger.events.model_call import ModelCallAnswered, ModelCallRequested, Usage
from ledger.events.session import SessionStarted
from ledger.events.tool_call import ToolCallRequested, ToolCallSettled, ToolCallStarted
from ledger.store import EventStore, open_store
from replay.timeline import session_timeline
from tests.benchmarks.measure import Result, cpu_us

_EVENTS = 100_000


def _ref(index: int) -> ContentRef:
    return ContentRef(digest=f"{index:064x}", size=1000, kind="json")


def turn(index: int) -> list[Event]:
    """One turn of a loop: a model call and a tool call."""
    call, message = f"call_{index}", f"m{index}"
    return [
        ModelCallRequested(call_id=message, protocol="anthropic.messages", completeness="messages"),
        ModelCallAnswered(
            call_id=message, message=_ref(3 * index), usage=Usage(input_tokens=10, output_tokens=5)
        ),
        ToolCallRequested(call_id=call, tool="search", arguments=_ref(3 * index + 1)),
        ToolCallStarted(call_id=call),
        ToolCallSettled(call_id=call, outcome="returned", result=_ref(3 * index + 2)),
    ]


def fill(store: EventStore, events: int = _EVENTS) -> None:
    """A session `long` of that many events."""
    first: list[Event] = [
        SessionStarted(harness="bench"),
        MessageReceived(origin="human", message=_ref(10**9)),
    ]
    drafts = [Draft(event) for event in first]
    index = 0
    written = 0
    while written < events:
        while len(drafts) < 1000:
            drafts.extend(Draft(event) for event in turn(index))
            index += 1
        drafts = drafts[: events - written]
        store.append({"long": drafts}, stamp=lambda: "2026-01-01T00:00:00Z")
        written += len(drafts)
        drafts = []


def run() -> Iterator[Result]:
    """The lines of this part."""
    with (
        tempfile.TemporaryDirectory() as folder,
        open_store(f"sqlite:///{Path(folder) / 'ledger.sqlite'}") as store,
    ):
        fill(store)

        def work() -> int:
            session_timeline(store, "long").at(_EVENTS)
            return _EVENTS

        cost = cpu_us(work, seconds=0.1)
        yield Result("rebuild of 100,000 events", f"{cost:.1f} us CPU an event", "<= 15 us", cost <= 15)
        tracemalloc.start()
        before = tracemalloc.get_traced_memory()[0]
        work()
        peak = (tracemalloc.get_traced_memory()[1] - before) / 1e6
        tracemalloc.stop()
        yield Result("memory of that rebuild above start", f"{peak:.1f} MB", "< 50 MB", peak < 50)


if __name__ == "__main__":
    sys.stdout.write("\n".join(f"{line.name}: {line.value} (aim {line.aim})" for line in run()) + "\n")
