"""/sessions/S/branches: the tree of branches that a session stands in, with what each cost and how it ended."""

from itertools import islice
from typing import Any

from ledger.views.branch_tree import Act, Branch, Kind, walk
from replay.comparing.commands import tree_of
from webui.dependencies import SessionDep, WebDep
from webui.page import Context, Page

_MOST = 40

page = Page("Branches", link="/sessions/{session}/branches", order=65)


class ActTold(Context):
    """Something done."""

    session: str
    """Its session."""
    seq: int
    """Its record."""
    type: str
    """Type of the event."""
    about: str | None
    """Tool, model, outcome or agent, where it has one."""


class BranchLine(Context):
    """A branch."""

    depth: int
    """How many branches it stands below."""
    id: str
    """Its session; of a future that a rollback gave up, `SESSION~SEQ`."""
    session: str
    """Session that holds its records."""
    kind: Kind
    """Where it comes from."""
    parent: str | None
    """Branch that it left."""
    at_seq: int | None
    """Last record that it shares with it."""
    head_seq: int
    """Its last record."""
    name: str | None
    """Title for people."""
    last_at: str | None
    """When it did something last."""
    outcome: str | None
    """How it ended; None while it has not."""
    model_calls: int
    """Model calls on it, without what it shares."""
    tokens: int | None
    """Tokens on it; None where nobody says."""
    cost_usd: float | None
    """What it cost, with what it delegated; None where nobody says."""
    here: ActTold | None
    """The first thing done on it."""
    there: ActTold | None
    """What was done in its place on the branch that it left."""


class BranchesContext(Context):
    """What branches.html may use."""

    session: str
    """Its id."""
    branches: list[BranchLine]
    """The tree, each branch before those that left it."""
    is_cut: bool
    """Whether there are more."""


@page.view("/sessions/{session}/branches", template="branches.html")
def branches(web: WebDep, session: SessionDep) -> BranchesContext:
    """Forks, runs that left their recording, and futures given up by a rollback."""
    key = ("branches", session, web.ledger.store.last_position())
    found = web.answers.of(key, lambda: list(islice(walk(tree_of(web.ledger, session)), _MOST + 1)))
    return BranchesContext(
        session=session,
        branches=[_line(depth, branch) for depth, branch in found[:_MOST]],
        is_cut=len(found) > _MOST,
    )


def act_told(act: Act | None) -> ActTold | None:
    """Something done, for people."""
    if act is None:
        return None
    about = None if act.about is None else act.about[:80]
    return ActTold(session=act.session, seq=act.seq, type=act.type, about=about)


def _line(depth: int, branch: Branch) -> BranchLine:
    difference = branch.difference
    spent, delegated = branch.spent.as_json(), branch.delegated.as_json()
    return BranchLine(
        depth=depth,
        id=branch.id,
        session=branch.session,
        kind=branch.kind,
        parent=branch.parent,
        at_seq=branch.at_seq,
        head_seq=branch.head_seq,
        name=None if branch.name is None else branch.name[:200],
        last_at=branch.last_at,
        outcome=branch.outcome,
        model_calls=branch.spent.model_calls,
        tokens=tokens_of(spent),
        cost_usd=_sum(spent["cost_usd"], delegated["cost_usd"]),
        here=None if difference is None else act_told(difference.here),
        there=None if difference is None else act_told(difference.there),
    )


def tokens_of(spent: dict[str, Any]) -> int | None:
    """All tokens; None where nobody says."""
    known = [count for count in spent["tokens"].values() if count is not None]
    return sum(known) if known else None


def _sum(one: float | None, other: float | None) -> float | None:
    return other if one is None else one if other is None else one + other
