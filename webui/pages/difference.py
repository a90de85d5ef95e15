"""/sessions/S/diff: what changed between two records of a session, and which record changed it."""

from typing import Annotated, Any

from fastapi import Query

from ledger.errors import RecordNotFoundError
from ledger.events.compaction import CompactionDone
from replay.cli import open_timeline
from replay.difference import difference
from replay.pointer import Change
from webui.dependencies import LedgerDep, ListsDep, SessionDep
from webui.page import Context, Page
from webui.pages.state import told

_CHANGES = 100
_LONGEST = 400
_COMPACTIONS = 20

page = Page("Diff", link="/sessions/{session}/diff", order=40)


class Line(Context):
    """One change."""

    op: str
    """`add`, `remove` or `replace`."""
    section: str
    """Part of the state."""
    path: str
    """JSON pointer."""
    old: str
    """Value before, in short."""
    new: str
    """Value after, in short."""
    seq: int
    """The last record that changed it."""


class Compaction(Context):
    """A compaction between the two."""

    seq: int
    """Its record."""
    evidence: str
    """Whether the source logs it."""
    messages_before: int | None
    """Messages before."""
    messages_after: int | None
    """Messages after."""
    tokens_before: int | None
    """Tokens before."""
    tokens_after: int | None
    """Tokens after."""


class Rule(Context):
    """A rule that was in force at one of the two."""

    name: str
    """The constraint."""
    at_a: bool
    """Whether it was in force at A."""
    at_b: bool
    """Whether it was in force at B."""


class DiffContext(Context):
    """What difference.html may use."""

    session: str
    """Its id."""
    a: int
    """One record."""
    b: int
    """The other."""
    head: int
    """Last record of the session."""
    sections: list[str]
    """Parts of the state that changed."""
    changes: list[Line]
    """What changed, or the first of it."""
    total: int
    """How many changes there are."""
    section: str
    """The part that is shown; empty for all."""
    between: list[tuple[str, int]]
    """Types of the events between, the most frequent first."""
    compactions: list[Compaction]
    """Compactions between."""
    rules: list[Rule]
    """Rules, and whether they are in force at both."""

    @property
    def title(self) -> str:
        """Title of the page."""
        return f"Diff {self.a} to {self.b}"


@page.view("/sessions/{session}/diff", template="difference.html")
def diff(
    ledger: LedgerDep,
    lists: ListsDep,
    session: SessionDep,
    a: Annotated[int | None, Query(ge=0, le=2**53, description="A record; by default the first.")] = None,
    b: Annotated[int | None, Query(ge=0, le=2**53, description="Another; by default the last.")] = None,
    section: Annotated[str, Query(max_length=80, description="Only this part of the state.")] = "",
) -> DiffContext:
    """What changed between two records."""
    with open_timeline(ledger, session) as timeline:
        head = timeline.head
        first, second = min(1, head) if a is None else a, head if b is None else b
        for seq in (first, second):
            if seq > head:
                raise RecordNotFoundError(session, seq, head)
        before, after = timeline.at(first).parts(), timeline.at(second).parts()
        changes = difference(timeline, ledger.store, first, second)
    low, high = sorted((first, second))
    with lists.events() as view:
        between = view.kinds_between(session, low + 1, high)
    wanted = [change for change in changes if not section or _section(change) == section]
    rules = before["constraints"].keys() | after["constraints"].keys()
    return DiffContext(
        session=session,
        a=first,
        b=second,
        head=head,
        sections=sorted({_section(change) for change in changes}),
        changes=[_line(change) for change in wanted[:_CHANGES]],
        total=len(wanted),
        section=section,
        between=between[:20],
        compactions=_compactions(ledger, session, low, high),
        rules=[
            Rule(name=name, at_a=name in before["constraints"], at_b=name in after["constraints"])
            for name in sorted(rules)[:_CHANGES]
        ],
    )


def _compactions(ledger: LedgerDep, session: str, low: int, high: int) -> list[Compaction]:
    found: list[Compaction] = []
    for record in ledger.store.read(session, after=low, upto=high, names=(CompactionDone.TYPE,)):
        done = record.event
        assert isinstance(done, CompactionDone)
        found.append(
            Compaction(
                seq=record.seq,
                evidence=done.evidence,
                messages_before=done.messages_before,
                messages_after=done.messages_after,
                tokens_before=done.tokens_before,
                tokens_after=done.tokens_after,
            )
        )
        if len(found) == _COMPACTIONS:
            break
    return found


def _section(change: Change) -> str:
    return change.path.split("/")[1] if "/" in change.path else change.path


def _line(change: Change) -> Line:
    return Line(
        op=change.op,
        section=_section(change),
        path=change.path,
        old=_told(change.old),
        new=_told(change.new),
        seq=change.seq,
    )


def _told(value: Any) -> str:
    return "" if value is None else told(value, _LONGEST)
