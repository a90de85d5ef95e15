"""The command `edges`: how agents reached tools, servers and one another, and how that was designed."""

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any

import typer

from ledger.audit.designed import Design, load_design
from ledger.cli.looking import catch_up
from ledger.cli.settings import BAD_NEWS, JsonOption, settings_of
from ledger.cli.terminal import amount, counted, progress, say, show_json, visible
from ledger.home import Ledger
from ledger.views.edges import RunEdges, all_runs, edges_json, run_edges
from ledger.views.sessions import SessionsView

_MOST_NAMES = 6


def add_edge_command(app: typer.Typer) -> None:
    """Add this file's command."""
    app.command("edges", epilog="Example: loopledger edges 3f2a --designed graph.yaml")(edges_command)


def edges_command(
    context: typer.Context,
    session: Annotated[
        str | None,
        typer.Argument(
            metavar="[SESSION]",
            help="Only this one and all that it handed work to; every run by default.",
            show_default=False,
        ),
    ] = None,
    designed: Annotated[
        Path | None,
        typer.Option(
            "--designed",
            metavar="FILE",
            help="YAML file of the edges that there may be; exit with 1 when another one ran, or one did more.",
            show_default=False,
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Show each edge of a run: who acted, what it may reach and reached, what crossed, what it cost, what is proved."""
    design = None if designed is None else load_design(designed)
    with settings_of(context).open_existing() as ledger, SessionsView(ledger.home, ledger.store) as view:
        catch_up(ledger, view)
        told = _told(ledger, view, session, design)
    if as_json:
        show_json(told)
    else:
        _show(told)
    if design is not None and (told["design"]["undesigned"] or told["design"]["exceeding"]):
        raise typer.Exit(BAD_NEWS)


def _told(ledger: Ledger, view: SessionsView, session: str | None, design: Design | None) -> dict[str, Any]:
    if session is not None:
        runs: Iterable[RunEdges] = [run_edges(ledger.store, view, ledger.store.resolve(session))]
        return edges_json(runs, design)
    with progress("looking at sessions") as bar:
        return edges_json(all_runs(ledger.store, view, tell=bar.move), design)


# -- for people ------------------------------------------------------------------------------------------------------


def _show(told: dict[str, Any]) -> None:
    for edge in told["edges"]:
        _show_edge(edge)
    say(
        f"{counted(told['runs'], 'run')}, {counted(told['sessions'], 'session')},"
        f" {counted(len(told['agents']), 'agent')}, {counted(len(told['edges']), 'edge')}"
    )
    if (design := told["design"]) is None:
        return
    for one in design["undesigned"]:
        turned = ", but the other way round" if one["turned"] else ""
        say(f"not designed: {_name(one)}{turned}  {_some(one['places'])}", color="red")
    for one in design["exceeding"]:
        say(
            f"exceeding:    {_name(one)} {visible(one['what'])}  {_some(one['places'])}",
            color="red",
        )
    for one in design["unused"]:
        say(f"never used:   {_name(one)}")
    if not (design["undesigned"] or design["exceeding"]):
        say("what ran is what was designed")


def _show_edge(edge: dict[str, Any]) -> None:
    acted, reach, crossed, cost = edge["acted"], edge["reach"], edge["crossed"], edge["cost"]
    say(
        f"{_name(edge)}  {edge['uses']} times, first {visible(edge['places'][0] if edge['places'] else '-')}",
        bold=True,
    )
    decided = f"; {_counts(acted['decided'])}" if acted["decided"] else ""
    say(f"  acted    {_counts(acted['actors']) or 'nobody says who'}{decided}")
    may = "not on record" if reach["may"] is None else _some(reach["may"])
    if reach["offered"] is not None:
        may = "offered to the model" if reach["offered"] else "NOT offered to the model"
    used = f", by {_some(reach['used'])}" if reach["used"] else ""
    say(f"  reach    may: {may}; reached: {_counts(reach['reached']) or '-'}{used}")
    for one in reach["exceeding"]:
        say(f"           exceeding: {visible(one)}", color="red")
    secrets = f", {len(crossed['secrets'])} secrets" if crossed["secrets"] else ""
    say(
        f"  crossed  {amount(crossed['bytes_out'])} bytes there, {amount(crossed['bytes_back'])} back{secrets}"
    )
    for one in crossed["secrets"][:_MOST_NAMES]:
        say(
            f"           {visible(one['kind'])} {visible(one['digest'])}: {one['out']} there, {one['back']} back",
            color="yellow",
        )
    usd = "-" if cost["usd"] is None else f"{cost['usd']:.4f} USD"
    time = "-" if cost["ms"] is None else f"{cost['ms']} ms"
    say(
        f"  cost     {usd}, {amount(cost['tokens'])} tokens, {time}; at once {cost['at_once']}, between two requests"
        f" {cost['burst']}, handed on {cost['handed_on']}"
    )
    evidence = edge["evidence"]
    missing = "; ".join(map(visible, evidence["missing"])) or "nothing is missing"
    say(f"  evidence {_counts(evidence['outcomes']) or 'no end told'}; {missing}")


def _name(edge: dict[str, Any]) -> str:
    return f"{visible(edge['from'])} -> {visible(edge['to'])} ({edge['kind'] or 'any'})"


def _counts(counts: dict[str, int]) -> str:
    return ", ".join(f"{count} {visible(name)}" for name, count in counts.items() if count)


def _some(names: list[str]) -> str:
    more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
    return (", ".join(map(visible, names[:_MOST_NAMES])) or "nothing") + more
