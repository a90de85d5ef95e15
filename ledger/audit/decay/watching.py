"""Follows one session: what the model saw of each rule at each call, which cut took it away, which calls broke it."""

from collections import OrderedDict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from ledger.audit.decay.outcome import (
    Cut,
    How,
    Outlived,
    SessionDecay,
    Shortening,
    Sighting,
    Stand,
    Use,
    Where,
    Why,
)
from ledger.audit.decay.registry import Registry, Rule
from ledger.audit.decay.seeing import Eyes
from ledger.audit.reader import Reader
from ledger.constraints.visibility import KEPT
from ledger.effects.constraints import Constraint
from ledger.events import ContentRef, Event, Record
from ledger.events.compaction import CompactionDone, ConstraintPinned
from ledger.events.governance import ArtifactChanged, ConstraintDeclared, ConstraintWithdrawn
from ledger.events.input import ContextInjected, MessageReceived
from ledger.events.model_call import ModelCallRequested
from ledger.events.tool_call import ToolCallRequested, ToolCallSettled

READS: tuple[type[Event], ...] = (
    ArtifactChanged,
    CompactionDone,
    ConstraintDeclared,
    ConstraintPinned,
    ConstraintWithdrawn,
    ContextInjected,
    MessageReceived,
    ModelCallRequested,
    ToolCallRequested,
    ToolCallSettled,
)
"""Events that it wants."""

_LOOPS = ("main", "sub-agent", "unknown")
_MOST_OPEN = 500
_CHARACTERS_A_TOKEN = 4
_RULE_FILES = ("rule_file", "prompt")


@dataclass
class _Standing:
    """A rule in one conversation."""

    how: How = "unknown"
    is_shown: bool = False
    is_alive: bool = False
    is_over: bool = False
    cuts: int = 0
    lost_by: int | None = None
    steps: int = 0


@dataclass
class _Lane:
    messages: list[str] = field(default_factory=list)
    standing: dict[str, _Standing] = field(default_factory=dict)
    cut: Cut | None = None
    cuts: int = 0
    came: dict[str, bool] = field(default_factory=dict)
    """Messages since the last request, and whether somebody is known to have sent them."""


class _Asked(NamedTuple):
    seq: int
    call_id: str
    lane: str
    cut: Cut | None


