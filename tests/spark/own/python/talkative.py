"""A detector as a user writes it: model calls that answered without ever calling a tool."""  # noqa: INP001 - a folder of files, no package

from collections.abc import Iterable

from ledger.audit import Fold, Found, Given
from ledger.events import Record
from ledger.events.model_call import ModelCallAnswered
from ledger.events.tool_call import ToolCallRequested

TITLE = "Only talk"
SEVERITY = "info"
WHY = "An agent that has tools and calls none was perhaps asked for something else."
MISSES = "Calls that the source does not log."
READS = (ModelCallAnswered, ToolCallRequested)
SOURCE = "Written for the tests."


class Watch:
    """Counts the answers of a session until a tool is called."""

    def __init__(self, given: Given) -> None:
        self._answers: list[int] = []
        self._has_called = False

    def take(self, record: Record) -> Iterable[Found]:
        """One more record."""
        if isinstance(record.event, ToolCallRequested):
            self._has_called = True
        else:
            self._answers.append(record.seq)
        return ()

    def end(self) -> Iterable[Found]:
        """What shows when no more records come."""
        if self._answers and not self._has_called:
            yield Found(self._answers[0], f"{len(self._answers)} answers and no call", key="talk")


def start(given: Given) -> Fold:
    """Begin with a session."""
    return Watch(given)
