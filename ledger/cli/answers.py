"""Prints the rows of a query: as table, CSV, NDJSON, JSON or Markdown. What was left out is said in the output too."""

import csv
import sys
from collections.abc import Iterator
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import StrEnum
from itertools import chain, islice
from pathlib import Path
from typing import Any
from uuid import UUID

import typer

from ledger.cli.terminal import Column, Table, json_text, say, visible, width
from ledger.errors import InputError
from ledger.lake.query import Rows, output_file, write_arrow, write_parquet

_MEASURED = 200
_WIDEST, _LEAST = 60, 6


class Format(StrEnum):
    """How rows are written."""

    TABLE = "table"
    CSV = "csv"
    NDJSON = "ndjson"
    JSON = "json"
    MARKDOWN = "markdown"
    PARQUET = "parquet"
    ARROW = "arrow"


def show_answer(
    answer: Rows, form: Format, limit: int, output: Path | None, stopped: str | None = None
) -> None:
    """Write all rows of an answer; `stopped` says why it is cut, if not by the limit. Raises InputError."""
    if form in (Format.PARQUET, Format.ARROW):
        _write_binary(answer, form, output)
        return
    if output is not None:
        raise InputError(f"--output takes parquet and arrow; redirect the text of {form.value}: > {output}")
    match form:
        case Format.TABLE:
            _table(answer)
        case Format.CSV:
            _csv(answer)
        case Format.NDJSON:
            for row in answer.rows():
                typer.echo(json_text(_object(answer, row)))
        case Format.JSON:
            _json(answer, limit, stopped)
        case _:
            _markdown(answer)
    if answer.is_cut:
        note = stopped or f"more than {limit} rows: the rest is left out; --limit allows more"
        match form:
            case Format.CSV:
                typer.echo(f"# {note}")
            case Format.NDJSON:
                typer.echo(
                    json_text({"truncated": True, "limit": limit} | ({"stopped": stopped} if stopped else {}))
                )
            case Format.TABLE | Format.MARKDOWN:
                say(f"\n{note}")
            case _:
                pass


def _write_binary(answer: Rows, form: Format, output: Path | None) -> None:
    write = write_parquet if form == Format.PARQUET else write_arrow
    if output is not None and output.exists() and not output.is_file():  # a pipe, or a device
        with output_file(output) as file:
            write(answer, file)
        return
    if output is not None:
        draft = output.with_name(f".{output.name}.part")  # half an answer would be no file of its format
        try:
            with output_file(draft) as file:
                write(answer, file)
            draft.replace(output)
        finally:
            draft.unlink(missing_ok=True)
        return
    if sys.stdout.isatty():
        raise InputError(f"{form.value} is not for a terminal: name a file with --output, or redirect")
    write(answer, sys.stdout.buffer)
    sys.stdout.buffer.flush()


def plain_value(value: Any) -> Any:
    """A value as JSON has it."""
    match value:
        case None | bool() | int() | str():
            return value
        case float():
            return value if value == value and abs(value) != float("inf") else str(value)
        case Decimal():
            return float(value)
        case datetime():
            return value.isoformat().replace("+00:00", "Z")
        case date() | time():
            return value.isoformat()
        case timedelta() | UUID():
            return str(value)
        case bytes():
            return value.hex()
        case dict():
            return {str(name): plain_value(part) for name, part in value.items()}
        case list():
            return [plain_value(part) for part in value]
        case tuple():
            return [plain_value(part) for part in value]
        case _:
            return str(value)


def _text(value: Any) -> str:
    plain = plain_value(value)
    if plain is None:
        return ""
    if isinstance(value, Decimal):
        return f"{value.normalize():f}"
    return plain if isinstance(plain, str) else json_text(plain)


def _object(answer: Rows, row: list[Any]) -> dict[str, Any]:
    return {name: plain_value(value) for name, value in zip(answer.schema.names, row, strict=True)}


def _json(answer: Rows, limit: int, stopped: str | None) -> None:
    """One object, row by row: a long answer needs no memory."""
    columns = [{"name": field.name, "type": str(field.type)} for field in answer.schema]
    typer.echo(f'{{"columns":{json_text(columns)},"rows":[', nl=False)
    for number, row in enumerate(answer.rows()):
        typer.echo(f"{',' if number else ''}\n{json_text(_object(answer, row))}", nl=False)
    why = f',"stopped":{json_text(stopped)}' if stopped else ""
    typer.echo(f'\n],"truncated":{json_text(answer.is_cut)},"limit":{json_text(limit or None)}{why}}}')


def _csv(answer: Rows) -> None:
    writer = csv.writer(sys.stdout, lineterminator="\n")
    is_terminal = sys.stdout.isatty()
    for row in chain([answer.schema.names], answer.rows()):
        texts = [_text(value) for value in row]
        writer.writerow([visible(text) for text in texts] if is_terminal else texts)


def _markdown(answer: Rows) -> None:
    typer.echo(_markdown_row(answer.schema.names))
    typer.echo(_markdown_row(["---"] * len(answer.schema.names)))
    for row in answer.rows():
        typer.echo(_markdown_row([_text(value) for value in row]))


def _markdown_row(cells: list[str]) -> str:
    return "| " + " | ".join(visible(cell).replace("|", "\\|") for cell in cells) + " |"


def _table(answer: Rows) -> None:
    rows = answer.rows()
    first = [[_text(value) for value in row] for row in islice(rows, _MEASURED)]
    names = answer.schema.names
    cells = [
        min(_WIDEST, max([len(name), *(len(visible(row[place])) for row in first)]))
        for place, name in enumerate(names)
    ]
    while sum(cells) + len(cells) - 1 > width() and max(cells) > _LEAST:
        cells[cells.index(max(cells))] -= 1
    columns = [
        Column(name, cells[place], is_number=_is_number(str(answer.schema.field(place).type)))
        for place, name in enumerate(names)
    ]
    table, count = Table(columns), 0
    rest: Iterator[list[str]] = ([_text(value) for value in row] for row in rows)
    for row in chain(first, rest):
        table.row(*row)
        count += 1
    if not count:
        say(f"no rows ({', '.join(map(visible, names))})")


def _is_number(kind: str) -> bool:
    return kind.startswith(("int", "uint", "double", "float", "decimal"))
