"""How the rules of a session fared, as numbers for SVG: in force, and visible to the model where that was looked at."""

from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple

from ledger.events.governance import ConstraintDeclared, ConstraintWithdrawn
from ledger.events.visibility import ConstraintSeen
from ledger.store import EventStore
from webui.charting import Chart, Marks, Series
from webui.plot import Tick, field_of
from webui.visible import cut

_MOST_ROWS = 24
_MOST_SPANS = 48
_MOST_RECORDS = 5000
_LANE = 18
_LEFT = 132
_LONGEST_NAME = 60
_LONGEST_LABEL = 20
_VISIBLE = ("verbatim", "paraphrase")
_DECLARED = """select seq, type, json_extract_string(payload, '$.constraint') as rule
from events
where session = $session and type like 'governance.constraint%'
order by seq"""
_SEEN = """select constraint_name, min(call_seq) as from_seq, max(call_seq) as to_seq, count(*) as calls, visibility
from constraints
where session = $session
group by constraint_name, visibility
order by constraint_name, from_seq"""


class Span(NamedTuple):
    """A stretch of records over which a rule stood alike."""

    rule: str
    """The rule."""

    first: int
    """Its first record."""

    last: int | None
    """Its last; None: it still stands so."""

    how: str
    """How it stood."""

    @property
    def is_well(self) -> bool:
        """Whether it stood as it should."""
        return self.how in ("in force", *_VISIBLE)


def rule_chart(store: EventStore, session: str, marks: Marks) -> Chart | None:
    """From where to where each rule stood how; None where there is none."""
    seen = list(_seen(store, session)) if ConstraintSeen.TYPE in marks.there else []
    spans = seen or (list(_in_force(store, session)) if ConstraintDeclared.TYPE in marks.there else [])
    rules = list(dict.fromkeys(span.rule for span in spans))
    if not rules:
        return None
    lanes = {rule: lane for lane, rule in enumerate(rules[:_MOST_ROWS])}
    shown = [span for span in spans if span.rule in lanes][:_MOST_SPANS]
    height = _LANE * len(lanes) + 40
    field = field_of((1, marks.last + 1), (len(lanes), 0), height, left=_LEFT)
    paths = {"bars": "", "high": ""}
    for span in shown:
        lane, thin = lanes[span.rule], 0.25 if span.is_well else 0.4
        bar = field.bar(span.first, span.last or marks.last + 1, lane + thin, lane + 1 - thin)
        paths["bars" if span.is_well else "high"] += bar
    left_out = f" The first {len(lanes)} of {len(rules)} rules are shown." if len(rules) > len(lanes) else ""
    if seen:
        lost = len({span.rule for span in spans if not span.is_well})
        told = (
            f"Thick bar: the model saw the rule, word by word or in other words; thin red bar: weakened, inverted,"
            f" absent or unknown. {lost} of {len(rules)} rules were at some time not visible (loopledger decay)."
        )
    else:
        ended = len({span.rule for span in spans if span.last is not None})
        told = (
            f"Each bar: from the declaration of a rule to its withdrawal, or to the last record. {ended} of"
            f" {len(rules)} rules went out of force. The command loopledger decay looks at what the model saw of them."
        )
    return Chart(
        title="Rule survival",
        unit="rules",
        caption=told + left_out,
        height=height,
        left=_LEFT,
        ground=height - 24,
        ticks_x=field.across.ticks(5),
        ticks_y=[Tick(field.up.at(lane + 0.5), _label(rule)) for rule, lane in lanes.items()],
        series=[Series(d=path, look=look, name=look) for look, path in paths.items() if path],
        marks=marks.on(field.across),
        columns=["rule", "from record", "to record", "how"],
        rows=[
            [cut(span.rule, _LONGEST_NAME), str(span.first), str(span.last or "the last"), span.how]
            for span in shown
        ],
        sql=_SEEN if seen else _DECLARED,
    )


def _seen(store: EventStore, session: str) -> Iterator[Span]:
    """How each rule stood in what the model saw, as far as it was looked at."""
    open_spans: dict[tuple[str, str], ConstraintSeen] = {}
    found: dict[tuple[str, str, int], ConstraintSeen] = {}
    for record in islice(store.read(session, names=(ConstraintSeen.TYPE,)), _MOST_RECORDS):
        if isinstance(record.event, ConstraintSeen):
            event = record.event
            found[event.constraint, event.lane or "", event.at_seq] = event
    for (rule, lane, seq), event in sorted(found.items()):
        before = open_spans.get((rule, lane))
        if before is not None:
            yield Span(rule, before.at_seq, seq, before.visibility)
        open_spans[rule, lane] = event
    for event in open_spans.values():
        yield Span(event.constraint, event.at_seq, None, event.visibility)


def _in_force(store: EventStore, session: str) -> Iterator[Span]:
    """From the declaration of each rule to its withdrawal."""
    begun: dict[str, int] = {}
    names = (ConstraintDeclared.TYPE, ConstraintWithdrawn.TYPE)
    for record in islice(store.read(session, names=names), _MOST_RECORDS):
        event = record.event
        if isinstance(event, ConstraintDeclared):
            begun.setdefault(event.constraint, record.seq)
        elif isinstance(event, ConstraintWithdrawn) and event.constraint in begun:
            yield Span(event.constraint, begun.pop(event.constraint), record.seq, "in force")
    for rule, first in begun.items():
        yield Span(rule, first, None, "in force")


def _label(rule: str) -> str:
    return rule if len(rule) <= _LONGEST_LABEL else f"{rule[: _LONGEST_LABEL - 1]}…"
