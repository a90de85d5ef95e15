"""/sessions/R/divergence: what a replay has shown, recorded and replayed side by side, and what a person says of it."""

from itertools import islice
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field

from ledger.errors import InputError, LedgerError
from ledger.events import ContentRef, Draft, Record
from ledger.events.canonical import decode_json
from ledger.events.replaying import ReplayAnswered, ReplayDiverged, ReplayEnded, ReplayJudged
from ledger.events.review import NoteWritten
from ledger.home import Ledger
from ledger.views.events import EventRow, Wanted
from ledger.views.replays import ReplayRow, ReplaysView
from webui.dependencies import LedgerDep, ListsDep, SessionDep, WhoDep, segment
from webui.page import Context, Done, Page
from webui.reading import Lists

_AROUND = 4
_DIFFERENCES = 20
_CANDIDATES = 6
_UNCHECKED = 20
_SAID = 20
_STEPS = 300
_LONGEST = 600
_NOT_SHOWN = frozenset(
    {"verdict", "level", "session", "requests", "divergence", "unchecked", "replay_session"}
)

page = Page("Divergence")


class DifferenceTold(Context):
    """A place where both sides differ."""

    pointer: str
    """JSON pointer of it."""
    recorded: str | None
    """What stands there in the recording; None: nothing."""
    replayed: str | None
    """What stands there in the replay; None: nothing."""
    draw: str | None
    """What kind of input it looks like: a time, an identifier."""


class CandidateTold(Context):
    """A recorded request that was near."""

    seq: int
    """Its record."""
    why: str
    """Why it did not fit."""
    pointer: str | None
    """First place that differs."""


class DivergenceTold(Context):
    """The first place where the replay is not what was recorded."""

    seq: int
    """Record of the replay that tells of it."""
    kind: str
    """What differs."""
    at_seq: int | None
    """First record of the origin that it is not equal to."""
    pointer: str | None
    """JSON pointer of the first difference."""
    cause: str | None
    """Likely cause."""
    recorded: str | None
    """Piece of the recorded side."""
    replayed: str | None
    """Piece of the side of the replay."""
    recorded_digest: str | None
    """Digest of the recorded side."""
    replayed_digest: str | None
    """Digest of the side of the replay."""
    differences: list[DifferenceTold]
    """The first places that differ."""
    candidates: list[CandidateTold]
    """Recorded requests that were near."""


class Said(Context):
    """What a person said of it."""

    seq: int
    """Its record."""
    by: str | None
    """Who."""
    at: str
    """When."""
    verdict: str | None
    """drift or defect; None for a note."""
    text: str
    """Why, in their words."""


class DivergenceContext(Context):
    """What divergence.html may use."""

    session: str
    """The replay."""
    origin: str | None
    """Session that it replays; None where the session is no replay."""
    origin_head: int
    """Last record of that one that counts."""
    level: str
    """What was to be proved."""
    mode: str
    """What ran."""
    verdict: str | None
    """equal, diverged, incomplete."""
    reason: str | None
    """Why it is incomplete."""
    checked: int
    """States, requests or steps that were compared."""
    total_unchecked: int
    """Those that could not be."""
    facts: list[tuple[str, str]]
    """What the report says beside."""
    unchecked: list[tuple[int, str]]
    """What could not be compared, and why; the first of it."""
    divergence: DivergenceTold | None
    """Where it left the recording."""
    recorded_rows: list[EventRow]
    """Events of the origin around it."""
    replayed_rows: list[EventRow]
    """The last events of the replay before it stopped."""
    steps: list[str]
    """How each step of the replay fitted, the first of them: raw, canonical, lane, miss."""
    said: list[Said]
    """Verdicts and notes of people."""

    @property
    def title(self) -> str:
        """Title of the page."""
        return f"Replay: {self.verdict or 'not ended'}" if self.origin else "Divergence"


class VerdictForm(BaseModel):
    """A person's word."""

    verdict: Literal["drift", "defect"]
    """Accepted as expected, or not."""
    reason: Annotated[str, Field(min_length=1, max_length=2000)]
    """Why."""


@page.view("/sessions/{session}/divergence", template="divergence.html")
def divergence(ledger: LedgerDep, lists: ListsDep, session: SessionDep) -> DivergenceContext:
    """What a replay has shown."""
    row = _row(ledger, session)
    told = None if row is None else _divergence(ledger, row)
    report, reason = _report(ledger, session) if row is not None else ({}, None)
    origin_head = 0 if row is None else row.origin_seq or _head(ledger, row.origin)
    recorded_rows: list[EventRow] = []
    replayed_rows: list[EventRow] = []
    if row is not None and told is not None:
        recorded_rows = _rows(lists, row.origin, told.at_seq or 1, origin_head)
        replayed_rows = _rows(lists, session, told.seq, told.seq)
    return DivergenceContext(
        session=session,
        origin=None if row is None else row.origin,
        origin_head=origin_head,
        level="" if row is None else row.level,
        mode="" if row is None else row.mode,
        verdict=None if row is None else row.verdict,
        reason=reason,
        checked=_checked(row, report),
        total_unchecked=0 if row is None else row.unchecked,
        facts=_facts(report),
        unchecked=_unchecked(report),
        divergence=told,
        recorded_rows=recorded_rows,
        replayed_rows=replayed_rows,
        steps=_steps(ledger, session),
        said=_said(ledger, session),
    )


