"""The tables of `PostgresSaver` and `AsyncPostgresSaver`."""

from typing import Any

from ledger.errors import SourceError
from ledger.events.canonical import decode_json
from ledger.importers._langgraph.saver import Damaged, Key, Saved, Saver, Statements, decoded, parsed
from ledger.importers._langgraph.values import Decoder, as_text
from ledger.importers._postgres import PostgresDatabase, Tables

_TABLES = ("checkpoints", "checkpoint_blobs", "checkpoint_writes")
_KEYS = (
    "select null, checkpoint_ns, checkpoint_id, parent_checkpoint_id from checkpoints where thread_id = %s"
)


def is_saver(tables: Tables) -> bool:
    """Whether these are the tables of LangGraph's PostgreSQL saver."""
    return all(table in tables and "thread_id" in tables[table] for table in _TABLES)


class PostgresSaver(Saver):
    """Keeps primitive values in the checkpoint and all others, by channel and version, in a table of their own."""

    def __init__(self, database: PostgresDatabase) -> None:
        tables = database.tables()
        if "checkpoint_id" not in tables["checkpoints"]:
            raise SourceError(
                "these tables are of a saver that keeps only the last checkpoint of each thread (shallow):"
                " expected one with all checkpoints"
            )
        path = "task_path" if "task_path" in tables["checkpoint_writes"] else "''"
        super().__init__(_statements(path), database.rows, database.few)

    def load(self, thread: Any, key: Key, decoder: Decoder) -> Saved:
        """What is in a checkpoint."""
        place = (thread, key.namespace, key.id)
        row = self._one(
            "select checkpoint::text, metadata::text from checkpoints"
            " where thread_id = %s and checkpoint_ns = %s and checkpoint_id = %s",
            *place,
        )
        damaged: list[Damaged] = []
        body = decode_json(row[0]) if row else None
        metadata = parsed(row[1] if row else None, "metadata", damaged)
        if isinstance(body, dict):
            inline = body.get("channel_values")
            values = dict(inline) if isinstance(inline, dict) else {}
            for channel, kind, content in self._few(
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


def _statements(path: str) -> Statements:
    """The statements, where `path` is the column of a write's path, or an empty text in old databases."""
    write = f"task_id, {path}, idx, channel, type, blob"
    return Statements(
        threads="select thread_id from (select thread_id from checkpoints union select thread_id from"
        ' checkpoint_writes) as threads order by thread_id collate "C"',
        keys=f'{_KEYS} order by checkpoint_id collate "C", checkpoint_ns collate "C"',
        find=f"{_KEYS} and checkpoint_ns = %s and checkpoint_id = %s",
        writes=f"select {write} from checkpoint_writes where thread_id = %s and checkpoint_ns = %s"  # noqa: S608
        f' and checkpoint_id = %s order by {path} collate "C", task_id collate "C", idx',
        ran_below="select 1 from checkpoints where thread_id = %s and position(%s in checkpoint_ns) > 0 limit 1",
        answers_below=f"select {write} from checkpoint_writes where thread_id = %s"  # noqa: S608
        " and position(%s in checkpoint_ns) > 0 and channel = '__resume__'"
        " order by checkpoint_id, task_id, idx",
        children='select min(checkpoint_id collate "C"), max(checkpoint_id collate "C") from checkpoints'
        " where thread_id = %s and checkpoint_ns = %s and parent_checkpoint_id = %s",
        strays=f"select checkpoint_ns, checkpoint_id, {write} from checkpoint_writes as written"  # noqa: S608
        " where thread_id = %s and not exists (select 1 from checkpoints as kept"
        " where kept.thread_id = written.thread_id and kept.checkpoint_ns = written.checkpoint_ns"
        " and kept.checkpoint_id = written.checkpoint_id) order by checkpoint_id, task_id, idx",
    )
