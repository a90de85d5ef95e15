"""/cases: findings put together under a title, until a person closes them; both are events with who did it."""

from itertools import islice
from typing import Annotated
from urllib.parse import urlencode

from fastapi import HTTPException, Path, Query
from pydantic import BaseModel, Field

from ledger.errors import InputError
from ledger.events import Draft, Record
from ledger.events.review import CaseOpened, CaseSignedOff
from ledger.home import Ledger
from ledger.recorder import new_id
from ledger.views.findings_list import FindingsView
from webui.acts import SESSION
from webui.dependencies import LedgerDep, WhoDep, from_segment
from webui.evidence import FindingLine, line_of
from webui.page import Context, Done, Page

_SHOWN = 60
_MOST_RECORDS = 5_000
_FINDINGS = 40

page = Page("Cases", link="/cases", order=25)


class Case(Context):
    """A case."""

    id: str
    """Its id."""
    title: str
    """Its title."""
    findings: list[str]
    """Ids of its findings, or the first of them."""
    total: int
    """How many it has."""
    opened_by: str
    """Who opened it."""
    opened_at: str
    """When."""
    outcome: str
    """How it was closed; empty while it is open."""
    closed_by: str
    """Who closed it."""
    closed_at: str
    """When."""


class CasesContext(Context):
    """What cases.html may use."""

    cases: list[Case]
    """Open ones first, then the last opened."""
    total: int
    """How many there are."""
    case: Case | None
    """The one that is looked at."""
    lines: list[FindingLine]
    """Its findings, as far as the ledger has them."""

    @property
    def title(self) -> str:
        """Title of the page."""
        return f"Case {self.case.title}" if self.case else "Cases"


class CaseForm(BaseModel):
    """A new case."""

    title: Annotated[str, Field(min_length=1, max_length=200)]
    """What it is about."""
    findings: Annotated[str, Field(min_length=1, max_length=4000)]
    """Ids of findings, or their unambiguous starts, with blanks between them."""


class SignOffForm(BaseModel):
    """The end of a case."""

    outcome: Annotated[str, Field(min_length=1, max_length=400)]
    """How it was closed, and why."""


@page.view("/cases", template="cases.html")
def cases(
    ledger: LedgerDep,
    case: Annotated[str, Query(max_length=400, description="Id of a case to look at.")] = "",
) -> CasesContext:
    """All cases, and one of them with its findings."""
    found = _cases(ledger)
    opened = _found(found, case) if case else None
    lines = []
    with FindingsView(ledger.home, ledger.store) as view:
        view.catch_up()
        for finding in opened.findings if opened else ():
            try:
                lines.append(line_of(ledger.store, view.find(finding)))
            except InputError:
                continue  # raised in another ledger, or not yet
    newest = list(found.values())[::-1]
    ordered = sorted(newest, key=lambda one: bool(one.outcome))
    return CasesContext(cases=ordered[:_SHOWN], total=len(found), case=opened, lines=lines)


@page.action("/cases")
def open_case(ledger: LedgerDep, who: WhoDep, form: CaseForm) -> Done:
    """Put findings together."""
    with FindingsView(ledger.home, ledger.store) as view:
        view.catch_up()
        names = dict.fromkeys(form.findings.replace(",", " ").split())
        try:
            found = tuple(view.find(name).id for name in names)
        except InputError as error:
            raise HTTPException(404, f"Parameter 'findings': {error}.") from error
    if not found:
        raise HTTPException(404, "Parameter 'findings' names no finding; /findings lists them.")
    if len(found) > _FINDINGS:
        raise InputError(
            f"parameter 'findings': expected ids of 1 to {_FINDINGS} findings, found {len(found)}"
        )
    event = CaseOpened(case_id=new_id(), findings=found, title=form.title)
    records = ledger.recorder.append(
        SESSION, [Draft(event, actor=who)], ledger.recorder.keeper(), durable=True
    )
    return Done(to=_address(event.case_id), recorded=[one.place for one in records])


@page.action("/cases/{case}/sign-off")
def sign_off(
    ledger: LedgerDep,
    who: WhoDep,
    case: Annotated[str, Path(description="Id of a case.", max_length=400)],
    form: SignOffForm,
) -> Done:
    """Close a case."""
    found = _found(_cases(ledger), from_segment(case))
    if found.outcome:
        raise HTTPException(409, "This case was closed already.")
    event = CaseSignedOff(case_id=found.id, outcome=form.outcome)
    records = ledger.recorder.append(
        SESSION, [Draft(event, actor=who)], ledger.recorder.keeper(), durable=True
    )
    return Done(to=_address(found.id), recorded=[one.place for one in records])


def _address(case: str) -> str:
    return f"/cases?{urlencode({'case': case})}"


def _found(cases: dict[str, Case], name: str) -> Case:
    if name not in cases:
        raise HTTPException(404, f"No case is known as {name[:80]!r}; /cases lists them.")
    return cases[name]


def _cases(ledger: Ledger) -> dict[str, Case]:
    """The cases that were opened from the pages, in the order in which they were."""
    found: dict[str, Case] = {}
    names = (CaseOpened.TYPE, CaseSignedOff.TYPE)
    for record in islice(ledger.store.read(SESSION, names=names), _MOST_RECORDS):
        event = record.event
        if isinstance(event, CaseOpened):
            found.setdefault(
                event.case_id,
                Case(
                    id=event.case_id,
                    title=event.title,
                    findings=list(event.findings[:_FINDINGS]),
                    total=len(event.findings),
                    opened_by=_who(record),
                    opened_at=record.recorded_at,
                    outcome="",
                    closed_by="",
                    closed_at="",
                ),
            )
        elif isinstance(event, CaseSignedOff) and (case := found.get(event.case_id)) and not case.outcome:
            closed = {"outcome": event.outcome, "closed_by": _who(record), "closed_at": record.recorded_at}
            found[event.case_id] = case.model_copy(update=closed)
    return found


def _who(record: Record) -> str:
    return (record.actor and record.actor.id) or "somebody"
