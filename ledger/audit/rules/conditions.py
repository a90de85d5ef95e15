"""Conditions in the Common Expression Language. The only home of the library that compiles and runs them.

CEL has no loops, no assignment and no access to anything but what it is given; its regular expressions run in linear
time. Two things are ours: a name that nobody knows is an error of the file, not of the first record, and values that
are nested too deep for the library never reach it.
"""

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

import cel
from cel.stdlib import STDLIB_FUNCTIONS

DEEPEST = 64
"""Values nested deeper than this are not looked into: the library would recurse as deep as they are."""

_NATIVE = frozenset(
    "all bytes contains double duration dyn endsWith exists exists_one filter getDate getDayOfMonth getDayOfWeek"
    " getDayOfYear getFullYear getHours getMilliseconds getMinutes getMonth getSeconds has int map matches size"
    " startsWith string timestamp type uint".split()
)
_SPACES = frozenset(name.partition(".")[0] for name in STDLIB_FUNCTIONS if "." in name)
_ADDED: dict[str, list[str]] = {}
for _full in STDLIB_FUNCTIONS:
    _last = _full.rpartition(".")[2]
    if _full not in _NATIVE:
        _ADDED.setdefault(_last, []).append(_full)  # a program names `math.abs` as `abs`
_NAME = re.compile(r"[A-Za-z]\w*")
_BOUND = re.compile(r"\.\s*(?:all|exists|exists_one|filter|map)\s*\(\s*([A-Za-z_]\w*)\s*,")
_QUOTED = re.compile(r"""["'][^"']*\.[^"']*\.[^"']*["']""")
_NOT_THERE = object()
_REASONS = (ValueError, RuntimeError, TypeError)


class ConditionError(Exception):
    """An expression is none, or names what is not there."""


class Unanswered(Exception):
    """An expression has no value for this record: a field is absent, or of another type than it expects."""


class Condition:
    """One expression, compiled once."""

    def __init__(self, text: str, names: Collection[str], steps: Collection[str] = ()) -> None:
        """`names` are the variables that may stand in it, `steps` those of earlier steps. Raises ConditionError."""
        self.text = text
        """As it was written."""
        try:
            self._program = cel.compile(text)
        except _REASONS as error:
            raise ConditionError(_first_line(error)) from error
        bound = set(_BOUND.findall(text))
        self.reads = frozenset(self._program.variables()) - bound - _SPACES
        """The variables that it reads."""
        if unknown := sorted(self.reads.difference(names, steps)):
            raise ConditionError(
                f"nothing is named {unknown[0]!r} here; known are {', '.join(sorted({*names, *steps}))}"
            )
        named = {one for one in self._program.functions() if _NAME.match(one)}
        if unknown := sorted(named - _NATIVE - set(_ADDED)):
            raise ConditionError(f"no function is named {unknown[0]!r}")
        self.functions = tuple(name for one in sorted(named & set(_ADDED)) for name in _ADDED[one])
        """The functions that the library does not hold from the start."""
        self.earlier = tuple(name for name in steps if name in self.reads)
        """The earlier steps that it reads."""
        self._fields = {name: _fields_of(name, text) for name in self.earlier}

    @property
    def only_field(self) -> list[str] | None:
        """The one field of the one earlier step that it reads, where it is so."""
        if len(self.earlier) != 1 or _QUOTED.search(self.text) is not None:
            return None
        fields = self._fields[self.earlier[0]] or []
        return fields[0] if fields and all(field == fields[0] for field in fields) else None

    def narrowed(self, name: str, value: Any) -> Any:
        """Of an earlier step, the fields that it reads: the library copies what it is given."""
        fields = self._fields[name]
        return value if fields is None else _only(value, fields)

    def value(self, scope: "Scope", bound: Mapping[str, Any] | None = None) -> Any:
        """What it comes to. Raises Unanswered."""
        context = scope.filled(self, bound)
        try:
            return self._program.execute(context)
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException as error:  # noqa: BLE001 - what the library may panic with is no Exception
            raise Unanswered(_first_line(error)) from None


