"""Conditions in the Common Expression Language. The only home of the library that compiles and runs them.

CEL has no loops, no assignment and no access to anything but what it is given; its regular expressions are those of
RE2, in linear time. What is ours: a name or a pattern that is none is an error of the file, not of the first record;
values that are nested too deep for the library never reach it; and of a record it gets the fields that are read.
"""

import logging
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import cel
from cel.stdlib import STDLIB_FUNCTIONS

from ledger.audit.rules.closures import Bound
from ledger.audit.rules.expressions import ABSENT, Field, needs_all, patterns_in, pieces_of, written
from ledger.audit.rules.native import build
from ledger.audit.rules.values import (
    NO_ANSWER,
    ConditionError,
    matches,
    of_texts_alone,
    pattern_of,
    size,
    sound,
)

DEEPEST = 64
"""Values nested deeper than this are not looked into: the library would recurse as deep as they are."""

_NATIVE = frozenset(
    "all bytes contains double duration dyn endsWith exists exists_one filter getDate getDayOfMonth getDayOfWeek"
    " getDayOfYear getFullYear getHours getMilliseconds getMinutes getMonth getSeconds has int map matches size"
    " startsWith string timestamp type uint".split()
)
_SPACES = frozenset(name.partition(".")[0] for name in STDLIB_FUNCTIONS if "." in name)
_TYPES = frozenset("bool bytes double int list map null_type string type uint".split())
_NAME = re.compile(r"[A-Za-z]\w*")
_BOUND = re.compile(r"\.\s*(?:all|exists|exists_one|filter|map)\s*\(\s*([A-Za-z_]\w*)\s*,")
_MOST_KNOWN = 4000
_LONGEST_KNOWN = 300
_LONGEST = 4000
_TRUE, _FALSE = object(), object()  # as parts of a key: 1 and 0 are equal to True and False
_UNREAD = object()
_REASONS = (ValueError, RuntimeError, TypeError)
logging.getLogger("cel").setLevel(logging.ERROR)  # it warns of each function that a value does not suit


