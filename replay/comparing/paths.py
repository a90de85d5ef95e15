"""Which records make up a branch: its own, and those that it shares with the one that it left. Reads no record."""

from typing import NamedTuple

from ledger.errors import InputError
from ledger.store import EventStore
from ledger.views.branches import BranchesView


class Stretch(NamedTuple):
    """Records of a session that follow each other."""

    session: str
    """Session."""

    after: int
    """Seq before the first of them."""

    upto: int
    """Seq of the last of them."""


class Path(NamedTuple):
    """The records of one branch."""

    id: str
    """The branch: its session, or `SESSION~SEQ` for the future that the rollback at SEQ gave up."""

    session: str
    """Session that holds its own records."""

    stretches: list[Stretch]
    """Its records from the root on, without the futures that rollbacks gave up."""


def path_of(store: EventStore, view: BranchesView, name: str) -> Path:
    """The path of a branch, by its id or a session's prefix. Raises InputError for a rollback that is none."""
    start, mark, seq = name.rpartition("~")
    if not (mark and seq.isascii() and seq.isdigit()):
        session = store.resolve(name)
        return Path(session, session, _whole(view, session, store.head(session).seq))
    session = store.resolve(start)
    if all(rollback.seq != int(seq) for rollback in view.rollbacks(session)):
        raise InputError(
            f"{name!r} names no branch: {session}#{seq} is no rollback; `loopledger branches {start}` lists them"
        )
    return Path(f"{session}~{seq}", session, _whole(view, session, int(seq) - 1))


def shared(one: Path, other: Path) -> list[Stretch]:
    """The records that both paths begin with."""
    common: list[Stretch] = []
    for left, right in zip(one.stretches, other.stretches, strict=False):
        if left[:2] != right[:2]:
            break
        common.append(left._replace(upto=min(left.upto, right.upto)))
        if left.upto != right.upto:
            break
    return common


def rest(path: Path, common: list[Stretch]) -> list[Stretch]:
    """The records of a path after those that it shares."""
    if not common:
        return path.stretches
    last = path.stretches[len(common) - 1]
    after = [Stretch(last.session, common[-1].upto, last.upto), *path.stretches[len(common) :]]
    return [stretch for stretch in after if stretch.upto > stretch.after]


def _whole(view: BranchesView, session: str, upto: int) -> list[Stretch]:
    """A session's records up to a seq, after those that it shares with the sessions that it goes on from."""
    parts = [_alive(view, session, upto)]
    seen = {session}
    fork = view.fork(session)
    while fork is not None and not fork.runs_again and fork.at is not None and fork.origin not in seen:
        parts.append(_alive(view, fork.origin, fork.at))
        seen.add(fork.origin)
        fork = view.fork(fork.origin)
    return [stretch for part in reversed(parts) for stretch in part]


def _alive(view: BranchesView, session: str, upto: int) -> list[Stretch]:
    """What rollbacks have left of a session's records up to a seq."""
    alive: list[Stretch] = []
    start = 0
    for rollback in view.rollbacks(session):
        if rollback.seq > upto:
            break
        alive.append(Stretch(session, start, rollback.seq - 1))
        while alive and alive[-1].after >= rollback.to_seq:
            alive.pop()
        if alive:
            alive[-1] = alive[-1]._replace(upto=min(alive[-1].upto, rollback.to_seq))
        start = rollback.seq - 1
    alive.append(Stretch(session, start, upto))
    return [stretch for stretch in alive if stretch.upto > stretch.after]
