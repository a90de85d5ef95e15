"""How the constraints of a session stood, as a page shows it: a row for each, a column for each cut. No markup."""

import time
from collections.abc import Callable, Sequence

from ledger.audit.decay.report import AIM
from ledger.audit.intervals import Share
from ledger.constraints.visibility import KEPT
from ledger.home import Ledger
from ledger.views.standing import StandingView
from ledger.views.standing_rows import Answer, BreachRow, CutRow, RuleRow, RuleWords, StandRow
from webui.fitting import weight
from webui.page import Context
from webui.visible import cut

LONGEST_RULE, LONGEST_NAME = 140, 48
"""Characters of a rule, and of other words, in a table."""

_LINK, _CELL, _ROW = 64, 40, 360
"""Bytes of a link beside the address of the session, of a cell, and of a row without what it tells."""


class Cell(Context):
    """How a rule stood at one place."""

    how: str
    """In a word."""
    level: str
    """How grave that is: `ok`, `medium`, `high`, or `muted` where nothing can be said."""
    seq: int | None = None
    """The record that shows it; none where there is nothing to look at."""


class StandingLine(Context):
    """A row of the table."""

    rule: RuleWords
    """The rule."""
    start: Cell
    """How it stood in the first request of the conversation after it came into force."""
    cells: list[Cell]
    """How it stood in what each cut left."""
    now: Cell
    """How it stood in the last request, and since when."""


class CutLine(Context):
    """A place where the context was shortened."""

    number: int
    """The how manieth of its conversation."""
    seq: int
    """The compaction; where the source logs none, the request that shows it."""
    is_logged: bool
    """Whether the source logs it."""
    before: int
    """Rules that could be seen before."""
    lost: int
    """Those of them that it took away."""
    shown: int
    """Rules in force that had ever been seen."""
    kept: int
    """Those of them that can be seen in what it left."""
    low: float
    """Lower end of the 95 % interval (Wilson) of the share that is kept."""
    high: float
    """Upper end."""


class BreachLine(Context):
    """A call that broke a rule."""

    rule: int
    """Number of the rule."""
    told: str
    """The beginning of its words."""
    seq: int
    """The call."""
    tool: str
    """Its tool."""
    how: Cell
    """How the rule stood in the request before."""
    why: str
    """`decay`: it had been lost; `wilful`: it was there; `unknown`: nobody can say."""
    lost_by: int | None
    """The cut that had taken it away."""
    steps: int
    """Calls of tools since then."""


class ExposedLine(Context):
    """A rule that was lost while the loop went on, and what keeping it pinned would have cost."""

    rule: int
    """Number of the rule."""
    told: str
    """The beginning of its words."""
    exposed: int
    """Calls of tools while it was lost."""
    broken: int
    """Calls that broke it."""
    calls_without: int
    """Model calls that went without it."""
    tokens: int
    """Tokens that pinning it to them would have cost."""
    share: float
    """Their share of these requests."""
    is_within_aim: bool
    """Whether that is no more than a pin should cost."""


class TooSlowError(Exception):
    """It takes longer than somebody waits for a page."""


def work_out_within(view: StandingView, session: str, seconds: float) -> Answer:
    """Work it out at once. Raises TooSlowError where that takes more seconds of this thread's own work."""
    ends_at = time.thread_time() + seconds

    def watch(seq: int) -> None:
        if time.thread_time() > ends_at:
            raise TooSlowError(seq)

    return view.work_out(session, watch)


def with_standing(ledger: Ledger) -> StandingView:
    """The file, without what was erased since."""
    view = StandingView(ledger.home, ledger.store)
    view.catch_up()
    return view


def cell(how: str, seq: int | None = None) -> Cell:
    """A verdict and how grave it is."""
    level = {"weakened": "medium", "narrowed": "medium", "inverted": "high", "absent": "high"}.get(
        how, "muted"
    )
    return Cell(how=how, level="ok" if how in KEPT else level, seq=seq)


