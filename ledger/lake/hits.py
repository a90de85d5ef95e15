"""The hits of a search as a table of SQL, to be joined with the others by session and seq, or by position."""

from collections.abc import Iterable
from typing import Protocol

import duckdb
import pyarrow as pa

NAME = "hits"
"""Name of the table."""

_SCHEMA = pa.schema(
    [
        ("position", pa.int64()),
        ("session", pa.string()),
        ("seq", pa.int64()),
        ("type", pa.string()),
        ("tool", pa.string()),
        ("snippet", pa.string()),
    ]
)


class Found(Protocol):
    """A hit, as the search index gives it."""

    @property
    def position(self) -> int:
        """Place in the whole ledger."""

    @property
    def session(self) -> str:
        """Session."""

    @property
    def seq(self) -> int:
        """Place in the session."""

    @property
    def type(self) -> str:
        """Name of the event."""

    @property
    def tool(self) -> str | None:
        """Tool, where the event names one."""

    @property
    def text(self) -> str:
        """The words found, with some others around them."""


def hits_table(hits: Iterable[Found]) -> pa.Table:
    """The hits as an Arrow table."""
    rows = [(hit.position, hit.session, hit.seq, hit.type, hit.tool, hit.text) for hit in hits]
    columns = list(zip(*rows, strict=True)) or [()] * len(_SCHEMA)
    return pa.table(
        [pa.array(column, field.type) for column, field in zip(columns, _SCHEMA, strict=True)], _SCHEMA
    )


def add_hits(connection: duckdb.DuckDBPyConnection, hits: Iterable[Found]) -> None:
    """Make the table `hits` of a connection; a later call takes its place."""
    connection.register("found_hits", hits_table(hits))
    connection.execute("create or replace temp table hits as select * from found_hits")
    connection.unregister("found_hits")