class Condition:
    """One expression, compiled once: what it reads of a record is handed to it field by field."""

    def __init__(
        self, text: str, names: Collection[str], steps: Collection[str] = (), *, is_native: bool = True
    ) -> None:
        """`names` are the variables that may stand in it, `steps` those of earlier steps. Raises ConditionError.

        Not native: the library works it out in any case.
        """
        self.text = text
        """As it was written."""
        if len(text) > _LONGEST:  # the library recurses: what is much longer would end the process
            raise ConditionError(f"expected at most {_LONGEST} characters, found {len(text)}")
        program = _compiled(text)
        bound = set(_BOUND.findall(text))
        self.reads = frozenset(program.variables()) - bound.difference(names, steps) - _SPACES - _TYPES
        """The variables that it reads."""
        if unknown := sorted(self.reads.difference(names, steps)):
            raise ConditionError(
                f"nothing is named {unknown[0]!r} here; known are {', '.join(sorted({*names, *steps}))}"
            )
        functions = program.functions()
        if unknown := sorted({one for one in functions if _NAME.match(one)} - _NATIVE - set(_ADDED)):
            raise ConditionError(f"no function is named {unknown[0]!r}")
        self.earlier = tuple(name for name in steps if name in self.reads)
        """The earlier steps that it reads."""
        self.pieces = tuple(pieces_of(text, self.reads))
        """Its text, taken apart."""
        for pattern in patterns_in(self.pieces):
            pattern_of(cel.compile(pattern).execute())
        fields = {piece.field for piece in self.pieces if piece.field is not None}
        self._fields = tuple((field, field.own) for field in sorted(fields))
        flat = written(self.pieces, {}, _RENAMED)
        if bound & self.reads or self.reads.intersection(_compiled(flat).variables()):
            self._fields = tuple((Field(root, ()), root) for root in sorted(self.reads))
            flat = written(self.pieces, {field: _original(field) for field in fields}, _RENAMED)
        self._flat = flat
        self._programs = {0: _compiled(flat)}
        self._needs_all = needs_all(self.pieces, functions)
        self._is_field = len(self._fields) == 1 and flat.strip() == self._fields[0][1]
        used = sorted({name for one in functions for name in _ADDED.get(one, ())})
        self.holding = Holding(tuple(own for _, own in self._fields), tuple(used))
        """What the library has to hold for it."""
        self._only = self._fields[0] if len(self._fields) == 1 and not self.earlier else None
        self._known: dict[Any, Any] = {}
        self.native = build(text, self.reads.difference(self.earlier), self.earlier) if is_native else None
        """It as a closure; None where the library works it out."""

    @property
    def is_constant_but_no_truth(self) -> bool:
        """Whether it reads nothing, and comes to neither true nor false."""
        return not self.reads and type(self.value(Scope())) is not bool

    @property
    def only_field(self) -> Field | None:
        """The one field of the one earlier step that it reads, where it is so."""
        fields = [field for field, _ in self._fields if field.root in self.earlier]
        return fields[0] if len(fields) == 1 and not fields[0].is_tested else None

    def value(self, scope: "Scope", bound: Bound | None = None) -> Any:
        """What it comes to; NO_ANSWER where it has none."""
        if self.native is not None:
            return self.native(scope.values, bound, None)
        if self._only is not None:
            return self._of_one(scope, *self._only)
        values: list[Any] = []
        keys: list[Any] = []
        for field, own in self._fields:
            if bound is not None and field.root in bound:
                value = bound.at(field)
            else:
                value = scope.fields.get(own, _UNREAD)
                if value is _UNREAD:
                    value = scope.field(field, own)
            if value is ABSENT and self._needs_all:
                return NO_ANSWER
            values.append(value)
            kind = type(value)
            if kind is str:
                if len(value) <= _LONGEST_KNOWN:
                    keys.append(value)
            elif kind is int or value is ABSENT or value is None:
                keys.append(value)
            elif kind is bool:
                keys.append(_TRUE if value else _FALSE)
        if len(keys) < len(values):
            return self._worked_out(scope, values)
        return self._remembered(scope, tuple(keys), values)

    def _of_one(self, scope: "Scope", field: Field, own: str) -> Any:
        """The same, of an expression that reads one field of the record and nothing else."""
        value = scope.fields.get(own, _UNREAD)
        if value is _UNREAD:
            value = scope.field(field, own)
        kind = type(value)
        if kind is str:
            if self._is_field:
                return value
            if len(value) <= _LONGEST_KNOWN:
                return self._remembered(scope, value, (value,))
        elif kind is int:
            return self._remembered(scope, value, (value,))
        elif kind is bool:
            return self._remembered(scope, _TRUE if value else _FALSE, (value,))
        elif value is ABSENT and self._needs_all:
            return NO_ANSWER
        return self._worked_out(scope, (value,))

    def _remembered(self, scope: "Scope", key: Any, values: Sequence[Any]) -> Any:
        known = self._known
        found = known.get(key, _UNREAD)
        if found is _UNREAD:
            if len(known) >= _MOST_KNOWN:
                known.clear()
            found = known[key] = self._worked_out(scope, values)
        return found

    def _worked_out(self, scope: "Scope", values: Sequence[Any]) -> Any:
        held = scope.held(self.holding)
        absent = 0
        if self.earlier or held.turn != scope.turn:
            held.turn = scope.turn
            for place, value in enumerate(values):
                if value is ABSENT:
                    absent |= 1 << place
                else:
                    held.give(self.holding.fields[place], value)
            held.absent = absent
        return held.run(self._programs.get(held.absent) or self._without(held.absent))

    def _without(self, absent: int) -> cel.Program:
        """It, where some fields are not there: they are names that nobody knows, which is no answer just as well."""
        gone = {field: "absent" for place, (field, _) in enumerate(self._fields) if absent >> place & 1}
        program = self._programs[absent] = _compiled(written(self.pieces, gone, _RENAMED))
        return program


class Prefilter:
    """One condition asked of all earlier steps at once: far cheaper than of one after the other."""

    def __init__(self, condition: Condition, field: Field, key: str) -> None:
        """`field` is the only one that it reads of the earlier step; `key` names the list of its values."""
        self._key, self._field = key, field
        pieces = condition.pieces
        self._fields = sorted(
            {(one, one.own) for one in (piece.field for piece in pieces) if one is not None and one != field}
        )
        self._holding = Holding((key,), condition.holding.functions)
        text = written(pieces, {field: f"{key}_one"}, _RENAMED)
        self._program = _compiled(f"{key}.exists({key}_one, {text})")

    @classmethod
    def of(cls, condition: Condition | None, key: str) -> "Prefilter | None":
        """It, where a condition is not native, and reads one field of one earlier step that does not change later."""
        field = None if condition is None else condition.only_field
        if condition is None or condition.native is not None:
            return None
        if field is None or field.path[:1] in ((), ("result",)):
            return None
        return cls(condition, field, key)

    def excludes_all(self, scope: "Scope", version: int, earlier: Callable[[], Iterable[Bound]]) -> bool:
        """Whether the condition is false for each of them; no answer is no exclusion."""
        held = scope.held(self._holding)
        for field, own in self._fields:
            value = scope.field(field, own)
            if value is ABSENT:
                return False
            held.give(own, value)
        if held.turn != version:
            values = [bound.at(self._field) for bound in earlier()]
            held.turn, held.absent = version, int(ABSENT in values)
            if not held.absent:
                held.give(self._key, values)
        return not held.absent and held.run(self._program) is False


