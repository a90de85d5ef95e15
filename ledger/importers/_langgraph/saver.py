"""The rows that LangGraph's savers keep, from SQLite or PostgreSQL, in one shape. Interprets no value."""

from collections.abc import Iterator
from typing import Any, NamedTuple, Protocol

from ledger.events.canonical import decode_json
from ledger.importers._langgraph.values import DecodeError, Decoder, as_text
from ledger.importers._sqlite import Database, Tables

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


class Saver(Protocol):
    """One database of checkpoints."""

    def threads(self) -> Iterator[Any]:
        """Its threads, by name."""

    def keys(self, thread: Any) -> Iterator[Key]:
        """Checkpoints of a thread, oldest id first, over all namespaces."""

    def find(self, thread: Any, namespace: Any, checkpoint: Any) -> Key | None:
        """One checkpoint."""

    def load(self, thread: Any, key: Key, decoder: Decoder) -> Saved:
        """What is in a checkpoint."""

    def writes(self, thread: Any, key: Key) -> list[Write]:
        """What was written after a checkpoint, in the order in which a step applies it."""

    def answers_below(self, thread: Any, task: str) -> list[Write] | None:
        """The resume values in the sub-graph that a task ran; None when it ran none."""

    def children(self, thread: Any, key: Key) -> tuple[Any, Any]:
        """Ids of the oldest and the newest checkpoint that follow this one; None where there is none."""

    def strays(self, thread: Any) -> Iterator[tuple[Any, Any, Write]]:
        """Writes whose checkpoint is not there: namespace, checkpoint id, write."""


def is_saver(tables: Tables) -> bool:
    """Whether these are the tables of LangGraph's SQLite saver."""
    return _CHECKPOINT_COLUMNS.issubset(tables.get("checkpoints", ())) and _WRITE_COLUMNS.issubset(
        tables.get("writes", ())
    )


_CHECKPOINT_COLUMNS = {
    "thread_id",
    "checkpoint_ns",
    "checkpoint_id",
    "parent_checkpoint_id",
    "type",
    "checkpoint",
}
_WRITE_COLUMNS = {"thread_id", "checkpoint_ns", "checkpoint_id", "task_id", "idx", "channel", "type", "value"}
_WRITES = "task_id, {path}, idx, channel, type, value"
_STEP_ORDER = "{path}, task_id, idx"


class SqliteSaver:
    """The tables of `SqliteSaver` and `AsyncSqliteSaver`."""

    def __init__(self, database: Database) -> None:
        self._database = database
        tables = database.tables()
        path = "task_path" if "task_path" in tables["writes"] else "''"
        self._writes = _WRITES.format(path=path)
        self._order = _STEP_ORDER.format(path=path)
        self._metadata = "metadata" if "metadata" in tables["checkpoints"] else "null"

    def threads(self) -> Iterator[Any]:
        """Its threads, by name."""
        names = "select thread_id from checkpoints union select thread_id from writes order by 1"
        return (row[0] for row in self._database.rows(names))

    def keys(self, thread: Any) -> Iterator[Key]:
        """Checkpoints of a thread, oldest id first, over all namespaces."""
        rows = self._database.rows(
            "select rowid, checkpoint_ns, checkpoint_id, parent_checkpoint_id from checkpoints"
            " where thread_id is ? order by checkpoint_id, checkpoint_ns",
            (thread,),
        )
        return map(Key._make, rows)

    def find(self, thread: Any, namespace: Any, checkpoint: Any) -> Key | None:
        """One checkpoint."""
        row = self._database.row(
            "select rowid, checkpoint_ns, checkpoint_id, parent_checkpoint_id from checkpoints"
            " where thread_id is ? and checkpoint_ns is ? and checkpoint_id is ?",
            (thread, namespace, checkpoint),
        )
        return None if row is None else Key._make(row)

    def load(self, thread: Any, key: Key, decoder: Decoder) -> Saved:
        """What is in a checkpoint."""
        statement = f"select type, checkpoint, {self._metadata} from checkpoints where rowid = ?"  # noqa: S608
        row = self._database.row(statement, (key.place,))
        kind, body, metadata = row if row is not None else (None, None, None)
        damaged: list[Damaged] = []
        return Saved(
            decoded(decoder, kind, body, "checkpoint", damaged),
            parsed(metadata, "metadata", damaged),
            damaged,
        )

    def writes(self, thread: Any, key: Key) -> list[Write]:
        """What was written after a checkpoint, in the order in which a step applies it."""
        rows = self._database.rows(
            f"select {self._writes} from writes"  # noqa: S608
            f" where thread_id is ? and checkpoint_ns is ? and checkpoint_id is ? order by {self._order}",
            (thread, key.namespace, key.id),
        )
        return [write_of(row) for row in rows]

    def answers_below(self, thread: Any, task: str) -> list[Write] | None:
        """The resume values in the sub-graph that a task ran; None when it ran none."""
        below = (thread, f":{task}")
        ran = "select 1 from checkpoints where thread_id is ? and instr(checkpoint_ns, ?) limit 1"
        if self._database.row(ran, below) is None:
            return None
        rows = self._database.rows(
            f"select {self._writes} from writes where thread_id is ?"  # noqa: S608
            " and instr(checkpoint_ns, ?) and channel = '__resume__' order by checkpoint_id, task_id, idx",
            below,
        )
        return [write_of(row) for row in rows]

    def children(self, thread: Any, key: Key) -> tuple[Any, Any]:
        """Ids of the oldest and the newest checkpoint that follow this one; None where there is none."""
        row = self._database.row(
            "select min(checkpoint_id), max(checkpoint_id) from checkpoints"
            " where thread_id is ? and checkpoint_ns is ? and parent_checkpoint_id is ?",
            (thread, key.namespace, key.id),
        )
        return (None, None) if row is None else (row[0], row[1])

    def strays(self, thread: Any) -> Iterator[tuple[Any, Any, Write]]:
        """Writes whose checkpoint is not there: namespace, checkpoint id, write."""
        rows = self._database.rows(
            f"select checkpoint_ns, checkpoint_id, {self._writes} from writes"  # noqa: S608
            " where thread_id is ? and not exists (select 1 from checkpoints as kept"
            " where kept.thread_id is writes.thread_id and kept.checkpoint_ns is writes.checkpoint_ns"
            " and kept.checkpoint_id is writes.checkpoint_id) order by rowid",
            (thread,),
        )
        return ((row[0], row[1], write_of(row[2:])) for row in rows)


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
