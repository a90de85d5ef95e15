"""/findings/F: one finding, with its evidence in place, what people say of it, and the rule that found it."""

from typing import Annotated

from fastapi import HTTPException, Path, Query
from pydantic import BaseModel, Field

from ledger.audit import Detector
from ledger.errors import InputError
from ledger.home import Ledger
from ledger.views.finding_rows import FindingRow, Sought
from ledger.views.findings import Kept, Verdict, give_verdict, write_note
from ledger.views.findings_list import FindingsView
from webui.dependencies import LedgerDep, ListsDep, WhoDep, from_segment, segment
from webui.evidence import LONGEST_ID, FindingLine, Witness, line_of, place_of, told_of, witnesses_of
from webui.page import Context, Done, Page
from webui.rulebook import detectors_of, name_of_rule

DECAY = "governance_decay"
"""The detector of rules that compactions lost."""

_WITNESSES = 6
_SAID = 20
_ELSEWHERE = 10
_LONGEST_SQL = 6_000

FindingPath = Annotated[
    str, Path(description="Id of a finding, or the unambiguous start of one.", max_length=1000)
]

page = Page("Finding")


class Said(Context):
    """A note or a verdict."""

    text: str
    """The words."""
    verdict: str
    """The judgment; empty for a note."""
    actor: str
    """Who."""
    at: str
    """When."""
    about: str
    """For a note: the record that it is about."""
    session: str
    """Session that holds it."""
    seq: int
    """Its record."""


class Other(Context):
    """Another session with findings of the same rule."""

    session: str
    """Its id."""
    finding: str
    """Its first finding."""
    findings: int
    """How many it has."""


class FindingContext(Context):
    """What finding.html may use."""

    finding: FindingLine
    """The finding."""
    rule: str
    """Name of the rule's page."""
    constraints: str
    """Address of what compactions left of the session's constraints; empty where the finding is not about that."""
    rule_title: str
    """What the rule suspects; empty where the rule is not installed."""
    why: str
    """Why it matters."""
    misses: str
    """What the rule cannot see."""
    sql: str
    """The rule's query; empty for a rule of Python."""
    is_other_version: bool
    """Whether the rule reads otherwise today than when it found this."""
    level: str
    """Whether one action alone shows it, or only several together."""
    witnesses: list[Witness]
    """Evidence: a window of the witnesses."""
    places: list[str]
    """Records that a note may be about: the witnesses, or the first of them."""
    first: int
    """Place of the first witness of the window, from 0."""
    total: int
    """How many witnesses there are."""
    number: int
    """Its place among the findings of the rule in the session, from 1."""
    of: int
    """How many those are."""
    earlier: str
    """The one before; empty for none."""
    later: str
    """The one after; empty for none."""
    others: list[Other]
    """Other sessions with findings of the rule, or those with the most."""
    verdicts: list[Said]
    """Verdicts, the last first."""
    notes: list[Said]
    """Notes about its witnesses, the first first."""
    behind: int
    """Records that the lists do not show yet."""

    @property
    def title(self) -> str:
        """Title of the page."""
        return f"{self.finding.severity.upper()} {self.rule_title or self.finding.detector}"


class NoteForm(BaseModel):
    """A note."""

    text: Annotated[str, Field(min_length=1, max_length=4000)]
    """Its words."""
    about: Annotated[str, Field(max_length=1000)] = ""
    """A witness, as `SESSION#SEQ`; empty: the record that raised the finding."""


class VerdictForm(BaseModel):
    """A judgment."""

    verdict: Verdict
    """The judgment."""
    reason: Annotated[str, Field(min_length=1, max_length=4000)]
    """Why."""


