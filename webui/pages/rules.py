"""/rules: what looks for findings, and how it has done in this ledger by what people said."""

from pathlib import Path as FilePath
from typing import Annotated

from fastapi import HTTPException, Path

from ledger.audit import Detector
from ledger.audit.intervals import Share
from ledger.audit.measured import measured
from ledger.views.finding_rows import Sought
from ledger.views.findings_list import FindingsView
from webui.dependencies import LedgerDep, from_segment
from webui.page import Context, Page
from webui.rulebook import detectors_of, name_of_rule

_ROWS = 70
_PARTS = 40
_SESSIONS = 20
_LONGEST_TEXT = 14_000
_LONGEST_ID = 300

page = Page("Rules", link="/rules", order=40)


class Precision(Context):
    """How often a rule was right, of what people judged."""

    right: int
    """Findings that people confirmed, or whose risk they accepted."""
    judged: int
    """Findings that people judged; a duplicate counts neither way."""
    share: float | None
    """The share; none where nothing was judged."""
    low: float
    """Lower end of its 95 % interval, by Wilson."""
    high: float
    """Upper end of it."""


class Tried(Context):
    """How a rule did on labelled sessions, and how a trivial one did."""

    part: str
    """The rule, or the suspicion that was measured."""
    corpus: str
    """What the sessions are."""
    bad: int
    """Sessions that it should flag."""
    good: int
    """Sessions that it should leave alone."""
    hits: int
    """Of the bad ones, those that it flagged."""
    false: int
    """Of the good ones, those that it flagged."""
    f1: float
    """Harmonic mean of precision and recall."""
    baseline: str
    """What the trivial rule does."""
    baseline_hits: int
    """Of the bad ones, those that the trivial rule flagged."""
    baseline_false: int
    """Of the good ones, those that the trivial rule flagged."""
    baseline_f1: float
    """Harmonic mean of precision and recall of the trivial rule."""


class RuleLine(Context):
    """A rule in the list."""

    name: str
    """Its name."""
    title: str
    """What it suspects; empty for one that is not installed."""
    severity: str
    """How bad that is; empty for one that is not installed."""
    state: str
    """`on`, `experimental`, `broken` (it cannot be used), or `not installed`."""
    language: str
    """`SQL`, `YAML` or `Python`; empty for one that is not installed."""
    is_own: bool
    """Whether it is the user's own."""
    sessions: int
    """Sessions in which it found something."""
    findings: int
    """What it found."""
    precision: Precision
    """How often it was right."""
    tried: list[Tried]
    """How it did on labelled sessions of ours, with a trivial rule beside it."""


class RulesContext(Context):
    """What rules.html may use."""

    rules: list[RuleLine]
    """The rules by name, or the first of them; those that are not installed come last."""
    total: int
    """How many there are."""


class SuspicionLine(Context):
    """One of the suspicions of a rule."""

    name: str
    """Its name."""
    sessions: int
    """Sessions in which it found something."""
    findings: int
    """What it found."""
    precision: Precision
    """How often it was right."""


class Touched(Context):
    """A session with findings of a rule."""

    session: str
    """Its id."""
    finding: str
    """Its first finding."""
    findings: int
    """How many it has."""


class RuleContext(Context):
    """What rule.html may use."""

    rule: RuleLine
    """The rule."""
    why: str
    """Why it matters."""
    misses: str
    """What it cannot see."""
    source: str
    """Where the idea comes from."""
    level: str
    """`action` or `trajectory`."""
    reads: list[str]
    """The events or tables that it reads; empty: all."""
    version: str
    """Digest of its text."""
    text: str
    """Its text, or the beginning."""
    is_cut: bool
    """Whether there is more of the text."""
    suspicions: list[SuspicionLine]
    """Its suspicions, where it has several."""
    touched: list[Touched]
    """Sessions with its findings, those with the most."""
    behind: int = 0
    """Records that the lists do not show yet."""

    @property
    def title(self) -> str:
        """Title of the page."""
        return f"Rule {self.rule.name}"


_Measured = dict[str, tuple[int, int, int, int]]


