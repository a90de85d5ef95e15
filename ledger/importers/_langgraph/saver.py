"""The rows that LangGraph's savers keep, in one shape whatever the database. Interprets no value."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from ledger.events.canonical import decode_json
from ledger.importers._langgraph.values import DecodeError, Decoder, as_text

NULL_TASK = "00000000-0000-0000-0000-000000000000"
"""Task under which a resume value is stored before a task has taken it."""


class Key(NamedTuple):
    """Where a checkpoint stands."""

    place: Any
    """How its saver finds it."""

    namespace: Any
    """Sub-graph that it belongs to, as stored; empty for the outer graph."""

    id: Any
    """Its id, as stored."""

    parent: Any
    """Id of the checkpoint before it in the same namespace, or None."""


class Write(NamedTuple):
    """One value that a task wrote after a checkpoint."""

    task: str
    """The task."""
    path: str
    """Its path, which names the node; empty in old databases."""
    place: int
    """Place among the writes of its task; negative for interrupts, answers and errors."""
    channel: str
    """Channel, or a name in double underscores."""
    kind: Any
    """Type of the value."""
    value: Any
    """Its bytes."""


class Damaged(NamedTuple):
    """A value that could not be decoded."""

    reason: str
    """Why."""
    content: bytes
    """Its bytes."""


class Saved(NamedTuple):
    """A checkpoint, decoded as far as we may."""

    body: Any
    """The checkpoint: `ts`, `channel_values`, `channel_versions`, ..."""
    metadata: Any
    """`source`, `step`, `parents` and what the application added."""
    damaged: list[Damaged]
    """Parts that stayed bytes."""


@dataclass(frozen=True)
class Statements:
    """How one kind of database is asked. The columns of a key are place, namespace, id and parent."""

    threads: str
    """Names of all threads."""
    keys: str
    """Keys of a thread, oldest id first."""
    find: str
    """Key of a thread, namespace and id."""
    writes: str
    """Writes of a thread, namespace and checkpoint, in the order in which a step applies them."""
    ran_below: str
    """Whether a thread has a namespace that holds a text."""
    answers_below: str
    """Resume values of a thread in namespaces that hold a text."""
    children: str
    """Oldest and newest id whose parent is a thread, namespace and checkpoint."""
    strays: str
    """Namespace, checkpoint and write of a thread's writes whose checkpoint is not there."""


Rows = Callable[[str, Sequence[Any]], Iterable[tuple[Any, ...]]]
"""Gives the rows of a query."""


class Saver(ABC):
    """One database of checkpoints. What is read is the same everywhere; how, is in its statements."""

    def __init__(self, statements: Statements, rows: Rows, few: Rows) -> None:
        self._statements = statements
        self._rows = rows
        """Reads a query whose rows may be many."""
        self._few = few
        """Reads a query whose rows are few, also while another one is read."""

    @abstractmethod
    def load(self, thread: Any, key: Key, decoder: Decoder) -> Saved:
        """What is in a checkpoint."""

    def threads(self) -> Iterator[Any]:
        """Its threads, by name."""
        return iter([row[0] for row in self._few(self._statements.threads, ())])

    def keys(self, thread: Any) -> Iterator[Key]:
        """Checkpoints of a thread, oldest id first, over all namespaces."""
        return map(Key._make, self._rows(self._statements.keys, (thread,)))

    def find(self, thread: Any, namespace: Any, checkpoint: Any) -> Key | None:
        """One checkpoint."""
        row = self._one(self._statements.find, thread, namespace, checkpoint)
        return None if row is None else Key._make(row)

    def writes(self, thread: Any, key: Key) -> list[Write]:
        """What was written after a checkpoint, in the order in which a step applies it."""
        return [write_of(row) for row in self._few(self._statements.writes, (thread, key.namespace, key.id))]

    def answers_below(self, thread: Any, task: str) -> list[Write] | None:
        """The resume values in the sub-graph that a task ran; None when it ran none."""
        below = (thread, f":{task}")
        if self._one(self._statements.ran_below, *below) is None:
            return None
        return [write_of(row) for row in self._few(self._statements.answers_below, below)]

    def children(self, thread: Any, key: Key) -> tuple[Any, Any]:
        """Ids of the oldest and the newest checkpoint that follow this one; None where there is none."""
        row = self._one(self._statements.children, thread, key.namespace, key.id)
        return (None, None) if row is None else (row[0], row[1])

    def strays(self, thread: Any) -> Iterator[tuple[Any, Any, Write]]:
        """Writes whose checkpoint is not there: namespace, checkpoint id, write."""
        rows = self._rows(self._statements.strays, (thread,))
        return ((row[0], row[1], write_of(row[2:])) for row in rows)

    def _one(self, statement: str, *values: Any) -> tuple[Any, ...] | None:
        return next(iter(self._few(statement, values)), None)


def decoded(decoder: Decoder, kind: Any, content: Any, what: str, damaged: list[Damaged]) -> Any:
    """A value, or None with a note of why its bytes stay bytes."""
    try:
        return decoder.decode(kind, content)
    except DecodeError as error:
        damaged.append(
            Damaged(f"{what}: {error}", content if isinstance(content, bytes) else repr(content).encode())
        )
        return None


def parsed(content: Any, what: str, damaged: list[Damaged]) -> Any:
    """JSON that is stored as such, or None with a note of why its bytes stay bytes."""
    if content is None:
        return None
    raw = content if isinstance(content, bytes) else str(content).encode("utf-8", "surrogateescape")
    try:
        return decode_json(raw)
    except ValueError as error:
        damaged.append(Damaged(f"{what}: no JSON: {error}", raw))
        return None


def write_of(row: Any) -> Write:
    """A row of task, path, place, channel, type and value, whatever a database holds in their place."""
    task, path, index, channel, kind, value = row
    number = index if isinstance(index, int) else 0
    return Write(as_text(task), as_text(path), number, as_text(channel), kind, value)