class Holding(NamedTuple):
    """What the library holds while it runs a program: the less that is, the sooner it is done."""

    fields: tuple[str, ...]
    """The names of the fields."""

    functions: tuple[str, ...]
    """The functions that it does not know from the start."""


class Held:
    """A holding, filled."""

    def __init__(self, functions: tuple[str, ...]) -> None:
        self._context = cel.Context()
        for name in functions:
            self._context.add_function(name, _FUNCTIONS[name])
        self.turn = 0
        """Of which record, or of which list of steps, it is."""
        self.absent = 0
        """Which of the fields are not there, a bit for each."""

    def give(self, name: str, value: Any) -> None:
        """Hold a value under a name."""
        try:
            self._context.add_variable(name, value)
        except _REASONS:  # half of a character that takes two: the library has no such texts
            self._context.add_variable(name, sound(value))

    def run(self, program: cel.Program) -> Any:
        """What a program comes to; NO_ANSWER where it has no value."""
        try:
            return program.execute(self._context)
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException:  # noqa: BLE001 - what the library may panic with is no Exception
            return NO_ANSWER


class Scope:
    """The variables of the record at hand, handed to the library field by field when an expression reads them."""

    def __init__(self) -> None:
        self.turn = 0
        """Counts the records."""
        self.values: Mapping[str, Any] = {}
        """Of the record."""
        self.fields: dict[str, Any] = {}
        """Fields of the record that were read."""
        self._held: dict[Holding, Held] = {}

    def turn_to(self, values: Mapping[str, Any]) -> None:
        """The next record's variables; looked up only when they are read."""
        self.turn += 1
        self.values = values
        if self.fields:
            self.fields.clear()

    def field(self, field: Field, own: str) -> Any:
        """A field of the record; ABSENT where there is none."""
        found = self.fields.get(own, _UNREAD)
        if found is _UNREAD:
            found = self.fields[own] = field.of(self.values[field.root])
        return found

    def held(self, holding: Holding) -> Held:
        """What the library holds of it."""
        found = self._held.get(holding)
        if found is None:
            found = self._held[holding] = Held(holding.functions)
        return found


def is_shallow(value: Any) -> bool:
    """Whether a value may be handed to the library."""
    level = [value] if isinstance(value, dict | list) else []
    for _ in range(DEEPEST):
        if not level:
            return True
        level = [
            item
            for one in level
            for item in (one.values() if isinstance(one, dict) else one)
            if isinstance(item, dict | list)
        ]
    return not level


def _compiled(text: str) -> cel.Program:
    try:
        return cel.compile(text)
    except _REASONS as error:
        told, mark, place = str(error).partition("ERROR: <input>:")
        raise ConditionError(f"at {place.splitlines()[0]}" if mark else told[:_LONGEST_KNOWN]) from error


def _original(field: Field) -> str:
    names = ".".join((field.root, *field.path))
    if field.asked == "in":
        return f"{field.path[-1]!r} in {names.rpartition('.')[0]}"
    return f"has({names})" if field.asked == "has" else names


def _strict(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function as the library wants it: what has no answer is an error."""

    def run(*given: Any) -> Any:
        found = function(*given)
        if found is NO_ANSWER:
            raise TypeError("not for such values")
        return found

    return run


_RENAMED = {"matches": "matches_of_re2", "size": "size_in_characters"}
_FUNCTIONS = {
    **STDLIB_FUNCTIONS,
    **{
        name: _strict(partial(of_texts_alone, STDLIB_FUNCTIONS[name]))
        for name in ("join", "lowerAscii", "upperAscii")
    },
    _RENAMED["matches"]: _strict(matches),
    _RENAMED["size"]: _strict(size),
}
_ADDED: dict[str, list[str]] = {name: [renamed] for name, renamed in _RENAMED.items()}
for _full in STDLIB_FUNCTIONS:
    _ADDED.setdefault(_full.rpartition(".")[2], []).append(_full)  # a program names `math.abs` as `abs`
