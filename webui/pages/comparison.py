"""/comparison: two branches or sessions side by side: what they share, where they part and why, what each came to."""

from typing import Annotated, Any

from fastapi import Query

from ledger.home import Ledger
from ledger.views.branch_tree import act_of
from replay.comparing.acts import Side
from replay.comparing.comparison import Comparison, Parting, compare
from webui.dependencies import LedgerDep
from webui.page import Context, Page
from webui.pages.branches import ActTold, act_told, tokens_of

_HUNKS = 30
_ACTS = 4
_TOOLS = 30

page = Page("Comparison")

Name = Annotated[str, Query(max_length=1000, description="A session, or SESSION~SEQ as the tree shows it.")]


class SideTold(Context):
    """What one side came to, after what both share."""

    id: str
    """The branch."""
    session: str
    """Session that holds it."""
    records: int
    """Records."""
    outcome: str | None
    """How it ended; None while it has not."""
    model_calls: int
    """Model calls."""
    tokens: int | None
    """Tokens; None where nobody says."""
    cost_usd: float | None
    """Cost; None where nobody says."""
    seconds: float | None
    """From its first time to its last."""
    tool_calls: int
    """Tool calls."""
    delegated_cost_usd: float | None
    """What its delegated sessions cost."""


class Tool(Context):
    """How often a tool was called."""

    name: str
    """Its name."""
    left: int
    """On the left."""
    right: int
    """On the right."""
    failed_left: int
    """Calls that did not return, on the left."""
    failed_right: int
    """Calls that did not return, on the right."""


class PartingTold(Context):
    """Where the sides part."""

    kind: str
    """In what."""
    cause: str
    """In words."""
    left: ActTold | None
    """What was done on the left."""
    right: ActTold | None
    """What was done on the right."""


class Stretch(Context):
    """Acts that both have, or that stand between such."""

    is_common: bool
    """Whether both have them."""
    left: list[ActTold]
    """On the left: of common ones first and last, of others the first some."""
    right: list[ActTold]
    """On the right."""
    total_left: int
    """How many on the left."""
    total_right: int
    """How many on the right."""


class ComparisonContext(Context):
    """What comparison.html may use."""

    left: str
    """The one, as asked for."""
    right: str
    """The other."""
    sides: list[SideTold]
    """Both; empty where nothing was asked for."""
    tools: list[Tool]
    """What either called."""
    shared_records: int
    """Records that both begin with; they count for neither."""
    common: int
    """Acts that both have."""
    is_longest: bool
    """Whether no longer list of common acts exists."""
    divergence: PartingTold | None
    """The first act that differs, whatever by."""
    first_other_act: PartingTold | None
    """The first act that is another one."""
    stretches: list[Stretch]
    """All acts in order, or the first of that."""
    total_stretches: int
    """How many there are."""


@page.view("/comparison", template="comparison.html")
def comparison(ledger: LedgerDep, left: Name = "", right: Name = "") -> ComparisonContext:
    """Compare two branches or sessions."""
    if not left or not right:
        return ComparisonContext(
            left=left,
            right=right,
            sides=[],
            tools=[],
            shared_records=0,
            common=0,
            is_longest=True,
            divergence=None,
            first_other_act=None,
            stretches=[],
            total_stretches=0,
        )
    made = compare(ledger, left, right)
    told = made.as_json()
    hunks = _stretches(ledger, made)
    return ComparisonContext(
        left=left,
        right=right,
        sides=[_side(told["left"]), _side(told["right"])],
        tools=_tools(told["left"], told["right"]),
        shared_records=told["shared"]["records"],
        common=told["common"],
        is_longest=told["is_longest"],
        divergence=_parting(made.divergence),
        first_other_act=_parting(made.first_other_act),
        stretches=hunks,
        total_stretches=len(told["stretches"]),
    )


def _side(told: dict[str, Any]) -> SideTold:
    names = ("id", "session", "records", "outcome", "model_calls", "cost_usd", "seconds", "tool_calls")
    return SideTold(
        **{name: told[name] for name in names},
        tokens=tokens_of(told),
        delegated_cost_usd=told["delegated"]["cost_usd"],
    )


def _tools(left: dict[str, Any], right: dict[str, Any]) -> list[Tool]:
    names = sorted(left["tools"].keys() | right["tools"].keys())
    return [
        Tool(
            name=name[:80],
            left=left["tools"].get(name, 0),
            right=right["tools"].get(name, 0),
            failed_left=left["tools_not_returned"].get(name, 0),
            failed_right=right["tools_not_returned"].get(name, 0),
        )
        for name in names[:_TOOLS]
    ]


def _parting(parting: Parting | None) -> PartingTold | None:
    if parting is None:
        return None
    return PartingTold(
        kind=parting.kind,
        cause=parting.cause[:300],
        left=act_told(parting.left),
        right=act_told(parting.right),
    )


def _stretches(ledger: Ledger, made: Comparison) -> list[Stretch]:
    found: list[Stretch] = []
    for hunk in made.hunks():
        if len(found) == _HUNKS:
            break
        found.append(
            Stretch(
                is_common=hunk.is_common,
                left=_acts(ledger, made.sides[0], hunk.left, ends=hunk.is_common),
                right=_acts(ledger, made.sides[1], hunk.right, ends=hunk.is_common),
                total_left=len(hunk.left),
                total_right=len(hunk.right),
            )
        )
    return found


def _acts(ledger: Ledger, side: Side, part: range, *, ends: bool) -> list[ActTold]:
    """Some acts of a stretch: its ends, or its beginning."""
    chosen = ([part[0], part[-1]] if len(part) > 1 else list(part)) if ends else list(part[:_ACTS])
    told = [act_told(act_of(ledger.store.record(*side.place(index)))) for index in chosen]
    return [act for act in told if act is not None]
