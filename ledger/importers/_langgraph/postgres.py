"""The tables of `PostgresSaver` and `AsyncPostgresSaver`, in the shape of `Saver`."""

from collections.abc import Iterator
from typing import Any

from ledger.errors import SourceError
from ledger.events.canonical import decode_json
from ledger.importers._langgraph.saver import Damaged, Key, Saved, Write, decoded, parsed, write_of
from ledger.importers._langgraph.values import Decoder, as_text
from ledger.importers._postgres import PostgresDatabase, Tables

_TABLES = ("checkpoints", "checkpoint_blobs", "checkpoint_writes")
_KEY = "null, checkpoint_ns, checkpoint_id, parent_checkpoint_id"
_WRITE = "task_id, {path}, idx, channel, type, blob"


def is_saver(tables: Tables) -> bool:
    """Whether these are the tables of LangGraph's PostgreSQL saver."""
    return all(table in tables and "thread_id" in tables[table] for table in _TABLES)


class PostgresSaver:
    """Keeps primitive values in the checkpoint and all others, by channel and version, in a table of their own."""

    def __init__(self, database: PostgresDatabase) -> None:
        self._database = database
        tables = database.tables()
        if "checkpoint_id" not in tables["checkpoints"]:
            raise SourceError(
                "these tables are of a saver that keeps only the last checkpoint of each thread (shallow):"
                " expected one with all checkpoints"
            )
        path = "task_path" if "task_path" in tables["checkpoint_writes"] else "''"
        self._write = _WRITE.format(path=path)
        self._order = f'{path} collate "C", task_id collate "C", idx'

    def threads(self) -> Iterator[Any]:
        """Its threads, by name."""
        names = (
            "select thread_id from (select thread_id from checkpoints union select thread_id from"
            ' checkpoint_writes) as threads order by thread_id collate "C"'
        )
        return iter([row[0] for row in self._database.few(names)])

    def keys(self, thread: Any) -> Iterator[Key]:
        """Checkpoints of a thread, oldest id first, over all namespaces."""
        rows = self._database.rows(
            f"select {_KEY} from checkpoints where thread_id = %s"  # noqa: S608
            ' order by checkpoint_id collate "C", checkpoint_ns collate "C"',
            (thread,),
        )
        return map(Key._make, rows)

    def find(self, thread: Any, namespace: Any, checkpoint: Any) -> Key | None:
        """One checkpoint."""
        rows = self._database.few(
            f"select {_KEY} from checkpoints"  # noqa: S608
            " where thread_id = %s and checkpoint_ns = %s and checkpoint_id = %s",
            (thread, namespace, checkpoint),
        )
        return Key._make(rows[0]) if rows else None

    def load(self, thread: Any, key: Key, decoder: Decoder) -> Saved:
        """What is in a checkpoint."""
        place = (thread, key.namespace, key.id)
        rows = self._database.few(
            "select checkpoint::text, metadata::text from checkpoints"
            " where thread_id = %s and checkpoint_ns = %s and checkpoint_id = %s",
            place,
        )
        damaged: list[Damaged] = []
        body = decode_json(rows[0][0]) if rows else None
        metadata = parsed(rows[0][1] if rows else None, "metadata", damaged)
        if isinstance(body, dict):
            inline = body.get("channel_values")
            values = dict(inline) if isinstance(inline, dict) else {}
            for channel, kind, content in self._database.few(
                "select kept.channel, kept.type, kept.blob from checkpoints"
                " cross join jsonb_each_text(checkpoints.checkpoint -> 'channel_versions') as versions"
                " join checkpoint_blobs as kept on kept.thread_id = checkpoints.thread_id"
                " and kept.checkpoint_ns = checkpoints.checkpoint_ns"
                " and kept.channel = versions.key and kept.version = versions.value"
                " where checkpoints.thread_id = %s and checkpoints.checkpoint_ns = %s"
                " and checkpoints.checkpoint_id = %s and kept.type <> 'empty' order by kept.channel",
                place,
            ):
                before = len(damaged)
                value = decoded(decoder, kind, content, f"channel {as_text(channel)[:80]}", damaged)
                if len(damaged) == before:
                    values[channel] = value
            body["channel_values"] = values
        return Saved(body, metadata, damaged)

    def writes(self, thread: Any, key: Key) -> list[Write]:
        """What was written after a checkpoint, in the order in which a step applies it."""
        rows = self._database.few(
            f"select {self._write} from checkpoint_writes where thread_id = %s"  # noqa: S608
            f" and checkpoint_ns = %s and checkpoint_id = %s order by {self._order}",
            (thread, key.namespace, key.id),
        )
        return [write_of(row) for row in rows]

    def answers_below(self, thread: Any, task: str) -> list[Write] | None:
        """The resume values in the sub-graph that a task ran; None when it ran none."""
        below = (thread, f":{task}")
        ran = "select 1 from checkpoints where thread_id = %s and position(%s in checkpoint_ns) > 0 limit 1"
        if not self._database.few(ran, below):
            return None
        rows = self._database.few(
            f"select {self._write} from checkpoint_writes where thread_id = %s"  # noqa: S608
            " and position(%s in checkpoint_ns) > 0 and channel = '__resume__'"
            " order by checkpoint_id, task_id, idx",
            below,
        )
        return [write_of(row) for row in rows]

    def children(self, thread: Any, key: Key) -> tuple[Any, Any]:
        """Ids of the oldest and the newest checkpoint that follow this one; None where there is none."""
        rows = self._database.few(
            'select min(checkpoint_id collate "C"), max(checkpoint_id collate "C") from checkpoints'
            " where thread_id = %s and checkpoint_ns = %s and parent_checkpoint_id = %s",
            (thread, key.namespace, key.id),
        )
        return (rows[0][0], rows[0][1]) if rows else (None, None)

    def strays(self, thread: Any) -> Iterator[tuple[Any, Any, Write]]:
        """Writes whose checkpoint is not there: namespace, checkpoint id, write."""
        rows = self._database.rows(
            f"select checkpoint_ns, checkpoint_id, {self._write} from checkpoint_writes as written"  # noqa: S608
            " where thread_id = %s and not exists (select 1 from checkpoints as kept"
            " where kept.thread_id = written.thread_id and kept.checkpoint_ns = written.checkpoint_ns"
            " and kept.checkpoint_id = written.checkpoint_id) order by checkpoint_id, task_id, idx",
            (thread,),
        )
        return ((row[0], row[1], write_of(row[2:])) for row in rows)
