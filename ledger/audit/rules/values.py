"""What operators and functions of CEL make of values. What is not defined for a value has no answer."""

from collections.abc import Callable, Sequence
from functools import lru_cache
from math import copysign, inf, isnan, nan
from typing import Any

import re2
from cel.stdlib import STDLIB_FUNCTIONS

NO_ANSWER = object()
"""An expression has no value for this record: a field is absent, or of another type than it expects."""

_LEAST, _MOST = -(2**63), 2**63 - 1
_NUMBERS = frozenset({int, float})


class ConditionError(Exception):
    """An expression is none, or names what is not there."""


def equal(one: Any, two: Any) -> bool:
    """Whether values are the same: numbers of both kinds compare, true is no number."""
    kind, other = type(one), type(two)
    if kind is not other:
        return kind in _NUMBERS and other in _NUMBERS and bool(one == two)
    if kind is list:
        return len(one) == len(two) and all(map(equal, one, two))
    if kind is dict:
        return one.keys() == two.keys() and all(equal(value, two[name]) for name, value in one.items())
    return bool(one == two)


def unequal(one: Any, two: Any) -> bool:
    """Whether they are not."""
    return not equal(one, two)


def ordered(order: Callable[[Any, Any], bool], one: Any, two: Any) -> Any:
    """`<` and its like: of two numbers, two texts, or two of true and false."""
    kind, other = type(one), type(two)
    if kind in _NUMBERS:
        return order(one, two) if other in _NUMBERS else NO_ANSWER
    return order(one, two) if kind is other and (kind is str or kind is bool) else NO_ANSWER


def contained(item: Any, container: Any) -> Any:
    """`in`: one of a list, or a name in an object."""
    if type(container) is list:
        return any(equal(item, one) for one in container)
    if type(container) is not dict or type(item) not in (str, int, bool):
        return NO_ANSWER
    return type(item) is str and item in container


def looked_up(container: Any, index: Any) -> Any:
    """`[]`."""
    if type(container) is dict:
        return container.get(index, NO_ANSWER) if type(index) is str else NO_ANSWER
    if type(container) is list and type(index) is int and 0 <= index < len(container):
        return container[index]
    return NO_ANSWER


def negated(value: Any) -> Any:
    """`!`."""
    return not value if type(value) is bool else NO_ANSWER


def negative(value: Any) -> Any:
    """`-` before a value; the library takes that of true for false."""
    if type(value) is bool:
        return not value
    return reckoned("-", 0, value) if type(value) is int else -value if type(value) is float else NO_ANSWER


def reckoned(sign: str, one: Any, two: Any) -> Any:
    """`+`, `-`, `*`, `/` and `%`: of two whole numbers or two others, never mixed; what overflows has no answer."""
    kind = type(one)
    if kind is not type(two):
        return NO_ANSWER
    if kind is float:
        return _reckoned_float(sign, one, two)
    if kind is not int:
        return one + two if sign == "+" and (kind is str or kind is list) else NO_ANSWER
    if not (_LEAST <= one <= _MOST and _LEAST <= two <= _MOST) or (sign in "/%" and two == 0):
        return NO_ANSWER
    match sign:
        case "+":
            found = one + two
        case "-":
            found = one - two
        case "*":
            found = one * two
        case _:
            found = abs(one) // abs(two) if sign == "/" else abs(one) % abs(two)
            if (one < 0) != (two < 0 and sign == "/"):
                found = -found
    return found if _LEAST <= found <= _MOST else NO_ANSWER


def _reckoned_float(sign: str, one: float, two: float) -> Any:
    match sign:
        case "+":
            return one + two
        case "-":
            return one - two
        case "*":
            return one * two
        case "/":
            return one / two if two != 0 else _over_zero(one, two)
    return NO_ANSWER


def _over_zero(one: float, zero: float) -> float:
    return nan if one == 0 or isnan(one) else copysign(inf, one) * copysign(1, zero)


def size(value: Any) -> Any:
    """How many characters, items or names; the library would count the bytes of a text."""
    return len(value) if type(value) in (str, list, dict, bytes) else NO_ANSWER


def of_texts_alone(function: Callable[..., Any], *given: Any) -> Any:
    """A function of the library; of an object it would take the names, in an order that is not always the same."""
    return NO_ANSWER if any(type(one) is dict for one in given) else function(*given)


def lower(text: Any) -> Any:
    """`lowerAscii`, which the library does letter by letter."""
    if type(text) is not str:
        return of_texts_alone(STDLIB_FUNCTIONS["lowerAscii"], text)
    return text.lower() if text.isascii() else text.translate(_LOWER)


_LOWER = {number: number + 32 for number in range(ord("A"), ord("Z") + 1)}


@lru_cache(maxsize=256)
def pattern_of(pattern: str) -> Any:
    """A regular expression of RE2. Raises ConditionError."""
    options = re2.Options()
    options.log_errors = False
    try:
        return re2.compile(pattern, options)
    except re2.error as error:
        told = error.args[0]
        if isinstance(told, bytes):
            told = told.decode(errors="replace")
        raise ConditionError(f"no regular expression of RE2: {told}") from error


def found_by(pattern: Any, text: str) -> bool:
    """Whether a text holds what a pattern means. Bytes are searched: a place in a text costs more than the search."""
    try:
        raw = text.encode()
    except UnicodeEncodeError:
        raw = sound(text).encode()
    return pattern.search(raw) is not None


def matches(text: Any, pattern: Any) -> Any:
    """`matches`: the library would compile the pattern anew for every text."""
    if type(text) is not str or type(pattern) is not str:
        return NO_ANSWER
    return found_by(pattern_of(pattern), text)


def sound(value: Any) -> Any:
    """A shallow value without halves of characters."""
    if isinstance(value, str):
        return value.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    if isinstance(value, list):
        return [sound(one) for one in value]
    return {sound(name): sound(one) for name, one in value.items()} if isinstance(value, dict) else value


Of = Callable[[Any], Any]
"""What a loop asks of each item."""


def one_decides(by: bool, items: Sequence[Any], of: Of) -> Any:
    """`exists`, which one true item decides, and `all`, which one false item does."""
    found: Any = not by
    for item in items:
        value = of(item)
        if value is by:
            return by
        if type(value) is not bool:
            found = NO_ANSWER
    return found


def exactly_one(items: Sequence[Any], of: Of) -> Any:
    """`exists_one`."""
    found = [of(item) for item in items]
    return found.count(True) == 1 if all(type(one) is bool for one in found) else NO_ANSWER


def those(items: Sequence[Any], of: Of) -> Any:
    """`filter`."""
    found = [of(item) for item in items]
    if not all(type(one) is bool for one in found):
        return NO_ANSWER
    return [item for item, is_one in zip(items, found, strict=True) if is_one]


def each(items: Sequence[Any], of: Of) -> Any:
    """`map`."""
    found = [of(item) for item in items]
    return NO_ANSWER if any(one is NO_ANSWER for one in found) else found
