"""Which actions pause by the runtime? By the questions and the rules that stood before tool calls."""

from collections import Counter, OrderedDict
from dataclasses import dataclass

from ledger.audit import Reader
from ledger.effects.classes import RANK, classify
from ledger.events import Record
from ledger.events.approval import ApprovalAsked, ApprovalDecided
from ledger.events.governance import ModeChanged
from ledger.events.policy import BreakerTripped, Held, PolicyEvaluated
from ledger.events.tool_call import EffectClass, ToolCallRequested
from replay.scorecard.answer import Answer, Asker, Evidence, nothing, some

_MOST_CALLS = 10_000
_NOT_PAUSING = ("policy", "system")


@dataclass
class _Call:
    """One tool call, while more may be told of it."""

    effect: EffectClass | None = None
    tool: str = ""
    is_paused: bool = False
    is_ruled: bool = False


class Pauses(Asker):
    """One session."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._seen = Evidence()
        self._calls: OrderedDict[str, _Call] = OrderedDict()
        self._all: Counter[EffectClass] = Counter()
        self._paused: Counter[EffectClass] = Counter()
        self._ruled: Counter[EffectClass] = Counter()
        self._tools: Counter[str] = Counter()
        self._modes: dict[str, None] = {}
        self._of_no_call = 0

    def take(self, record: Record) -> None:
        """One more record."""
        event = record.event
        match event:
            case ToolCallRequested():
                arguments = self._reader.value(event.arguments)
                call = self._call(event.call_id)
                call.effect = classify(event.tool, arguments, declared=event.effect_class).effect_class
                call.tool = event.tool
            case ApprovalAsked():
                self._seen.add(record, "asked before it went on")
                if event.call_id is None:
                    self._of_no_call += 1
                else:
                    self._call(event.call_id).is_paused = True
            case ApprovalDecided() if event.outcome != "unknown":
                self._seen.add(record, f"{event.outcome} by {event.decided_by}")
                if event.call_id is not None:
                    call = self._call(event.call_id)
                    # a source that does not tell who answered tells that somebody was asked
                    call.is_paused |= event.decided_by not in _NOT_PAUSING
                    call.is_ruled |= event.decided_by == "policy"
            case PolicyEvaluated() if event.verdict in ("deny", "ask", "allow"):
                self._seen.add(record, f"a rule said {event.verdict}")
                if event.call_id is not None:
                    self._call(event.call_id).is_ruled = True
            case BreakerTripped() | Held():
                self._seen.add(record, "stopped by a breaker or a person")
            case ModeChanged() if event.mode == "approval" and len(self._modes) < 20:
                self._modes[event.new] = None
                self._seen.add(record, f"approval mode: {event.new}")
            case _:
                pass

    def _call(self, call_id: str) -> _Call:
        call = self._calls.setdefault(call_id, _Call())
        if len(self._calls) > _MOST_CALLS:
            self._count(self._calls.popitem(last=False)[1])
        return call

    def _count(self, call: _Call) -> None:
        if call.effect is None:
            return
        self._all[call.effect] += 1
        self._paused[call.effect] += call.is_paused
        self._ruled[call.effect] += call.is_ruled and not call.is_paused
        if call.is_paused:
            self._tools[call.tool] += 1

    def answer(self) -> Answer:
        """The answer."""
        while self._calls:
            self._count(self._calls.popitem(last=False)[1])
        facts = {
            "calls": self._all.total(),
            "by_class": {
                name: {"calls": self._all[name], "paused": self._paused[name], "ruled": self._ruled[name]}
                for name in RANK
                if self._all[name]
            },
            "tools_paused": dict(sorted(self._tools.items())),
            "questions_of_no_call": self._of_no_call,
            "modes": list(self._modes),
        }
        if not self._seen:
            return nothing("pauses", "no question, no rule and no mode of approval is on record", **facts)
        witnesses = tuple(self._seen.witnesses)
        acting = [name for name in self._all if name != "read"]
        acts, paused = sum(self._all[name] for name in acting), sum(self._paused[name] for name in acting)
        rules = f"; a rule decided {self._ruled.total()}" if self._ruled.total() else ""
        modes = f"; approval mode {some(self._modes, 3)}" if self._modes else ""
        of = f"{paused} of {acts} calls that act paused, and {self._paused['read']} of {self._all['read']} that look"
        others = f"; {self._of_no_call} questions of no one call" if self._of_no_call else ""
        told = f"{of}{rules}{others}{modes}"
        if self._all.total() == 0 and not self._of_no_call:
            return Answer("pauses", "nothing to pause", f"no tool was called{modes}", witnesses, facts)
        if acts and paused == acts:
            return Answer("pauses", "all that act", told, witnesses, facts)
        if self._paused.total() or self._of_no_call:
            return Answer("pauses", "some", told, witnesses, facts)
        return Answer("pauses", "by rule" if self._ruled.total() else "none", told, witnesses, facts)
