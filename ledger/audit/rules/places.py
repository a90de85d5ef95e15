"""Where in a session a record stands, in all the units in which a rule may measure."""

from datetime import datetime
from typing import NamedTuple

from ledger.audit.rules.words import Span


class Place(NamedTuple):
    """A record's place."""

    seq: int
    """Its seq."""

    calls: int
    """Tool calls asked for so far, it included."""

    turns: int
    """Messages of people so far."""

    time: float | None
    """Seconds since the epoch by the source; None where it gives none."""


def seconds_of(text: str | None) -> float | None:
    """A time as seconds; None where there is none."""
    if text is None:
        return None
    try:
        return datetime.fromisoformat(text).timestamp()
    except (ValueError, OverflowError):
        return None


def is_within(span: Span | None, since: Place, now: Place) -> bool | None:
    """Whether a place is in the window that another began; None: there are no times to tell."""
    if span is None:
        return True
    if span.calls is not None and now.calls - since.calls > span.calls:
        return False
    if span.records is not None and now.seq - since.seq > span.records:
        return False
    if span.turns is not None and now.turns - since.turns > span.turns:
        return False
    if span.seconds is not None:
        if since.time is None or now.time is None:
            return None
        return now.time - since.time <= span.seconds
    return True