def rule_words(row: RuleRow, text: str) -> RuleWords:
    """A rule, with so much of its words."""
    return RuleWords(**(row.model_dump(include=set(RuleWords.model_fields)) | {"text": text}))


def standing_lines(
    view: StandingView, session: str, rows: Sequence[RuleRow], lane: int, cuts: Sequence[CutRow]
) -> list[StandingLine]:
    """The rows of some rules, with a cell for each of some cuts of a conversation."""
    numbers = [row.number for row in rows]
    first, last = (cuts[0].seq, cuts[-1].seq) if cuts else (0, -1)
    left = {(one.rule, one.seq): one for one in view.left(session, lane, numbers, first, last)}
    ends = view.ends(session, lane, numbers)
    return [
        StandingLine(
            rule=rule_words(row, cut(row.text, LONGEST_RULE) if len(row.text) >= LONGEST_RULE else row.text),
            start=_at(ends[row.number][0]) if row.number in ends else cell("not seen"),
            cells=[_left(row, one, left.get((row.number, one.seq))) for one in cuts],
            now=_now(row, ends[row.number][1] if row.number in ends else None),
        )
        for row in rows
    ]


def _at(stand: StandRow) -> Cell:
    return cell(stand.how, stand.seq)


def _now(row: RuleRow, stand: StandRow | None) -> Cell:
    if row.withdrawn is not None:
        return cell("withdrawn", row.withdrawn)
    return cell("not seen") if stand is None else _at(stand)


def _left(row: RuleRow, of: CutRow, stand: StandRow | None) -> Cell:
    if stand is not None:
        return _at(stand)
    if row.seq > of.seq:
        return cell("not yet")
    return cell("withdrawn" if row.withdrawn is not None and row.withdrawn <= of.seq else "not seen")


def cut_line(row: CutRow) -> CutLine:
    """A cut."""
    low, high = Share(row.kept, row.shown).interval()
    fields = {name: getattr(row, name) for name in CutRow._fields if name in CutLine.model_fields}
    return CutLine(**fields, low=low, high=high)


def breach_lines(view: StandingView, session: str, rows: Sequence[BreachRow]) -> list[BreachLine]:
    """Calls that broke rules."""
    named = view.named(session, sorted({row.rule for row in rows}))
    return [
        BreachLine(
            rule=row.rule,
            told=cut(named[row.rule].text, LONGEST_NAME),
            seq=row.seq,
            tool=cut(row.tool, LONGEST_NAME),
            how=cell(row.how),
            why=row.why,
            lost_by=row.lost_by,
            steps=row.steps,
        )
        for row in rows
    ]


def exposed_line(row: RuleRow) -> ExposedLine:
    """A rule that was lost while the loop went on."""
    share = row.tokens / row.request_tokens if row.request_tokens else 0.0
    return ExposedLine(
        rule=row.number,
        told=cut(row.text, LONGEST_NAME),
        exposed=row.exposed,
        broken=row.broken,
        calls_without=row.calls_without,
        tokens=row.tokens,
        share=share,
        is_within_aim=share <= AIM,
    )


def weigher(base: str) -> Callable[[Context], int]:
    """Tells how many bytes a line takes in a page whose addresses begin with `base`."""
    link = len(base) + _LINK

    def weigh(line: Context) -> int:
        match line:
            case StandingLine():
                ends = [line.start, line.now]
                links = sum(one.seq is not None for one in [*line.cells, *ends, *ends]) + 3
                told = weight(line.rule.text) + weight(cut(line.rule.scope, LONGEST_NAME))
                return _ROW + links * link + (len(line.cells) + 2) * _CELL + told
            case BreachLine():
                return _ROW + 3 * link + weight(line.told) + weight(line.tool)
            case ExposedLine():
                return _ROW + link + weight(line.told)
            case CutLine():
                return _ROW + 3 * link
            case _:
                return _ROW * 2 // 3 + 2 * link

    return weigh
