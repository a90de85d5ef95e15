"""The commands `branches` and `compare`: where runs part, what each branch cost, and two of them side by side."""

from typing import Annotated, Any

import typer

from ledger.cli.settings import JsonOption, SessionArgument, settings_of
from ledger.cli.terminal import Column, Table, amount, cut, say, show_json, visible, width
from ledger.home import Ledger
from ledger.views.branch_tree import Act, Branch, Difference, act_of, branch_tree, walk
from ledger.views.branches import BranchesView
from ledger.views.sessions import SessionsView
from replay.comparing.comparison import Comparison, Hunk, Parting, compare

_SHOWN = 40
_ONE_SIDE = 4
_SHORT = 24
_KINDS = {"root": "", "fork": "fork", "run_again": "run again", "abandoned": "rolled back"}

BranchArgument = Annotated[
    str,
    typer.Argument(
        metavar="BRANCH",
        help="A session by id or prefix, or SESSION~SEQ as `branches` shows it.",
        show_default=False,
    ),
]


def add_comparing_commands(app: typer.Typer) -> None:
    """Add this file's commands."""
    app.command("branches", epilog="Example: loopledger branches 3f2a")(branches_command)
    app.command("compare", epilog="Example: loopledger compare 3f2a 77c0")(compare_command)


def branches_command(context: typer.Context, session: SessionArgument, as_json: JsonOption = False) -> None:
    """Show the branches around a session as a tree: forks, runs that left it, futures that a rollback gave up."""
    with settings_of(context).open_existing() as ledger:
        name = ledger.store.resolve(session)
        tree = tree_of(ledger, name)
    if as_json:
        show_json([{"depth": depth, **branch.as_json()} for depth, branch in walk(tree)])
        return
    for depth, branch in walk(tree):
        _show_branch(branch, depth, is_asked=branch.id == name)


def tree_of(ledger: Ledger, session: str) -> Branch:
    """The tree that a session stands in, up to date."""
    with (
        SessionsView(ledger.home, ledger.store) as sessions,
        BranchesView(ledger.home, ledger.store) as view,
    ):
        sessions.catch_up()
        view.catch_up()
        return branch_tree(sessions, view, session)


def compare_command(
    context: typer.Context, left: BranchArgument, right: BranchArgument, as_json: JsonOption = False
) -> None:
    """Compare two branches or sessions: tokens, time, cost, tools, outcome, and where they part and why."""
    with settings_of(context).open_existing() as ledger:
        comparison = compare(ledger, left, right)
        if as_json:
            show_json(comparison.as_json())
        else:
            _show_comparison(ledger, comparison)


# -- for people ------------------------------------------------------------------------------------------------------


def _show_branch(branch: Branch, depth: int, *, is_asked: bool) -> None:
    mark = "* " if is_asked else "  "
    indent = "   " * (depth - 1) + "└─ " if depth else ""
    at = "" if branch.at_seq is None else f" at #{branch.at_seq}"
    words = [
        f"{_KINDS[branch.kind]}{at}".strip(),
        f"head #{branch.head_seq}",
        branch.outcome.replace("_", " ") if branch.outcome else "not ended",
        _spent(branch.spent.as_json()),
    ]
    if branch.delegated.model_calls:
        words.append(f"delegated {_spent(branch.delegated.as_json())}")
    told = ", ".join(word for word in words if word)
    say(cut(f"{mark}{indent}{_short(branch.id)}  {told}", width()), bold=is_asked)
    if branch.difference is not None:
        space = " " * (len(mark) + len(indent) + 3)
        say(cut(f"{space}{_difference(branch.difference)}", width()))


def _short(identity: str) -> str:
    session, mark, seq = identity.partition("~")
    shown = session if len(session) <= _SHORT else f"{session[: _SHORT - 1]}…"
    return visible(f"{shown}{mark}{seq}")


def _spent(told: dict[str, Any]) -> str:
    known = [count for count in told["tokens"].values() if count is not None]
    tokens = sum(known) if known else None
    cost = "" if told["cost_usd"] is None else f", ${told['cost_usd']:.4f}"
    return f"{told['model_calls']} model calls, {amount(tokens)} tokens{cost}"


def _difference(difference: Difference) -> str:
    here = "nothing yet" if difference.here is None else _act(difference.here)
    there = "nothing" if difference.there is None else _act(difference.there)
    return f"first: {here}   in place of: {there}"


