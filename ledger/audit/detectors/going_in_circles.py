"""The agent repeats itself without getting anywhere: the same call, a cycle of calls, or one failure after another."""

from collections import deque
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from ledger.audit.detector import Given
from ledger.audit.finding import Found
from ledger.events import Record
from ledger.events.input import MessageReceived
from ledger.events.tool_call import ToolCallRequested, ToolCallSettled

TITLE = "Loop or fruitless streak"
SEVERITY = "medium"
WHY = "A loop that repeats itself spends money and patience, and often ends in something desperate."
MISSES = (
    "Repetitions in other words; results that differ only by a time or a number; slow circles of more than four calls;"
    " waiting that is meant, where the source gives each look the same result."
)
READS = (MessageReceived, ToolCallRequested, ToolCallSettled)
SOURCE = "MAST FM-1.3 step repetition (arXiv 2503.13657); tau-bench: a call made thrice alike, all four runs failed."

REPEATS = 3
"""So many times the same call with the same result, in a row or round and round, are a loop."""

FAILURES = 5
"""So many failures of one tool without a success between are a streak."""

_LONGEST_CIRCLE = 4
_MOST_OPEN = 500
_KEPT = REPEATS * _LONGEST_CIRCLE


class _Step(NamedTuple):
    seq: int
    tool: str
    told: tuple[str, str, str | None]


class Watch:
    """One session."""

    def __init__(self, given: Given) -> None:
        self._open: dict[str, tuple[ToolCallRequested, int]] = {}
        self._steps: deque[_Step] = deque(maxlen=_KEPT)
        self._is_told = False
        self._failing: dict[str, list[int]] = {}

    def end(self) -> Iterable[Found]:
        """Nothing shows only at the end."""
        return ()

    def take(self, record: Record) -> Iterator[Found]:
        """One more record."""
        event = record.event
        match event:
            case MessageReceived() if event.origin == "human":
                self._steps.clear()  # a person may ask for the same again
                self._failing.clear()
                self._is_told = False
            case ToolCallRequested():
                self._open[event.call_id] = event, record.seq
                if len(self._open) > _MOST_OPEN:
                    del self._open[next(iter(self._open))]
            case ToolCallSettled() if event.call_id in self._open:
                call, seq = self._open.pop(event.call_id)
                result = None if event.result is None else event.result.digest
                self._steps.append(_Step(seq, call.tool, (call.tool, call.arguments.digest, result)))
                yield from self._circle()
                yield from self._streak(call.tool, seq, failed=event.outcome in ("failed", "denied"))
            case _:
                pass

    def _circle(self) -> Iterator[Found]:
        """The last steps are the same ones round and round: told once, until something else comes."""
        steps = list(self._steps)
        for size in range(1, _LONGEST_CIRCLE + 1):
            last = steps[-size * REPEATS :]
            if len(last) < size * REPEATS:
                break
            if all(last[place].told == last[place % size].told for place in range(len(last))):
                if not self._is_told:
                    self._is_told = True
                    what = ", ".join(dict.fromkeys(step.tool for step in last[:size]))
                    message = f"{what}: {REPEATS} times round with the same arguments and the same results"
                    seqs = tuple(step.seq for step in last)
                    yield Found(last[0].seq, message, seqs, part="circle")
                return
        self._is_told = False

    def _streak(self, tool: str, seq: int, *, failed: bool) -> Iterator[Found]:
        if not failed:
            self._failing.pop(tool, None)
            return
        seqs = self._failing.setdefault(tool, [])
        if len(self._failing) > _MOST_OPEN:
            del self._failing[next(iter(self._failing))]
        seqs.append(seq)
        if len(seqs) == FAILURES:
            message = f"{tool} failed {FAILURES} times without a success between"
            yield Found(seqs[0], message, tuple(seqs), part="failures")
        del seqs[FAILURES + 1 :]


start = Watch
