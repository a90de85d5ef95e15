"""The branches around a session, as a tree: forks, runs that left their recording, and futures given up by a rollback.

Made from what the views of sessions and branches hold; reads some single records, and no content.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from decimal import Context, Decimal
from typing import Any, Literal, NamedTuple

from ledger.events import Record
from ledger.events.approval import ApprovalDecided
from ledger.events.compaction import CompactionDone
from ledger.events.delegation import DelegationStarted
from ledger.events.input import MessageReceived
from ledger.events.model_call import ModelCallAnswered, ModelCallRequested
from ledger.events.session import SessionEnded
from ledger.events.tool_call import ToolCallRequested, ToolCallSettled
from ledger.store import EventStore
from ledger.views.branches import BranchesView, ForkRow, RollbackRow
from ledger.views.session_row import Charge, SessionRow
from ledger.views.sessions import SessionsView

ACTS: tuple[str, ...] = tuple(
    event.TYPE
    for event in (
        MessageReceived,
        ModelCallRequested,
        ModelCallAnswered,
        ToolCallRequested,
        ToolCallSettled,
        ApprovalDecided,
        DelegationStarted,
        CompactionDone,
        SessionEnded,
    )
)
"""Events that count as something done: the others say how, and when."""

_MOST_BRANCHES = 10_000
_MOST_DELEGATED = 10_000
_LOOKED_AT = 5000
_LOOKED_BACK = 20
_EXACT = Context(prec=1000)

Kind = Literal["root", "fork", "run_again", "abandoned"]
"""Where a branch comes from: a session by itself, a fork, a run on recorded answers, a rollback."""


class Act(NamedTuple):
    """Something done, as a list shows it."""

    session: str
    """Session."""

    seq: int
    """Record."""

    type: str
    """Stored name of its event."""

    about: str | None = None
    """Tool, model, outcome or agent, where it has one."""


class Difference(NamedTuple):
    """The first thing done on a branch, and what was done in its place where it parted; None: nothing was."""

    here: Act | None
    """On the branch."""

    there: Act | None
    """On the branch that it left."""


@dataclass
class Spent:
    """What models were paid for."""

    model_calls: int = 0
    """Answers."""

    tokens: dict[str, int] = field(default_factory=dict)
    """Tokens by kind, as far as they were told."""

    cost_usd: Decimal | None = None
    """Cost; None: nobody said."""

    def add(self, charge: Charge) -> None:
        """Count an answer, or several."""
        self.model_calls += charge.calls
        for name, count in charge.tokens.items():
            self.tokens[name] = self.tokens.get(name, 0) + count
        if charge.cost_usd is not None:
            self.cost_usd = _EXACT.add(self.cost_usd or Decimal(0), Decimal(charge.cost_usd))

    def as_json(self) -> dict[str, Any]:
        """For `--json`."""
        cost = None if self.cost_usd is None else float(self.cost_usd)
        return {"model_calls": self.model_calls, "tokens": dict(self.tokens), "cost_usd": cost}


@dataclass
class Branch:
    """One branch: records of a session from one seq to another."""

    id: str
    """Its session; of a future that a rollback gave up, `SESSION~SEQ` with the seq of the rollback."""

    session: str
    """Session that holds its records."""

    kind: Kind
    """Where it comes from."""

    parent: str | None = None
    """Branch that it left."""

    at_seq: int | None = None
    """Last seq that it shares with the session which it left; None where the source does not tell."""

    head_seq: int = 0
    """Its last record; moves on with each append."""

    name: str | None = None
    """Title for people."""

    agent: str | None = None
    """Agent."""

    started_at: str | None = None
    """When it began, as given."""

    last_at: str | None = None
    """When it did something last, as given."""

    outcome: str | None = None
    """How it ended; None while it has not."""

    spent: Spent = field(default_factory=Spent)
    """What was paid for on it; of what it shares, nothing."""

    delegated: Spent = field(default_factory=Spent)
    """What its delegated sessions were paid for; those of a future given up count for its session."""

    difference: Difference | None = None
    """First difference; None for the root."""

    branches: list["Branch"] = field(default_factory=list)
    """Those that left it, the earliest first."""

    def as_json(self) -> dict[str, Any]:
        """For `--json`, without the branches that left it."""
        difference = self.difference
        return {
            "id": self.id,
            "session": self.session,
            "kind": self.kind,
            "parent": self.parent,
            "at_seq": self.at_seq,
            "head_seq": self.head_seq,
            "name": self.name,
            "agent": self.agent,
            "started_at": self.started_at,
            "last_at": self.last_at,
            "outcome": self.outcome,
            **self.spent.as_json(),
            "delegated": self.delegated.as_json(),
            "difference": None
            if difference is None
            else {
                "here": None if difference.here is None else difference.here._asdict(),
                "there": None if difference.there is None else difference.there._asdict(),
            },
        }


def branch_tree(sessions: SessionsView, view: BranchesView, session: str) -> Branch:
    """The tree that a session stands in, from its root. Both views must have caught up."""
    root = _root(view, session)
    made = {root: _branch(sessions, root, None)}
    waiting = [root]
    for name in waiting:  # it grows on the way: level by level, and no session twice
        forks = [fork for fork in view.forks_of(name) if fork.session not in made]
        forks = forks[: max(0, _MOST_BRANCHES - len(made))]
        for fork in forks:
            made[fork.session] = _branch(sessions, fork.session, fork)
            waiting.append(fork.session)
        _grow(view, made[name], [(fork, made[fork.session]) for fork in forks])
    return made[root]


def delegated_by(sessions: SessionsView, session: str) -> Spent:
    """What the sessions were paid for that a session delegated to, and those below them."""
    spent = Spent()
    seen = {session}
    waiting = [session]
    while waiting and len(seen) < _MOST_DELEGATED:
        for child in sessions.children(waiting.pop()):
            if child.id not in seen:
                tokens = {name: number for name, number in child.tokens.items() if number is not None}
                spent.add(Charge(child.model_calls, tokens, child.cost_usd))
                seen.add(child.id)
                waiting.append(child.id)
    return spent


def walk(tree: Branch) -> Iterator[tuple[int, Branch]]:
    """All branches of a tree with their depth, each before those that left it."""
    stack = [(0, tree)]
    while stack:
        depth, branch = stack.pop()
        yield depth, branch
        stack.extend((depth + 1, one) for one in reversed(branch.branches))


def act_of(record: Record) -> Act:
    """What a record says was done."""
    event = record.event
    about = next(
        (
            value
            for name in ("tool", "to_agent", "outcome", "model", "trigger", "origin", "artifact", "new")
            if isinstance(value := getattr(event, name, None), str)
        ),
        None,
    )
    if isinstance(event, ApprovalDecided):
        about = f"{about} {event.outcome}" if event.tool else event.outcome
    return Act(record.session, record.seq, record.type, about)


def _root(view: BranchesView, session: str) -> str:
    seen = {session}
    while (fork := view.fork(session)) is not None and fork.origin not in seen:
        session = fork.origin
        seen.add(session)
    return session


def _branch(sessions: SessionsView, session: str, fork: ForkRow | None) -> Branch:
    row = sessions.row(session) or SessionRow(session)
    kind: Kind = "root" if fork is None else "run_again" if fork.runs_again else "fork"
    branch = Branch(session, session, kind, head_seq=row.head_seq, outcome=row.outcome)
    branch.name, branch.agent = row.name, row.agent
    branch.started_at, branch.last_at = row.started_at, row.last_at
    branch.delegated = delegated_by(sessions, session)
    return branch


def _grow(view: BranchesView, trunk: Branch, forks: Iterable[tuple[ForkRow, Branch]]) -> None:
    """Tell apart what stands in a session: its own line, and each future that a rollback gave up.

    One sweep in the order of seq. What is still alive lies on a stack; a rollback takes from it all that came after
    the seq that it went back to: answers, forks, and futures given up before.
    """
    session, store = trunk.session, view.store
    alive: list[tuple[int, Charge | Branch]] = []
    for seq, what in _in_order(view, session, forks):
        if not isinstance(what, RollbackRow):
            alive.append((seq, what))
            continue
        to_seq = what.to_seq
        given_up = Branch(f"{session}~{seq}", session, "abandoned", at_seq=to_seq, head_seq=seq - 1)
        given_up.name, given_up.agent, given_up.outcome = trunk.name, trunk.agent, "rolled_back"
        there = _first(store, session, seq)
        given_up.difference = Difference(_first(store, session, to_seq, seq - 1), there)
        taken: list[Charge | Branch] = []
        while alive and alive[-1][0] > to_seq:
            taken.append(alive.pop()[1])
        _give(given_up, reversed(taken))
        alive.append((to_seq, given_up))
    _give(trunk, (what for _, what in alive))
    for fork, branch in forks:
        branch.at_seq = fork.at
        branch.difference = _difference(store, fork)


def _in_order(
    view: BranchesView, session: str, forks: Iterable[tuple[ForkRow, Branch]]
) -> list[tuple[int, Charge | Branch | RollbackRow]]:
    """Answers, forks and rollbacks of a session, by seq."""
    places: list[tuple[int, int, Charge | Branch | RollbackRow]] = [
        *((row.seq, 0, row.charge) for row in view.spent(session)),
        *((fork.at or 0, 1, branch) for fork, branch in forks),
        *((row.seq, 2, row) for row in view.rollbacks(session)),
    ]
    places.sort(key=lambda place: place[:2])
    return [(seq, what) for seq, _, what in places]


def _give(branch: Branch, parts: Iterable[Charge | Branch]) -> None:
    for part in parts:
        if isinstance(part, Branch):
            part.parent = branch.id
            branch.branches.append(part)
        else:
            branch.spent.add(part)


def _difference(store: EventStore, fork: ForkRow) -> Difference:
    if not fork.runs_again:
        there = None if fork.at is None else _first(store, fork.origin, fork.at)
        return Difference(_first(store, fork.session, fork.seq), there)
    if fork.left_seq is None:
        return Difference(None, None if fork.at is None else _first(store, fork.origin, fork.at))
    here = _asked(store, fork.session, fork.left_seq)
    if fork.left_origin_seq is not None:
        return Difference(here, _first(store, fork.origin, fork.left_origin_seq - 1, fork.left_origin_seq))
    return Difference(here, None if fork.at is None else _first(store, fork.origin, fork.at))


def _first(store: EventStore, session: str, after: int, upto: int | None = None) -> Act | None:
    """The first thing done after a seq."""
    last = after + _LOOKED_AT if upto is None else min(upto, after + _LOOKED_AT)
    found = next(store.read(session, after=after, upto=last, names=ACTS), None)
    return None if found is None else act_of(found)


def _asked(store: EventStore, session: str, seq: int) -> Act | None:
    """The request or call that a note on its answer stands behind."""
    names = (ModelCallRequested.TYPE, ToolCallRequested.TYPE)
    found = list(store.read(session, after=max(0, seq - _LOOKED_BACK), upto=seq, names=names))
    return act_of(found[-1]) if found else _first(store, session, seq)
