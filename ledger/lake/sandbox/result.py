"""What a safe query gives: rows, or the reason why it was refused or stopped."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, BinaryIO, Literal, NamedTuple

import pyarrow as pa

from ledger.errors import InputError
from ledger.lake.query import write_arrow, write_parquet

StopKind = Literal["rows", "bytes", "time", "memory", "cancelled", "died"]
"""What ended an answer early: more rows or bytes than allowed; the limits of time and memory; somebody; a crash."""


class QueryRefusedError(InputError):
    """A query that is not run: it asks for more than reading the tables of the lake."""


class Stopped(NamedTuple):
    """Why an answer is not whole."""

    kind: StopKind
    """What ended it."""

    words: str
    """The same for people, such as "stopped after 10 s"."""


@dataclass(frozen=True)
class SafeResult:
    """An answer, whole or up to where it was stopped. What its cells hold comes from traces: it is data, never trusted.

    `schema`, `rows`, `is_cut` and the writers are those of `ledger.lake.query.Answer`.
    """

    schema: pa.Schema
    """Columns; without any when it was stopped before they were known."""

    kept: list[pa.RecordBatch]
    """The rows, within the limits."""

    stopped: Stopped | None
    """Why there are no more; None: these are all."""

    seconds: float
    """How long it took in its worker."""

    fenced_by: str
    """What held the worker back, such as "landlock 7"."""

    is_cut: bool = field(init=False)
    """Whether rows were left out."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "is_cut", self.stopped is not None)

    @classmethod
    def empty(cls, stopped: Stopped) -> "SafeResult":
        """No rows, for this reason."""
        return cls(pa.schema([]), [], stopped, 0.0, "")

    @property
    def columns(self) -> list[tuple[str, str]]:
        """Name and type of each column."""
        return [(column.name, str(column.type)) for column in self.schema]

    def batches(self) -> Iterator[pa.RecordBatch]:
        """The rows as Arrow batches."""
        return iter(self.kept)

    def rows(self) -> Iterator[list[Any]]:
        """The rows as Python values."""
        for batch in self.kept:
            yield from map(list, zip(*(column.to_pylist() for column in batch.columns), strict=True))

    def write_parquet(self, file: BinaryIO) -> None:
        """Write the rows as a Parquet file; its metadata say `truncated` when some were left out."""
        write_parquet(self, file)

    def write_arrow(self, file: BinaryIO) -> None:
        """Write the rows as an Arrow stream; the last, empty batch says `truncated` when some were left out."""
        write_arrow(self, file)