@page.view("/rules", template="rules.html")
def rules(ledger: LedgerDep) -> RulesContext:
    """All rules: what they suspect, and how often people found them right."""
    found = detectors_of(ledger.home)
    with FindingsView(ledger.home, ledger.store) as view:
        view.catch_up()
        done = view.measured()
    names = [*sorted(found), *sorted({*map(name_of_rule, done)} - found.keys())]
    return RulesContext(
        rules=[_line(name[:_LONGEST_ID], found.get(name), _of(name, done)) for name in names[:_ROWS]],
        total=len(names),
    )


@page.view("/rules/{rule}", template="rule.html")
def one_rule(
    ledger: LedgerDep,
    rule: Annotated[str, Path(description="Name of a detector or rule.", max_length=1000)],
) -> RuleContext:
    """One rule: why, what it misses, its text, how it has done."""
    name = from_segment(rule)
    detector = detectors_of(ledger.home).get(name)
    with FindingsView(ledger.home, ledger.store) as view:
        view.catch_up()
        done = _of(name, view.measured())
        touched = view.touched(Sought(detector=name), _SESSIONS)
    if detector is None and not done:
        raise HTTPException(404, f"No rule is named {name[:80]!r}; /rules lists them.")
    text = _text(detector)
    return RuleContext(
        rule=_line(name, detector, done),
        why=detector.why if detector else "",
        misses=detector.misses if detector else "",
        source=detector.source if detector else "",
        level=detector.level if detector else "",
        reads=list(detector.reads) if detector else [],
        version=detector.digest if detector else "",
        text=text[:_LONGEST_TEXT],
        is_cut=len(text) > _LONGEST_TEXT,
        suspicions=[
            SuspicionLine(name=part, sessions=one[0], findings=one[1], precision=_precision(one[2], one[3]))
            for part, one in sorted(done.items())[:_PARTS]
            if part != name
        ],
        touched=[
            Touched(session=one.session, finding=one.id[:_LONGEST_ID], findings=count)
            for one, count in touched
        ],
    )


def _of(name: str, done: _Measured) -> _Measured:
    """A rule and its suspicions among all that was measured."""
    return {part: one for part, one in done.items() if part == name or part.startswith(f"{name}.")}


def _line(name: str, detector: Detector | None, done: _Measured) -> RuleLine:
    if detector is None:
        state = "not installed"
    elif detector.broken is not None:
        state = "broken"
    else:
        state = "experimental" if detector.is_experimental else "on"
    return RuleLine(
        name=name,
        title=detector.title if detector else "",
        severity=detector.severity if detector else "",
        state=state,
        language=_language(detector),
        is_own=detector is not None and detector.is_own,
        sessions=sum(one[0] for one in done.values()),
        findings=sum(one[1] for one in done.values()),
        precision=_precision(sum(one[2] for one in done.values()), sum(one[3] for one in done.values())),
        tried=_tried(name) if detector is not None and not detector.is_own else [],
    )


def _tried(name: str) -> list[Tried]:
    return [
        Tried(
            part=one.detector,
            corpus=one.corpus,
            bad=one.done.bad,
            good=one.done.good,
            hits=one.done.hits,
            false=one.done.false,
            f1=one.done.f1,
            baseline=one.baseline,
            baseline_hits=one.trivial.hits,
            baseline_false=one.trivial.false,
            baseline_f1=one.trivial.f1,
        )
        for one in measured()
        if name_of_rule(one.detector) == name
    ]


def _language(detector: Detector | None) -> str:
    if detector is None:
        return ""
    if detector.sql is not None or detector.place.endswith(".sql"):
        return "SQL"
    return "YAML" if detector.place.endswith((".yaml", ".yml")) else "Python"


def _precision(right: int, judged: int) -> Precision:
    share = Share(right, judged)
    low, high = share.interval()
    return Precision(right=right, judged=judged, share=share.value, low=low, high=high)


def _text(detector: Detector | None) -> str:
    """The text of a rule, as it is read."""
    if detector is None:
        return ""
    if detector.sql is not None:
        return detector.sql
    try:
        return FilePath(detector.place).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return ""
