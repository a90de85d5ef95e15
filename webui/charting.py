"""The charts of a session as numbers for SVG, each with its table and the SQL that gives the same. Makes no markup."""

from collections.abc import Sequence

from ledger.audit.intervals import Share
from ledger.events.compaction import CompactionDone
from ledger.events.policy import BudgetCharged
from ledger.events.recovery import RolledBack
from ledger.events.review import FindingRaised
from ledger.store import EventStore
from ledger.views.events import EventsView, Wanted
from webui.page import Context
from webui.plot import Field, Point, Scale, Tick, field_of, shown
from webui.visible import cut

WINDOWS = 24
"""Points of a chart, at most."""

_HEIGHT, _LOW = 168, 96
_TOOLS = 3
_MARKS = 6
_LONGEST_NAME = 32
_MARKED = {CompactionDone.TYPE: "compaction", RolledBack.TYPE: "rollback", FindingRaised.TYPE: "finding"}
_SESSION = "session = $session"


class Series(Context):
    """A line, a band or bars."""

    d: str
    """The `d` of an SVG path."""
    look: str
    """How it is drawn: `line`, `dashed`, `band`, or bars of a level: `high`, `medium`, `bars`."""
    name: str
    """What it shows."""


class Mark(Context):
    """An event that a chart marks."""

    at: float
    """Where, in the chart."""
    label: str
    """What it is."""
    seq: int
    """Its record."""


class Chart(Context):
    """A chart."""

    title: str
    """What it shows."""
    unit: str
    """What is counted upwards."""
    caption: str
    """How to read it, and how many things it counts."""
    height: int
    """Height of its view box."""
    left: float
    """Where its field begins."""
    ground: float
    """Where its field ends below."""
    ticks_x: list[Tick]
    """Marks of the axis of records."""
    ticks_y: list[Tick]
    """Marks of the other."""
    series: list[Series]
    """What is drawn."""
    marks: list[Mark]
    """Events that are marked."""
    columns: list[str]
    """Names of the columns of its table."""
    rows: list[list[str]]
    """Its table."""
    sql: str
    """The query that gives the same."""


class Marks(Context):
    """What the charts of a session mark: compactions, rollbacks, findings."""

    last: int
    """Last record of the session."""
    width: int
    """Records in each window."""
    found: list[tuple[int, str]]
    """Seq and what it is."""
    there: frozenset[str]
    """Types of the events of the session: what is not there need not be looked for."""

    @classmethod
    def of(cls, view: EventsView, session: str) -> "Marks":
        """Those of a session."""
        there = frozenset(kind.type for kind in view.kinds(session))
        found = [
            (row.seq, name)
            for kind, name in _MARKED.items()
            if kind in there
            for row in view.window(session, Wanted(kind=kind), first=1, count=_MARKS)
        ]
        last = max(1, view.head(session))
        return cls(
            last=last, width=view.width(session, WINDOWS), found=sorted(found)[: 2 * _MARKS], there=there
        )

    def on(self, across: Scale) -> list[Mark]:
        """On the axis of records."""
        return [Mark(at=across.at(seq), label=name, seq=seq) for seq, name in self.found]

    def starts(self) -> range:
        """First seq of each window."""
        return range(1, self.last + 1, self.width)


def risk(view: EventsView, session: str, marks: Marks) -> Chart:
    """How many weighty events lie where."""
    buckets = view.buckets(session, WINDOWS)
    most = max((bucket.high + bucket.medium for bucket in buckets), default=0)
    field = field_of((1, marks.last + 1), (0, max(1, most)), _HEIGHT)
    high, medium, rows = "", "", []
    for bucket in buckets:
        end = bucket.first + bucket.events
        if bucket.high:
            high += field.bar(bucket.first, end, 0, bucket.high)
        if bucket.medium:
            medium += field.bar(bucket.first, end, bucket.high, bucket.high + bucket.medium)
        rows.append([*map(str, (bucket.first, bucket.events, bucket.high, bucket.medium))])
    total = sum(bucket.high for bucket in buckets), sum(bucket.medium for bucket in buckets)
    return chart_of(
        "Risk over steps",
        "weighty events",
        f"Events by their level in windows of {marks.width} records: {total[0]} high at the bottom, {total[1]} medium"
        " on top of them. The level is that of the timeline: effect class, outcome, severity of a finding.",
        field,
        [Series(d=high, look="high", name="high"), Series(d=medium, look="medium", name="medium")],
        marks,
        ["from record", "events", "high", "medium"],
        rows,
        "select (seq - 1) // {width} * {width} + 1 as first_seq, count(*) as events,\n"
        "    count(*) filter (effect_class in ('irreversible', 'credential')) as grave_calls,\n"
        "    count(*) filter (outcome = 'failed') as failed,\n"
        "    count(*) filter (type = 'review.finding_raised') as findings",
    )


def burn(store: EventStore, view: EventsView, session: str, marks: Marks) -> list[Chart]:
    """What models cost and used, summed up, and what was granted."""
    granted: dict[str, float] = {}
    charged = store.read(session, names=(BudgetCharged.TYPE,)) if BudgetCharged.TYPE in marks.there else ()
    for record in charged:
        event = record.event
        if isinstance(event, BudgetCharged) and event.remaining is not None:
            granted[event.unit] = float(event.amount + event.remaining)
            break
    tokens = [(bucket.first, float(bucket.tokens)) for bucket in view.buckets(session, WINDOWS)]
    costs = dict(view.costs(session, marks.width))
    charts = []
    if costs:
        spent = [(first, costs.get(first, 0.0)) for first in marks.starts()]
        charts.append(_burn("Cost over steps", "USD", spent, granted.get("usd"), marks, "cost_usd"))
    sum_of = "coalesce(input_tokens, 0) + coalesce(output_tokens, 0)"
    sum_of += " + coalesce(cache_read_tokens, 0) + coalesce(cache_write_tokens, 0)"
    charts.append(_burn("Tokens over steps", "tokens", tokens, granted.get("tokens"), marks, sum_of))
    return charts


