"""/sessions/S/scorecard: six questions to a loop, each answered from records or not at all, and what tools cost."""

import shlex
from typing import Any

from pydantic import BaseModel

from ledger.errors import LedgerError
from replay.scorecard.answer import NO_EVIDENCE
from webui.acts import record_wish
from webui.charting import Series
from webui.dependencies import SessionDep, WebDep, WhoDep
from webui.evidence import place_of
from webui.page import Context, Done, Page
from webui.plot import Point, Tick, field_of
from webui.scoring import score

MOST_RECORDS = 2000
"""Records of a session whose card is made while somebody waits for the page."""

SECONDS, SECONDS_OF_WORK = 3.0, 300.0
"""How long its proofs may take then, and in a process of their own."""

_HEIGHT = 168
_EVIDENCE = 12
_ROWS = 40
_LONGEST = 600

page = Page("Scorecard", link="/sessions/{session}/scorecard", order=78)


class Shown(Context):
    """A record that shows something."""

    place: str
    """It, as `SESSION#SEQ`."""
    seq: int | None
    """Its seq; none where the session as a whole is meant."""
    what: str
    """What it shows."""


class QuestionLine(Context):
    """A question and its answer."""

    question: str
    """Key of the question."""
    asks: str
    """The question."""
    answer: str
    """In a word or two; `no evidence` where nothing on record tells."""
    is_answered: bool
    """Whether the record tells."""
    told: str
    """In a sentence."""
    evidence: list[Shown]
    """Records that show it; the first of them."""
    total: int
    """How many the card names."""


class TurnLine(Context):
    """A request to a model, and what of it is tools, in bytes."""

    seq: int
    """Its record."""
    bytes: int
    """System prompt, tool schemas and messages."""
    schemas: int | None
    """Tool schemas; none where the record does not hold them."""
    results: int
    """Results of tools in its messages."""
    calls: int
    """Calls of tools in its messages."""
    tokens: int | None
    """Tokens of the whole, as the provider counted them."""

    @property
    def tools(self) -> int:
        """All that rides along for tools."""
        return (self.schemas or 0) + self.results + self.calls


class Bloat(Context):
    """What rides along for tools, turn by turn, as a chart."""

    height: int
    """Height of its view box."""
    left: float
    """Where its field begins."""
    ticks_x: list[Tick]
    """Marks of the axis of records."""
    ticks_y: list[Tick]
    """Marks of the axis of bytes."""
    series: list[Series]
    """What is drawn: bars for tools, a line for the whole request, a dashed one for schemas."""


class ScorecardContext(Context):
    """What scorecard.html may use."""

    session: str
    """Its id."""
    harness: str | None
    """Program that ran it."""
    questions: list[QuestionLine]
    """The six; none while the card is not made."""
    turns: list[TurnLine]
    """The requests that were measured: of a long session some, evenly spread."""
    requests: int
    """How many there are."""
    every: int
    """The table shows one of so many of the measured."""
    chart: Bloat | None
    """What rides along; none where nothing could be measured."""
    records: int
    """Records that the card is about."""
    head: int
    """Records of the session."""
    stopped_at: int | None
    """Record at which the proofs were stopped because their time was over."""
    seconds: int
    """How long the proofs may take in a process of their own."""
    job: str
    """The work that makes the card now; empty for none."""
    failed: str
    """Why there is no card; empty where nothing failed."""
    command: str
    """What makes it in a shell, without a limit."""


class ScoreForm(BaseModel):
    """Nothing is asked for."""


