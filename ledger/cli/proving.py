"""The command `verify`."""

import contextlib
from typing import Annotated, Any

import typer

from ledger.cli.settings import BAD_NEWS, JsonOption, settings_of
from ledger.cli.terminal import progress, say, show_json, visible
from ledger.store import Problem, Verification, verify
from ledger.views.sessions import SessionsView

_LISTED = 50


def add_proof_commands(app: typer.Typer) -> None:
    """Add this file's commands."""
    app.command("verify", epilog="Example: loopledger verify && echo unchanged")(verify_command)


def verify_command(
    context: typer.Context,
    session: Annotated[
        str | None, typer.Argument(metavar="[SESSION]", help="Only this session.", show_default=False)
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Check every record, link, blob and context node; exit with 1 when one is not as it was written."""
    with settings_of(context).open_existing() as ledger:
        name = None if session is None else ledger.store.resolve(session)
        # The list of sessions is a convenience; a ledger too damaged to make it must be verified all the same.
        with contextlib.suppress(Exception), SessionsView(ledger.home, ledger.store) as view:
            view.catch_up()
        with progress("verifying", ledger.store.last_position() if name is None else None) as bar:
            result = verify(
                ledger.store, name, progress=lambda records: bar.move(records, f"{records} records")
            )
        with contextlib.suppress(Exception), SessionsView(ledger.home, ledger.store) as view:
            view.note_verification(result.problems, name)
    if as_json:
        show_json(_as_json(result))
    else:
        _show(result, name)
    if not result.ok:
        raise typer.Exit(BAD_NEWS)


def _as_json(result: Verification) -> dict[str, Any]:
    return {
        "ok": result.ok,
        "records": result.records,
        "sessions": result.sessions,
        "problems": [problem._asdict() for problem in result.problems],
        "unlisted": result.unlisted,
    }


def _show(result: Verification, session: str | None) -> None:
    where = f"{result.sessions} sessions" if session is None else f"session {visible(session)}"
    if result.ok:
        say(f"ok: {result.records} records of {where} are as they were written", color="green")
        return
    count = len(result.problems) + result.unlisted
    say(f"NOT ok: {count} problems in {result.records} records of {where}", color="red", bold=True)
    for problem in result.problems[:_LISTED]:
        say(f"  {_place(problem)}  {problem.kind}: {visible(problem.detail)}")
    if count > _LISTED:
        say(f"  … and {count - _LISTED} more; --json lists them")


def _place(problem: Problem) -> str:
    if problem.session is None:
        return "ledger"
    return visible(f"{problem.session}#{problem.seq if problem.seq is not None else '?'}")