def _burn(
    title: str,
    unit: str,
    spent: Sequence[Point],
    granted: float | None,
    marks: Marks,
    column: str,
) -> Chart:
    total, points, rows = 0.0, [(1.0, 0.0)], []
    for first, amount in spent:
        total += amount
        end = min(first + marks.width - 1, marks.last)
        points.append((end, total))
        rows.append([f"{first:g}", _amount(amount), _amount(total)])
    field = field_of((1, marks.last + 1), (0, max(total, granted or 0) or 1), _HEIGHT)
    series = [Series(d=field.line(points), look="line", name=f"{unit} so far")]
    told = f"Solid: {unit} so far, {_amount(total)} in all, as the answers of models tell them."
    if granted is not None:
        series.append(
            Series(d=field.line([(1, granted), (marks.last + 1, granted)]), look="dashed", name="granted")
        )
        told += f" Dashed: the budget of {_amount(granted)}."
    return chart_of(
        title,
        unit,
        told,
        field,
        series,
        marks,
        ["from record", unit, f"{unit} so far"],
        rows,
        f"select (seq - 1) // {{width}} * {{width}} + 1 as first_seq, sum({column}) as spent",
        "type = 'model_call.answered'",
    )


def drift(view: EventsView, session: str, marks: Marks) -> list[Chart]:
    """The share of each of the tools that are used most, window by window."""
    counted = view.tools(session, marks.width)
    totals: dict[str, int] = {}
    calls: dict[int, int] = {}
    by_tool: dict[str, dict[int, int]] = {}
    for first, tool, count in counted:
        totals[tool] = totals.get(tool, 0) + count
        calls[first] = calls.get(first, 0) + count
        by_tool.setdefault(tool, {})[first] = count
    every = sum(totals.values())
    charts = []
    for tool in sorted(totals, key=lambda tool: (-totals[tool], tool))[:_TOOLS]:
        charts.append(_drift(tool, by_tool[tool], calls, totals[tool] / every, marks))
    return charts


def _drift(tool: str, used: dict[int, int], calls: dict[int, int], usual: float, marks: Marks) -> Chart:
    points: list[Point] = []
    lower: list[Point] = []
    upper: list[Point] = []
    rows, outside = [], 0
    for first, of in sorted(calls.items()):
        share = Share(used.get(first, 0), of)
        low, high = share.interval()
        middle = min(first + marks.width / 2, marks.last)
        points.append((middle, share.hits / of))
        lower.append((middle, low))
        upper.append((middle, high))
        outside += not low <= usual <= high
        rows.append(
            [str(first), str(share.hits), str(of), f"{share.hits / of:.0%}", f"{low:.0%} to {high:.0%}"]
        )
    field = field_of((1, marks.last + 1), (0, 1), _LOW)
    chart = chart_of(
        f"Share of the tool {cut(tool, _LONGEST_NAME)}",
        "share of calls",
        f"Solid: its share of the {sum(calls.values())} calls, in windows of {marks.width} records; band: the 95 %"
        f" interval (Wilson); dashed: {usual:.0%} over the whole session. In {outside} of {len(calls)} windows the"
        " interval leaves that out; by chance alone about one in twenty would.",
        field,
        [
            Series(d=field.band(lower, upper), look="band", name="interval"),
            Series(d=field.line(points), look="line", name="share"),
            Series(d=field.line([(1, usual), (marks.last + 1, usual)]), look="dashed", name="usual"),
        ],
        marks,
        ["from record", "its calls", "all calls", "share", "interval"],
        rows,
        "select (seq - 1) // {width} * {width} + 1 as first_seq, tool, count(*) as calls",
        "type = 'tool_call.requested'",
        also=", tool",
    )
    return chart.model_copy(
        update={"ticks_y": [Tick(field.up.at(share), f"{share:.0%}") for share in (0, 0.5, 1)]}
    )


def chart_of(
    title: str,
    unit: str,
    caption: str,
    field: Field,
    series: list[Series],
    marks: Marks,
    columns: list[str],
    rows: list[list[str]],
    select: str,
    where: str = "",
    *,
    also: str = "",
) -> Chart:
    """A chart over the records of a session; the SQL selects by window."""
    condition = f"{_SESSION} and {where}" if where else _SESSION
    sql = f"{select}\nfrom events\nwhere {condition}\ngroup by first_seq{also}\norder by first_seq{also}"
    return Chart(
        title=title,
        unit=unit,
        caption=caption,
        height=int(field.up.start if field.up.start > field.up.end else field.up.end) + 24,
        left=field.across.start,
        ground=field.up.start,
        ticks_x=field.across.ticks(6),
        ticks_y=field.up.ticks(4),
        series=[one for one in series if one.d],
        marks=marks.on(field.across),
        columns=columns,
        rows=rows,
        sql=sql.replace("{width}", str(marks.width)),
    )


def _amount(value: float) -> str:
    return shown(value) if value >= 1000 else f"{value:.4g}"
