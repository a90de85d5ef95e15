"""/integrity and /sessions/S/integrity: whether what is stored is what was written, and where it is not."""

import shlex
from collections.abc import Iterable
from typing import Any

from pydantic import BaseModel

from ledger.events import Actor
from webui.acts import record_wish
from webui.dependencies import ListsDep, SessionDep, Web, WebDep, WhoDep
from webui.page import Context, Done, Page

_RANGES = 100

page = Page("Integrity", link="/sessions/{session}/integrity", order=90)


class Range(Context):
    """Records of a session that follow each other and are damaged in the same way."""

    session: str | None
    """The session; none: it is about the ledger as a whole."""
    first: int | None
    """First seq; none where no record is named."""
    last: int | None
    """Last seq."""
    kind: str
    """What is wrong."""
    detail: str
    """What was expected and what was found, of the first of them."""
    count: int
    """Problems in it."""


class Found(Context):
    """What a verification found."""

    is_ok: bool
    """Whether everything is as it was written."""
    records: int
    """Records that were checked."""
    sessions: int
    """Sessions that they belong to."""
    problems: int
    """Problems."""
    ranges: list[Range]
    """They, by range; the first of them."""
    is_cut: bool
    """Whether there are more ranges."""


class IntegrityContext(Context):
    """What integrity.html may use."""

    of_session: str | None
    """The session; none: all of the ledger."""
    records: int
    """Records there are."""
    head_hash: str
    """Hash of the last record; empty for the whole ledger."""
    status: str
    """What the last verification found: `ok`, `problems`, or `unknown`."""
    verified: int | None
    """Seq up to which it was verified."""
    found: Found | None
    """What the last verification that this server ran found; none: it ran none."""
    job: str
    """The verification that runs; empty for none."""
    failed: str
    """Why the last one failed; empty where it did not."""
    command: str
    """What repeats it in a shell."""


class VerifyForm(BaseModel):
    """Nothing is asked for."""


@page.view("/integrity", template="integrity.html")
def integrity(web: WebDep) -> IntegrityContext:
    """The whole ledger."""
    with web.lists.sessions() as view:
        rows = list(view.rows())
    states = {row.integrity for row in rows}
    status = "problems" if "problems" in states else "ok" if states == {"ok"} else "unknown"
    return _told(web, None, web.ledger.store.last_position(), "", status, None)


@page.view("/sessions/{session}/integrity", template="integrity.html")
def of_session(web: WebDep, lists: ListsDep, session: SessionDep) -> IntegrityContext:
    """One session."""
    head = web.ledger.store.head(session)
    with lists.sessions() as view:
        row = view.row(session)
    status, verified = (row.integrity, row.verified_seq) if row is not None else ("unknown", None)
    return _told(web, session, head.seq, head.hash.hex(), status, verified)


@page.action("/integrity")
def verify_all(web: WebDep, who: WhoDep, form: VerifyForm) -> Done:
    """Verify the whole ledger."""
    return _verify(web, who, None)


@page.action("/sessions/{session}/integrity")
def verify_session(web: WebDep, who: WhoDep, session: SessionDep, form: VerifyForm) -> Done:
    """Verify one session."""
    return _verify(web, who, session)


def _verify(web: Web, who: Actor, session: str | None) -> Done:
    """Begin; what tells of it is recorded first, so that the whole ledger is verified with it."""
    place = record_wish(web.ledger, who, "A verification was asked for.", session)
    return Done(to=f"/jobs/{web.jobs.start('verify', {'session': session}).id}", recorded=[place])


def _told(
    web: Web, session: str | None, records: int, head_hash: str, status: str, verified: int | None
) -> IntegrityContext:
    job = web.jobs.last("verify", lambda one: one.asked["session"] == session)
    return IntegrityContext(
        of_session=session,
        records=records,
        head_hash=head_hash,
        status=status,
        verified=verified,
        found=_found(job.result) if job is not None and job.state == "done" else None,
        job=job.id if job is not None and job.state in ("waits", "runs") else "",
        command="loopledger verify" + ("" if session is None else f" -- {shlex.quote(session)}"),
        failed=str(job.result.get("failed", ""))[:600] if job is not None else "",
    )


def _found(result: dict[str, Any]) -> Found:
    ranges = ranges_of(result["problems"])
    return Found(
        is_ok=result["ok"],
        records=result["records"],
        sessions=result["sessions"],
        problems=len(result["problems"]) + result["unlisted"],
        ranges=ranges[:_RANGES],
        is_cut=len(ranges) > _RANGES or result["unlisted"] > 0,
    )


def ranges_of(problems: Iterable[dict[str, Any]]) -> list[Range]:
    """Problems of one kind at records that follow each other, together."""
    ranges: list[Range] = []
    ordered = sorted(
        problems,
        key=lambda one: (
            one["session"] or "",
            str(one["kind"]),
            one["seq"] if one["seq"] is not None else -1,
        ),
    )
    for one in ordered:
        before = ranges[-1] if ranges else None
        if (
            before is not None
            and (before.session, before.kind) == (one["session"], str(one["kind"]))
            and before.last is not None
            and one["seq"] in (before.last, before.last + 1)
        ):
            ranges[-1] = before.model_copy(update={"last": one["seq"], "count": before.count + 1})
        else:
            ranges.append(
                Range(
                    session=one["session"],
                    first=one["seq"],
                    last=one["seq"],
                    kind=str(one["kind"]),
                    detail=str(one["detail"])[:400],
                    count=1,
                )
            )
    return sorted(ranges, key=lambda one: (one.session or "", one.first if one.first is not None else -1))
