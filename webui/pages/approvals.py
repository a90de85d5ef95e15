"""/approvals: what loops wait for, and a person's answer to one of them at a time."""

import contextlib
from fnmatch import fnmatchcase
from typing import Annotated, Literal, get_args
from urllib.parse import urlencode

from fastapi import HTTPException, Path, Query
from pydantic import BaseModel, Field

from ledger.capture.gates.deciding import Verdict, decide
from ledger.capture.gates.questions import Question
from ledger.cli.approving import lasts_of, rule_of, until
from ledger.cli.terminal import json_text
from ledger.effects.loop_policy import ApprovalRule
from ledger.errors import InputError, LedgerError
from ledger.events.canonical import decode_json
from ledger.events.tool_call import EffectClass
from ledger.home import Ledger
from ledger.views.approvals import ApprovalsView, State
from ledger.views.events import EventRow, Wanted
from webui.contents import pretty
from webui.dependencies import LedgerDep, ListsDep, WhoDep, from_segment, segment
from webui.page import Context, Done, Page
from webui.questions import Answer, Asked, second_answers, told

_ROWS = 50
_BEFORE = 5
_LONGEST_ID = 300
_LONGEST_RULE = 4_000
_MOST_SESSIONS = 5

ApprovalPath = Annotated[
    str, Path(description="Id of a question, or the unambiguous start of one.", max_length=1000)
]
OfSession = Annotated[
    str, Query(max_length=1000, description="Session that asks, where several ask under the same id.")
]
RuleText = Annotated[str, Field(max_length=_LONGEST_RULE)]

page = Page("Approvals", link="/approvals", order=30)


class Line(Context):
    """A question in the queue."""

    id: str
    """Its id."""
    link: str
    """Where it is opened."""
    session: str
    """Session that asks."""
    agent: str | None
    """Agent that asks."""
    status: str
    """How it stands."""
    is_open: bool
    """Whether a loop waits for the answer; a question of an import may only be without one."""
    tool: str | None
    """Tool that would run."""
    about: str
    """Its arguments, the beginning."""
    effect_class: str | None
    """What kind of effect it would have."""
    target: str | None
    """What it would be done on."""
    asked_at: str
    """When it was asked."""
    expires_at: str | None
    """When it counts as denied."""
    by: str | None
    """Who decided."""


class ApprovalsContext(Context):
    """What approvals.html may use."""

    state: State
    """Which questions are listed."""
    session: str
    """Session whose questions are listed; empty for all."""
    lines: list[Line]
    """The questions."""
    waiting: int
    """How many loops wait for an answer."""
    next_after: int | None
    """Position of the last one listed, when there are more."""


class QuestionContext(Context):
    """What approval.html may use."""

    asked: Asked
    """The question."""
    before: list[EventRow]
    """What happened just before it."""
    second: list[Answer]
    """Answers that came too late and said something else."""
    came_second: bool
    """Whether the reader's own answer came after another one."""
    link: str
    """Address of the question, without a query."""
    query: dict[str, str]
    """What the address needs to name it."""
    may_decide: bool
    """Whether the question names no deciders, or the reader is one of them."""

    @property
    def title(self) -> str:
        """Title of the page."""
        return f"May {self.asked.tool or 'it'} run?"


class RuleLine(Context):
    """A part of a rule, before and after."""

    name: str
    """Its name."""
    before: str
    """In the rule that asked."""
    after: str
    """In the rule of the answer."""


class RuleContext(Context):
    """What approval_rule.html may use."""

    asked: Asked
    """The question."""
    rule: str
    """The rule as it was written."""
    full: str
    """The whole rule, as it would be kept."""
    digest: str
    """Its digest."""
    lines: list[RuleLine]
    """How it differs from the rule that asked."""
    problem: str | None
    """Why it cannot be used."""
    link: str
    """Address of the question, without a query."""
    query: dict[str, str]
    """What the address needs to name it."""

    @property
    def title(self) -> str:
        """Title of the page."""
        return "Approve by a rule"


class Decision(Done):
    """What came of an answer."""

    counts: bool
    """Whether it is the one that counts; another one may have come before."""
    outcome: str
    """What the answer that counts says."""
    by: str
    """Who gave that one."""
    branch: str | None = None
    """Session that keeps an answer which came second and says something else."""


