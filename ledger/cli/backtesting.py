"""The command `backtest`: what rules would have found and blocked in all that the ledger knows."""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from ledger.audit.rules import load_rules
from ledger.audit.rules.versions import Versions
from ledger.cli.settings import JsonOption, settings_of
from ledger.cli.terminal import Column, Table, counted, say, say_wrapped, show_json, visible
from ledger.views.backtesting import Backtest, Tally, backtest, save


def add_backtest_command(app: typer.Typer) -> None:
    """Add this file's command."""
    app.command("backtest", epilog="Example: loopledger backtest rules.yaml --against rules-of-may.yaml")(
        backtest_command
    )


def backtest_command(
    context: typer.Context,
    rules: Annotated[Path, typer.Argument(metavar="RULES", help="A YAML file of rules.", show_default=False)],
    sessions: Annotated[
        list[str] | None,
        typer.Argument(metavar="[SESSION]...", help="Only these; all by default.", show_default=False),
    ] = None,
    against: Annotated[
        Path | None,
        typer.Option(
            "--against", metavar="OLD", help="Another version: show the difference.", show_default=False
        ),
    ] = None,
    examples: Annotated[
        int, typer.Option("--examples", metavar="N", min=0, help="So many matches of each rule.")
    ] = 5,
    saves: Annotated[
        bool,
        typer.Option("--save/--no-save", help="Keep the answer as evidence, in the home and as an event."),
    ] = True,
    as_json: JsonOption = False,
) -> None:
    """Hold rules against all past sessions: what they match, would block, and cannot see."""
    wanted = load_rules(rules)
    old = None if against is None else load_rules(against)
    with settings_of(context).open_existing() as ledger:
        only = sorted({ledger.store.resolve(name) for name in sessions}) if sessions else None
        answer = backtest(ledger.store, wanted, old, only, examples=examples)
        path = save(ledger.recorder, ledger.home, answer) if saves else None
    if as_json:
        show_json({**answer.as_json(), "saved": None if path is None else str(path)})
        return
    _show(answer)
    if path is not None:
        say(f"kept in {visible(str(path))}")


def _show(answer: Backtest) -> None:
    numbers = ("MATCHED", "SESSIONS", "BLOCKS", "COVERED", "LATE")
    table = Table(
        [
            Column("RULE", 28),
            *(Column(name, len(name), is_number=True) for name in numbers),
        ]
    )
    for name, tally in answer.tallies.items():
        table.row(
            name,
            tally.matched,
            tally.sessions,
            tally.would_block,
            tally.covered,
            tally.too_late,
        )
    for name, tally in answer.tallies.items():
        if tally.missing:
            say_wrapped(f"{name} cannot see {_missing(tally)}", 0)
        for example in tally.examples:
            say_wrapped(
                f"{name}  {visible(example['place'])}: {visible(example['message'])} ({_words(example)})", 0
            )
    say(f"{counted(answer.sessions, 'session')}, up to record {answer.position} of the ledger")
    if answer.versions is not None:
        for line in _changes(answer.versions):
            say_wrapped(line, 0)
        say(f"{answer.newly.total()} newly matched, {answer.no_longer.total()} no longer matched")
        blocked = answer.newly_blocked.total(), answer.no_longer_blocked.total()
        say(f"{blocked[0]} newly blocked, {blocked[1]} no longer blocked")
        for way, sign in (("newly", "+"), ("no_longer", "-")):
            for change in answer.changes[way]:
                say_wrapped(f"{sign} {change.rule}  {visible(change.place)}: {visible(change.message)}", 0)


def _changes(versions: Versions) -> Iterator[str]:
    """What the rules say otherwise."""
    yield from (f"rule {name} is new" for name in versions.added)
    yield from (f"rule {name} is gone" for name in versions.removed)
    yield from (f"rule {old} is named {new} now" for old, new in versions.renamed.items())
    yield from (f"rule {name} has changed: {', '.join(what)}" for name, what in versions.changed.items())
    if versions.untrusted_changed:
        yield "other tools are untrusted"


def _words(example: dict[str, Any]) -> str:
    return str(example["fate"]).replace("_", " ")


def _missing(tally: Tally) -> str:
    return "; ".join(f"{what} ({counted(count, 'session')})" for what, count in sorted(tally.missing.items()))
