"""The commands `export`, `sql` and `queries`."""

from pathlib import Path
from typing import Annotated, Any

import typer

from ledger.cli.answers import Format, show_answer
from ledger.cli.settings import BAD_NEWS, JsonOption, settings_of
from ledger.cli.terminal import Column, Table, progress, say, show_json, visible
from ledger.errors import InputError
from ledger.home import Ledger
from ledger.lake import Exported, Lake, connect
from ledger.lake.connection import FOLDER
from ledger.lake.query import Answer, QueryCancelledError, QueryTooSlowError
from ledger.lake.saved import SavedQuery, saved_queries
from ledger.views.lake import lake_feed

_LIMIT = 500
_TIMEOUT_S = 300.0
_CANCELLED = 130  # what a shell shows for a program that Ctrl-C ended

FormatOption = Annotated[Format, typer.Option("--format", help="How rows are written.")]
LimitOption = Annotated[
    int, typer.Option("--limit", metavar="N", help="Most rows; 0 for all. More exist: exit status 1.", min=0)
]
TimeoutOption = Annotated[
    float, typer.Option("--timeout", metavar="SECONDS", help="Stop a query that takes longer.", min=0.001)
]
OutputOption = Annotated[
    Path | None, typer.Option("--output", metavar="FILE", help="For parquet and arrow.", show_default=False)
]
LakeOption = Annotated[
    Path | None,
    typer.Option(
        "--lake", metavar="DIR", help="Ask a lake that lies here, and export nothing.", show_default=False
    ),
]


def add_query_commands(app: typer.Typer) -> None:
    """Add this file's commands."""
    app.command("export", epilog="Example: loopledger export, or: loopledger export --to /data/lake")(
        export_command
    )
    app.command(
        "sql", epilog="Example: loopledger sql 'select tool, count(*) from tool_calls group by tool'"
    )(sql_command)
    app.command("queries", epilog="Example: loopledger queries slowest_calls --param least=1000")(
        queries_command
    )


def export_command(
    context: typer.Context,
    to: Annotated[
        Path | None,
        typer.Option(
            "--to",
            metavar="DIR",
            help="Folder of the lake; `lake` in the home by default.",
            show_default=False,
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Bring the lake, Parquet files for SQL, up to the ledger; each record goes there once."""
    with settings_of(context).open_existing() as ledger:
        folder = to or ledger.home / FOLDER
        done = export(ledger, folder)
    if as_json:
        show_json({"to": str(folder), **done.__dict__})
        return
    say(f"{done.events} new records are in {visible(str(folder))}: {done.files} files, {done.bytes} bytes")


def export(ledger: Ledger, folder: Path) -> Exported:
    """Take into a lake what came since, with a bar when that takes long."""
    lake = Lake(folder)
    with progress("exporting new records", ledger.store.last_position()) as bar:
        done = lake.export(lake_feed(ledger.store), progress=bar.move)
    lake.clear()
    return done


def sql_command(
    context: typer.Context,
    query: Annotated[
        str, typer.Argument(metavar="QUERY", help="SQL in DuckDB's dialect.", show_default=False)
    ],
    form: FormatOption = Format.TABLE,
    limit: LimitOption = _LIMIT,
    timeout: TimeoutOption = _TIMEOUT_S,
    output: OutputOption = None,
    lake: LakeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Ask the lake in SQL; what is missing in it is exported first."""
    folder = lake or _brought_up(context)
    _answer(folder, query, {}, Format.JSON if as_json else form, limit, timeout, output)


def queries_command(
    context: typer.Context,
    name: Annotated[
        str | None, typer.Argument(metavar="[NAME]", help="Run this one.", show_default=False)
    ] = None,
    parameters: Annotated[
        list[str] | None,
        typer.Option("--param", metavar="NAME=VALUE", help="May be given again.", show_default=False),
    ] = None,
    text: Annotated[bool, typer.Option("--sql", help="Print its text instead of running it.")] = False,
    form: FormatOption = Format.TABLE,
    limit: LimitOption = _LIMIT,
    timeout: TimeoutOption = _TIMEOUT_S,
    output: OutputOption = None,
    lake: LakeOption = None,
    as_json: JsonOption = False,
) -> None:
    """List the saved queries, or run one: those that are shipped, and your own in the home's folder `queries`."""
    queries = saved_queries(settings_of(context).home_folder)
    if name is None:
        _list(queries, as_json)
        return
    query = queries.get(name)
    if query is None:
        raise InputError(f"no saved query is named {name!r}: expected one of {', '.join(queries)}")
    if text:
        typer.echo(query.sql.rstrip())
        return
    values = query.values(dict(_pair(given) for given in parameters or ()))
    folder = lake or _brought_up(context)
    _answer(folder, query.sql, values, Format.JSON if as_json else form, limit, timeout, output)


def _pair(text: str) -> tuple[str, str]:
    name, mark, value = text.partition("=")
    if not mark:
        raise InputError(f"{text!r} sets no parameter: expected NAME=VALUE")
    return name, value


def _list(queries: dict[str, SavedQuery], as_json: bool) -> None:
    if as_json:
        show_json([_query_json(query) for query in queries.values()])
        return
    table = Table([Column("QUERY", 18), Column("PARAMETERS", 14), Column("ANSWERS", 0)])
    for query in queries.values():
        names = " ".join(parameter.name for parameter in query.parameters)
        table.row(query.name, names or "-", f"{query.title}. {query.doc}")


def _query_json(query: SavedQuery) -> dict[str, Any]:
    return {
        "name": query.name,
        "title": query.title,
        "doc": query.doc,
        "parameters": [parameter._asdict() for parameter in query.parameters],
        "chart": query.chart,
        "own": query.is_own,
    }


def _brought_up(context: typer.Context) -> Path:
    """The lake of the ledger, with all of its records."""
    with settings_of(context).open_existing() as ledger:
        folder = ledger.home / FOLDER
        export(ledger, folder)
    return folder


def _answer(
    folder: Path,
    query: str,
    parameters: dict[str, Any],
    form: Format,
    limit: int,
    timeout: float,
    output: Path | None,
) -> None:
    try:
        with (
            connect(folder) as connection,
            Answer(connection, query, parameters, limit=limit or None, timeout_s=timeout) as answer,
        ):
            show_answer(answer, form, limit, output)
    except (QueryCancelledError, KeyboardInterrupt):
        typer.echo("loopledger: the query was cancelled", err=True)
        raise typer.Exit(_CANCELLED) from None
    except QueryTooSlowError as error:
        typer.echo(f"loopledger: {error}; --timeout allows more", err=True)
        raise typer.Exit(BAD_NEWS) from None
    if answer.is_cut:
        if form not in (Format.TABLE, Format.MARKDOWN):
            typer.echo(f"loopledger: more than {limit} rows: the rest is left out", err=True)
        raise typer.Exit(BAD_NEWS)