@page.action("/sessions/{session}/divergence")
def judge(ledger: LedgerDep, session: SessionDep, who: WhoDep, form: VerdictForm) -> Done:
    """Say whether the divergence is accepted drift or a defect; recorded in the replay's session."""
    row = _row(ledger, session)
    if row is None or row.diverged is None:
        raise InputError("There is no divergence here to judge.")
    keeper = ledger.recorder.keeper()
    event = ReplayJudged(
        verdict=form.verdict, diverged_seq=row.diverged, reason=keeper.text(form.reason, "reason")
    )
    draft = Draft(event, actor=who, cause=row.diverged)
    records = ledger.recorder.append(session, [draft], keeper, durable=True)
    return Done(
        to=f"/sessions/{segment(session)}/divergence", recorded=[f"{session}#{one.seq}" for one in records]
    )


def _row(ledger: Ledger, session: str) -> ReplayRow | None:
    with ReplaysView(ledger.home, ledger.store) as view:
        view.catch_up()
        return view.row(session)


def _head(ledger: Ledger, session: str) -> int:
    """Last record of a session; 0 where the ledger does not have it."""
    return ledger.store.head(session).seq


def _rows(lists: Lists, session: str, seq: int, last: int) -> list[EventRow]:
    """The events up to a record, and that record."""
    first = max(1, min(seq, last) - _AROUND)
    with lists.events() as view:
        found = view.window(session, Wanted(), first=first, count=2 * _AROUND)
    return [row for row in found if row.seq <= seq]


def _divergence(ledger: Ledger, row: ReplayRow) -> DivergenceTold | None:
    if row.diverged is None:
        return None
    event = ledger.store.record(row.session, row.diverged).event
    assert isinstance(event, ReplayDiverged)
    found = _json(ledger, event.detail)
    recorded, replayed = _dict(found.get("recorded")), _dict(found.get("replayed"))
    return DivergenceTold(
        seq=row.diverged,
        kind=event.kind[:80],
        at_seq=event.origin_seq,
        pointer=_text(event.pointer),
        cause=_text(event.cause),
        recorded=_text(recorded.get("excerpt")),
        replayed=_text(replayed.get("excerpt")),
        recorded_digest=event.recorded,
        replayed_digest=event.replayed,
        differences=[
            DifferenceTold(
                pointer=_text(one.get("pointer")) or "",
                recorded=_text(one.get("recorded")),
                replayed=_text(one.get("replayed")),
                draw=_text(one.get("draw")),
            )
            for one in _dicts(found.get("differences"))[:_DIFFERENCES]
        ],
        candidates=[
            CandidateTold(seq=one["seq"], why=_text(one.get("why")) or "", pointer=_text(one.get("pointer")))
            for one in _dicts(found.get("candidates"))[:_CANDIDATES]
            if isinstance(one.get("seq"), int)
        ],
    )


def _report(ledger: Ledger, session: str) -> tuple[dict[str, Any], str | None]:
    """The report that a replay keeps, and why it is incomplete."""
    ended = next(ledger.store.read(session, names=(ReplayEnded.TYPE,)), None)
    if ended is None or not isinstance(ended.event, ReplayEnded):
        return {}, None
    event = ended.event
    counts = {name: getattr(event, name) for name in ("checked", "recorded", "live", "blocked", "effects")}
    found = {name: value for name, value in counts.items() if value} | _json(ledger, event.detail)
    return found, _text(found.pop("reason", None))


def _checked(row: ReplayRow | None, report: dict[str, Any]) -> int:
    """What was compared: of level `state` the report tells it."""
    states = report.get("states")
    return states if isinstance(states, int) else 0 if row is None else row.checked


def _facts(report: dict[str, Any]) -> list[tuple[str, str]]:
    """What a report says in single values."""
    return [
        (name.replace("_", " ")[:60], str(value)[:200])
        for name, value in list(report.items())[:40]
        if name not in _NOT_SHOWN and isinstance(value, str | int | float) and value not in ("", 0)
    ]


def _unchecked(report: dict[str, Any]) -> list[tuple[int, str]]:
    return [
        (one["seq"], (_text(one.get("reason")) or "")[:200])
        for one in _dicts(report.get("unchecked"))[:_UNCHECKED]
        if isinstance(one.get("seq"), int)
    ]


def _steps(ledger: Ledger, session: str) -> list[str]:
    """How each model request of a replay fitted its recording."""
    records = ledger.store.read(session, names=(ReplayAnswered.TYPE,))
    grades = (record.event.match for record in records if isinstance(record.event, ReplayAnswered))
    return list(islice((grade for grade in grades if grade is not None), _STEPS))


def _said(ledger: Ledger, session: str) -> list[Said]:
    found: list[Said] = []
    for record in ledger.store.read(session, names=(ReplayJudged.TYPE, NoteWritten.TYPE)):
        event = record.event
        if isinstance(event, ReplayJudged):
            found.append(_word(ledger, record, event.verdict, event.reason))
        elif isinstance(event, NoteWritten):
            found.append(_word(ledger, record, None, event.text))
    return found[-_SAID:]


def _word(ledger: Ledger, record: Record, verdict: str | None, reason: ContentRef | None) -> Said:
    return Said(
        seq=record.seq,
        by=None if record.actor is None else record.actor.id,
        at=record.occurred_at or record.recorded_at,
        verdict=verdict,
        text="" if reason is None else _content(ledger, reason).decode("utf-8", "replace")[:_LONGEST],
    )


def _content(ledger: Ledger, reference: ContentRef) -> bytes:
    try:
        return ledger.store.content(reference.digest)
    except LedgerError as error:
        return f"not to be had: {error}".encode()


def _json(ledger: Ledger, reference: ContentRef | None) -> dict[str, Any]:
    """A content that is a JSON object; empty where it is none, or is lost."""
    if reference is None:
        return {}
    try:
        return _dict(decode_json(ledger.store.content(reference.digest)))
    except (LedgerError, ValueError):
        return {}


def _dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _dicts(value: Any) -> list[dict[str, Any]]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def _text(value: Any) -> str | None:
    return value[:_LONGEST] if isinstance(value, str) else None
