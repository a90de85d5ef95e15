"""Holds the records of one session against rules, one pass, bounded memory."""

from collections import Counter, OrderedDict
from collections.abc import Iterable, Iterator
from fractions import Fraction
from functools import partial
from math import isfinite
from typing import Any, NamedTuple

from ledger.audit.detector import Given
from ledger.audit.finding import Found
from ledger.audit.rules.conditions import NO_ANSWER, Condition, Scope
from ledger.audit.rules.facts import (
    MISSING_ARGUMENTS,
    MISSING_RESULT,
    MISSING_TIMES,
    Call,
    Facts,
)
from ledger.audit.rules.flow import Tainted, values_in
from ledger.audit.rules.places import Place, is_within, seconds_of
from ledger.audit.rules.plan import Entry, Plans, Stage, Test
from ledger.audit.rules.tracks import Bound, Progress, Track
from ledger.audit.rules.words import Rule
from ledger.events import Record
from ledger.events.input import MessageReceived
from ledger.events.tool_call import ToolCallRequested, ToolCallSettled, ToolCallStarted

_MOST_OPEN = 1000
_MOST_TOOLS = 10_000
_LONGEST_NAME = 100
_MANY = 3
_MOST_TOLD = 1000
_MOST_WITNESSES = 50
_ACTED = ("returned", "failed", "unknown")
_CALL, _RAN, _RESULT, _RAN_AND_RESULT = ("call",), ("ran",), ("result",), ("ran", "result")
_NEEDS = (("args", MISSING_ARGUMENTS), ("result", MISSING_RESULT))


class Match(NamedTuple):
    """A rule's last step came true."""

    rule: Rule
    """The rule."""

    seq: int
    """The record that did it."""

    first: int
    """The record with which it began: matches with the same beginning are one finding."""

    witnesses: tuple[int, ...]
    """The records that made the steps."""

    kind: str
    """What the last step was: `call`, `ran`, `result`, or the name of an event."""

    call_id: str | None
    """The call that it was about."""

    tools: tuple[tuple[str, int], ...]
    """What the steps were: tools, or names of events, each with its seq."""

    @property
    def message(self) -> str:
        """It in words."""
        steps = ", then ".join(f"{_short(tool)} (seq {seq})" for tool, seq in self.tools)
        return f"{self.rule.title}: {steps}"


class _Watch(NamedTuple):
    """What a kind of record and a tool have to be held against."""

    entry: Entry
    """What of a rule."""

    progress: Progress
    """How far the rule has come."""


