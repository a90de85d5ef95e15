"""Holds the records of one session against rules, one pass, bounded memory."""

from collections import Counter, OrderedDict, deque
from collections.abc import Iterator
from fractions import Fraction
from functools import partial
from math import isfinite
from typing import Any, NamedTuple

from ledger.audit.detector import Given
from ledger.audit.finding import Found
from ledger.audit.rules.closures import Run
from ledger.audit.rules.conditions import Condition, Scope
from ledger.audit.rules.facts import (
    MISSING_ARGUMENTS,
    MISSING_RESULT,
    MISSING_TIMES,
    Call,
    Facts,
)
from ledger.audit.rules.flow import Tainted, values_among, values_in
from ledger.audit.rules.match import Match, Told
from ledger.audit.rules.places import Place, is_within, seconds_of
from ledger.audit.rules.plan import Entry, Plans, Stage, Test
from ledger.audit.rules.tracks import Bound, Progress, Track
from ledger.audit.rules.values import NO_ANSWER
from ledger.audit.rules.words import Rule
from ledger.events import Record
from ledger.events.input import MessageReceived
from ledger.events.tool_call import ToolCallRequested, ToolCallSettled, ToolCallStarted

_MOST_OPEN = 1000
_MOST_TOOLS = 10_000
_MANY = 3
_ACTED = ("returned", "failed", "unknown")
_CALL, _RAN, _RESULT, _RAN_AND_RESULT = ("call",), ("ran",), ("result",), ("ran", "result")
_NEEDS = (("args", MISSING_ARGUMENTS), ("result", MISSING_RESULT))


class _Move(NamedTuple):
    """A step of a rule that a record may be."""

    number: int
    """Its number in the rule."""

    stage: Stage
    """It."""

    waiting: deque[Track]
    """The beginnings that wait for it; none for a first step, which waits for none."""

    condition: Run | None
    """Its condition, where that is quickly told and the same for all of them."""


class _Watch(NamedTuple):
    """What a sort of record has to be held against, of one rule."""

    entry: Entry
    """What it is about."""

    progress: Progress
    """How far the rule has come."""

    shuts_out: bool
    """Whether it may be what must not come."""

    moves: tuple[_Move, ...]
    """The steps that it may be."""


