"""The closures that a CEL expression is made of: each takes a record's variables and gives a value, or NO_ANSWER."""

import operator
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple, Protocol

import cel
from cel.stdlib import STDLIB_FUNCTIONS

from ledger.audit.rules.expressions import ABSENT, Field
from ledger.audit.rules.values import (
    NO_ANSWER,
    contained,
    equal,
    found_by,
    matches,
    ordered,
    pattern_of,
    unequal,
)


class Bound(Protocol):
    """The records of earlier steps, by the names of these."""

    def __contains__(self, name: object) -> bool:
        """Whether a step of that name has come."""

    def at(self, field: Field) -> Any:
        """A field of such a record; ABSENT where there is none."""


Locals = Mapping[str, Any] | None
"""The variables of the loops around, such as `one` in `args.exists(one, one > 3)`."""

Run = Callable[[Mapping[str, Any], Bound | None, Locals], Any]
"""An expression: of a record's variables, the earlier steps and the loops around it makes a value."""

_ORDERS: dict[str, Callable[[Any, Any], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_TURNED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "==", "!=": "!="}
NUMBERS = frozenset({int, float})
"""The types of numbers; true and false are none."""

_OF_TEXTS: dict[str, Callable[[str, str], bool]] = {
    ".contains": operator.contains,
    ".startsWith": str.startswith,
    ".endsWith": str.endswith,
}


class Part(NamedTuple):
    """An expression that is built."""

    run: Run
    """It."""

    constant: Any = NO_ANSWER
    """What it is, where that is the same for every record."""


def constant(value: Any) -> Part:
    """What is the same for every record."""
    return Part(lambda record, bound, inner: value, value)


# -- fields ------------------------------------------------------------------------------------------------


def of_record(root: str, path: tuple[str, ...]) -> Run:
    """A field of the record at hand."""
    if not path:
        return lambda record, bound, inner: record[root]
    first = path[0]
    rest = path[1:]

    def of_one(record: Mapping[str, Any], bound: Bound | None, inner: Locals) -> Any:
        value = record[root]
        return value.get(first, NO_ANSWER) if type(value) is dict else NO_ANSWER

    def of_more(record: Mapping[str, Any], bound: Bound | None, inner: Locals) -> Any:
        value = record[root]
        value = value.get(first) if type(value) is dict else None
        for name in rest:
            if type(value) is not dict or name not in value:
                return NO_ANSWER
            value = value[name]
        return value

    return of_more if rest else of_one


def of_step(field: Field) -> Run:
    """A field of an earlier step."""

    def run(record: Mapping[str, Any], bound: Bound | None, inner: Locals) -> Any:
        if bound is None or field.root not in bound:
            return NO_ANSWER
        value = bound.at(field)
        return NO_ANSWER if value is ABSENT else value

    return run


def of_loop(name: str, path: tuple[str, ...]) -> Run:
    """A field of what a loop is at."""

    def run(record: Mapping[str, Any], bound: Bound | None, inner: Locals) -> Any:
        assert inner is not None
        value = inner[name]
        for step in path:
            if type(value) is not dict or step not in value:
                return NO_ANSWER
            value = value[step]
        return value

    return run


def member_of(of: Run, name: str) -> Run:
    """A field of anything else."""

    def run(record: Mapping[str, Any], bound: Bound | None, inner: Locals) -> Any:
        value = of(record, bound, inner)
        return value.get(name, NO_ANSWER) if type(value) is dict else NO_ANSWER

    return run


# -- operators ---------------------------------------------------------------------------------------------


def decided(runs: Sequence[Run], by: bool) -> Run:
    """`||`, which one true side decides, and `&&`, which one false side does."""
    first, second, *rest = runs

    def of_two(record: Mapping[str, Any], bound: Bound | None, inner: Locals) -> Any:
        one = first(record, bound, inner)
        if one is by:
            return by
        two = second(record, bound, inner)
        if two is by:
            return by
        return not by if type(one) is bool and type(two) is bool else NO_ANSWER

    def of_all(record: Mapping[str, Any], bound: Bound | None, inner: Locals) -> Any:
        found: Any = not by
        for run in runs:
            value = run(record, bound, inner)
            if value is by:
                return by
            if type(value) is not bool:
                found = NO_ANSWER
        return found

    return of_all if rest else of_two


def chosen(condition: Run, yes: Run, no: Run) -> Run:
    """`a ? b : c`."""

    def run(record: Mapping[str, Any], bound: Bound | None, inner: Locals) -> Any:
        value = condition(record, bound, inner)
        if type(value) is not bool:
            return NO_ANSWER
        return yes(record, bound, inner) if value else no(record, bound, inner)

    return run


def applied(function: Callable[..., Any], runs: Sequence[Run]) -> Run:
    """A function of values; what it raises is no answer."""
    if len(runs) == 1:
        return _applied_to_one(function, runs[0])

    def run(record: Mapping[str, Any], bound: Bound | None, inner: Locals) -> Any:
        values = [one(record, bound, inner) for one in runs]
        for value in values:
            if value is NO_ANSWER:
                return value
        try:
            return function(*values)
        except Exception:  # noqa: BLE001 - functions of the library raise what Python raises
            return NO_ANSWER

    return run


def _applied_to_one(function: Callable[[Any], Any], of: Run) -> Run:
    def run(record: Mapping[str, Any], bound: Bound | None, inner: Locals) -> Any:
        value = of(record, bound, inner)
        if value is NO_ANSWER:
            return value
        try:
            return function(value)
        except Exception:  # noqa: BLE001 - as above
            return NO_ANSWER

    return run


def compared(sign: str, one: Part, two: Part) -> Run:
    """`==` and `<` and their like."""
    if one.constant is not NO_ANSWER and two.constant is NO_ANSWER:
        return compared(_TURNED[sign], two, one)
    if type(two.constant) is str or type(two.constant) in NUMBERS:
        return _compared_with(sign, one.run, two.constant)
    if sign in ("==", "!="):
        return applied(equal if sign == "==" else unequal, [one.run, two.run])
    return applied(partial(ordered, _ORDERS[sign]), [one.run, two.run])


def _compared_with(sign: str, left: Run, right: str | int | float) -> Run:
    """The usual case: a field compared with a text or a number."""
    kinds = frozenset({str}) if isinstance(right, str) else NUMBERS
    of_equals = {"==": (operator.eq, False), "!=": (operator.ne, True)}
    compare, otherwise = of_equals.get(sign) or (_ORDERS[sign], NO_ANSWER)

    def run(record: Mapping[str, Any], bound: Bound | None, inner: Locals) -> Any:
        value = left(record, bound, inner)
        if type(value) in kinds:
            return compare(value, right)
        return NO_ANSWER if value is NO_ANSWER else otherwise

    return run


def is_in(one: Part, two: Part) -> Run:
    """`in`."""
    if type(two.constant) is not list or any(type(item) is not str for item in two.constant):
        return applied(contained, [one.run, two.run])
    left, texts = one.run, frozenset(two.constant)

    def run(record: Mapping[str, Any], bound: Bound | None, inner: Locals) -> Any:
        value = left(record, bound, inner)
        if type(value) is str:
            return value in texts
        return NO_ANSWER if value is NO_ANSWER else False

    return run


# -- functions ---------------------------------------------------------------------------------------------


def of_texts(function: str, one: Part, two: Part) -> Run:
    """`contains`, `startsWith`, `endsWith`."""
    test = _OF_TEXTS[function]
    left, right = one.run, two.run
    otherwise = STDLIB_FUNCTIONS["contains"] if function == ".contains" else None

    if type(two.constant) is not str:

        def of_values(value: Any, part: Any) -> Any:
            if type(value) is str and type(part) is str:
                return test(value, part)
            return NO_ANSWER if otherwise is None else otherwise(value, part)

        return applied(of_values, [left, right])
    fixed = two.constant

    def run(record: Mapping[str, Any], bound: Bound | None, inner: Locals) -> Any:
        value = left(record, bound, inner)
        if type(value) is str:
            return test(value, fixed)
        if value is NO_ANSWER or otherwise is None:
            return NO_ANSWER
        try:
            return otherwise(value, fixed)
        except TypeError:
            return NO_ANSWER

    return run


def matched(one: Part, two: Part) -> Run:
    """`matches`."""
    if type(two.constant) is not str:
        return applied(matches, [one.run, two.run])
    left, pattern = one.run, pattern_of(two.constant)

    def run(record: Mapping[str, Any], bound: Bound | None, inner: Locals) -> Any:
        value = left(record, bound, inner)
        return found_by(pattern, value) if type(value) is str else NO_ANSWER

    return run


def conversion(function: str) -> Callable[[Any], Any]:
    """`int`, `double`, `string`: the library does it."""
    program = cel.compile(f"{function}(value)")
    return lambda value: program.execute({"value": value})