class RuleFold:
    """All rules of a file over one session."""

    def __init__(self, plans: Plans, given: Given) -> None:
        self._plans = plans
        self._reader = given.reader
        self._progress = [Progress(plan) for plan in plans.plans]
        self._ends = [progress for progress in self._progress if progress.plan.absences]
        self._ending = [progress for progress in self._ends if progress.plan.reach is not None]
        self._watching: dict[tuple[str, str], list[_Watch]] = {}
        self._facts = Facts(Scope())
        self._open: OrderedDict[str, Call] = OrderedDict()
        self._tainted = Tainted()
        self._calls = self._turns = 0
        self._told: OrderedDict[tuple[str, int], Found] = OrderedDict()
        self.missing: Counter[tuple[str, str]] = Counter()
        """By rule and input: how often the rule could not tell because the record does not show it."""
        self.touched: set[str] = set()
        """Rules whose first step was seen, whatever came of it."""

    # -- as a detector --------------------------------------------------------------------------------------

    def take(self, record: Record) -> list[Found]:
        """One more record."""
        return self._found(self.matches(record))

    def end(self) -> list[Found]:
        """What is missing now that nothing more comes."""
        return self._found(self.matches_at_end())

    def _found(self, matches: Iterable[Match]) -> list[Found]:
        return [found for match in matches if (found := self._told_of(match)) is not None]

    def _told_of(self, match: Match) -> Found | None:
        """What is new to tell of it."""
        key = match.rule.name, match.first
        before = self._told.pop(key, None)
        if before is None:
            found = Found(
                match.seq,
                match.message,
                match.witnesses,
                severity=match.rule.severity,
                part=match.rule.name,
                key=str(match.first),
                level="action" if _is_of_one_action(match.rule) else "trajectory",
            )
        elif len(before.witnesses) >= _MOST_WITNESSES:
            found = before
        else:
            found = before._replace(witnesses=tuple(sorted({*before.witnesses, *match.witnesses})))
        self._told[key] = found
        if len(self._told) > _MOST_TOLD:
            self._told.popitem(last=False)
        return None if found is before else found

    # -- records --------------------------------------------------------------------------------------------

    def matches(self, record: Record) -> list[Match]:
        """Rules that one more record completes."""
        event = record.event
        call: Call | None = None
        kinds: tuple[str, ...]
        if isinstance(event, ToolCallRequested):
            call, kinds = self._asked(event, record.seq), _CALL
        elif isinstance(event, ToolCallStarted):
            call = self._open.get(event.call_id)
            kinds = () if call is None or call.has_run else _RAN
            if call is not None:
                call.has_run = True
        elif isinstance(event, ToolCallSettled):
            call = self._open.pop(event.call_id, None)
            kinds = () if call is None else _RESULT
            if call is not None:
                call.result = event.result
                if event.outcome in _ACTED and not call.has_run:
                    kinds = _RAN_AND_RESULT
        else:
            kinds = (event.TYPE,)
            if isinstance(event, MessageReceived) and event.origin == "human":
                self._turns += 1
                if self._plans.follows_values:
                    self._tainted.trust([self._reader.value(event.message)])
        found: list[Match] = []
        place: Place | None = None
        for progress in self._ending:
            if progress.waiting:
                place = place or self._place(record)
                found += self._expired(progress, place)
        facts: Facts | None = None
        for kind in kinds:
            watches = self._watches(kind, "" if call is None else call.tool)
            if watches:
                place = place or self._place(record)
                if facts is None:
                    facts = self._facts.turn_to(record, call)
                for entry, progress in watches:
                    if entry.absences or entry.guards:
                        self._shut_out(entry, progress, facts, place)
                    for number in entry.stages:
                        if progress.tracks[number] if number else not progress.is_shut_for_good:
                            match = self._step(progress, number, kind, facts, place)
                            if match is not None:
                                found.append(match)
        if call is not None and kinds and kinds[-1] == "result":
            self._taint(call, record.seq)
        return found

    def _place(self, record: Record) -> Place:
        time = seconds_of(record.occurred_at) if self._plans.reads_times else None
        return Place(record.seq, self._calls, self._turns, time)

    def _watches(self, kind: str, tool: str) -> list[_Watch]:
        found = self._watching.get((kind, tool))
        if found is None:
            if len(self._watching) >= _MOST_TOOLS:
                self._watching.clear()
            entries = self._plans.entries(kind, tool)
            found = [_Watch(entry, self._progress[entry.number]) for entry in entries]
            self._watching[kind, tool] = found
        return found

    def _asked(self, event: ToolCallRequested, seq: int) -> Call:
        call = self._open[event.call_id] = Call(event, seq, self._reader)
        self._calls += 1
        if len(self._open) > _MOST_OPEN:
            self._open.popitem(last=False)
        return call

    def _taint(self, call: Call, seq: int) -> None:
        untrusted = self._plans.untrusted
        if self._plans.follows_values and untrusted is not None and untrusted.match(call.tool):
            known = values_in(self._reader.value(call.arguments))
            self._tainted.add(self._reader.value(call.result), seq, known)

    def matches_at_end(self) -> Iterator[Match]:
        """Rules whose last absence lasted until the end. May be asked again."""
        for progress in self._ends:
            yield from (self._missed(progress, track) for track in progress.waiting)

    # -- one rule -------------------------------------------------------------------------------------------

    def _shut_out(self, entry: Entry, progress: Progress, facts: Facts, place: Place) -> None:
        """What must not come has come: beginnings end, or none begins."""
        rule = progress.plan.rule
        for test in entry.absences:
            if progress.waiting:
                progress.fulfil(partial(self._is_so, test, facts, rule))
        for number, guard in entry.guards:
            if number == 0:
                if not progress.is_shut_for_good and self._is(guard, facts, rule, None):
                    progress.shut_at(place)
            elif progress.tracks[number]:
                progress.drop(number, partial(self._is_so, guard, facts, rule))

    def _step(self, progress: Progress, number: int, kind: str, facts: Facts, place: Place) -> Match | None:
        plan = progress.plan
        stage = plan.stages[number]
        if stage.depends:
            if not stage.test.is_about(facts) or self._is_excluded(progress, number, facts):
                return None
        elif not self._is(stage.test, facts, plan.rule, None):
            return None
        is_last = number == len(plan.stages) - 1
        done: Track | None = None
        for track, inside in progress.candidates(number, place, stage.step.within):
            if inside is None:
                self.missing[plan.rule.name, MISSING_TIMES] += 1
                continue
            gone_on = self._carried(progress, stage, track, facts, place)
            if gone_on is None:
                continue
            if not is_last:
                progress.wait(number + 1, gone_on)
            elif plan.absences:
                progress.waiting.append(gone_on)
            else:
                done = gone_on  # several beginnings lead here: the latest tells it
        return None if done is None else self._match(plan.rule, done, kind, facts.call)

    def _is_excluded(self, progress: Progress, number: int, facts: Facts) -> bool:
        prefilter, tracks = progress.plan.stages[number].prefilter, progress.tracks[number]
        if prefilter is None or len(tracks) < _MANY:
            return False
        return facts.excludes_all(
            prefilter, progress.versions[number], lambda: (track.bound for track in tracks)
        )

    def _carried(
        self, progress: Progress, stage: Stage, track: Track, facts: Facts, place: Place
    ) -> Track | None:
        """The track one step further; None where this record is not its next step."""
        rule, step = progress.plan.rule, stage.step
        bound = track.bound or None
        if stage.depends and not self._answers(stage.test.condition, facts, rule, bound):
            return None
        if track is progress.root:
            self.touched.add(rule.name)
        first = place.seq
        seqs: tuple[int, ...] = (place.seq,)
        if step.flows_from is not None:
            source = self._source(step.flows_from, track, facts, rule)
            if source is None:
                return None
            seqs = (source, place.seq)
        if step.counts:
            counted = self._counted(stage, track, facts, place, bound, rule)
            if counted is None:
                return None
            first, seqs = counted
        call = facts.call
        what: Any = call if call is not None else facts["event"] if step.name is not None else None
        tool = call.tool if call is not None else facts.record.type
        return track.gone_on(place, first, seqs, step.name, what, tool)

    def _counted(
        self, stage: Stage, track: Track, facts: Facts, place: Place, bound: Bound | None, rule: Rule
    ) -> tuple[int, tuple[int, ...]] | None:
        amount: int | Fraction = 1
        group = ""
        if stage.sum is not None:
            told = facts.answer(stage.sum, bound)
            if isinstance(told, bool) or not isinstance(told, int | float) or not isfinite(told):
                self._note(stage.sum, facts, rule)
                return None
            amount = told if isinstance(told, int) else Fraction(told)
        if stage.by is not None:
            told = facts.answer(stage.by, bound)
            if told is NO_ANSWER:
                self._note(stage.by, facts, rule)
                return None
            group = repr(told)
        span = stage.step.within
        if span is not None and span.seconds is not None and place.time is None:
            self.missing[rule.name, MISSING_TIMES] += 1
            return None
        return track.window(group[:200]).add(place, amount, stage)

    def _source(self, name: str, track: Track, facts: Facts, rule: Rule) -> int | None:
        """The record out of whose result a value among the arguments came."""
        arguments = facts.arguments_flow()
        if MISSING_ARGUMENTS in facts.missing:
            self.missing[rule.name, MISSING_ARGUMENTS] += 1
            return None
        if name == "untrusted":
            return self._tainted.source_of(arguments)
        call = track.bound.call(name)
        if call is None or call.result is None:
            return None
        if call.flow is None:
            result = self._reader.value(call.result)
            if result is None:
                self.missing[rule.name, MISSING_RESULT] += 1
            call.flow = values_in(result) - values_in(self._reader.value(call.arguments))
        return call.seq if self._tainted.crosses(call.flow, arguments) else None

    def _is_so(self, test: Test, facts: Facts, rule: Rule, track: Track) -> bool:
        return self._is(test, facts, rule, track.bound)

    def _is(self, test: Test, facts: Facts, rule: Rule, bound: Bound | None) -> bool:
        condition = test.condition
        if condition is None:
            return test.is_about(facts)
        if not test.could_be_about(facts):
            return False
        if facts.holds(condition, bound):
            return test.is_about(facts)
        if facts.missing and test.is_about(facts):
            self._note(condition, facts, rule)
        return False

    def _answers(self, condition: Condition | None, facts: Facts, rule: Rule, bound: Bound | None) -> bool:
        if condition is None or facts.holds(condition, bound):
            return True
        self._note(condition, facts, rule)
        return False

    def _note(self, condition: Condition | None, facts: Facts, rule: Rule) -> None:
        if facts.missing and condition is not None:
            for name, what in _NEEDS:
                if name in condition.reads and what in facts.missing:
                    self.missing[rule.name, what] += 1

    # -- told -----------------------------------------------------------------------------------------------

    def _expired(self, progress: Progress, now: Place) -> Iterator[Match]:
        reach = progress.plan.reach
        if reach is None:
            return
        while progress.waiting:
            inside = is_within(reach, progress.waiting[0].place, now)
            if inside is None:
                self.missing[progress.plan.rule.name, MISSING_TIMES] += 1
                progress.waiting.popleft()
            elif inside:
                return
            else:
                yield self._missed(progress, progress.waiting.popleft())

    def _missed(self, progress: Progress, track: Track) -> Match:
        return self._match(progress.plan.rule, track, "end", None)

    @staticmethod
    def _match(rule: Rule, track: Track, kind: str, call: Call | None) -> Match:
        witnesses = tuple(sorted(set(track.seqs)))
        call_id = None if call is None else call.call_id
        return Match(rule, track.place.seq, track.first, witnesses, kind, call_id, track.tools)


def _is_of_one_action(rule: Rule) -> bool:
    step = rule.steps[0]
    return len(rule.steps) == 1 and not step.counts and step.flows_from is None


def _short(name: str) -> str:
    return name if len(name) <= _LONGEST_NAME else f"{name[:_LONGEST_NAME]}…"
