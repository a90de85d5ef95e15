"""What conditions may read of a record: looked up when something reads it, once for all rules."""

from collections.abc import Callable, Iterable
from decimal import Decimal
from typing import Any

from ledger.audit.reader import Reader
from ledger.audit.rules.closures import Bound
from ledger.audit.rules.conditions import DEEPEST, Condition, Prefilter, Scope, is_shallow
from ledger.audit.rules.expressions import ABSENT
from ledger.audit.rules.flow import values_among
from ledger.effects.classes import Effect, class_by_name, classify, command_in
from ledger.events import ContentRef, Event, Record
from ledger.events.tool_call import ToolCallRequested, ToolCallSettled

MISSING_ARGUMENTS = "arguments"
"""What a source did not show, or what was erased: the arguments of a call."""

MISSING_RESULT = "results"
"""The same of a result."""

MISSING_TIMES = "times"
"""The source gives its records no times."""

_NOT_THERE = object()
_LARGEST = 4_000_000
_LARGEST_KEPT = 64 * 1024
_PARTS = ("tool", "args", "effect", "command", "target", "result", "seq", "call_id")


class Call:
    """One tool call, as far as its records have been seen."""

    __slots__ = (
        "_class",
        "_decoded",
        "_effect",
        "_reader",
        "argument_values",
        "arguments",
        "call_id",
        "declared",
        "flow",
        "has_run",
        "result",
        "seq",
        "server",
        "tool",
    )

    def __init__(self, event: ToolCallRequested, seq: int, reader: Reader) -> None:
        self.call_id = event.call_id
        self.tool = event.tool
        self.server = event.server
        self.arguments = event.arguments
        self.declared = event.effect_class
        self.seq = seq
        self.has_run = False
        self.result: ContentRef | None = None
        self.flow: set[str] | None = None
        self.argument_values: set[str] | None = None
        self._reader = reader
        self._effect: Effect | None = None
        self._class: str | None = None
        self._decoded: Any = _NOT_THERE

    def effect(self) -> str:
        """Its effect class, declared or inferred."""
        if self._class is None:
            self._class = self.declared or (
                class_by_name(self.tool, self._arguments()) if self._effect is None else None
            )
            if self._class is None:
                self._class = self._inferred().effect_class
        return self._class

    def target(self) -> str:
        """What it is about, such as a path or an address; empty where nothing says."""
        return self._inferred().target or ""

    def command(self) -> str:
        """The shell command that it runs; empty for another tool."""
        arguments = self._arguments()
        return (command_in(self.tool, arguments) if isinstance(arguments, dict) else None) or ""

    def words(self) -> str:
        """Its tool, target and command, in lower case."""
        return " ".join((self.tool, self.target(), self.command())).lower()

    def _arguments(self) -> Any:
        if self._decoded is not _NOT_THERE:
            return self._decoded
        found = self._reader.value(self.arguments)
        if self.arguments.size <= _LARGEST_KEPT:
            self._decoded = found
        return found

    def _inferred(self) -> Effect:
        if self._effect is None:
            self._effect = classify(self.tool, self._arguments(), declared=self.declared)
        return self._effect

    def shown_arguments(self) -> Any:
        """Its arguments; ABSENT where the record does not show them, or not so that they can be looked into."""
        return ABSENT if self.arguments.size > _LARGEST else self._shown(self.arguments, self._arguments())

    def shown_result(self) -> Any:
        """The same of its result."""
        result = self.result
        if result is None or result.size > _LARGEST:
            return ABSENT
        return self._shown(result, self._reader.value(result))

    def _shown(self, reference: ContentRef, value: Any) -> Any:
        if reference.size < 2 * DEEPEST and value is not None:
            return value  # too short to be deep
        if value is None and self._reader.content(reference.digest) is None:
            return ABSENT
        return value if is_shallow(value) else ABSENT

    def part(self, name: str) -> Any:
        """What later conditions see of it, by name; ABSENT for what is no name of theirs."""
        match name:
            case "tool" | "seq" | "call_id":
                return getattr(self, name)
            case "effect" | "command" | "target":
                return getattr(self, name)()
            case "args" | "result":
                found = self.shown_arguments() if name == "args" else self.shown_result()
                return None if found is ABSENT else found
        return ABSENT

    def parts(self) -> dict[str, Any]:
        """All that later conditions see of it."""
        return {name: self.part(name) for name in _PARTS}


class Facts(dict[str, Any]):
    """The variables of one record, and of the call that it is about: those that were read."""

    def __init__(self, scope: Scope) -> None:
        super().__init__()
        self._scope = scope
        self._verdicts: dict[Condition, bool] = {}
        self.missing: set[str] = set()
        """What was read and is not there."""
        self.record: Record
        self.call: Call | None = None

    def turn_to(self, record: Record, call: Call | None) -> "Facts":
        """The next record."""
        self.record, self.call = record, call
        self.clear()
        if self._verdicts:
            self._verdicts.clear()
        if self.missing:
            self.missing.clear()
        self._scope.turn_to(self)
        return self

    def __missing__(self, name: str) -> Any:
        found = self[name] = self._look_up(name)
        return found

    def _look_up(self, name: str) -> Any:
        call, event = self.call, self.record.event
        match name:
            case "args" | "result" if call is not None:
                return self._shown(call, name)
            case "command" | "target" | "words" | "effect" if call is not None:
                return getattr(call, name)()
            case "tool" | "server" | "call_id" if call is not None:
                return getattr(call, name)
            case "agent" | "seq":
                return getattr(self.record, name)
            case "actor" if self.record.actor is not None:
                return self.record.actor.kind
            case "event":
                return _fields_of(event)
            case "outcome" if isinstance(event, ToolCallSettled):
                return event.outcome
        return None

    def _shown(self, call: Call, name: str) -> Any:
        value = call.shown_arguments() if name == "args" else call.shown_result()
        if value is ABSENT:
            self.missing.add(MISSING_ARGUMENTS if name == "args" else MISSING_RESULT)
            return None
        return value

    def arguments_flow(self) -> set[str]:
        """The values of its arguments that can be followed."""
        call = self.call
        if call is None:
            return set()
        found = call.argument_values
        if found is None:
            found = values_among(self["args"])
            if call.arguments.size <= _LARGEST_KEPT and not self.missing:
                call.argument_values = found
        return found

    def answer(self, condition: Condition, bound: Bound | None = None) -> Any:
        """What an expression comes to; NO_ANSWER where it has no value."""
        if condition.native is not None:
            return condition.native(self, bound, None)
        return condition.value(self._scope, bound)

    def excludes_all(
        self, prefilter: Prefilter, version: int, earlier: Callable[[], Iterable[Bound]]
    ) -> bool:
        """Whether a condition is false for each of the earlier steps."""
        return prefilter.excludes_all(self._scope, version, earlier)

    def holds(self, condition: Condition, bound: Bound | None = None) -> bool:
        """Whether a condition is true; one without an answer is not."""
        if condition.native is not None:
            return condition.native(self, bound, None) is True
        if bound and condition.earlier:
            return condition.value(self._scope, bound) is True
        found = self._verdicts.get(condition)
        if found is None:
            found = self._verdicts[condition] = condition.value(self._scope) is True
        return found


def _fields_of(event: Event) -> dict[str, Any]:
    """The fields of an event; an amount of money is a number, whatever is stored."""
    told = event.model_dump(mode="json")
    for name, value in event:
        if isinstance(value, Decimal):
            told[name] = int(value) if value == value.to_integral_value() else float(value)
    return told