@page.view("/findings/{finding}", template="finding.html")
def one_finding(
    ledger: LedgerDep,
    lists: ListsDep,
    finding: FindingPath,
    first: Annotated[
        int, Query(alias="from", ge=0, le=10_000, description="The first witness to show, from 0.")
    ] = 0,
) -> FindingContext:
    """One finding: why it matters, what shows it, what people say of it."""
    with FindingsView(ledger.home, ledger.store) as view:
        view.catch_up()
        row = _found(view, finding)
        same = Sought(detector=row.detector, session=row.session)
        earlier, later = view.neighbours(same, row.number)
        number, of = view.count(same, before=row.number) + 1, view.count(same)
        others = view.touched(Sought(detector=row.detector), _ELSEWHERE, but=row.session)
        verdicts = view.verdicts(row.id, _SAID)
        notes = view.notes([*row.witnesses[:100], f"{row.session}#{row.seq}"], _SAID)
    first = min(first, max(0, len(row.witnesses) - 1))
    with lists.events() as events:
        witnesses = witnesses_of(ledger.store, events, row.session, row.witnesses[first : first + _WITNESSES])
    name = name_of_rule(row.detector)
    rule = detectors_of(ledger.home).get(name)
    return FindingContext(
        finding=line_of(ledger.store, row),
        rule=name,
        constraints=_constraints(row) if name == DECAY else "",
        rule_title=rule.title if rule else "",
        why=rule.why if rule else "",
        misses=rule.misses if rule else "",
        sql=_sql(rule),
        is_other_version=rule is not None and row.version is not None and row.version != rule.digest,
        level=row.level or "",
        witnesses=witnesses,
        places=[place for place in row.witnesses[:20] if len(place) <= LONGEST_ID],
        first=first,
        total=len(row.witnesses),
        number=number,
        of=of,
        earlier=earlier.id[:LONGEST_ID] if earlier else "",
        later=later.id[:LONGEST_ID] if later else "",
        others=[
            Other(session=one.session, finding=one.id[:LONGEST_ID], findings=count) for one, count in others
        ],
        verdicts=[
            Said(
                text=told_of(ledger.store, one.reason),
                verdict=one.verdict,
                actor=one.actor or "somebody",
                at=one.at,
                about="",
                session=one.session,
                seq=one.seq,
            )
            for one in verdicts
        ],
        notes=[
            Said(
                text=told_of(ledger.store, one.message),
                verdict="",
                actor=one.actor or "somebody",
                at=one.at,
                about=one.about,
                session=one.session,
                seq=one.seq,
            )
            for one in notes
        ],
        behind=lists.behind(),
    )


@page.action("/findings/{finding}/verdict")
def judge(ledger: LedgerDep, who: WhoDep, finding: FindingPath, form: VerdictForm) -> Done:
    """Say whether a finding is right; the last word counts."""
    row = _row(ledger, finding)
    kept = Kept(row.id, row.session, row.detector)
    place = give_verdict(ledger.recorder, kept, form.verdict, who.id or "", form.reason)
    return Done(to=_address(row), recorded=[place])


@page.action("/findings/{finding}/notes")
def note(ledger: LedgerDep, who: WhoDep, finding: FindingPath, form: NoteForm) -> Done:
    """Write a note about a witness of a finding."""
    row = _row(ledger, finding)
    named = place_of(form.about) if form.about else (row.session, row.seq)
    if named is None or (form.about and form.about not in row.witnesses):
        raise InputError(f"parameter 'about': {form.about[:80]!r} is no witness of this finding")
    session, seq = named
    place = write_note(ledger.recorder, ledger.store.resolve(session), seq, form.text, who.id or "")
    return Done(to=_address(row), recorded=[place])


def _constraints(row: FindingRow) -> str:
    """Where its first witness, the compaction, is a column."""
    place = place_of(row.witnesses[0]) if row.witnesses else None
    at = f"?at={place[1]}" if place is not None and place[0] == row.session else ""
    return f"/sessions/{segment(row.session)}/constraints{at}"


def _found(view: FindingsView, text: str) -> FindingRow:
    try:
        return view.find(from_segment(text))
    except InputError as error:
        raise HTTPException(404, f"{error}.") from error


def _row(ledger: Ledger, text: str) -> FindingRow:
    with FindingsView(ledger.home, ledger.store) as view:
        view.catch_up()
        return _found(view, text)


def _address(row: FindingRow) -> str:
    return f"/findings/{segment(row.id[:LONGEST_ID])}"


def _sql(rule: Detector | None) -> str:
    return "" if rule is None or rule.sql is None else rule.sql[:_LONGEST_SQL]