class Prefilter:
    """One condition asked of all earlier steps at once: far cheaper than of one after the other."""

    def __init__(self, condition: Condition, field: list[str], key: str) -> None:
        """`field` is the only one that it reads of the earlier step; `key` names the list of its values."""
        (self._name,) = condition.earlier
        self._key, self._field, self._condition = key, field, condition
        read = re.compile(rf"(?<![\w.]){'.'.join((self._name, *field))}\b")
        self._program = cel.compile(f"{key}.exists({key}_one, {read.sub(f'{key}_one', condition.text)})")

    @classmethod
    def of(cls, condition: Condition | None, key: str) -> "Prefilter | None":
        """It, where a condition reads one field of one earlier step, and nothing that comes to it later."""
        field = None if condition is None else condition.only_field
        if condition is None or field is None or "result" in field:
            return None
        try:
            return cls(condition, field, key)
        except _REASONS:
            return None  # such as has(step.args.path): a value is no field

    def excludes_all(
        self, scope: "Scope", version: int, earlier: Callable[[], Iterable[Mapping[str, Any]]]
    ) -> bool:
        """Whether the condition is false for each of them; no answer is no exclusion."""
        own = scope.apart(self._key)
        context = own.filled(self._condition, None, but=self._name)
        if own.version != version:
            own.version = version
            values = [_at(bound[self._name], self._field) for bound in earlier()]
            own.is_whole = all(one is not _NOT_THERE for one in values)
            context.add_variable(self._key, [one for one in values if one is not _NOT_THERE])
        if not own.is_whole:
            return False
        try:
            return self._program.execute(context) is False
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException:  # noqa: BLE001 - as above
            return False


class Scope:
    """The variables of the record at hand, handed to the library when the first expression reads them."""

    def __init__(self) -> None:
        self._context = cel.Context()
        self._functions: set[str] = set()
        self._values: Mapping[str, Any] = {}
        self._given: set[str] = set()
        self._apart: dict[str, Scope] = {}
        self.version = 0
        """Which version of a list of earlier steps the library holds."""
        self.is_whole = True
        """Whether each of the earlier steps has the field that the list is of."""

    def apart(self, key: str) -> "Scope":
        """A scope of the same record that holds a list of earlier steps besides."""
        found = self._apart.get(key)
        if found is None:
            found = self._apart[key] = Scope()
        found.turn_to(self._values)
        return found

    def turn_to(self, values: Mapping[str, Any]) -> None:
        """The next record's variables; looked up only when they are read."""
        self._values = values
        self._given.clear()

    def filled(
        self, condition: Condition, bound: Mapping[str, Any] | None, but: str | None = None
    ) -> cel.Context:
        """The library's own form of the variables that a condition reads, and of the earlier steps.

        The library copies what it holds with every record: so it holds only what somebody reads.
        """
        for function in condition.functions:
            if function not in self._functions:
                self._context.add_function(function, STDLIB_FUNCTIONS[function])
                self._functions.add(function)
        for name in condition.reads:
            if name == but:
                continue
            if bound is not None and name in bound:
                self._context.add_variable(name, condition.narrowed(name, bound[name]))
            elif name not in self._given:
                self._context.add_variable(name, self._values[name])
                self._given.add(name)
        return self._context


def is_shallow(value: Any) -> bool:
    """Whether a value may be handed to the library."""
    level = [value]
    for _ in range(DEEPEST):
        level = [
            item
            for one in level
            if isinstance(one, dict | list)
            for item in (one.values() if isinstance(one, dict) else one)
        ]
        if not level:
            return True
    return False


def _fields_of(name: str, text: str) -> list[list[str]] | None:
    """The fields of a variable that an expression reads, as `a.b` in `name.a.b`; None where it may read any."""
    found = []
    for use in re.finditer(rf"(?<![\w.]){name}\b((?:\.[A-Za-z_]\w*\b(?!\s*\())*)", text):
        if not use[1]:
            return None
        found.append(use[1][1:].split("."))
    return found


def _at(value: Any, field: list[str]) -> Any:
    for name in field:
        if not isinstance(value, dict) or name not in value:
            return _NOT_THERE
        value = value[name]
    return value


def _only(value: Any, fields: list[list[str]]) -> Any:
    kept: dict[str, Any] = {}
    for field in fields:
        here, there = value, kept
        for place, name in enumerate(field):
            if not isinstance(here, dict) or name not in here:
                break
            here = here[name]
            if place == len(field) - 1:
                there[name] = here
            elif not isinstance(there.setdefault(name, {}), dict) or there[name] is here:
                break
            else:
                there = there[name]
    return kept


def _first_line(error: BaseException) -> str:
    return (str(error).splitlines() or [""])[0][:300]
