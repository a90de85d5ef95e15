"""Runs one query with a row limit and a time-out, and gives its rows in batches: memory does not grow with them."""

import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any, BinaryIO, Protocol

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from ledger.errors import InputError, LedgerError

_BATCH = 2048
_TOLD_EVERY_S = 0.2

Progress = Callable[[float | None], None]
"""Told how many percent of a query are done while one waits for it; None: the wait is over."""


class QueryTooSlowError(LedgerError):
    """A query took longer than its time-out and was stopped."""


class QueryCancelledError(LedgerError):
    """Somebody stopped a query."""


class Answer:
    """The rows of a query. Use as a context manager: leaving it ends the time-out."""

    def __init__(
        self,
        connection: duckdb.DuckDBPyConnection,
        query: str,
        parameters: Mapping[str, Any] | None = None,
        *,
        limit: int | None = None,
        timeout_s: float | None = None,
        on_progress: Progress | None = None,
    ) -> None:
        self._on_progress = on_progress
        self._connection = connection
        self._limit = limit
        self._timeout_s = timeout_s
        self.is_cut = False
        """Whether rows beyond the limit were left out; known when all batches were read."""
        self._is_late = False
        self._timer = threading.Timer(timeout_s or 0, self._stop)
        self._timer.daemon = True
        self._thread = ThreadPoolExecutor(1)
        if timeout_s is not None:
            self._timer.start()
        try:
            given = dict(parameters) if parameters else None
            relation = self._beside(lambda: connection.sql(query, params=given))
            if relation is None:
                raise InputError(
                    "the query gives no rows: expected a SELECT, or another statement that answers"
                )
            self._reader = self._beside(lambda: relation.to_arrow_reader(_BATCH))
        except (duckdb.Error, RuntimeError) as error:
            self.__exit__()
            raise self._told(error) from error
        except BaseException:
            self.__exit__()
            raise
        self.schema: pa.Schema = pa.schema(
            [
                field.with_name(name)
                for field, name in zip(self._reader.schema, _apart(self._reader.schema.names), strict=True)
            ]
        )
        """Columns, by names that differ."""

    def __enter__(self) -> "Answer":
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._timer.cancel()
        self._thread.shutdown(wait=True)

    def _stop(self) -> None:
        self._is_late = True
        self._connection.interrupt()

    def _told(self, error: Exception) -> LedgerError:
        if self._is_late:
            return QueryTooSlowError(f"the query was stopped after {self._timeout_s:g} s")
        if isinstance(error, duckdb.InterruptException) or "interrupted" in str(error).lower():
            return QueryCancelledError("the query was cancelled")  # by a signal, or by `interrupt()`
        return InputError(f"the query cannot be run: {str(error).partition(chr(10))[0]}")

    def batches(self) -> Iterator[pa.RecordBatch]:
        """The rows, up to the limit."""
        left = self._limit
        try:
            for batch in self._pulled():
                if left is not None and batch.num_rows > left:
                    self.is_cut = True
                    batch = batch.slice(0, left)
                if left is not None:
                    left -= batch.num_rows
                if batch.num_rows:
                    yield pa.RecordBatch.from_arrays(batch.columns, schema=self.schema)
                if self.is_cut:
                    return
        except (duckdb.Error, RuntimeError, OSError, pa.ArrowException) as error:
            raise self._told(error) from error

    def _pulled(self) -> Iterator[pa.RecordBatch]:
        batches = iter(self._reader)
        while (batch := self._beside(lambda: next(batches, None))) is not None:
            yield batch

    def _beside(self, work: Callable[[], Any]) -> Any:
        """Do it in a thread beside this one: a thread that is in the engine does not hear a Ctrl-C."""
        waiting = self._thread.submit(work)
        try:
            if self._on_progress is not None:
                self._tell(waiting, self._on_progress)
            return waiting.result()
        except KeyboardInterrupt:
            self._connection.interrupt()
            raise

    def _tell(self, waiting: Future[Any], on_progress: Progress) -> None:
        """Tell how far it is until it is done; -1 where the engine does not know."""
        is_told = False
        while not wait([waiting], _TOLD_EVERY_S).done:
            is_told = True
            on_progress(self._connection.query_progress())
        if is_told:
            on_progress(None)

    def rows(self) -> Iterator[list[Any]]:
        """The rows as Python values, up to the limit."""
        for batch in self.batches():
            yield from map(list, zip(*(column.to_pylist() for column in batch.columns), strict=True))

    def write_parquet(self, file: BinaryIO) -> None:
        """Write the rows as a Parquet file; its metadata say `truncated` when some were left out."""
        write_parquet(self, file)

    def write_arrow(self, file: BinaryIO) -> None:
        """Write the rows as an Arrow stream; the last, empty batch says `truncated` when some were left out."""
        write_arrow(self, file)


class Rows(Protocol):
    """Rows that can be written to a file."""

    @property
    def schema(self) -> pa.Schema:
        """Their columns."""

    @property
    def is_cut(self) -> bool:
        """Whether some were left out; known when all batches were read."""

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Them, as Arrow has them."""

    def rows(self) -> Iterator[list[Any]]:
        """Them, as Python values."""


def write_parquet(rows: Rows, file: BinaryIO) -> None:
    """Write rows as a Parquet file."""
    with pq.ParquetWriter(file, rows.schema, compression="zstd") as writer:
        for batch in rows.batches():
            writer.write_batch(batch)
        writer.add_key_value_metadata({"truncated": str(rows.is_cut).lower()})


def write_arrow(rows: Rows, file: BinaryIO) -> None:
    """Write rows as an Arrow stream."""
    with pa.ipc.new_stream(file, rows.schema) as writer:
        for batch in rows.batches():
            writer.write_batch(batch)
        last = pa.RecordBatch.from_pylist([], schema=rows.schema)
        writer.write_batch(last, custom_metadata={"truncated": str(rows.is_cut).lower()})


def _apart(names: list[str]) -> list[str]:
    """The names, a number behind each that was there before."""
    seen: set[str] = set()
    apart = []
    for name in names:
        number, given = 2, name
        while given in seen:
            given, number = f"{name}_{number}", number + 1
        seen.add(given)
        apart.append(given)
    return apart


def output_file(path: Path) -> BinaryIO:
    """A file to write rows to. Raises InputError."""
    try:
        return path.open("wb")
    except OSError as error:
        raise InputError(f"{path} cannot be written: {error.strerror}") from error