@page.view("/sessions/{session}/scorecard", template="scorecard.html")
def scorecard(web: WebDep, session: SessionDep) -> ScorecardContext:
    """The six questions: at once for a short session, else as work that is started from the page made them."""
    store = web.ledger.store
    head = store.head(session).seq
    card, job, failed = _made(web, session)
    if head <= MOST_RECORDS and not job and (card is None or card["records"] < head):
        try:
            card, failed = score(store, session, SECONDS), ""
        except LedgerError as error:
            card, failed = None, str(error)
    answers = [] if card is None else card["answers"]
    facts: dict[str, Any] = next((one["facts"] for one in answers if one["question"] == "capability"), {})
    turns = [_turn(one) for one in facts.get("turns", ())]
    return ScorecardContext(
        session=session,
        harness=None if card is None else card["harness"],
        questions=[_line(one, session) for one in answers],
        turns=turns,
        requests=facts.get("requests", 0),
        every=max(1, -(-len(turns) // _ROWS)),
        chart=_chart(turns, 0 if card is None else card["records"]),
        records=0 if card is None else card["records"],
        head=head,
        stopped_at=None if card is None else card["stopped_at"],
        seconds=int(SECONDS_OF_WORK),
        job=job,
        failed=failed[:_LONGEST],
        command=f"loopledger scorecard -- {shlex.quote(session)}",
    )


@page.action("/sessions/{session}/scorecard")
def make(web: WebDep, who: WhoDep, session: SessionDep, form: ScoreForm) -> Done:
    """Make the card in a process of its own, which has more time for the proofs."""
    job = web.jobs.start("scorecard", {"session": session, "seconds": SECONDS_OF_WORK})
    place = record_wish(web.ledger, who, "The six questions of the scorecard were asked.", session)
    return Done(to=f"/jobs/{job.id}", recorded=[place])


def _made(web: WebDep, session: str) -> tuple[dict[str, Any] | None, str, str]:
    """The last card that work of this server made, the work that runs, and why the last one failed."""
    found = web.jobs.last("scorecard", lambda one: one.asked["session"] == session)
    if found is None:
        return None, "", ""
    if found.state == "done":
        return found.result, "", ""
    return None, found.id if found.state != "failed" else "", str(found.result.get("failed", ""))


def _line(answer: dict[str, Any], session: str) -> QuestionLine:
    evidence = answer["evidence"]
    return QuestionLine(
        question=answer["question"],
        asks=answer["asks"],
        answer=answer["answer"],
        is_answered=answer["answer"] != NO_EVIDENCE,
        told=answer["told"][:_LONGEST],
        evidence=[_shown(one, session) for one in evidence[:_EVIDENCE]],
        total=len(evidence),
    )


def _shown(evidence: dict[str, Any], session: str) -> Shown:
    found = place_of(evidence["place"])
    seq = found[1] if found is not None and found[0] == session else None
    return Shown(place=evidence["place"], seq=seq, what=evidence["what"][:200])


def _turn(told: dict[str, Any]) -> TurnLine:
    return TurnLine(**{name: told[name] for name in TurnLine.model_fields})


def _chart(turns: list[TurnLine], last: int) -> Bloat | None:
    most = max((max(turn.bytes, turn.tools) for turn in turns), default=0)
    if most == 0:
        return None
    field = field_of((1, last + 1), (0, most), _HEIGHT)
    ends = [*(turn.seq for turn in turns[1:]), last + 1]
    bars = "".join(
        field.bar(turn.seq, end, 0, turn.tools) for turn, end in zip(turns, ends, strict=True) if turn.tools
    )
    end: float = last + 1
    whole: list[Point] = [(turn.seq, turn.bytes) for turn in turns]
    schemas: list[Point] = [(turn.seq, turn.schemas) for turn in turns if turn.schemas is not None]
    drawn = [
        ("bars", bars, "for tools"),
        ("line", field.step([*whole, (end, whole[-1][1])]), "whole request"),
        ("dashed", field.step([*schemas, (end, schemas[-1][1])]) if schemas else "", "schemas"),
    ]
    return Bloat(
        height=_HEIGHT,
        left=field.across.start,
        ticks_x=field.across.ticks(5),
        ticks_y=field.up.ticks(4),
        series=[Series(d=path, look=look, name=name) for look, path, name in drawn if path],
    )
