"""Rules held against all past sessions: what they would have found and blocked, and where a source shows too little."""

import hashlib
from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from ledger.audit import Given
from ledger.audit.rules import Match, RuleFold, RuleSet
from ledger.audit.rules.compiled import reads
from ledger.audit.rules.plan import Plans
from ledger.audit.rules.versions import Versions, compared
from ledger.events import Draft, Record
from ledger.events.approval import ApprovalAsked, ApprovalDecided
from ledger.events.canonical import canonical_json
from ledger.events.policy import PolicyEvaluated
from ledger.events.review import EvidenceExported
from ledger.events.tool_call import ToolCallRequested, ToolCallSettled, ToolCallStarted
from ledger.recorder import Recorder
from ledger.store import EventStore
from ledger.views.findings import reader_of

SESSION = "backtests"
"""The session of the ledger that tells of its backtests."""

FOLDER = "backtests"
"""Folder of the home with the answers."""

_OF_FATES = (ApprovalAsked.TYPE, ApprovalDecided.TYPE, PolicyEvaluated.TYPE, ToolCallSettled.TYPE)
_NO_ACTION = ("denied", "not_started")
_BEFORE_IT_ACTS = ("call", "ran")
_GRADES = ("wire", "near-wire", "semantic", "skeleton")


@dataclass
class Tally:
    """One rule over all sessions."""

    action: str
    """What a guard should do by it."""

    title: str
    """What it suspects."""

    matched: int = 0
    """Times its last step came true."""

    sessions: int = 0
    """Sessions in which it matched."""

    touched: int = 0
    """Sessions in which at least its first step was seen."""

    would_block: int = 0
    """Calls that it would have stopped or asked about, and that nothing else did."""

    covered: int = 0
    """Calls that something else had stopped, or put before a person."""

    too_late: int = 0
    """Matches of a rule that denies or asks, after the call had acted: there is nothing left to block."""

    missing: Counter[str] = field(default_factory=Counter)
    """By grade and input, such as `semantic: arguments`: sessions in which it could not tell everywhere."""

    examples: list[dict[str, Any]] = field(default_factory=list)
    """The first matches."""

    def as_json(self) -> dict[str, Any]:
        """The documented form."""
        return {
            "title": self.title,
            "action": self.action,
            "matched": self.matched,
            "sessions": self.sessions,
            "touched": self.touched,
            "would_block": self.would_block,
            "covered": self.covered,
            "too_late": self.too_late,
            "missing": dict(sorted(self.missing.items())),
            "examples": self.examples,
        }


class Change(NamedTuple):
    """A record that only one of two versions matches."""

    rule: str
    """The rule."""

    place: str
    """The record, as `SESSION#SEQ`."""

    message: str
    """What it found."""


@dataclass
class Backtest:
    """The answer."""

    rules: RuleSet
    """The rules."""

    against: RuleSet | None
    """The old version of them."""

    position: int = 0
    """How far the ledger went."""

    sessions: int = 0
    """Sessions looked at."""

    tallies: dict[str, Tally] = field(default_factory=dict)
    """By rule."""

    versions: Versions | None = None
    """What the rules say otherwise than the old version of them."""

    newly: Counter[str] = field(default_factory=Counter)
    """By rule: matches that the old version did not have."""

    no_longer: Counter[str] = field(default_factory=Counter)
    """By rule: matches that only the old version had. A renamed rule is counted under its new name."""

    newly_blocked: Counter[str] = field(default_factory=Counter)
    """By rule: calls that it would have blocked, and the old version would not."""

    no_longer_blocked: Counter[str] = field(default_factory=Counter)
    """By rule: the reverse."""

    changes: dict[str, list[Change]] = field(default_factory=lambda: {"newly": [], "no_longer": []})
    """The first of both."""

    def as_json(self) -> dict[str, Any]:
        """The documented form: the same for the same rules and the same ledger."""
        told: dict[str, Any] = {
            "rules": _told(self.rules),
            "position": self.position,
            "sessions": self.sessions,
            "by_rule": {name: tally.as_json() for name, tally in self.tallies.items()},
        }
        if self.against is not None and self.versions is not None:
            counts = {
                "newly_matched": self.newly,
                "no_longer_matched": self.no_longer,
                "newly_blocked": self.newly_blocked,
                "no_longer_blocked": self.no_longer_blocked,
            }
            told["against"] = _told(self.against)
            told["difference"] = {
                **{name: count.total() for name, count in counts.items()},
                "rules": self.versions.as_json(),
                "by_rule": {
                    rule: {name: count[rule] for name, count in counts.items()}
                    for rule in sorted(set().union(*counts.values()))
                },
                "examples": {way: [one._asdict() for one in some] for way, some in self.changes.items()},
            }
        return told


def _told(rules: RuleSet) -> dict[str, Any]:
    return {"name": rules.name, "digest": hashlib.sha256(rules.text.encode()).hexdigest(), "text": rules.text}


def backtest(
    store: EventStore,
    rules: RuleSet,
    against: RuleSet | None = None,
    sessions: Collection[str] | None = None,
    *,
    examples: int = 5,
) -> Backtest:
    """Hold rules against sessions, session by session; nothing is kept of one but its counts and a few examples."""
    answer = Backtest(rules, against, _last_position(store))
    answer.versions = None if against is None else compared(against.file, rules.file)
    answer.tallies = {rule.name: Tally(rule.action, rule.title) for rule in rules.file.rules}
    reader = reader_of(store)
    now, before = Plans(rules), None if against is None else Plans(against)
    for session in sorted(sessions) if sessions is not None else store.sessions():
        if session == SESSION:
            continue
        answer.sessions += 1
        run = _Run(now, before, Given(session, reader))
        for record in store.read(session, names=run.wanted):
            run.take(record)
        run.end()
        _add(answer, session, run, examples)
    return answer


