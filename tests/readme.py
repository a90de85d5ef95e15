"""Tables of README, written by cog from the code: `cog -r README.md` renews them, `cog --check` tells a stale one."""

from collections.abc import Iterable
from typing import Any

import typer.main

from ledger.audit import discover as discover_detectors
from ledger.events import EVENTS
from ledger.importers import discover
from ledger.lake.columns import COLUMNS
from ledger.lake.connection import column_types, connect_files, tables
from ledger.lake.saved import saved_queries
from webui.cli import app


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [" | ".join(head), " | ".join("---" for _ in head)]
    lines.extend(" | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in row) for row in rows)
    return "\n".join(f"| {line} |" for line in lines)


def _first_sentence(text: str | None) -> str:
    return (text or "").strip().split("\n\n")[0].replace("\n", " ")


def events_table() -> str:
    """Every event, with its sentence and fields."""
    rows = []
    for event in EVENTS:
        fields = ", ".join(f"`{name}`" for name in event.model_fields)
        rows.append((f"`{event.TYPE}`", _first_sentence(event.__doc__), fields))
    return _table(("event", "the fact", "fields"), rows)


def importers_table() -> str:
    """Every importer, with its grade and the first thing that its source cannot show."""
    rows = [
        (f"`{name}`", importer.TITLE, importer.GRADE, importer.CANNOT_SHOW[0] if importer.CANNOT_SHOW else "")
        for name, importer in discover().items()
    ]
    return _table(("format", "source", "grade", "cannot show, among other things"), rows)


def detectors_table() -> str:
    """Every detector that is shipped, with how bad it is and why it matters."""
    rows = [
        (
            f"`{name}`",
            detector.title + (" (experimental)" if detector.is_experimental else ""),
            detector.severity,
            detector.why,
            detector.misses,
        )
        for name, detector in discover_detectors().items()
    ]
    return _table(("detector", "suspects", "severity", "why", "misses"), rows)


def commands_table() -> str:
    """Every command, with its sentence."""
    group: Any = typer.main.get_command(
        app
    )  # typer carries a click of its own, whose classes it does not name
    rows = [(f"`{name}`", _first_sentence(command.help)) for name, command in sorted(group.commands.items())]
    return _table(("command", "does"), rows)


def lake_tables() -> str:
    """Every table of the lake, with what a row is and its columns."""
    columns = ", ".join(f"`{column.name}`" for column in COLUMNS)
    rows = [("`events`", "One row for each record of the ledger.", f"{columns}, `recorded_date`")]
    with connect_files([]) as connection:
        for table in tables():
            names = [name for name, _ in column_types(connection, table.name)]
            has_those_of_events = names[: len(COLUMNS)] == [column.name for column in COLUMNS]
            shown = "as `events`" if has_those_of_events else ", ".join(f"`{name}`" for name in names)
            rows.append((f"`{table.name}`", table.doc, shown))
    return _table(("table", "a row", "columns"), rows)


def lake_columns() -> str:
    """Every column of `events`, with its meaning and its OpenTelemetry name."""
    rows = [(f"`{column.name}`", column.doc, f"`{column.otel}`" if column.otel else "") for column in COLUMNS]
    return _table(("column", "what it says", "OpenTelemetry"), rows)


def queries_table() -> str:
    """Every saved query that is shipped."""
    rows = []
    for query in saved_queries().values():
        parameters = ", ".join(f"`{parameter.name}`" for parameter in query.parameters)
        rows.append((f"`{query.name}`", query.title, parameters))
    return _table(("query", "answers", "parameters"), rows)
