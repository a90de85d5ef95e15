"""/sessions/S/constraints: what each compaction left of each constraint, what was broken then, what pins would cost."""

import json
import shlex
from typing import Annotated, Any, Literal

from fastapi import Query
from pydantic import BaseModel

from ledger.errors import LedgerError
from ledger.events.compaction import CompactionDone
from ledger.views.standing import StandingView
from ledger.views.standing_rows import Answer
from webui.acts import record_wish
from webui.dependencies import SessionDep, WebDep, WhoDep, segment
from webui.fitting import fitting
from webui.page import Context, Done, Page
from webui.standing import (
    BreachLine,
    CutLine,
    ExposedLine,
    StandingLine,
    TooSlowError,
    breach_lines,
    cut_line,
    exposed_line,
    standing_lines,
    weigher,
    with_standing,
    work_out_within,
)
from webui.visible import cut

MOST_RECORDS = 5000
"""Records of a session whose constraints are looked at while somebody waits for the page."""

SECONDS = 2.0
"""How much work that may be."""

_RULES, _CUTS, _CUTS_BESIDE_LONG, _STEPS, _BREACHES, _EXPOSED, _LANES = 16, 6, 2, 12, 12, 10, 20
_LONG_ADDRESS = 120
_MOST_BYTES = 28_000
_LONGEST_LANE = 24

page = Page("Constraints", link="/sessions/{session}/constraints", order=76)


class Lane(Context):
    """A conversation."""

    number: int
    """Its place, from 0."""
    name: str
    """What it is called."""
    cuts: int
    """How often it was shortened."""


class Figures(Context):
    """Figures over the whole session."""

    chances: int
    """Calls that could have broken a rule."""
    broken: int
    """Those that did."""
    decay: int
    """Those where the rule had been lost before."""
    wilful: int
    """Those where it stood in the request."""
    unknown: int
    """Those of which nobody can say."""
    kept: dict[str, float | None]
    """Share that broke a rule of the calls while it could be seen: hits, of, share, low, high."""
    lost: dict[str, float | None]
    """The same while it was lost."""
    half_life: int | None
    """The first compaction that fewer than half of the rules outlive; none in the record."""
    exposed_rules: int
    """Rules that were lost while the loop went on."""
    exposed_calls: int
    """Calls of tools while one was lost, each counted for each rule."""
    first_breach: int | None
    """Median of the calls from a loss to the first breach."""
    pinned: int
    """How often a rule was put back into a request."""
    pinned_tokens: int
    """Tokens of that."""


class ConstraintsContext(Context):
    """What constraints.html may use."""

    session: str
    """Its id."""
    records: int
    """Records that were looked at; 0 while nobody has."""
    head: int
    """Records of the session."""
    has_compaction: bool
    """Whether a compaction is on record, where nobody has looked closer yet."""
    rules: int
    """Rules of the session."""
    lost: int
    """Those that could be seen and then no longer."""
    cuts: int
    """Places where its context was shortened."""
    lanes: list[Lane]
    """Its conversations, those that were shortened most often first."""
    lane: int
    """The conversation that is shown."""
    lane_cuts: int
    """How often that was shortened."""
    only: str
    """`lost`: only rules that were lost."""
    columns: list[CutLine]
    """The cuts that are columns."""
    lines: list[StandingLine]
    """The rules that are rows."""
    earlier_rules: int | None
    """Number of the rule that the rows before begin with."""
    later_rules: int | None
    """Number of the rule that the rows after begin with."""
    earlier_cuts: int | None
    """A record by which the columns before are found."""
    later_cuts: int | None
    """A record by which the columns after are found."""
    at: int
    """The record by which these columns are found; 0: the first ones."""
    first: int
    """Number of the first rule."""
    steps: list[CutLine]
    """What each cut kept."""
    later_steps: int | None
    """Number of the first cut that is not listed there."""
    figures: Figures | None
    """Figures over the whole session."""
    breaches: list[BreachLine]
    """Calls that broke rules."""
    first_breach: int
    """How many come before them."""
    exposed: list[ExposedLine]
    """Rules that were lost while the loop went on, or the most exposed of them."""
    job: str
    """The work that looks now; empty for none."""
    failed: str
    """Why nobody could look; empty where nothing failed."""
    command: str
    """What tells the same in a shell."""


class LookForm(BaseModel):
    """Nothing is asked for."""


class Looked(Context):
    """What is known, and how it stands with what is not."""

    answer: Answer | None
    """What was worked out."""
    head: int
    """Records of the session."""
    job: str = ""
    """The work that looks now."""
    failed: str = ""
    """Why the last one failed."""


