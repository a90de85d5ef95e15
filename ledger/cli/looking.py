"""The commands `sessions`, `events` and `show`."""

from collections.abc import Iterator
from typing import Annotated

import typer

from ledger.cli.records import outline, record_json
from ledger.cli.settings import JsonOption, SessionArgument, settings_of
from ledger.cli.showing import record_report, session_report, show_record, show_session
from ledger.cli.terminal import Column, Table, amount, moment, progress, say, show_json
from ledger.errors import InputError
from ledger.events import BY_NAME, Record
from ledger.home import Ledger
from ledger.views.session_row import SessionRow
from ledger.views.sessions import SessionsView

_SHORT = 13


def add_look_commands(app: typer.Typer) -> None:
    """Add this file's commands."""
    app.command("sessions", epilog="Example: loopledger sessions --json | jq '.[].id'")(sessions_command)
    app.command("events", epilog="Example: loopledger events 3f2a --type tool_call --from 100 --to 200")(
        events_command
    )
    app.command("show", epilog="Example: loopledger show 3f2a, or one record: loopledger show '3f2a#17'")(
        show_command
    )


def sessions_command(
    context: typer.Context,
    rebuild: Annotated[
        bool, typer.Option("--rebuild", help="Make the list again from the first record.")
    ] = False,
    last: Annotated[
        int | None,
        typer.Option(
            "--last", metavar="N", help="Only the N that started last.", min=1, max=10_000, show_default=False
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """List the sessions, the first started first."""
    with settings_of(context).open_existing() as ledger, SessionsView(ledger.home, ledger.store) as view:
        if rebuild:
            view.rebuild()
        else:
            catch_up(ledger, view)
        if as_json:
            _print_list(view.rows(last))
            return
        _print_table(view.rows(last))


def catch_up(ledger: Ledger, view: SessionsView) -> None:
    """Bring the list up to the ledger, with a bar when that takes long."""
    with progress("reading new records", ledger.store.last_position()) as bar:
        view.catch_up(bar.move)


def _print_list(rows: Iterator[SessionRow]) -> None:
    """A JSON list, row by row: a long one needs no memory."""
    is_first = True
    for row in rows:
        typer.echo("[" if is_first else ",", nl=False)
        is_first = False
        show_json(row.as_json())
    typer.echo("[]" if is_first else "]")


def _print_table(rows: Iterator[SessionRow]) -> None:
    table = Table(
        [
            Column("SESSION", _SHORT),
            Column("STARTED", 16),
            Column("HARNESS", 11),
            Column("RECORDS", 7, is_number=True),
            Column("CALLS", 5, is_number=True),
            Column("TOKENS", 6, is_number=True),
            Column("CHECKED", 7),
            Column("ABOUT", 0),
        ]
    )
    count = 0
    for row in rows:
        count += 1
        table.row(
            _short(row),
            moment(row.started_at),
            row.harness or "-",
            amount(row.head_seq),
            amount(row.model_calls),
            amount(_all_tokens(row)),
            {"ok": "ok", "problems": "DAMAGED"}.get(row.integrity, "-"),
            _about(row),
        )
    if not count:
        say("no sessions yet: `loopledger import PATH` adds some")


def _about(row: SessionRow) -> str:
    """Its title, after a word where it is not all there."""
    title = row.name or row.agent or ("sub-agent" if row.parent else "")
    if row.completeness == "complete":
        return title
    return f"{row.completeness}: {title}" if title else row.completeness


def _short(row: SessionRow) -> str:
    """The start of an id, enough to name the session by; of a delegated session, what it adds to its parent's."""
    if row.parent is not None and row.id.startswith(row.parent):
        return f"└{row.id[len(row.parent) :].lstrip('.')}"[:_SHORT]
    return row.id[:_SHORT]


def _all_tokens(row: SessionRow) -> int | None:
    known = [count for count in row.tokens.values() if count is not None]
    return sum(known) if known else None


def events_command(
    context: typer.Context,
    session: SessionArgument,
    first: Annotated[int, typer.Option("--from", metavar="SEQ", help="First seq.", min=1)] = 1,
    last: Annotated[
        int | None, typer.Option("--to", metavar="SEQ", help="Last seq.", min=1, show_default=False)
    ] = None,
    types: Annotated[
        list[str] | None,
        typer.Option(
            "--type",
            metavar="TYPE",
            help="Only events of this type or family; may be given again.",
            show_default=False,
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Print the records of a session in order, one a line."""
    wanted = frozenset(name for kind in types or () for name in names_of(kind))
    with settings_of(context).open_existing() as ledger:
        name = ledger.store.resolve(session)
        table = Table([Column("SEQ", 7, is_number=True), Column("TIME", 19), Column("EVENT", 0)])
        for record in ledger.store.read(name, after=first - 1, upto=last):
            if wanted and record.type not in wanted:
                continue
            if as_json:
                show_json(record_json(record))
            else:
                table.row(record.seq, time_of(record), f"{record.type}  {outline(record)}")


def time_of(record: Record) -> str:
    """The time that the source gives, to the second; of a live record, the time of recording."""
    time = record.occurred_at or (record.recorded_at if record.source is None else None)
    return "-" if time is None else time[:19].replace("T", " ")


def names_of(kind: str) -> list[str]:
    """The event names that a type or family stands for."""
    found = [name for name in BY_NAME if kind in (name, name.split(".")[0])]
    if not found:
        families = sorted({name.split(".")[0] for name in BY_NAME})
        raise InputError(
            f"{kind!r} is no event type or family: expected one of the families {', '.join(families)},"
            " or a type such as tool_call.settled"
        )
    return found


def show_command(
    context: typer.Context,
    place: Annotated[
        str,
        typer.Argument(
            metavar="SESSION[#SEQ]", help="A session, or one record of it (quote the #).", show_default=False
        ),
    ],
    raw: Annotated[
        bool, typer.Option("--raw", help="With #SEQ: the record and its contents exactly as they are kept.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Show a session in short, or one record whole."""
    name, mark, seq = place.partition("#")
    if mark and not (seq.isascii() and seq.isdigit()):
        raise InputError(f"{place!r} names no record: expected SESSION#SEQ with a number after the #")
    if raw and not mark:
        raise InputError("--raw shows one record: expected SESSION#SEQ")
    with settings_of(context).open_existing() as ledger:
        session = ledger.store.resolve(name)
        if mark:
            record = ledger.store.record(session, int(seq))
            if as_json:
                show_json(record_report(ledger.store, record))
            else:
                show_record(ledger.store, record, raw=raw)
            return
        with SessionsView(ledger.home, ledger.store) as view:
            catch_up(ledger, view)
            report = session_report(ledger.store, view, session)
        if as_json:
            show_json(report)
        else:
            show_session(report)
