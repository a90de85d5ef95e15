"""What conditions may read of a record: looked up when something reads it, once for all rules."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from ledger.audit.reader import Reader
from ledger.audit.rules.conditions import DEEPEST, Condition, Prefilter, Scope, Unanswered, is_shallow
from ledger.effects.classes import Effect, classify, command_in
from ledger.events import ContentRef, Record
from ledger.events.tool_call import ToolCallRequested, ToolCallSettled

MISSING_ARGUMENTS = "arguments"
"""What a source did not show, or what was erased: the arguments of a call."""

MISSING_RESULT = "results"
"""The same of a result."""

MISSING_TIMES = "times"
"""The source gives its records no times."""

_NOT_THERE = object()
_LARGEST = 4_000_000


class Call:
    """One tool call, as far as its records have been seen."""

    __slots__ = (
        "arguments",
        "call_id",
        "declared",
        "has_run",
        "reader",
        "result",
        "seq",
        "server",
        "tool",
        "values",
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
        self.reader = reader
        self.values: dict[str, Any] = {}

    def effect(self) -> str:
        """Its effect class, declared or inferred."""
        return self.declared or self._inferred().effect_class

    def target(self) -> str:
        """What it is about, such as a path or an address; empty where nothing says."""
        return self._inferred().target or ""

    def command(self) -> str:
        """The shell command that it runs; empty for another tool."""
        arguments = self.reader.value(self.arguments)
        return (command_in(self.tool, arguments) if isinstance(arguments, dict) else None) or ""

    def _inferred(self) -> Effect:
        found: Effect | None = self.values.get("effect")
        if found is None:
            found = classify(self.tool, self.reader.value(self.arguments), declared=self.declared)
            self.values["effect"] = found
        return found

    def settle(self, result: ContentRef | None) -> None:
        """It came to its end."""
        self.result = result
        self.values.pop("bound", None)

    def shown(self, reference: ContentRef | None) -> Any:
        """A content of it; `_NOT_THERE` where the record does not show it."""
        if reference is None or reference.size > _LARGEST:
            return _NOT_THERE
        value = self.reader.value(reference)
        if reference.size < 2 * DEEPEST and value is not None:
            return value  # too short to be deep
        if value is None and self.reader.content(reference.digest) is None:
            return _NOT_THERE
        return value if is_shallow(value) else _NOT_THERE

    def bound(self) -> dict[str, Any]:
        """What later conditions see of it."""
        found: dict[str, Any] | None = self.values.get("bound")
        if found is None:
            found = self.values["bound"] = self._bound()
        return found

    def _bound(self) -> dict[str, Any]:
        arguments, result = self.shown(self.arguments), self.shown(self.result)
        return {
            "tool": self.tool,
            "args": None if arguments is _NOT_THERE else arguments,
            "effect": self.effect(),
            "command": self.command(),
            "target": self.target(),
            "result": None if result is _NOT_THERE else result,
            "seq": self.seq,
            "call_id": self.call_id,
        }


class Facts(Mapping[str, Any]):
    """The variables of one record, and of the call that it is about."""

    def __init__(self, scope: Scope) -> None:
        self._scope = scope
        self._answers: dict[str, Any] = {}
        self._values: dict[str, Any] = {}
        self.missing: set[str] = set()
        """What was read and is not there."""
        self.record: Record
        self.call: Call | None = None

    def turn_to(self, record: Record, call: Call | None) -> "Facts":
        """The next record."""
        self.record, self.call = record, call
        if self._answers:
            self._answers.clear()
        if self._values:
            self._values.clear()
        if self.missing:
            self.missing.clear()
        self._scope.turn_to(self)
        return self

    def __getitem__(self, name: str) -> Any:
        if name not in self._values:
            self._values[name] = self._look_up(name)
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def _look_up(self, name: str) -> Any:
        event, call = self.record.event, self.call
        match name:
            case "agent":
                return self.record.agent
            case "actor":
                return None if self.record.actor is None else self.record.actor.kind
            case "seq":
                return self.record.seq
            case "event":
                return event.model_dump(mode="json")
            case "outcome" if isinstance(event, ToolCallSettled):
                return event.outcome
        if call is None:
            return None
        match name:
            case "tool" | "server" | "call_id":
                return getattr(call, name)
            case "effect":
                return call.effect()
            case "args":
                return self._shown(call, call.arguments, MISSING_ARGUMENTS)
            case "command":
                return call.command()
            case "target":
                return call.target()
            case "words":
                return " ".join((call.tool, call.target(), call.command())).lower()
            case "result":
                return self._shown(call, call.result, MISSING_RESULT)
        return None

    def _shown(self, call: Call, reference: ContentRef | None, what: str) -> Any:
        value = call.shown(reference)
        if value is _NOT_THERE:
            self.missing.add(what)
            return None
        return value

    def answer(self, condition: Condition, bound: Mapping[str, Any] | None = None) -> Any:
        """What an expression comes to; once for each record, unless it reads what an earlier step bound.

        Raises Unanswered.
        """
        if bound and condition.earlier:
            return condition.value(self._scope, bound)
        if condition.text not in self._answers:
            try:
                self._answers[condition.text] = condition.value(self._scope)
            except Unanswered as error:
                self._answers[condition.text] = error
        found = self._answers[condition.text]
        if isinstance(found, Unanswered):
            raise found
        return found

    def excludes_all(
        self, prefilter: Prefilter, version: int, earlier: Callable[[], Iterable[Mapping[str, Any]]]
    ) -> bool:
        """Whether a condition is false for each of the earlier steps."""
        return prefilter.excludes_all(self._scope, version, earlier)

    def holds(self, condition: Condition | None, bound: Mapping[str, Any] | None = None) -> bool:
        """Whether a condition is true; one without an answer is not."""
        if condition is None:
            return True
        try:
            return self.answer(condition, bound) is True
        except Unanswered:
            return False