def _act(act: Act) -> str:
    about = "" if act.about is None else f" {act.about}"
    return visible(f"#{act.seq} {act.type}{about}")


def _show_comparison(ledger: Ledger, comparison: Comparison) -> None:
    told = comparison.as_json()
    left, right, shared = told["left"], told["right"], told["shared"]
    table = Table([Column("", 14), Column("LEFT", 30), Column("RIGHT", 30)])
    table.row("branch", left["id"], right["id"])
    for name, show in (
        ("records", lambda side: amount(side["records"])),
        ("outcome", lambda side: side["outcome"] or "not ended"),
        ("model calls", lambda side: amount(side["model_calls"])),
        ("tokens", _tokens),
        ("cost", lambda side: "-" if side["cost_usd"] is None else f"${side['cost_usd']:.4f}"),
        ("time", lambda side: "-" if side["seconds"] is None else f"{side['seconds']:.1f} s"),
        ("tool calls", lambda side: amount(side["tool_calls"])),
    ):
        table.row(name, show(left), show(right))
    for tool in sorted(left["tools"].keys() | right["tools"].keys()):
        table.row(f"  {tool}", _calls(left, tool), _calls(right, tool))
    if left["delegated"]["model_calls"] or right["delegated"]["model_calls"]:
        table.row("delegated", _spent(left["delegated"]), _spent(right["delegated"]))
    if shared["records"]:
        say(
            f"\nboth begin with {amount(shared['records'])} records, counted above for neither: {_spent(shared)}"
        )
    _show_partings(comparison)
    _show_hunks(ledger, comparison)


def _tokens(side: dict[str, Any]) -> str:
    known = {name: count for name, count in side["tokens"].items() if count is not None}
    words = ", ".join(f"{name.replace('_', ' ')} {amount(count)}" for name, count in known.items() if count)
    return words or ("0" if known else "-")


def _calls(side: dict[str, Any], tool: str) -> str:
    calls, failed = side["tools"].get(tool, 0), side["tools_not_returned"].get(tool, 0)
    return f"{calls} ({failed} not returned)" if failed else str(calls)


def _show_partings(comparison: Comparison) -> None:
    say()
    if comparison.divergence is None:
        say("they do the same from there on" if comparison.shared.records else "they do the same", bold=True)
        return
    _show_parting("they part", comparison.divergence)
    other = comparison.first_other_act
    if other is not None and other[:3] != comparison.divergence[:3]:
        _show_parting("the first act that is another one", other)


def _show_parting(what: str, parting: Parting) -> None:
    say(f"{what}: {parting.cause}", bold=True)
    for side, act in (("left", parting.left), ("right", parting.right)):
        shown = "nothing more" if act is None else f"{_act(act)}  in {visible(act.session)}"
        say(cut(f"  {side:<6} {shown}", width()))


def _show_hunks(ledger: Ledger, comparison: Comparison) -> None:
    common = sum(block.length for block in comparison.alignment.blocks)
    left, right = comparison.sides
    note = "" if comparison.alignment.is_longest else " (at least: more would take too long to find)"
    say(
        f"\n{common} acts in both{note}, {len(left) - common} only left, {len(right) - common} only right",
        bold=True,
    )
    for shown, hunk in enumerate(comparison.hunks()):
        if shown == _SHOWN:
            say("… and more; --json lists all")
            return
        if hunk.is_common:
            first, last = left.place(hunk.left[0])[1], left.place(hunk.left[-1])[1]
            there, end = right.place(hunk.right[0])[1], right.place(hunk.right[-1])[1]
            say(f"  = {len(hunk.left)} alike, #{first} to #{last} left, #{there} to #{end} right")
        else:
            _show_one_sided(ledger, comparison, hunk)


def _show_one_sided(ledger: Ledger, comparison: Comparison, hunk: Hunk) -> None:
    for sign, side, part in (("-", comparison.sides[0], hunk.left), ("+", comparison.sides[1], hunk.right)):
        for index in part[:_ONE_SIDE]:
            act = act_of(ledger.store.record(*side.place(index)))
            say(cut(f"  {sign} {_act(act)}", width()))
        if len(part) > _ONE_SIDE:
            say(f"  {sign} … {len(part) - _ONE_SIDE} more, to #{side.place(part[-1])[1]}")
