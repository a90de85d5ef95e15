"""Makes drafts of one session; knows no format."""

import hashlib
import json
from datetime import UTC, datetime
from typing import Any

from ledger.events import Actor, Draft, Event, Sibling, Source
from ledger.events.canonical import canonical_json
from ledger.events.record import ActorKind, Grade
from ledger.importers import Desk
from ledger.protocols.drafting import Place, short_word
from ledger.protocols.plain import is_deep, plain

_LAST_SECOND = 253_402_300_799
_SECONDS_UNTIL = 100_000_000_000
"""Numbers below are seconds since 1970, those above milliseconds."""


class Scribe:
    """Fills in what all drafts of a session have in common."""

    def __init__(self, desk: Desk, format_name: str, session: str, grade: Grade) -> None:
        self.desk = desk
        self.keep = desk.keep
        self.format = format_name
        self.session = desk.session_name(session)
        self.grade = grade
        self.agent: str | None = None
        """Name of the agent that speaks."""
        self.depth = 0
        """Delegation depth."""
        self.correlation: str | None = None
        """Run, trace or turn."""

    def draft(
        self,
        place: Place,
        event: Event,
        actor: ActorKind = "system",
        *,
        name: str | None = None,
        time: str | None = None,
        cause: int | str | Sibling | None = None,
        rest: Any = None,
        grade: Grade | None = None,
    ) -> Draft:
        """A draft. `rest`: native fields that no event field carries."""
        kept = self.keep.json(rest, place.key).digest if rest else None
        agent = self.agent
        return Draft(
            event,
            time or place.time,
            Actor(actor, name or (agent if actor == "agent" else None)),
            cause=cause,
            correlation=self.correlation,
            agent=agent,
            depth=self.depth,
            source=Source(self.format, self.desk.file, place.key, place.line, kept),
            grade=grade or self.grade,
        )

    def word(self, value: Any, where: str = "") -> str | None:
        """A short text that an event carries itself, or None: without secrets, cut to a bearable length."""
        return short_word(self.keep, value, where)


def identity(*parts: Any) -> str:
    """A short name made of values: the same for the same values."""
    if is_deep(parts):  # not asked of `json`: what it can do depends on how deep its caller is
        content = canonical_json(plain(parts))
    else:
        content = json.dumps(parts, sort_keys=True, default=str, ensure_ascii=True).encode()
    return hashlib.sha256(content).hexdigest()[:16]


def utc_time(value: Any) -> str | None:
    """A time as RFC 3339 in UTC, from a text or from seconds or milliseconds since 1970; None for anything else."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        if not 0 < value < _LAST_SECOND * 1000:
            return None
        seconds = value if value < _SECONDS_UNTIL else value / 1000
        return _written(datetime.fromtimestamp(seconds, UTC))
    if not isinstance(value, str) or not 8 <= len(value) <= 40:
        return None
    try:
        moment = datetime.fromisoformat(value)
        return _written(moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC))
    except (ValueError, OverflowError):
        return None


def milliseconds_between(start: str | None, end: str | None) -> int | None:
    """Milliseconds from one time to another; None where they are not known or run backwards."""
    if start is None or end is None:
        return None
    passed = round((datetime.fromisoformat(end) - datetime.fromisoformat(start)).total_seconds() * 1000)
    return passed if passed >= 0 else None


def _written(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