class DecayWatch:
    """Give it the records of a session in order with `take`; `result` holds what is known by then."""

    def __init__(
        self, session: str, reader: Reader, declared: Iterable[Constraint] = (), *, finds: bool = True
    ) -> None:
        self.result = SessionDecay(session)
        self.registry = Registry(declared, finds=finds)
        self.result.rules = self.registry.rules
        self._reader = reader
        self._eyes = Eyes(reader)
        self._lanes: dict[str, _Lane] = {}
        self._of_agent: dict[str | None, str] = {}
        self._last: str | None = None
        self._looked: set[str] = set()
        self._pins: OrderedDict[str, None] = OrderedDict()
        self._open: OrderedDict[str, list[Use]] = OrderedDict()
        self._tools: OrderedDict[str, tuple[str, ContentRef]] = OrderedDict()
        self._done: dict[str, int] = {}
        self._is_ended = False

    def take(self, record: Record) -> None:
        """One more record."""
        event, seq = record.event, record.seq
        match event:
            case ConstraintDeclared():
                self.registry.declare(event, seq, self._reader)
            case ConstraintWithdrawn():
                self.registry.withdraw(event.constraint, seq)
            case ArtifactChanged() if event.kind in _RULE_FILES and event.content is not None:
                origin: Literal["file", "system"] = "file" if event.kind == "rule_file" else "system"
                self.registry.find("\n".join(self._reader.words(event.content)), origin, seq)
            case MessageReceived():
                self._came(event.message, is_typed=event.origin != "unknown")
                if event.origin in ("human", "file") and self._looked_at(event.message.digest):
                    source: Literal["file", "user"] = "file" if event.origin == "file" else "user"
                    self.registry.find("\n".join(self._reader.words(event.message)), source, seq)
            case ContextInjected():
                self._came(event.message, is_typed=True)
            case ConstraintPinned():
                self._pins["\n".join(self._reader.words(event.message))] = None
                self.result.pinned.append((event.constraint, event.tokens or 0, event.request_tokens or 0))
            case CompactionDone():
                self._compacted(event, record)
            case ModelCallRequested() if event.purpose in _LOOPS:
                self._asked(event, record)
            case ToolCallRequested():
                self._called(event, record)
            case ToolCallSettled():
                self._settled(event)
            case _:
                pass

    def end(self) -> SessionDecay:
        """Nothing more comes, for now: rules that still live are counted as such."""
        result = self.result
        shown = [*result.outlived]
        for lane in self._lanes.values():
            for name, standing in lane.standing.items():
                if standing.is_alive:
                    shown.append(Outlived(name, standing.cuts, False))
        waiting = [use for uses in self._open.values() for use in uses]
        return SessionDecay(
            result.session,
            result.rules,
            result.sightings,
            result.cuts,
            sorted([*result.uses, *waiting], key=lambda use: (use.seq, use.rule)),
            shown,
            result.exposure,
            result.pinned,
            result.advice,
        )

    # -- contexts --------------------------------------------------------------------------------------------

    def _came(self, message: ContentRef, *, is_typed: bool) -> None:
        for lane in self._lanes.values():
            lane.came[message.digest] = is_typed or lane.came.get(message.digest, False)

    def _looked_at(self, digest: str) -> bool:
        """Whether it is looked at for the first time."""
        if digest in self._looked:
            return False
        self._looked.add(digest)
        return True

    def _compacted(self, event: CompactionDone, record: Record) -> None:
        key = self._of_agent.get(record.agent, self._last)
        if key is None:
            return
        left = None
        if event.context_after is not None:
            left = tuple(self._reader.context(event.context_after)) or None
            self._looked.update(left or ())
        self._lanes[key].cut = Cut(record.seq, event.compaction_id, left)
        self._lanes[key].came.clear()

    def _asked(self, event: ModelCallRequested, record: Record) -> None:
        key = event.lane or record.agent or ""
        lane = self._lanes.setdefault(key, _Lane())
        self._of_agent[record.agent], self._last = key, key
        messages = self._reader.context(event.context)
        is_known = event.completeness in ("body", "messages") and (event.context is None or bool(messages))
        cut = lane.cut or self._unlogged(lane, messages, record.seq)
        self._find(event, messages, record.seq, is_after_cut=cut is not None)
        if cut is not None:
            lane.cuts += 1
            is_logged = cut.compaction_id is not None
            found = Shortening(cut.seq, is_logged, lane.cuts, lane=key, request=record.seq)
            self._shorten(lane, cut, event.system, messages, found)
        asked, tokens = _Asked(record.seq, event.call_id, key, cut), 0
        for rule in self.registry.in_force():
            standing = lane.standing.setdefault(rule.name, _Standing())
            seen, where = self._eyes.look(rule.text, event.system, messages)
            how: How = seen.visibility if is_known or seen.visibility in KEPT else "unknown"
            self._stands(rule, standing, how, where, asked)
            if standing.lost_by is not None and how not in KEPT:
                tokens = tokens or self._tokens(event, messages)
                calls, cost, all_tokens = self.result.advice.get(rule.name, (0, 0, 0))
                own = -(-len(rule.text) // _CHARACTERS_A_TOKEN)
                self.result.advice[rule.name] = (calls + 1, cost + own, all_tokens + tokens)
        lane.messages, lane.cut = messages, None
        lane.came.clear()

    def _unlogged(self, lane: _Lane, messages: list[str], seq: int) -> Cut | None:
        """Messages that were there are gone, and nobody logged why."""
        there = set(messages)
        gone = [digest for digest in lane.messages if digest not in there]
        if not gone:
            return None
        said = {one.text for digest in messages for one in self._eyes.said(digest)}
        if all(one.text in said for digest in gone for one in self._eyes.said(digest)):
            return None  # the same words in another wrapping
        return Cut(seq, None, tuple(self._left(lane, messages)))

    def _left(self, lane: _Lane, messages: list[str]) -> Iterator[str]:
        """What a cut left whose context is not logged: all but what has come in since. What stands before the messages
        that stayed, or begins the conversation where none did, is its summary, though it looks like a user's message.
        """
        talk = [digest for digest in messages if not self._is_system(digest)]
        before = set(lane.messages)
        stayed = next((at for at, digest in enumerate(talk) if digest in before), 1)
        summary = set(talk[:stayed])
        for digest in messages:
            if digest not in lane.came or (digest in summary and not lane.came[digest]):
                yield digest

    def _is_system(self, digest: str) -> bool:
        return any(one.who == "system" for one in self._eyes.said(digest))

    def _find(self, event: ModelCallRequested, messages: list[str], seq: int, *, is_after_cut: bool) -> None:
        if event.system is not None and self._looked_at(event.system.digest):
            text = self._eyes.system_text(event.system)
            for pinned in self._pins:
                text = text.replace(pinned, "")
            self.registry.find(text, "system", seq)
        for digest in messages:
            if self._looked_at(digest) and not is_after_cut:
                for one in self._eyes.said(digest):
                    if one.who in ("user", "system"):
                        self.registry.find(one.text, "user" if one.who == "user" else "system", seq)

    def _shorten(
        self, lane: _Lane, cut: Cut, system: ContentRef | None, messages: list[str], found: Shortening
    ) -> None:
        """What is left because of the cut: not what people, the harness or a pin have put back since."""
        left = cut.context
        if left is None:
            left = tuple(self._left(lane, messages))
        before = set(lane.messages)
        found.summary = next((one for one in left if one not in before and not self._is_system(one)), None)
        for rule in self.registry.in_force():
            standing = lane.standing.get(rule.name)
            if standing is None or not standing.is_shown:
                continue
            seen, where = self._eyes.look(rule.text, system, left, without=tuple(self._pins))
            is_kept = seen.visibility in KEPT
            found.stands[rule.name] = Stand(seen.visibility, where)
            found.all_shown += 1
            found.all_kept += is_kept
            if standing.is_alive:
                standing.cuts += 1
                found.before.append(rule.name)
                if not is_kept:
                    found.lost[rule.name] = seen.visibility
                    standing.is_alive, standing.is_over = False, True
                    self.result.outlived.append(Outlived(rule.name, standing.cuts, True))
        self.result.cuts.append(found)

    def _stands(self, rule: Rule, standing: _Standing, how: How, where: Where | None, asked: _Asked) -> None:
        seq, cut = asked.seq, asked.cut
        is_seen = how in KEPT
        was_seen = standing.how in KEPT
        if is_seen:
            standing.lost_by, standing.steps = None, 0
            if not standing.is_shown:
                standing.is_alive = True
            standing.is_shown = True
        elif was_seen and how != "unknown":
            standing.lost_by = seq if cut is None else cut.seq
        elif standing.lost_by is None and cut is not None and standing.is_over and how != "unknown":
            standing.lost_by = cut.seq
        if how != standing.how:
            standing.how = how
            lost_by = standing.lost_by
            self.result.sightings.append(
                Sighting(rule.name, seq, asked.call_id, asked.lane, how, lost_by, where)
            )

    def _tokens(self, event: ModelCallRequested, messages: list[str]) -> int:
        characters = sum(self._eyes.size(digest) for digest in messages)
        characters += (event.system.size if event.system else 0) + (event.tools.size if event.tools else 0)
        return max(1, characters // _CHARACTERS_A_TOKEN)

    # -- calls -----------------------------------------------------------------------------------------------

    def _called(self, event: ToolCallRequested, record: Record) -> None:
        key = self._of_agent.get(record.agent, self._last)
        lane = None if key is None else self._lanes[key]
        arguments = self._reader.value(event.arguments)
        uses: list[Use] = []
        for rule in self.registry.in_force():
            standing = _Standing() if lane is None else lane.standing.get(rule.name, _Standing())
            if standing.lost_by is not None:
                standing.steps += 1
                self.result.exposure[rule.name] = self.result.exposure.get(rule.name, 0) + 1
            if rule.check is not None and rule.check.concerns(event.tool):
                if (broken := self._breaks(rule.check, event.tool, arguments)) is None:
                    continue
                uses.append(_use(rule, standing, event.tool, record.seq, broken))
        self._tools[event.call_id] = event.tool, event.arguments
        self._open[event.call_id] = uses
        if len(self._open) > _MOST_OPEN:
            _, oldest = self._open.popitem(last=False)
            self.result.uses += oldest
            self._tools.popitem(last=False)

    def _breaks(self, check: Constraint, tool: str, arguments: object) -> bool | None:
        """Whether a call breaks a rule; None where it is none that the rule is about, after a closer look."""
        if any(pattern.fits(tool, arguments) for pattern in check.broken_by):
            return True
        demand = check.demands
        if demand is not None and demand.before.fits(tool, arguments):
            met = self._done.get(check.name, 0) > 0
            if demand.each_time and met:
                self._done[check.name] = 0
            return not met
        return False if any(pattern.is_about(tool) for pattern in check.broken_by) else None

    def _settled(self, event: ToolCallSettled) -> None:
        uses = self._open.pop(event.call_id, [])
        told = self._tools.pop(event.call_id, None)
        if event.outcome in ("denied", "not_started"):
            return  # it was not done
        self.result.uses += uses
        if told is None or event.outcome != "returned":
            return
        for rule in self.registry.in_force():
            demand = None if rule.check is None else rule.check.demands
            if demand is not None and demand.call.fits(told[0], self._reader.value(told[1])):
                self._done[rule.check.name if rule.check else ""] = 1


def _use(rule: Rule, standing: _Standing, tool: str, seq: int, broken: bool) -> Use:
    why: Why = "unknown"
    if standing.how in KEPT:
        why = "wilful"
    elif standing.how != "unknown" and standing.lost_by is not None:
        why = "decay"
    return Use(rule.name, seq, tool, broken, standing.how, why, standing.lost_by, standing.steps)
