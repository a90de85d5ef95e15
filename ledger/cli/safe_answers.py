"""Answers a query of the command line as a stranger's: in a process that can read the lake and nothing else."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import typer

from ledger.cli.answers import Format, show_answer
from ledger.cli.engines import Asked, Engine
from ledger.cli.settings import BAD_NEWS
from ledger.cli.terminal import progress
from ledger.errors import InputError
from ledger.lake.sandbox import Limits, QueryHandle, SafeQueries, SafeResult

CANCELLED = 130
"""What a shell shows for a program that Ctrl-C ended."""

_MOST_ROWS = 1_000_000
_MOST_BYTES = 64 << 20


def answer_safely(folder: Path, engine: Engine, asked: Asked, form: Format, output: Path | None) -> None:
    """Run it in the sandbox and write its rows. Raises InputError; leaves with 1 when something is left out."""
    if engine != Engine.DUCKDB:
        raise InputError(f"--safe runs on duckdb, found --engine {engine.value}")
    if asked.hits is not None:
        raise InputError("--safe takes no --search: `hits` is a table of the trusted engine")
    limits = Limits(
        seconds=asked.timeout_s, rows=asked.limit or _MOST_ROWS, result_bytes=_MOST_BYTES, workers=1
    )
    try:
        result = _run(folder, asked, limits)
    except KeyboardInterrupt:
        typer.echo("loopledger: the query was cancelled", err=True)
        raise typer.Exit(CANCELLED) from None
    stopped = result.stopped
    if stopped is None or stopped.kind in ("rows", "bytes"):
        show_answer(result, form, limits.rows, output, stopped.words if stopped else None)
    if stopped is not None:
        typer.echo(f"loopledger: {stopped.words}", err=True)
        raise typer.Exit(BAD_NEWS)


def _run(folder: Path, asked: Asked, limits: Limits) -> SafeResult:
    """Run it in a thread beside this one, which hears a Ctrl-C; with a bar when that takes long."""
    with (
        SafeQueries(folder, limits) as queries,
        ThreadPoolExecutor(1) as thread,
        progress("running the query", 100) as bar,
    ):
        handle = QueryHandle(lambda percent: bar.move(int(percent)))
        try:
            return thread.submit(queries.run, asked.query, asked.parameters, handle=handle).result()
        finally:
            handle.cancel()