class DecisionForm(BaseModel):
    """An answer."""

    outcome: Literal["approved", "denied"]
    """Yes or no."""
    reason: Annotated[str, Field(min_length=1, max_length=2000)]
    """Why."""
    scope: Literal["once", "session", "rule"] = "once"
    """How far a yes reaches."""
    expires: Annotated[str, Field(max_length=20)] = ""
    """How long it counts, such as 15m; empty: as the rule that asked says."""
    rule: RuleText = ""
    """With the scope `rule`: the full rule, as JSON."""
    digest: Annotated[str, Field(max_length=64)] = ""
    """With the scope `rule`: the digest that was shown with it."""


@page.view("/approvals", template="approvals.html", part="_approvals_rows.html")
def approvals(
    ledger: LedgerDep,
    state: Annotated[State, Query(description="Which questions.")] = "open",
    session: Annotated[str, Query(max_length=1000, description="Only those of a session.")] = "",
    after: Annotated[int, Query(ge=0, le=2**53, description="Go on after this position.")] = 0,
) -> ApprovalsContext:
    """The queue: what loops wait for, or what was answered."""
    with ApprovalsView(ledger.home, ledger.store) as view:
        view.catch_up()
        rows = view.page(state, ledger.store.resolve(session) if session else None, after or None, _ROWS + 1)
        questions = list(view.questions(rows[:_ROWS]))
        waiting = view.open_count()
    more = len(rows) > _ROWS
    return ApprovalsContext(
        state=state,
        session=session,
        lines=[_line(ledger, question) for question in questions],
        waiting=waiting,
        next_after=rows[_ROWS - 1].position if more else None,
    )


@page.view("/approvals/{approval}", template="approval.html")
def approval(
    ledger: LedgerDep,
    lists: ListsDep,
    who: WhoDep,
    approval: ApprovalPath,
    session: OfSession = "",
    second: Annotated[Literal["", "1"], Query(description="1: say that an answer came second.")] = "",
) -> QuestionContext:
    """One question: what would run, on what, under which rule; and the answer."""
    question = _found(ledger, approval, session)
    with lists.events() as events:
        first = max(1, question.asked_seq - _BEFORE)
        before = events.window(question.session, Wanted(), first=first, count=_BEFORE)
    asked = told(ledger, question)
    return QuestionContext(
        asked=asked,
        before=[row for row in before if row.seq < question.asked_seq],
        second=second_answers(ledger, question),
        came_second=second == "1" and question.decided is not None,
        link=_link(question),
        query=_query(question),
        may_decide=not asked.deciders or any(fnmatchcase(who.id or "", name) for name in asked.deciders),
    )


@page.view("/approvals/{approval}/rule", template="approval_rule.html")
def approval_rule(
    ledger: LedgerDep,
    approval: ApprovalPath,
    session: OfSession = "",
    rule: Annotated[
        str, Query(max_length=_LONGEST_RULE, description="The rule as JSON; by default a narrow one.")
    ] = "",
) -> RuleContext:
    """The full rule that an answer would give, with its digest and how it differs from the rule that asked."""
    question = _found(ledger, approval, session)
    asked = told(ledger, question)
    problem, full, digest = None, "", ""
    given = _proposed(asked)
    try:
        if rule:
            given = rule_of(rule, "the rule")
        full, digest = _kept(ledger, given)
        problem = _uncovered(ledger, question, given)
    except InputError as error:
        problem = str(error)
    return RuleContext(
        asked=asked,
        rule=rule or full,
        full=full,
        digest=digest,
        lines=_compared(ledger, question, given) if full else [],
        problem=problem,
        link=_link(question),
        query=_query(question),
    )


@page.action("/approvals/{approval}/decision")
def decision(
    ledger: LedgerDep, who: WhoDep, approval: ApprovalPath, form: DecisionForm, session: OfSession = ""
) -> Decision:
    """Answer a question: yes or no, with a reason. The first answer counts; who comes second is told."""
    question = _found(ledger, approval, session)
    if not question.is_queued:
        raise InputError("Nobody waits for an answer here: the loop asked elsewhere and only told.")
    scope = form.scope if form.outcome == "approved" else "once"
    rule = None
    if scope == "rule":
        rule = rule_of(form.rule, "the rule")
        if form.digest != _kept(ledger, rule)[1]:
            raise HTTPException(409, "The rule is not the one whose digest was shown: look at it again.")
    span = form.expires or lasts_of(ledger, question, scope)
    expires_at = (
        None if form.outcome == "denied" else until(ledger.recorder.clock(), span, "how long it counts")
    )
    verdict = Verdict(form.outcome, who.id or "unknown", scope, rule, form.reason, expires_at)
    came = decide(ledger.recorder, question.session, question.asked.approval_id, verdict)
    decided = came.question.decided
    assert decided is not None
    return Decision(
        to=f"{_link(question)}{_asking(question, second=not came.counts)}",
        recorded=[f"{question.session}#{came.question.decided_seq}"] if came.counts else [],
        counts=came.counts,
        outcome=decided.outcome,
        by=decided.decider or decided.decided_by,
        branch=came.branch,
    )


