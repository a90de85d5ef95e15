"""/sessions/S/diff: what changed between two records of a session, and which record changed it."""

from typing import Annotated, Any, NamedTuple

from fastapi import Query

from ledger.errors import RecordNotFoundError
from ledger.events.compaction import CompactionDone
from ledger.home import Ledger
from replay.cli import open_timeline
from replay.difference import difference
from replay.pointer import Change
from webui.dependencies import ListsDep, SessionDep, WebDep
from webui.fitting import fit, fitting, weight
from webui.page import Context, Page
from webui.pages.state import told
from webui.visible import cut

_CHANGES = 100
_LONGEST = 400
_COMPACTIONS = 20
_RULES = 40
_LATELY = 1000  # records between the two where nobody says how many
_MOST = 22_000  # bytes of a page
_ROW = 170  # bytes of a row of a table, without what it tells

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


class _Found(NamedTuple):
    """What changed between two records: it never changes again."""

    totals: dict[str, int]
    """How many changes each part has; all have the empty name."""
    lines: dict[str, list[Line]]
    """The first of them."""
    compactions: list[Compaction]
    """Compactions between."""
    rules: list[Rule]
    """Rules, and whether they are in force at both."""


@page.view("/sessions/{session}/diff", template="difference.html")
def diff(
    web: WebDep,
    lists: ListsDep,
    session: SessionDep,
    a: Annotated[
        int | None,
        Query(
            ge=0, le=2**53, description="A record; by default the first, or one that is not too far before B."
        ),
    ] = None,
    b: Annotated[int | None, Query(ge=0, le=2**53, description="Another; by default the last.")] = None,
    section: Annotated[str, Query(max_length=80, description="Only this part of the state.")] = "",
) -> DiffContext:
    """What changed between two records."""
    head = web.ledger.store.head(session).seq
    second = head if b is None else b
    first = min(max(1, second - _LATELY), head) if a is None else a
    for seq in (first, second):
        if seq > head:
            raise RecordNotFoundError(session, seq, head)
    found = web.answers.of(
        ("diff", session, first, second), lambda: _found(web.ledger, session, first, second)
    )
    low, high = sorted((first, second))
    with lists.events() as view:
        between = view.kinds_between(session, low + 1, high)
    lines = found.lines.get(section, [])
    (shown,) = fitting([lines], _weight, _MOST)
    return DiffContext(
        session=session,
        a=first,
        b=second,
        head=head,
        sections=sorted(name for name in found.totals if name),
        changes=lines[:shown],
        total=found.totals.get(section, 0),
        section=section,
        between=between[:20],
        compactions=found.compactions,
        rules=found.rules,
    )


def _found(ledger: Ledger, session: str, first: int, second: int) -> _Found:
    with open_timeline(ledger, session) as timeline:
        before, after = (timeline.at(seq).parts()["constraints"] for seq in (first, second))
        changes = difference(timeline, ledger.store, first, second)
    totals: dict[str, int] = {}
    lines: dict[str, list[Line]] = {}
    for change in changes:
        for part in ("", _section(change)):
            totals[part] = totals.get(part, 0) + 1
            if totals[part] <= _CHANGES:
                lines.setdefault(part, []).append(_line(change))
    return _Found(
        totals,
        lines,
        _compactions(ledger, session, *sorted((first, second))),
        [
            Rule(name=name, at_a=name in before, at_b=name in after)
            for name in sorted(before.keys() | after.keys())[:_RULES]
        ],
    )


def _compactions(ledger: Ledger, session: str, low: int, high: int) -> list[Compaction]:
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
    return "" if value is None else fit(told(value, _LONGEST), 2 * _LONGEST)


def _weight(line: Line) -> int:
    return _ROW + weight(cut(line.path, 120)) + weight(line.old) + weight(line.new)
