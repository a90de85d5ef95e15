"""/findings: what detectors found over all sessions, by rule, by session, one by one."""

from typing import Annotated, Literal
from urllib.parse import quote

from fastapi import Query
from pydantic import BaseModel, Field

from ledger.audit import SEVERITIES
from ledger.events.review import Severity
from ledger.views.finding_rows import Sought
from ledger.views.findings_list import FindingsView
from webui.acts import record_wish
from webui.dependencies import WebDep, WhoDep
from webui.evidence import LONGEST_ID, FindingLine, line_of
from webui.page import Context, Done, Page

_GROUPS = 40
_ROWS = 24
_RISKIEST = 10

State = Literal["", "open", "judged", "confirmed", "dismissed", "accepted_risk", "duplicate"]
"""Which findings are listed."""

page = Page("Findings", link="/findings", order=20)


class Group(Context):
    """The findings of one rule and severity."""

    detector: str
    """The rule."""
    severity: str
    """How bad they are."""
    open: int
    """Findings that nobody has judged."""
    confirmed: int
    """Those that people found right, or whose risk they accepted."""
    dismissed: int
    """Those that people found wrong."""
    total: int
    """All of them."""
    sessions: int
    """Sessions that they are about."""


class Risk(Context):
    """A session and its findings."""

    session: str
    """Its id."""
    name: str | None
    """Its title for people."""
    worst: str
    """The worst severity."""
    by_severity: dict[str, int]
    """How many of each, the worst first."""
    first: str
    """Its worst finding."""


class FindingsContext(Context):
    """What findings.html may use."""

    groups: list[Group]
    """Findings by detector and severity."""
    riskiest: list[Risk]
    """Sessions whose findings are the worst; empty in a list of one session."""
    lines: list[FindingLine]
    """Findings, the worst first, then the last raised."""
    total: int
    """How many fit the filter."""
    query: dict[str, str]
    """The filter, as parameters of an address."""
    next_after: str
    """Where the next page begins; empty at the end."""
    running: str
    """How an audit stands that was asked for here; empty where none was."""
    behind: int
    """Records that the lists do not show yet."""


class AuditForm(BaseModel):
    """What to audit."""

    session: Annotated[str, Field(max_length=400)] = ""
    """A session, or the unambiguous start of its id; empty: all."""


@page.view("/findings", template="findings.html")
def findings(
    web: WebDep,
    rule: Annotated[str, Query(max_length=300, description="A detector, or one of its suspicions.")] = "",
    severity: Annotated[Literal["", Severity], Query(description="How bad they are.")] = "",
    session: Annotated[str, Query(max_length=1000, description="Session that they are about.")] = "",
    state: Annotated[State, Query(description="Whether and how people judged them.")] = "",
    after: Annotated[
        str, Query(pattern=r"^([0-9],[0-9]{1,15})?$", description="As `next_after` of the page before.")
    ] = "",
) -> FindingsContext:
    """All findings: by detector and severity, by session, one by one."""
    ledger, sought = web.ledger, Sought(rule, severity, session, state)
    rank, _, number = after.partition(",")
    with FindingsView(ledger.home, ledger.store) as view:
        view.catch_up()
        groups = view.groups(Sought(session=session, state=state))
        rows = view.rows(sought, _ROWS + 1, (int(rank), int(number)) if after else None)
        total = view.count(sought)
        risks = [] if session or after else view.riskiest(_RISKIEST)
        worst = [view.rows(Sought(session=one.session, severity=one.worst), 1)[0].id for one in risks]
    with web.lists.sessions() as listed:
        named = [listed.row(one.session) for one in risks]
    lines = [line_of(ledger.store, row) for row in rows[:_ROWS]]
    last = rows[_ROWS - 1] if len(rows) > _ROWS else None
    return FindingsContext(
        groups=[Group(**one._asdict()) for one in groups[:_GROUPS]],
        riskiest=[
            Risk(
                session=one.session,
                name=row.name if row else None,
                worst=one.worst,
                by_severity=one.by_severity,
                first=finding[:LONGEST_ID],
            )
            for one, row, finding in zip(risks, named, worst, strict=True)
        ],
        lines=lines,
        total=total,
        query={"rule": rule, "severity": severity, "session": session, "state": state},
        next_after=f"{SEVERITIES.index(last.severity)},{last.number}" if last else "",
        running=_running(web),
        behind=web.lists.behind(),
    )


@page.action("/findings")
def audit(web: WebDep, who: WhoDep, form: AuditForm) -> Done:
    """Run the detectors that are on, in a process of its own; what is new is raised in its session."""
    ledger = web.ledger
    session = ledger.store.resolve(form.session) if form.session else None
    web.jobs.start("audit", {"session": session})
    place = record_wish(ledger, who, "An audit was asked for.", session)
    to = f"/findings?session={quote(session, safe='')}" if session else "/findings"
    return Done(to=to, recorded=[place])


def _running(web: WebDep) -> str:
    job = web.jobs.last("audit")
    if job is None:
        return ""
    match job.state:
        case "waits":
            return "An audit waits for its turn."
        case "runs":
            return "An audit runs; what it finds shows here when it is done."
        case "failed":
            return f"The last audit failed: {job.result.get('failed', '')}"
        case _:
            return (
                f"The last audit looked at {job.result['sessions']} sessions with {job.result['detectors']} detectors"
                f" and raised {job.result['new']} new findings of {job.result['found']}."
            )
