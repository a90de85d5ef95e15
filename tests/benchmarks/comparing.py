"""Comparing two long sessions, and the queue of approvals in a large ledger."""

import random
import tempfile
import time
import tracemalloc
from collections.abc import Iterator

from ledger.events import ContentRef, Draft, Event
from ledger.events.approval import ApprovalAsked, ApprovalDecided
from ledger.events.model_call import ModelCallAnswered, ModelCallRequested, Usage
from ledger.events.session import SessionStarted
from ledger.events.tool_call import ToolCallRequested, ToolCallSettled
from ledger.home import Ledger, open_ledger
from ledger.views.approvals import ApprovalsView
from replay.comparing.alignment import align
from replay.comparing.comparison import compare
from tests.benchmarks.measure import Result

_RECORDS = 50_000
_OTHER = 100
_QUESTIONS = 10_000


def run() -> Iterator[Result]:
    """The lines of this part."""
    with tempfile.TemporaryDirectory() as folder, open_ledger(folder) as ledger:
        draw = random.Random(5)
        for name in ("one", "two"):
            other = frozenset(draw.sample(range(_RECORDS), _OTHER)) if name == "two" else frozenset()
            _write(ledger, name, list(_turns(other)))
        compare(ledger, "one", "two")  # the lists of sessions and branches are made once
        started = time.process_time()
        told = compare(ledger, "one", "two")
        seconds = time.process_time() - started
        assert told.alignment.is_longest and told.divergence is not None
        yield Result(
            f"compare two sessions of {_RECORDS:,} records, {_OTHER} of them other ones",
            f"{seconds:.1f} CPU s",
            "10 s",
            seconds < 10,
        )
        yield from _hostile()
        yield from _queue(ledger)


def _turns(other: frozenset[int]) -> Iterator[Event]:
    yield SessionStarted(harness="bench")
    for number in range(_RECORDS // 4):
        call, ref = f"c{number}", _ref(f"{number}{'x' if number * 4 in other else ''}")
        yield ModelCallRequested(call_id=f"m{number}", protocol="openai.chat", completeness="none")
        yield ModelCallAnswered(call_id=f"m{number}", message=ref, usage=Usage(input_tokens=9))
        yield ToolCallRequested(
            call_id=call, tool=f"tool {number % 7}", arguments=_ref(f"arguments {number}")
        )
        yield ToolCallSettled(call_id=call, outcome="failed" if number * 4 + 1 in other else "returned")


def _ref(text: str) -> ContentRef:
    return ContentRef(digest=text.encode().hex().rjust(64, "0")[-64:], size=9, kind="json")


def _write(ledger: Ledger, session: str, events: list[Event]) -> None:
    for first in range(0, len(events), 1000):
        drafts = [Draft(event) for event in events[first : first + 1000]]
        ledger.store.append({session: drafts}, stamp=lambda: "2026-01-01T00:00:00Z")


def _hostile() -> Iterator[Result]:
    """Two lists that differ everywhere and repeat themselves: nothing to hold on to."""
    draw = random.Random(9)
    left, right = ([draw.randrange(2) for _ in range(_RECORDS)] for _ in range(2))
    started = time.process_time()
    align(left, right)
    seconds = time.process_time() - started
    tracemalloc.start()
    align(left, right)
    peak = tracemalloc.get_traced_memory()[1] / 1e6
    tracemalloc.stop()
    yield Result(
        f"align two lists of {_RECORDS:,} made to be hard",
        f"{seconds:.1f} CPU s, {peak:.0f} MB",
        "10 s",
        seconds < 10,
    )


def _queue(ledger: Ledger) -> Iterator[Result]:
    """The questions that wait, in a ledger that holds many answered ones."""
    events: list[Event] = []
    for number in range(_QUESTIONS):
        events.append(ApprovalAsked(approval_id=f"a{number}", key="k", tool="send"))
        if number >= 10:
            events.append(ApprovalDecided(approval_id=f"a{number}", outcome="approved", decided_by="human"))
    _write(ledger, "asking", events)
    with ApprovalsView(ledger.home, ledger.store) as view:
        started = time.perf_counter()
        view.catch_up()
        first_ms = (time.perf_counter() - started) * 1000
        started = time.perf_counter()
        view.catch_up()
        assert len(list(view.questions(view.open_rows()))) == 10
        milliseconds = (time.perf_counter() - started) * 1000
    yield Result(
        f"the 10 open ones of {_QUESTIONS:,} approvals, in a ledger of {2 * _RECORDS + 2 * _QUESTIONS:,} records",
        f"{milliseconds:.1f} ms ({first_ms:.0f} ms the first time)",
        "50 ms",
        milliseconds < 50,
    )
