"""The commands `sql` and `queries`."""

import importlib.resources
from pathlib import Path
from typing import Annotated, Any

import typer

from ledger.audit.discovery import FOLDER as DETECTORS
from ledger.cli.answers import Format, show_answer
from ledger.cli.engines import Asked, Engine, EngineOption, SparkOption, answering, portable_engine
from ledger.cli.safe_answers import CANCELLED, answer_safely
from ledger.cli.searching import search
from ledger.cli.settings import BAD_NEWS, JsonOption, settings_of
from ledger.cli.terminal import Column, Table, progress, say, show_json, visible, waiting_bar
from ledger.errors import InputError
from ledger.home import Ledger
from ledger.lake import Exported, Lake
from ledger.lake.bare import tables_in_sql
from ledger.lake.connection import FOLDER
from ledger.lake.query import QueryCancelledError, QueryTooSlowError
from ledger.lake.saved import FOLDER as QUERIES
from ledger.lake.saved import SavedQuery, saved_queries
from ledger.views.lake import lake_feed
from ledger.views.search import Hit

_LIMIT = 500
_TIMEOUT_S = 300.0
_MOST_HITS = 10_000

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
SearchOption = Annotated[
    str | None,
    typer.Option(
        "--search",
        metavar="WORDS",
        help="What `search` finds is the table `hits`: position, session, seq, type, tool, snippet.",
        show_default=False,
    ),
]

SafeOption = Annotated[
    bool,
    typer.Option("--safe", help="Run it as a stranger's query: in a process that can only read the lake."),
]


def add_query_commands(app: typer.Typer) -> None:
    """Add this file's commands."""
    app.command(
        "sql", epilog="Example: loopledger sql 'select tool, count(*) from tool_calls group by tool'"
    )(sql_command)
    app.command("queries", epilog="Example: loopledger queries slowest_calls --param least=1000")(
        queries_command
    )


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
    words: SearchOption = None,
    engine: EngineOption = Engine.DUCKDB,
    spark: SparkOption = None,
    safe: SafeOption = False,
    as_json: JsonOption = False,
) -> None:
    """Ask the lake in SQL; what is missing in it is exported first."""
    folder = lake or _brought_up(context)
    asked = Asked(query, {}, limit or None, timeout, _hits(context, words))
    if safe:
        answer_safely(folder, engine, asked, Format.JSON if as_json else form, output)
        return
    _answer(folder, engine, spark, asked, Format.JSON if as_json else form, output)


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
    portable: Annotated[
        bool,
        typer.Option(
            "--portable",
            help="Name what in tables, queries and detectors means something else on Spark; exit status 1 then.",
        ),
    ] = False,
    tables: Annotated[
        bool,
        typer.Option("--tables", help="Print what makes all tables of a copied lake in DuckDB alone."),
    ] = False,
    form: FormatOption = Format.TABLE,
    limit: LimitOption = _LIMIT,
    timeout: TimeoutOption = _TIMEOUT_S,
    output: OutputOption = None,
    lake: LakeOption = None,
    engine: EngineOption = Engine.DUCKDB,
    spark: SparkOption = None,
    safe: SafeOption = False,
    as_json: JsonOption = False,
) -> None:
    """List the saved queries, or run one: those that are shipped, and your own in the home's folder `queries`."""
    if portable:
        _check_portable(context)
        return
    if tables:
        typer.echo(tables_in_sql())
        return
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
    asked = Asked(query.sql, values, limit or None, timeout, None)
    if safe:
        answer_safely(folder, engine, asked, Format.JSON if as_json else form, output)
        return
    _answer(folder, engine, spark, asked, Format.JSON if as_json else form, output)


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


def _hits(context: typer.Context, words: str | None) -> list[Hit] | None:
    """What a search finds, the last recorded first."""
    if words is None:
        return None
    with settings_of(context).open_existing() as ledger:
        page = search(ledger, words, limit=_MOST_HITS)
    if page.before is not None:
        typer.echo(f"loopledger: hits has the last {_MOST_HITS} hits; there are more", err=True)
    return page.hits


def _check_portable(context: typer.Context) -> None:
    """Say what is not portable, by file and line."""
    home = settings_of(context).home_folder
    detectors = importlib.resources.files("ledger.audit") / "detectors"
    found = list(portable_engine("portable").check_files(detectors, home / QUERIES, home / DETECTORS))
    for file, problem in found:
        say(visible(f"{file}:{problem.line}: {problem}"))
    if found:
        raise typer.Exit(BAD_NEWS)
    say("all tables, saved queries and detectors in SQL mean the same on DuckDB and Spark")


def _answer(
    folder: Path, engine: Engine, spark: str | None, asked: Asked, form: Format, output: Path | None
) -> None:
    try:
        with waiting_bar() as told, answering(folder, engine, spark, asked, told) as answer:
            show_answer(answer, form, asked.limit or 0, output)
    except (QueryCancelledError, KeyboardInterrupt):
        typer.echo("loopledger: the query was cancelled", err=True)
        raise typer.Exit(CANCELLED) from None
    except QueryTooSlowError as error:
        typer.echo(f"loopledger: {error}; --timeout allows more", err=True)
        raise typer.Exit(BAD_NEWS) from None
    if answer.is_cut:
        if form not in (Format.TABLE, Format.MARKDOWN):
            typer.echo(f"loopledger: more than {asked.limit} rows: the rest is left out", err=True)
        raise typer.Exit(BAD_NEWS)
