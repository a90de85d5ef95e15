"""/findings: what detectors found over all sessions, by rule, by session, one by one."""

from typing import Annotated, Any, Literal
from urllib.parse import quote

from fastapi import Query
from pydantic import BaseModel, Field

from ledger.errors import InputError
from ledger.events.review import Severity
from ledger.views.finding_rows import Order, Sought
from ledger.views.findings_list import KEYS, FindingsView
from webui.acts import record_wish
from webui.dependencies import WebDep, WhoDep
from webui.evidence import LONGEST_ID, FindingLine, line_of
from webui.fitting import fitting, weight, weight_in_address
from webui.page import Context, Done, Page
from webui.visible import cut

_GROUPS = 40
_MOST_BYTES = 30_000
_GROUP, _RISK, _LINE = 230, 290, 310
"""Bytes of a row without what it tells."""
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
    open: int
    """Those that nobody has judged."""
    first: str
    """Its worst finding."""


class FindingsContext(Context):
    """What findings.html may use."""

    groups: list[Group]
    """Findings by detector and severity; some of them."""
    first_group: int
    """How many groups come before them."""
    total_groups: int
    """How many groups there are."""
    riskiest: list[Risk]
    """Sessions whose findings are the worst; empty in a list of one session."""
    risky: int
    """How many sessions have findings that are no false alarm."""
    lines: list[FindingLine]
    """Findings, the worst first, then the last raised."""
    total: int
    """How many fit the filter."""
    query: dict[str, str]
    """The filter, as parameters of an address."""
    sort: Order
    """What comes first."""
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
    sort: Annotated[Order, Query(description="What comes first.")] = "severity",
    group: Annotated[int, Query(ge=0, le=2**31, description="Groups that come before.")] = 0,
    after: Annotated[
        str,
        Query(
            pattern=r"^([0-9]{1,15}(,[0-9]{1,15}){0,2})?$",
            description="As `next_after` of the page before, in the same order.",
        ),
    ] = "",
) -> FindingsContext:
    """All findings: by detector and severity, by session, one by one."""
    ledger, sought = web.ledger, Sought(rule, severity, session, state)
    key = tuple(map(int, after.split(","))) if after else ()
    if key and len(key) != len(KEYS[sort]):
        raise InputError(f"parameter 'after': {after!r} is of a list in another order")
    with FindingsView(ledger.home, ledger.store) as view:
        view.catch_up()
        some = Sought(session=session, state=state)
        groups = view.groups(some, by=sort, first=group, count=_GROUPS)
        total_groups = view.count_groups(some)
        rows = view.rows(sought, _ROWS + 1, key, by=sort)
        total = view.count(sought)
        risks = [] if session or after else view.riskiest(_RISKIEST, by=sort)
        risky = view.count_riskiest()
        worst = [view.rows(Sought(session=one.session, severity=one.worst), 1)[0].id for one in risks]
    with web.lists.sessions() as listed:
        named = [listed.row(one.session) for one in risks]
    lines = [line_of(ledger.store, row) for row in rows[:_ROWS]]
    shown = [
        Risk(
            session=one.session,
            name=row.name if row else None,
            worst=one.worst,
            by_severity=one.by_severity,
            open=one.open,
            first=finding[:LONGEST_ID],
        )
        for one, row, finding in zip(risks, named, worst, strict=True)
    ]
    lists: list[list[Any]] = [lines, [Group(**one._asdict()) for one in groups], shown]
    counts = fitting(lists, _weight, _MOST_BYTES)
    last = rows[counts[0] - 1] if len(rows) > counts[0] > 0 else None
    return FindingsContext(
        groups=lists[1][: counts[1]],
        first_group=group,
        total_groups=total_groups,
        riskiest=shown[: counts[2]],
        risky=risky,
        lines=lines[: counts[0]],
        total=total,
        query={"rule": rule, "severity": severity, "session": session, "state": state},
        sort=sort,
        next_after=",".join(map(str, last.key(sort))) if last else "",
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


def _weight(line: Group | Risk | FindingLine) -> int:
    """Bytes of a row."""
    match line:
        case Group():
            return _GROUP + weight_in_address(line.detector[:300]) + weight(cut(line.detector, 48))
        case Risk():
            name = weight(cut(line.name or line.session, 32))
            return _RISK + name + weight_in_address(line.session) + weight_in_address(line.first)
        case _:
            address = weight_in_address(line.id) + weight_in_address(line.session)
            told = weight(cut(line.message or line.id, 120)) + weight(cut(line.detector, 40))
            return _LINE + address + told + weight(cut(line.session, 24))


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
                + "".join(f" A detector failed: {told}" for told in job.result.get("broken", ()))
            )
