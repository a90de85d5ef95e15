"""The tables of `SqliteSaver` and `AsyncSqliteSaver`."""

from typing import Any

from ledger.importers._langgraph.saver import Damaged, Key, Saved, Saver, Statements, decoded, parsed
from ledger.importers._langgraph.values import Decoder
from ledger.importers._sqlite import Database, Tables

_CHECKPOINT_COLUMNS = {
    "thread_id",
    "checkpoint_ns",
    "checkpoint_id",
    "parent_checkpoint_id",
    "type",
    "checkpoint",
}
_WRITE_COLUMNS = {"thread_id", "checkpoint_ns", "checkpoint_id", "task_id", "idx", "channel", "type", "value"}
_KEYS = (
    "select rowid, checkpoint_ns, checkpoint_id, parent_checkpoint_id from checkpoints where thread_id is ?"
)


def is_saver(tables: Tables) -> bool:
    """Whether these are the tables of LangGraph's SQLite saver."""
    return _CHECKPOINT_COLUMNS.issubset(tables.get("checkpoints", ())) and _WRITE_COLUMNS.issubset(
        tables.get("writes", ())
    )


class SqliteSaver(Saver):
    """Keeps a checkpoint whole, in one row."""

    def __init__(self, database: Database) -> None:
        tables = database.tables()
        super().__init__(
            _statements("task_path" if "task_path" in tables["writes"] else "''"),
            database.rows,
            database.rows,
        )
        self._metadata = "metadata" if "metadata" in tables["checkpoints"] else "null"

    def load(self, thread: Any, key: Key, decoder: Decoder) -> Saved:
        """What is in a checkpoint."""
        statement = f"select type, checkpoint, {self._metadata} from checkpoints where rowid = ?"  # noqa: S608
        kind, body, metadata = self._one(statement, key.place) or (None, None, None)
        damaged: list[Damaged] = []
        return Saved(
            decoded(decoder, kind, body, "checkpoint", damaged),
            parsed(metadata, "metadata", damaged),
            damaged,
        )


def _statements(path: str) -> Statements:
    """The statements, where `path` is the column of a write's path, or an empty text in old databases."""
    write = f"task_id, {path}, idx, channel, type, value"
    return Statements(
        threads="select thread_id from checkpoints union select thread_id from writes order by 1",
        keys=f"{_KEYS} order by checkpoint_id, checkpoint_ns",
        find=f"{_KEYS} and checkpoint_ns is ? and checkpoint_id is ?",
        writes=f"select {write} from writes where thread_id is ? and checkpoint_ns is ? and checkpoint_id is ?"  # noqa: S608
        f" order by {path}, task_id, idx",
        ran_below="select 1 from checkpoints where thread_id is ? and instr(checkpoint_ns, ?) limit 1",
        answers_below=f"select {write} from writes where thread_id is ? and instr(checkpoint_ns, ?)"  # noqa: S608
        " and channel = '__resume__' order by checkpoint_id, task_id, idx",
        children="select min(checkpoint_id), max(checkpoint_id) from checkpoints"
        " where thread_id is ? and checkpoint_ns is ? and parent_checkpoint_id is ?",
        strays=f"select checkpoint_ns, checkpoint_id, {write} from writes where thread_id is ?"  # noqa: S608
        " and not exists (select 1 from checkpoints as kept"
        " where kept.thread_id is writes.thread_id and kept.checkpoint_ns is writes.checkpoint_ns"
        " and kept.checkpoint_id is writes.checkpoint_id) order by rowid",
    )