class RuleFold:
    """All rules of a file over one session."""

    def __init__(self, plans: Plans, given: Given) -> None:
        self._plans = plans
        self._reader = given.reader
        self._progress = [Progress(plan) for plan in plans.plans]
        self._ends = [progress for progress in self._progress if progress.plan.absences]
        self._ending = [progress for progress in self._ends if progress.plan.reach is not None]
        self._watching: dict[tuple[str, str, str], list[_Watch]] = {}
        self._facts = Facts(Scope())
        self._open: OrderedDict[str, Call] = OrderedDict()
        self._tainted = Tainted()
        self._calls = self._turns = 0
        self._told = Told()
        self.missing: Counter[tuple[str, str]] = Counter()
        """By rule and input: how often the rule could not tell because the record does not show it."""
        self.touched: set[str] = set()
        """Rules whose first step was seen, whatever came of it."""

    # -- as a detector --------------------------------------------------------------------------------------

    def take(self, record: Record) -> list[Found]:
        """One more record."""
        matches = self.matches(record)
        return self._told.found(matches) if matches else []

    def end(self) -> list[Found]:
        """What is missing now that nothing more comes."""
        return self._told.found(self.matches_at_end())

    # -- records --------------------------------------------------------------------------------------------

    def matches(self, record: Record) -> list[Match]:
        """Rules that one more record completes."""
        event = record.event
        call: Call | None = None
        outcome = ""
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
                outcome = event.outcome
                if outcome in _ACTED and not call.has_run:
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
            sort = kind, "" if call is None else call.tool, outcome
            watches = self._watching.get(sort)
            if watches is None:
                watches = self._watches(sort)
            if watches:
                place = place or self._place(record)
                if facts is None:
                    facts = self._facts.turn_to(record, call)
                for entry, progress, shuts_out, moves in watches:
                    if shuts_out:
                        self._shut_out(entry, progress, facts, place)
                    for number, stage, waiting, condition in moves:
                        if waiting if number else not progress.is_shut_for_good:
                            is_so = condition is not None and condition(facts, None, None) is True
                            if condition and not is_so and not facts.missing:
                                continue  # by far the most usual case, at the least cost
                            match = self._step(progress, number, stage, kind, facts, place, is_so)
                            if match is not None:
                                found.append(match)
        if self._plans.untrusted is not None and call is not None and kinds[-1:] == _RESULT:
            self._taint(call, record.seq)
        return found

    def _place(self, record: Record) -> Place:
        time = seconds_of(record.occurred_at) if self._plans.reads_times else None
        return Place(record.seq, self._calls, self._turns, time)

    def _watches(self, sort: tuple[str, str, str]) -> list[_Watch]:
        if len(self._watching) >= _MOST_TOOLS:
            self._watching.clear()
        found = self._watching[sort] = [self._watch(entry) for entry in self._plans.entries(*sort)]
        return found

    def _watch(self, entry: Entry) -> _Watch:
        progress = self._progress[entry.number]
        stages = progress.plan.stages
        moves = tuple(
            _Move(number, stages[number], progress.tracks[number], stages[number].quick_condition)
            for number in entry.stages
        )
        return _Watch(entry, progress, bool(entry.absences or entry.guards), moves)

    def _asked(self, event: ToolCallRequested, seq: int) -> Call:
        call = self._open[event.call_id] = Call(event, seq, self._reader)
        self._calls += 1
        if len(self._open) > _MOST_OPEN:
            self._open.popitem(last=False)
        return call

    def _taint(self, call: Call, seq: int) -> None:
        if self._plans.is_untrusted(call.tool):
            self._tainted.add(self._flow(call), seq)

    def _flow(self, call: Call) -> set[str]:
        """The values that came out of a call: those of its result that it had not asked with."""
        if call.flow is None:
            found = values_in(self._reader.value(call.result))
            if found:
                known = call.argument_values
                found -= values_among(self._reader.value(call.arguments)) if known is None else known
            call.flow = found
        return call.flow

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

    def _step(
        self,
        progress: Progress,
        number: int,
        stage: Stage,
        kind: str,
        facts: Facts,
        place: Place,
        is_so: bool,
    ) -> Match | None:
        """What a rule is completed by; `is_so`: the step's condition was found to be true."""
        plan = progress.plan
        if stage.depends:
            if not stage.step.counts:
                progress.prune(number, place, stage.step.within)
            if not stage.test.is_about(facts) or self._is_excluded(progress, number, facts):
                return None
        elif not (stage.test.is_about(facts) if is_so else self._is(stage.test, facts, plan.rule, None)):
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
            amount = (
                told if isinstance(told, int) else Fraction(repr(told))
            )  # as it is written: 0.1 is a tenth
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
        flow = self._flow(call)
        if not flow and self._reader.value(call.result) is None:
            self.missing[rule.name, MISSING_RESULT] += 1
        return call.seq if self._tainted.crosses(flow, arguments) else None

    def _is_so(self, test: Test, facts: Facts, rule: Rule, track: Track) -> bool:
        return self._is(test, facts, rule, track.bound)

    def _is(self, test: Test, facts: Facts, rule: Rule, bound: Bound | None) -> bool:
        if test.asks_effect_first and not test.is_about(facts):
            return False
        condition = test.condition
        if condition is not None:
            native = condition.native
            is_so = facts.holds(condition, bound) if native is None else native(facts, bound, None) is True
            if not is_so:
                if facts.missing and test.is_about(facts):
                    self._note(condition, facts, rule)
                return False
        return test.effects is None or test.is_about(facts)

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
