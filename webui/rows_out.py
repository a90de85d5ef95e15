"""Rows of a query as a file: CSV that no spreadsheet obeys, JSON, NDJSON, Parquet."""

import csv
import io
from typing import Any, Literal

from ledger.cli.answers import plain_value
from ledger.cli.terminal import json_text
from ledger.lake.sandbox import SafeResult

FileForm = Literal["csv", "json", "ndjson", "parquet"]
"""What rows can be downloaded as."""

MEDIA: dict[FileForm, str] = {
    "csv": "text/csv; charset=utf-8",
    "json": "application/json",
    "ndjson": "application/x-ndjson",
    "parquet": "application/vnd.apache.parquet",
}
"""Media type of each."""

_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")


def as_file(result: SafeResult, form: FileForm) -> bytes:
    """All rows that there are; each form says in its own way when some were left out."""
    match form:
        case "csv":
            return _csv(result)
        case "parquet":
            file = io.BytesIO()
            result.write_parquet(file)
            return file.getvalue()
        case "ndjson":
            lines = [json_text(row) for row in _objects(result)]
            if result.stopped is not None:
                lines.append(json_text({"truncated": True, "stopped": result.stopped.words}))
            return _encoded("".join(f"{line}\n" for line in lines))
        case "json":
            whole = {
                "columns": [{"name": name, "type": kind} for name, kind in result.columns],
                "rows": _objects(result),
                "truncated": result.is_cut,
                "stopped": None if result.stopped is None else result.stopped.words,
            }
            return _encoded(json_text(whole))


def cell(value: Any) -> str:
    """A value as one text."""
    plain = plain_value(value)
    if plain is None:
        return ""
    return plain if isinstance(plain, str) else json_text(plain)


def harmless(text: str) -> str:
    """A text that a spreadsheet takes for a text: one that begins as a formula does gets an apostrophe before it."""
    return f"'{text}" if text.lstrip(" ").startswith(_FORMULA) else text


def _csv(result: SafeResult) -> bytes:
    file = io.StringIO(newline="")
    write = csv.writer(file).writerow
    write([harmless(name) for name in result.schema.names])
    for row in result.rows():
        write(
            [
                str(plain) if _is_number(plain := plain_value(value)) else harmless(cell(value))
                for value in row
            ]
        )
    if result.stopped is not None:
        file.write(f"# {result.stopped.words}\r\n")
    return _encoded(file.getvalue().replace("\0", "\N{REPLACEMENT CHARACTER}"))


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _objects(result: SafeResult) -> list[dict[str, Any]]:
    names = result.schema.names
    return [dict(zip(names, (plain_value(value) for value in row), strict=True)) for row in result.rows()]


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "backslashreplace")