def _last_position(store: EventStore) -> int:
    """How far the ledger goes, but for what tells of backtests: the same question has the same answer again."""
    position = store.last_position()
    own = {record.position for record in store.read(SESSION)}
    while position in own:
        position -= 1
    return position


class _Run:
    """One session."""

    def __init__(self, now: Plans, before: Plans | None, given: Given) -> None:
        self.now = now
        self.fold = RuleFold(now, given)
        self.old = None if before is None else RuleFold(before, given)
        self.matches: list[Match] = []
        self.old_matches: list[Match] = []
        self.handled: set[str] = set()
        self.types: set[str] = set()
        self.grades: set[str] = set()
        self.is_imported = False
        self.wanted = {*reads(now), *(reads(before) if before is not None else ()), *_OF_FATES}

    def take(self, record: Record) -> None:
        """One more record."""
        self.types.add(record.type)
        self.grades.add(record.grade)
        self.is_imported = self.is_imported or record.source is not None
        self.matches += self.fold.matches(record)
        if self.old is not None:
            self.old_matches += self.old.matches(record)
        match event := record.event:
            case ToolCallRequested() | ToolCallStarted():
                pass  # most of them
            case ApprovalAsked() | ApprovalDecided() if event.call_id is not None:
                self.handled.add(event.call_id)
            case PolicyEvaluated() if event.verdict in ("deny", "ask") and event.call_id is not None:
                self.handled.add(event.call_id)
            case ToolCallSettled() if event.outcome in _NO_ACTION:
                self.handled.add(event.call_id)
            case _:
                pass

    def end(self) -> None:
        """Nothing more comes."""
        self.matches += self.fold.matches_at_end()
        if self.old is not None:
            self.old_matches += self.old.matches_at_end()

    @property
    def grade(self) -> str:
        """That of the record that tells the least."""
        return max(self.grades, key=_GRADES.index, default=_GRADES[0])

    def not_shown(self) -> Iterator[tuple[str, str]]:
        """By rule, what it reads and the record does not show."""
        yield from self.fold.missing
        if not self.is_imported:
            return
        families = {name.partition(".")[0] for name in self.types}
        for plan in self.now.plans:
            for family in _families(plan.rule.steps):
                if family not in families:
                    yield plan.rule.name, f"{family}.* events"


def _families(steps: Any) -> list[str]:
    events = (pattern.event for step in steps for pattern in (step, step.without) if pattern is not None)
    return sorted({event.partition(".")[0] for event in events if event is not None})


def _add(answer: Backtest, session: str, run: _Run, examples: int) -> None:
    for name in sorted(run.fold.touched):
        answer.tallies[name].touched += 1
    for rule, what in sorted(set(run.not_shown())):
        answer.tallies[rule].missing[f"{run.grade}: {what}"] += 1
    for name in sorted({match.rule.name for match in run.matches}):
        answer.tallies[name].sessions += 1
    for match in run.matches:
        tally = answer.tallies[match.rule.name]
        tally.matched += 1
        fate = _fate(match, run.handled)
        if fate is not None:
            setattr(tally, fate, getattr(tally, fate) + 1)
        if len(tally.examples) < examples:
            tally.examples.append(
                {
                    "place": f"{session}#{match.seq}",
                    "witnesses": list(match.witnesses),
                    "message": match.message,
                    "fate": fate or "flagged",
                }
            )
    if run.old is not None:
        assert answer.versions is not None
        new = {(one.rule.name, one.seq): one for one in run.matches}
        old = {(answer.versions.new_name(one.rule.name), one.seq): one for one in run.old_matches}
        for way, these, those in (("newly", new, old), ("no_longer", old, new)):
            only = sorted(set(these) - set(those))
            getattr(answer, way).update(rule for rule, _ in only)
            blocked = _blocked(these, run.handled) - _blocked(those, run.handled)
            getattr(answer, f"{way}_blocked").update(rule for rule, _ in blocked)
            room = examples - len(answer.changes[way])
            answer.changes[way] += [
                Change(rule, f"{session}#{seq}", these[rule, seq].message)
                for rule, seq in only[: max(0, room)]
            ]


def _blocked(matches: dict[tuple[str, int], Match], handled: set[str]) -> set[tuple[str, int]]:
    return {place for place, match in matches.items() if _fate(match, handled) == "would_block"}


def _fate(match: Match, handled: set[str]) -> str | None:
    """What became, or would have become, of the call: the name of its count."""
    if match.call_id is not None and match.call_id in handled:
        return "covered"
    if match.rule.action == "flag":
        return None
    return "would_block" if match.kind in _BEFORE_IT_ACTS else "too_late"


def save(recorder: Recorder, home: Path, answer: Backtest) -> Path:
    """Keep an answer as evidence: a file of the home, and an event that names it by its digest."""
    raw = canonical_json(answer.as_json())
    digest = hashlib.sha256(raw).hexdigest()
    path = home / FOLDER / f"{answer.rules.name}-{digest[:16]}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(raw)
    event = EvidenceExported(
        what=f"backtest of {answer.rules.name}", to=f"{FOLDER}/{path.name}", digest=digest
    )
    recorder.append(SESSION, [Draft(event)], recorder.keeper())
    return path
