"""Sessions over time as lanes, as numbers for SVG: who worked when, what was handed over. Makes no markup."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import NamedTuple

from webui.page import Context
from webui.plot import Scale

WIDTH, LEFT = 960, 160
_LANE, _TOP, _BOTTOM, _RIGHT = 22, 6, 22, 36
_TICKS = 6
_STEPS = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 43200, 86400)


class Tick(NamedTuple):
    """Something that crosses from one lane to another."""

    at: str
    """When."""

    seq: int
    """Its record."""

    is_out: bool
    """Whether work is handed over; else it comes back."""


class Lane(NamedTuple):
    """A session, before it is drawn."""

    session: str
    """Its id."""

    name: str
    """Its agent, or what else it is called."""

    parent: str | None
    """Session that handed work to it."""

    start: str | None
    """Its first time."""

    end: str | None
    """Its last time."""

    ticks: Sequence[Tick]
    """What it handed over, and what came back."""


class Crossing(Context):
    """Something handed over, or given back."""

    x: float
    """Where."""
    is_out: bool
    """Whether it is handed over."""


class Drawn(Context):
    """A lane in its place."""

    session: str
    """Its session."""
    name: str
    """What it is called."""
    y: float
    """Its top."""
    x: float
    """Where its bar begins."""
    width: float
    """Width of its bar; 0 where it tells no time."""
    start: str
    """Its first time; empty where it tells none."""
    seconds: float | None
    """How long it took."""
    handed_over: int
    """How often it handed work over."""
    crossings: list[Crossing]
    """What it handed over, and what came back."""


class Mark(Context):
    """A mark of the time axis."""

    x: float
    """Where."""
    label: str
    """What it says."""


class Lanes(Context):
    """The lanes of a run."""

    width: int = WIDTH
    """Width of the view box."""
    left: int = LEFT
    """Where bars begin at the earliest."""
    height: float
    """Height of the view box."""
    lane: int = _LANE
    """Height of a lane."""
    lanes: list[Drawn]
    """The lanes, from above."""
    marks: list[Mark]
    """Marks of the time axis, from the first time on."""
    start: str
    """The first time."""
    at_once: int
    """Most sessions that ran at the same time."""


def lanes_of(lanes: Sequence[Lane]) -> Lanes | None:
    """The lanes over a common axis of time; None where no session tells any time."""
    times = [_seconds(lane.start) for lane in lanes]
    ends = [_seconds(lane.end) for lane in lanes]
    known = [time for time in (*times, *ends) if time is not None]
    if not known:
        return None
    first, last = min(known), max(known)
    scale = Scale(first, max(last, first + 1), LEFT, WIDTH - _RIGHT)
    drawn, spans = [], []
    for row, (lane, begun, ended) in enumerate(zip(lanes, times, ends, strict=True)):
        begin, end = begun if begun is not None else ended, ended if ended is not None else begun
        if begin is not None and end is not None:
            spans.append((begin, max(begin, end)))
        crossings = [(_seconds(tick.at), tick.is_out) for tick in lane.ticks]
        drawn.append(
            Drawn(
                session=lane.session,
                name=lane.name,
                y=_TOP + row * _LANE,
                x=LEFT if begin is None else scale.at(begin),
                width=0 if begin is None or end is None else max(2, scale.at(end) - scale.at(begin)),
                start=lane.start or "",
                seconds=None if begin is None or end is None else round(max(0.0, end - begin), 3),
                handed_over=sum(tick.is_out for tick in lane.ticks),
                crossings=[Crossing(x=scale.at(at), is_out=out) for at, out in crossings if at is not None],
            )
        )
    return Lanes(
        height=_TOP + len(lanes) * _LANE + _BOTTOM,
        lanes=drawn,
        marks=_marks(scale, max(last, first + 1) - first),
        start=datetime.fromtimestamp(first, UTC).isoformat(timespec="seconds"),
        at_once=_at_once(spans),
    )


def _marks(scale: Scale, span: float) -> list[Mark]:
    step = next((step for step in _STEPS if span / step <= _TICKS), max(1.0, span / _TICKS))
    count = int(span / step) + 1
    return [Mark(x=scale.at(scale.low + place * step), label=_told(place * step)) for place in range(count)]


def _told(seconds: float) -> str:
    for size, sign in ((86400, "d"), (3600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds / size:g} {sign}" if seconds % size == 0 else f"{seconds / size:.1f} {sign}"
    return f"{seconds:g} s"


def _at_once(spans: Sequence[tuple[float, float]]) -> int:
    changes = sorted([(begin, 0, 1) for begin, _ in spans] + [(end, 1, -1) for _, end in spans])
    most = now = 0
    for _, _, change in changes:
        now += change
        most = max(most, now)
    return most


def _seconds(time: str | None) -> float | None:
    """Seconds since 1970 of a time as sources give it; None for what is no time."""
    if time is None:
        return None
    try:
        read = datetime.fromisoformat(time)
        return (read if read.tzinfo else read.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError, OSError):
        return None
