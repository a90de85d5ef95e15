"""Functions that tables and queries call and no engine has: the same on each, in a file of its own for each engine."""

import importlib.resources
from functools import cache


@cache
def duckdb_functions() -> str:
    """What makes them on DuckDB."""
    return _text("duckdb")


@cache
def spark_functions() -> tuple[str, ...]:
    """The statements that make them on Spark."""
    return tuple(statement for part in _text("spark").split(";\n") if (statement := part.strip()))


def _text(engine: str) -> str:
    file = importlib.resources.files("ledger.lake.engines") / f"functions_{engine}.sql"
    return file.read_text(encoding="utf-8")
