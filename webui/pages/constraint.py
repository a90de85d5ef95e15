"""/sessions/S/constraints/N: one constraint, how it stood over the session, and the words that show it at one place."""

import re
from typing import Annotated, Any, Literal

from fastapi import HTTPException, Path, Query

from ledger.errors import LedgerError
from ledger.store import EventStore
from ledger.views.standing import StandingView
from ledger.views.standing_rows import RuleWords, StandRow
from replay.conversation import decode_content
from webui.contents import plain_text, pretty
from webui.dependencies import SessionDep, WebDep, segment
from webui.fitting import fit, fitting
from webui.page import Context, Page
from webui.pages.constraints import look
from webui.standing import BreachLine, Cell, breach_lines, cell, rule_words, weigher, with_standing

_HISTORY, _BREACHES = 40, 12
_LONGEST_TEXT, _LONGEST_WORDS, _MOST_BYTES = 8_000, 4_000, 11_000
_BEFORE, _FEWEST, _MOST_WORDS = 400, 3, 8
_PARSED = 1 << 20

page = Page("Constraint")


class Stood(Context):
    """How it stood from a place on."""

    seq: int
    """The record."""
    is_cut: bool
    """Whether it is what a compaction left, and not a request."""
    how: Cell
    """How."""
    lost_by: int | None
    """The compaction that had taken it away."""


class Evidence(Context):
    """What was to be read at one place."""

    seq: int
    """The record."""
    is_cut: bool
    """Whether it is what a compaction left, and not a request."""
    how: Cell
    """How the rule stood there."""
    lost_by: int | None
    """The compaction that had taken it away."""
    source: Literal["message", "system prompt", "summary", "nothing"]
    """What is shown: what speaks of the rule, or the summary where nothing does."""
    said: str
    """The sentence that comes nearest to the rule; empty for none."""
    text: str
    """The words around it."""
    is_begun: bool
    """Whether words come before them."""
    is_cut_off: bool
    """Whether words come after them."""
    missing: str
    """Why there are none; empty where there are."""


class ConstraintContext(Context):
    """What constraint.html may use."""

    session: str
    """Its id."""
    number: int
    """Its place among the rules of the session, from 1."""
    rule: RuleWords | None
    """The constraint; none while nobody has looked."""
    evidence: Evidence | None
    """What was to be read at the place that was asked for."""
    history: list[Stood]
    """How it stood, whenever that changed, and in what each compaction left; the first of it."""
    is_long: bool
    """Whether it goes on."""
    breaches: list[BreachLine]
    """Calls that broke it; the first of them."""
    broken: int
    """How many there are."""
    job: str
    """The work that looks now; empty for none."""

    @property
    def title(self) -> str:
        """Title of the page."""
        return f"Constraint {self.number}"


@page.view("/sessions/{session}/constraints/{constraint}", template="constraint.html")
def one_constraint(
    web: WebDep,
    session: SessionDep,
    constraint: Annotated[
        int, Path(ge=1, le=2**31, description="Its place among those of the session, from 1.")
    ],
    at: Annotated[int, Query(ge=0, le=2**53, description="A request or a compaction; 0: none.")] = 0,
) -> ConstraintContext:
    """One constraint: its words, how it stood when, what showed that, which calls broke it."""
    with with_standing(web.ledger) as view:
        looked = look(web, view, session)
        if looked.answer is None:
            return ConstraintContext(
                session=session,
                number=constraint,
                rule=None,
                evidence=None,
                history=[],
                is_long=False,
                breaches=[],
                broken=0,
                job=looked.job,
            )
        row = view.named(session, [constraint]).get(constraint)
        if row is None:
            raise HTTPException(
                404, f"Parameter 'constraint': the session has {looked.answer.rules} of them."
            )
        history = [
            Stood(seq=one.seq, is_cut=one.is_cut, how=cell(one.how), lost_by=one.lost_by)
            for one in view.history(session, constraint, _HISTORY + 1)
        ]
        breaches = breach_lines(view, session, view.breaches(session, 0, _BREACHES, rule=constraint))
        lists: list[list[Any]] = [history[:_HISTORY], breaches]
        places, calls = fitting(lists, weigher(f"/sessions/{segment(session)}"), _MOST_BYTES)
        return ConstraintContext(
            session=session,
            number=constraint,
            rule=rule_words(row, fit(row.text, _LONGEST_WORDS)),
            evidence=_evidence(web.ledger.store, view, session, constraint, at) if at else None,
            history=history[:places],
            is_long=len(history) > places,
            breaches=breaches[:calls],
            broken=row.broken,
            job=looked.job,
        )


def _evidence(store: EventStore, view: StandingView, session: str, rule: int, at: int) -> Evidence:
    """What was to be read there. Raises HTTPException."""
    stand = view.at(session, rule, at, is_cut=True) or view.at(session, rule, at, is_cut=False)
    if stand is None:
        raise HTTPException(
            404, f"Parameter 'at': record {at} is no place at which this constraint was looked at."
        )
    digest, source = _shown(view, session, stand)
    text, missing = _read(store, digest) if digest else ("", "Nothing there is about the constraint.")
    begins = _begins(text, stand.said)
    shown = fit(text[begins : begins + _LONGEST_TEXT], _LONGEST_TEXT)
    return Evidence(
        seq=at,
        is_cut=stand.is_cut,
        how=cell(stand.how),
        lost_by=stand.lost_by,
        source=source,
        said=stand.said,
        text=shown,
        is_begun=begins > 0,
        is_cut_off=begins + len(shown) < len(text),
        missing=missing,
    )


def _shown(
    view: StandingView, session: str, stand: StandRow
) -> tuple[str | None, Literal["message", "system prompt", "summary", "nothing"]]:
    """Digest of what shows it: where nothing is about the rule, the summary that left it out."""
    if stand.digest is not None:
        return stand.digest, "system prompt" if stand.is_system else "message"
    place = stand.seq if stand.is_cut else stand.lost_by
    found = None if place is None else view.cut_at(session, place, stand.lane)
    cuts = view.cuts(session, *found, 1) if found else []
    summary = cuts[0].summary if cuts and cuts[0].seq == place else None
    return summary, "summary" if summary else "nothing"


def _read(store: EventStore, digest: str) -> tuple[str, str]:
    """The words of a message, or why there are none."""
    try:
        body = store.content(digest)
    except LedgerError as error:
        return "", str(error)
    if len(body) > _PARSED:
        return body.decode("utf-8", "replace"), ""
    value = decode_content(body)
    return plain_text(value) or pretty(value), ""


def _begins(text: str, said: str) -> int:
    """Where to begin, so that what was said is among the words that are shown."""
    words = re.findall(r"\w+", said)[:_MOST_WORDS]
    if len(text) <= _LONGEST_TEXT or len(words) < _FEWEST:
        return 0
    found = re.search(r"\W+".join(map(re.escape, words)), text, re.IGNORECASE)
    return max(0, found.start() - _BEFORE) if found else 0