# -- finding ---------------------------------------------------------------------------------------------------------


def _found(ledger: Ledger, text: str, session: str) -> Question:
    """The question of an address."""
    name = from_segment(text)
    with ApprovalsView(ledger.home, ledger.store) as view:
        view.catch_up()
        rows = view.of_id(name, _MOST_SESSIONS + 1) or view.named(name, _MOST_SESSIONS + 1)
        if session:
            rows = [row for row in rows if row.session == session]
        found = list(view.questions(rows))
    if len(found) == 1:
        return found[0]
    if not found:
        raise HTTPException(
            404, f"No question has an id that starts with {name[:80]!r}; /approvals lists them."
        )
    some = ", ".join(f"{one.asked.approval_id[:40]} in session {one.session[:40]}" for one in found)
    raise HTTPException(
        404, f"{name[:80]!r} may be several questions: {some}; give the whole id, and session="
    )


def _link(question: Question) -> str:
    return f"/approvals/{segment(question.asked.approval_id)}"


def _query(question: Question) -> dict[str, str]:
    """What tells a question from others: ids of our own loops are unique, those of sources need not be."""
    return {} if question.is_queued else {"session": question.session}


def _asking(question: Question, *, second: bool) -> str:
    values = _query(question) | ({"second": "1"} if second else {})
    return f"?{urlencode(values, errors='replace')}" if values else ""


def _line(ledger: Ledger, question: Question) -> Line:
    asked = told(ledger, question)
    is_long = len(asked.id) > _LONGEST_ID
    event = f"/sessions/{segment(question.session)}/events/{asked.seq}"
    query = f"?{urlencode(_query(question), errors='replace')}" if _query(question) else ""
    return Line(
        id=asked.id[:_LONGEST_ID],
        link=event if is_long else f"{_link(question)}{query}",
        session=asked.session,
        agent=asked.agent,
        status=asked.status,
        is_open=asked.is_open,
        tool=asked.tool,
        about=" ".join(asked.arguments[:400].split())[:200],
        effect_class=asked.effect_class,
        target=asked.target,
        asked_at=asked.asked_at,
        expires_at=asked.expires_at,
        by=None if asked.decided is None else asked.decided.by,
    )


# -- rules -----------------------------------------------------------------------------------------------------------


def _proposed(asked: Asked) -> ApprovalRule:
    """The narrowest rule that says more than one call: this tool on this target, for effects of this class."""
    classes = [asked.effect_class] if asked.effect_class in get_args(EffectClass) else []
    fields = {"tool": asked.tool or "*", "class": classes, "target": asked.target, "ask": False}
    return ApprovalRule.model_validate(fields)


def _kept(ledger: Ledger, rule: ApprovalRule) -> tuple[str, str]:
    """The rule as it would be kept, and its digest."""
    reference, body = ledger.recorder.keeper().json_with_bytes(
        rule.model_dump(mode="json", by_alias=True), "rule"
    )
    return pretty(decode_json(body)), reference.digest


def _uncovered(ledger: Ledger, question: Question, rule: ApprovalRule) -> str | None:
    """Why a rule does not fit the very call that was asked about."""
    if question.asked.context is None:
        return None
    shown = decode_json(ledger.store.content(question.asked.context.digest))
    if not isinstance(shown, dict) or not isinstance(shown.get("arguments"), dict):
        return None
    fits = rule.fits(str(shown.get("tool", "")), shown["arguments"], shown.get("class"), shown.get("target"))
    return None if fits else "The rule does not cover the very call that was asked about."


def _compared(ledger: Ledger, question: Question, rule: ApprovalRule) -> list[RuleLine]:
    before: dict[str, object] = {}
    if question.asked.rule is not None:
        with contextlib.suppress(LedgerError, ValueError):
            kept = decode_json(ledger.store.content(question.asked.rule.digest))
            before = kept if isinstance(kept, dict) else {}
    after = rule.model_dump(mode="json", by_alias=True)
    return [
        RuleLine(
            name=name,
            before=json_text(before[name])[:200] if name in before else "",
            after=json_text(value)[:200],
        )
        for name, value in after.items()
    ]
