"""The command `fleet`: one agent against several on the same tasks."""

from pathlib import Path
from typing import Annotated, Any

import typer

from ledger.cli.looking import catch_up
from ledger.cli.settings import JsonOption, settings_of
from ledger.cli.terminal import Column, Table, amount, progress, say, show_json, visible
from ledger.views.fleet import fleet, load_tasks
from ledger.views.sessions import SessionsView

_MOST_TASKS = 20


def add_fleet_command(app: typer.Typer) -> None:
    """Add this file's command."""
    app.command("fleet", epilog="Example: loopledger fleet --tasks tasks.yaml")(fleet_command)


def fleet_command(
    context: typer.Context,
    tasks: Annotated[
        Path | None,
        typer.Option(
            "--tasks",
            metavar="FILE",
            help="YAML file, `tasks: {NAME: [SESSION, ...]}`; by default, runs with the same first message are a task.",
            show_default=False,
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Compare runs of one agent with runs of several on the same tasks: cost, time, outcome, and how they failed."""
    with settings_of(context).open_existing() as ledger, SessionsView(ledger.home, ledger.store) as view:
        catch_up(ledger, view)
        declared = None if tasks is None else load_tasks(tasks, ledger.store)
        with progress("looking at runs") as bar:
            told = fleet(ledger.store, view, declared, bar.move).as_json()
    if as_json:
        show_json(told)
    else:
        _show(told)


def _show(told: dict[str, Any]) -> None:
    table = Table(
        [
            Column("AGENTS", 13),
            Column("RUNS", 5, is_number=True),
            Column("TASKS", 5, is_number=True),
            Column("COMPLETED", 22),
            Column("USD", 8, is_number=True),
            Column("TOKENS", 7, is_number=True),
            Column("SECONDS", 8, is_number=True),
            Column("FAILING", 0),
        ]
    )
    same = told["same_tasks"]
    if told["shared_tasks"]:
        _row(table, "one, same", same["one"])
        _row(table, "several, same", same["several"])
    for one in told["by_agents"]:
        _row(table, f"{one['agents']}", one)
    unknown = f"; {told['without_task']} runs tell no task" if told["without_task"] else ""
    say(
        f"{told['runs']} runs, {told['tasks']} tasks, {len(told['shared_tasks'])} done by one and by several{unknown}"
    )
    if not told["shared_tasks"]:
        say("no task was done both by one agent and by several: nothing to compare")
        return
    ratios = same["several_to_one"]
    parts = [
        f"{ratios[name]['median']} x the {word}"
        for name, word in _WORDS
        if ratios[name]["median"] is not None
    ]
    say(f"several to one, median over tasks: {', '.join(parts) or 'not known'}")
    say(same["verdict"])
    for group in ("one", "several"):
        for kind, one in same[group]["failures"].items():
            say(f"  {group}: {visible(kind)} {one['times']} times, in {_share(one['runs'])} of the runs")
    for task in told["shared_tasks"][:_MOST_TASKS]:
        runs = f"{task['one']['runs']} and {task['several']['runs']} runs"
        say(f"  task {visible(task['task'])}: {runs}: {visible(task['title'])}")


_WORDS = (("cost_usd", "cost"), ("tokens", "tokens"), ("seconds", "time"), ("model_calls", "model calls"))


def _row(table: Table, name: str, one: dict[str, Any]) -> None:
    usd, tokens = one["cost_usd"]["median"], one["tokens"]["median"]
    table.row(
        name,
        one["runs"],
        one["tasks"],
        _share(one["completed"]),
        "-" if usd is None else f"{usd:.4f}",
        "-" if tokens is None else amount(round(tokens)),
        one["seconds"]["median"],
        f"{one['any_failure']['hits']}/{one['any_failure']['of']}",
    )


def _share(share: dict[str, Any]) -> str:
    if share["share"] is None:
        return "not known"
    return f"{share['hits']}/{share['of']} ({share['low']:.0%} to {share['high']:.0%})"