@page.view("/sessions/{session}/constraints", template="constraints.html")
def constraints(
    web: WebDep,
    session: SessionDep,
    at: Annotated[int, Query(ge=0, le=2**53, description="A record: columns begin at its compaction.")] = 0,
    lane: Annotated[
        int | None, Query(ge=0, le=2**31, description="A conversation; that of the compaction by default.")
    ] = None,
    first: Annotated[int, Query(alias="from", ge=1, le=2**31, description="Number of the first rule.")] = 1,
    only: Annotated[Literal["", "lost"], Query(description="lost: only rules that were lost.")] = "",
    step: Annotated[int, Query(ge=1, le=2**31, description="First compaction of the list of all.")] = 1,
    breach: Annotated[int, Query(ge=0, le=2**31, description="Violations that come before.")] = 0,
) -> ConstraintsContext:
    """What each compaction left of each constraint, retention, violations, exposure, and what pinning would cost."""
    with with_standing(web.ledger) as view:
        looked = look(web, view, session)
        if looked.answer is None:
            return _nothing(web, session, looked)
        lanes = view.lanes(session, _LANES)
        found = view.cut_at(session, at, lane) if at or lane is None else None
        shown = lane if lane is not None else found[0] if found else 0
        base = f"/sessions/{segment(session)}"
        many = _CUTS if len(base) <= _LONG_ADDRESS else _CUTS_BESIDE_LONG
        begins = found[1] if at and found else 1
        columns = view.cuts(session, shown, begins, many + 1)
        is_lost = only == "lost"
        rows = view.rules(session, first, _RULES + 1, lost=is_lost)
        lines = standing_lines(view, session, rows[:_RULES], shown, columns[:many])
        steps = [cut_line(one) for one in view.cuts(session, shown, step, _STEPS + 1)]
        breaches = breach_lines(view, session, view.breaches(session, breach, _BREACHES))
        exposed = [exposed_line(one) for one in view.exposed(session, _EXPOSED)]
        lists: list[list[Any]] = [lines, steps[:_STEPS], breaches, exposed]
        counts = fitting(lists, weigher(base), _MOST_BYTES)
        lines = lines[: counts[0]]
        earlier = view.rules_before(session, first, counts[0] or 1, lost=is_lost)
        before = view.cuts(session, shown, max(1, begins - many), 1) if begins > 1 else []
        all_cuts = next((one.cuts for one in lanes if one.number == shown), 0)
    return ConstraintsContext(
        session=session,
        records=looked.answer.seq,
        head=looked.head,
        has_compaction=looked.answer.cuts > 0,
        rules=looked.answer.rules,
        lost=looked.answer.lost,
        cuts=looked.answer.cuts,
        lanes=[
            Lane(number=one.number, name=cut(one.name, _LONGEST_LANE) or "the only one", cuts=one.cuts)
            for one in lanes
        ],
        lane=shown,
        lane_cuts=all_cuts,
        only=only,
        columns=[cut_line(one) for one in columns[:many]],
        lines=lines,
        earlier_rules=earlier if earlier < first else None,
        later_rules=rows[len(lines)].number if len(rows) > len(lines) else None,
        earlier_cuts=before[0].seq if before else None,
        later_cuts=columns[many].seq if len(columns) > many else None,
        at=at,
        first=first,
        steps=steps[: counts[1]],
        later_steps=steps[counts[1]].number if len(steps) > counts[1] else None,
        figures=_figures(looked.answer),
        breaches=breaches[: counts[2]],
        first_breach=breach,
        exposed=exposed[: counts[3]],
        job=looked.job,
        failed=looked.failed,
        command=_command(session),
    )


@page.action("/sessions/{session}/constraints")
def look_closer(web: WebDep, who: WhoDep, session: SessionDep, form: LookForm) -> Done:
    """Look at the whole session in a process of its own."""
    job = web.jobs.start("constraints", {"session": session})
    place = record_wish(web.ledger, who, "What compactions left of the constraints was asked.", session)
    return Done(to=f"/jobs/{job.id}", recorded=[place])


def look(web: WebDep, view: StandingView, session: str) -> Looked:
    """What is known of the constraints of a session; of a short one it is worked out at once."""
    head = web.ledger.store.head(session).seq
    answer = view.answer(session)
    job = web.jobs.last("constraints", lambda one: one.asked["session"] == session)
    if job is not None and job.state in ("waits", "runs"):
        return Looked(answer=answer, head=head, job=job.id)
    failed = str(job.result.get("failed", ""))[:600] if job is not None and answer is None else ""
    if head > MOST_RECORDS or (answer is not None and answer.seq >= head):
        return Looked(answer=answer, head=head, failed=failed)

    def at_once() -> bool:
        try:
            work_out_within(view, session, SECONDS)
        except TooSlowError:
            return False
        return True

    try:
        is_done = web.answers.of(("constraints", session, head, SECONDS), at_once)
        if is_done and view.answer(session) is None:
            at_once()  # what was worked out has been forgotten since, for something was erased
    except LedgerError as error:
        failed = str(error)[:600]
    return Looked(answer=view.answer(session), head=head, failed=failed)


def _nothing(web: WebDep, session: str, looked: Looked) -> ConstraintsContext:
    """Nobody has looked yet."""
    with web.lists.events() as events:
        has_compaction = any(kind.type == CompactionDone.TYPE for kind in events.kinds(session))
    return ConstraintsContext(
        session=session,
        records=0,
        head=looked.head,
        has_compaction=has_compaction,
        rules=0,
        lost=0,
        cuts=0,
        lanes=[],
        lane=0,
        lane_cuts=0,
        only="",
        columns=[],
        lines=[],
        earlier_rules=None,
        later_rules=None,
        earlier_cuts=None,
        later_cuts=None,
        at=0,
        first=1,
        steps=[],
        later_steps=None,
        figures=None,
        breaches=[],
        first_breach=0,
        exposed=[],
        job=looked.job,
        failed=looked.failed,
        command=_command(session),
    )


def _figures(answer: Answer) -> Figures:
    told = json.loads(answer.figures)
    violations, exposure = told["violations"], told["exposure"]
    return Figures(
        chances=violations["rate"]["of"],
        broken=violations["rate"]["hits"],
        decay=violations["decay_attributed"],
        wilful=violations["wilful"],
        unknown=violations["unknown"],
        kept=violations["rate_kept"],
        lost=violations["rate_lost"],
        half_life=told["half_life"],
        exposed_rules=exposure["rules"],
        exposed_calls=exposure["tool_calls"],
        first_breach=exposure["steps_to_first_violation"]["median"],
        pinned=told["pinning"]["pinned"],
        pinned_tokens=told["pinning"]["tokens"],
    )


def _command(session: str) -> str:
    return f"loopledger decay -- {shlex.quote(session)}"
