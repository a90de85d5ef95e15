"""The overview of a session as numbers for SVG: where tokens went, where weighty events are. Makes no markup."""

from typing import NamedTuple

from ledger.views.events import Bucket, EventsView

BUCKETS = 120
"""Columns of an overview."""

_WIDTH = 960
_BARS, _STRIP = 20, 8
_STEPS = 4


class Shade(NamedTuple):
    """Columns of one strip that have the same share of its events."""

    level: str
    """The level."""

    step: int
    """1 to 4: the share of events at that level, in quarters of the greatest."""

    path: str
    """Rectangles, as the `d` of an SVG path."""


class Minimap(NamedTuple):
    """The overview."""

    width: int
    """Width of the view box."""

    height: int
    """Height of the view box."""

    bars: str
    """Tokens by column, as the `d` of an SVG path."""

    shades: list[Shade]
    """The strips."""

    most_tokens: int
    """Tokens of the highest column."""

    high: int
    """Events at the highest level."""

    medium: int
    """Events at the middle level."""


def minimap(view: EventsView, session: str, total: int) -> Minimap:
    """The overview of a session."""
    return drawn(view.buckets(session, BUCKETS), total)


def drawn(buckets: list[Bucket], total: int) -> Minimap:
    """Columns over the whole width, each as wide as the events that it sums."""
    most = max((bucket.tokens for bucket in buckets), default=0)
    bars: list[str] = []
    columns: dict[tuple[str, int], list[str]] = {}
    tops = {"high": _BARS + 2, "medium": _BARS + _STRIP + 4}
    shares = {
        level: max((getattr(bucket, level) / bucket.events for bucket in buckets if bucket.events), default=0)
        for level in tops
    }
    for bucket in buckets:
        left = (bucket.first - 1) * _WIDTH / max(total, 1)
        width = max(1.0, bucket.events * _WIDTH / max(total, 1))
        if bucket.tokens:
            height = max(1.0, bucket.tokens * _BARS / most)
            bars.append(f"M{left:.1f} {_BARS}v-{height:.1f}h{width:.1f}v{height:.1f}z")
        for level, top in tops.items():
            count = getattr(bucket, level)
            if count:
                step = min(_STEPS, 1 + int(count / bucket.events / shares[level] * (_STEPS - 0.01)))
                columns.setdefault((level, step), []).append(
                    f"M{left:.1f} {top}h{width:.1f}v{_STRIP}h-{width:.1f}z"
                )
    shades = [Shade(level, step, "".join(paths)) for (level, step), paths in sorted(columns.items())]
    return Minimap(
        _WIDTH,
        _BARS + 2 * _STRIP + 4,
        "".join(bars),
        shades,
        most,
        sum(bucket.high for bucket in buckets),
        sum(bucket.medium for bucket in buckets),
    )
