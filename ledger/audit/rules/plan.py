"""Rules compiled: what each record has to be held against, found by its kind and its tool."""

import re
from dataclasses import dataclass, field
from fractions import Fraction

from ledger.audit.rules.closures import Run
from ledger.audit.rules.conditions import Condition, Prefilter
from ledger.audit.rules.facts import Facts
from ledger.audit.rules.file import RuleSet, glob
from ledger.audit.rules.words import Pattern, Rule, Span, Step

_HAPPENED = ("returned", "failed")
_MOST_TOOLS = 10_000
_OF_EFFECTS = frozenset({"effect", "target", "words"})


@dataclass(frozen=True)
class Test:
    """Whether a record of the right kind and tool is meant."""

    kind: str
    """`call`, `ran`, `result` or the name of an event."""

    tools: re.Pattern[str] | None
    """Its tools; None for another event."""

    effects: tuple[str, ...] | None
    """Its effect classes."""

    outcomes: tuple[str, ...] | None
    """Its outcomes."""

    condition: Condition | None
    """What must be true besides."""

    asks_effect_first: bool
    """Whether the condition cannot be told without looking at what the call does."""

    def fits(self, kind: str, tool: str, outcome: str) -> bool:
        """Whether it can be about such records: the first thing that is asked, once for all of them."""
        if kind != self.kind or (kind == "result" and outcome not in (self.outcomes or _HAPPENED)):
            return False
        return self.tools is None or self.tools.match(tool) is not None

    def is_about(self, facts: Facts) -> bool:
        """Whether the effect of a record that it fits is as it must be."""
        return self.effects is None or (facts.call is not None and facts.call.effect() in self.effects)


@dataclass(frozen=True)
class Stage:
    """One step that is there, with the absences before it."""

    test: Test
    """What it is."""

    step: Step
    """As it is written."""

    guards: tuple[Test, ...]
    """What must not come before it."""

    guards_reach: Span | None
    """Of the first step: how far back its guards look; None: to the beginning."""

    by: Condition | None
    """By what it is counted apart."""

    sum: Condition | None
    """What it adds up."""

    over: Fraction | None
    """What the sum must be over, as it is written."""

    prefilter: Prefilter | None
    """Its condition, asked of all that wait for it at once."""

    depends: bool
    """Whether its condition depends on which beginning it is asked of."""

    @property
    def quick_condition(self) -> Run | None:
        """Its condition, where that depends on the record alone, and is told before what the call does."""
        condition = self.test.condition
        if condition is None or self.depends or self.test.asks_effect_first:
            return None
        return condition.native


@dataclass(frozen=True)
class Plan:
    """One rule."""

    rule: Rule
    """As it is written."""

    stages: tuple[Stage, ...]
    """Its steps."""

    absences: tuple[Test, ...]
    """What must not come after its last step."""

    reach: Span | None
    """How far after it; None: to the end of the session."""

    keeps: int
    """How many beginnings are kept at each step: one, the latest, where no step depends on which it was."""


@dataclass
class Entry:
    """What of one rule is about a kind of record and a tool."""

    number: int
    """The rule's number."""

    stages: list[int] = field(default_factory=list)
    """Its steps, the last first, so that one record does not serve as two."""

    guards: list[tuple[int, Test]] = field(default_factory=list)
    """Absences before a step."""

    absences: list[Test] = field(default_factory=list)
    """Absences after the last."""


class Plans:
    """All rules of a file."""

    def __init__(self, rules: RuleSet) -> None:
        self.rules = rules
        """As they were read."""
        self.plans = [self._plan(*one) for one in enumerate(rules.file.rules)]
        """One for each rule."""
        steps = [step for rule in rules.file.rules for step in rule.steps]
        spans = [step.within for step in steps if step.within is not None]
        self.reads_times = any(span.seconds is not None for span in spans)
        """Whether some rule measures seconds."""
        self.follows_values = any(step.flows_from is not None for step in steps)
        """Whether some rule follows values."""
        names = rules.file.untrusted if self.follows_values else ()
        self.untrusted = glob(names) if names else None
        """Tools whose results are not trusted, where some rule follows values."""
        self._is_untrusted: dict[str, bool] = {}
        self.kinds = {
            pattern.kind
            for step in steps
            for pattern in (step, step.without)
            if pattern is not None and pattern.kind
        }
        """The kinds of records that some rule is about."""
        self.counts_turns = any(span.turns is not None for span in spans)
        """Whether some rule counts messages of people."""
        self._entries: dict[tuple[str, str, str], list[Entry]] = {}

    def _plan(self, number: int, rule: Rule) -> Plan:
        stages: list[Stage] = []
        waiting: list[Test] = []
        reach: Span | None = None
        for step in rule.steps:
            if step.without is not None:
                waiting.append(self._test(step.without))
                reach = step.within or reach
                continue
            test = self._test(step)
            prefilter = Prefilter.of(test.condition, f"earlier_{number}_{len(stages)}")
            stages.append(
                Stage(
                    test,
                    step,
                    tuple(waiting),
                    None if stages else reach,
                    self._condition(step.by),
                    self._condition(step.sum),
                    None if step.over is None else Fraction(repr(step.over)),
                    prefilter,
                    test.condition is not None and bool(test.condition.earlier),
                )
            )
            waiting, reach = [], None
        named = {step.name for step in rule.steps if step.name is not None}
        depends = bool(named) or any(step.counts for step in rule.steps[1:])
        return Plan(rule, tuple(stages), tuple(waiting), reach, 32 if depends else 1)

    def _test(self, pattern: Pattern) -> Test:
        condition = self._condition(pattern.condition)
        return Test(
            pattern.kind,
            glob(pattern.tools) if pattern.tools else None,
            pattern.effect,
            pattern.outcome,
            condition,
            condition is not None and not _OF_EFFECTS.isdisjoint(condition.reads),
        )

    def _condition(self, text: str | None) -> Condition | None:
        return None if text is None else self.rules.conditions[text]

    def is_untrusted(self, tool: str) -> bool:
        """Whether the results of a tool are not trusted."""
        found = self._is_untrusted.get(tool)
        if found is None:
            if len(self._is_untrusted) >= _MOST_TOOLS:
                self._is_untrusted.clear()
            found = self.untrusted is not None and self.untrusted.match(tool) is not None
            self._is_untrusted[tool] = found
        return found

    def entries(self, kind: str, tool: str, outcome: str) -> list[Entry]:
        """What is about such a record."""
        found = self._entries.get((kind, tool, outcome))
        if found is None:
            if len(self._entries) >= _MOST_TOOLS:
                self._entries.clear()
            told = kind, tool, outcome
            entries = (self._entry(number, plan, *told) for number, plan in enumerate(self.plans))
            found = [one for one in entries if one.stages or one.guards or one.absences]
            self._entries[told] = found
        return found

    @staticmethod
    def _entry(number: int, plan: Plan, kind: str, tool: str, outcome: str) -> Entry:
        def fits(test: Test) -> bool:
            return test.fits(kind, tool, outcome)

        entry = Entry(number)
        for place, stage in reversed(list(enumerate(plan.stages))):
            entry.guards += [(place, guard) for guard in stage.guards if fits(guard)]
            if fits(stage.test):
                entry.stages.append(place)
        entry.absences = [test for test in plan.absences if fits(test)]
        return entry
