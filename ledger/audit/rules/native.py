"""CEL expressions as Python closures: what a rule asks of each call takes a fraction of what the library needs for it.

Built out of the tree of an expression, never out of its text: no code is made or run. What is not told here is left to
the library (`build` gives None), which also says what each text and number means. No answer is a value, NO_ANSWER: `&&`
and `||` do without one side where the other decides, and so do `exists` and `all`, as the language says.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import Any

import cel
from cel.stdlib import STDLIB_FUNCTIONS

from ledger.audit.rules.closures import (
    NUMBERS,
    Bound,
    Locals,
    Part,
    Run,
    applied,
    chosen,
    compared,
    constant,
    conversion,
    decided,
    is_in,
    matched,
    member_of,
    of_loop,
    of_record,
    of_step,
    of_texts,
)
from ledger.audit.rules.expressions import Field
from ledger.audit.rules.grammar import (
    Call,
    Constant,
    Items,
    Member,
    Name,
    Node,
    NotKnownError,
    Written,
    tree_of,
)
from ledger.audit.rules.values import (
    NO_ANSWER,
    each,
    exactly_one,
    looked_up,
    lower,
    negated,
    negative,
    of_texts_alone,
    one_decides,
    reckoned,
    size,
    those,
)

_OF_LIBRARY = frozenset("charAt indexOf join lastIndexOf replace split substring trim upperAscii".split())
_CONVERSIONS = frozenset({"double", "int", "string"})
_LOOPS = frozenset({".all", ".exists", ".exists_one", ".filter", ".map"})
_DEEPEST = 60


def build(text: str, variables: Collection[str], steps: Collection[str]) -> Run | None:
    """An expression as a closure; None where the library has to work it out."""
    try:
        return _Building(frozenset(variables), frozenset(steps)).part(tree_of(text), frozenset(), 0).run
    except (NotKnownError, RecursionError):
        return None


def _said(text: str) -> Any:
    try:
        return cel.compile(text).execute()
    except (ValueError, RuntimeError, TypeError) as error:
        raise NotKnownError from error


class _Building:
    def __init__(self, variables: frozenset[str], steps: frozenset[str]) -> None:
        self._variables, self._steps = variables, steps

    def part(self, node: Node, inner: frozenset[str], depth: int) -> Part:
        """One part; `inner` are the variables of the loops around it."""
        if depth > _DEEPEST:
            raise NotKnownError
        match node:
            case Written():
                return constant(_said(node.text))
            case Constant():
                return constant(node.value)
            case Name() | Member():
                return Part(self._field(node, inner, depth))
            case Items():
                return self._items([self.part(one, inner, depth + 1) for one in node.items])
            case Call():
                return self._call(node, inner, depth + 1)

    def _field(self, node: Name | Member, inner: frozenset[str], depth: int) -> Run:
        path: list[str] = []
        root: Node = node
        while isinstance(root, Member):
            path.insert(0, root.name)
            root = root.of
        if not isinstance(root, Name):
            assert isinstance(node, Member)
            return member_of(self.part(node.of, inner, depth + 1).run, node.name)
        name = root.name
        if name in inner:
            return of_loop(name, tuple(path))
        if name in self._steps:
            return of_step(Field(name, tuple(path)))
        if name in self._variables:
            return of_record(name, tuple(path))
        raise NotKnownError

    @staticmethod
    def _items(parts: Sequence[Part]) -> Part:
        if all(part.constant is not NO_ANSWER for part in parts):
            return constant([part.constant for part in parts])
        runs = [part.run for part in parts]

        def run(record: Mapping[str, Any], bound: Bound | None, inner: Locals) -> Any:
            found = [one(record, bound, inner) for one in runs]
            return NO_ANSWER if any(one is NO_ANSWER for one in found) else found

        return Part(run)

    def _call(self, call: Call, inner: frozenset[str], depth: int) -> Part:
        function, given = call.function, call.arguments
        if function in _LOOPS:
            return Part(self._loop(function, given, inner, depth))
        if function == "has":
            return Part(self._has(given, inner, depth))
        parts = [self.part(one, inner, depth) for one in given]
        runs = [part.run for part in parts]
        match function, len(parts):
            case (("&&" | "||"), _):
                return Part(decided(runs, function == "||"))
            case "?:", 3:
                return Part(chosen(*runs))
            case (("==" | "!=" | "<" | "<=" | ">" | ">="), 2):
                return Part(compared(function, *parts))
            case "in", 2:
                return Part(is_in(*parts))
            case "!", 1:
                return Part(applied(negated, runs))
            case "-x", 1 if parts[0].constant is NO_ANSWER:
                return Part(applied(negative, runs))
            case "-x", 1 if type(parts[0].constant) in NUMBERS:
                return constant(-parts[0].constant)
            case (("+" | "-" | "*" | "/" | "%"), 2):
                return Part(applied(partial(reckoned, function), runs))
            case "[]", 2:
                return Part(applied(looked_up, runs))
            case ((".contains" | ".startsWith" | ".endsWith"), 2):
                return Part(of_texts(function, *parts))
            case (("matches" | ".matches"), 2):
                return Part(matched(*parts))
            case (("size" | ".size"), 1):
                return Part(applied(size, runs))
            case "dyn", 1:
                return parts[0]
            case ".lowerAscii", 1:
                return Part(applied(lower, runs))
        if function in _CONVERSIONS and len(parts) == 1:
            return Part(applied(conversion(function), runs))
        if function[0] == "." and function[1:] in _OF_LIBRARY:
            return Part(applied(partial(of_texts_alone, STDLIB_FUNCTIONS[function[1:]]), runs))
        raise NotKnownError

    def _has(self, given: tuple[Node, ...], inner: frozenset[str], depth: int) -> Run:
        if len(given) != 1 or not isinstance(given[0], Member):
            raise NotKnownError
        of, name = self.part(given[0].of, inner, depth).run, given[0].name

        def run(record: Mapping[str, Any], bound: Bound | None, inner: Locals) -> Any:
            value = of(record, bound, inner)
            return name in value if type(value) is dict else NO_ANSWER

        return run

    def _loop(self, function: str, given: tuple[Node, ...], inner: frozenset[str], depth: int) -> Run:
        if len(given) < 3 or len(given) > (4 if function == ".map" else 3) or not isinstance(given[1], Name):
            raise NotKnownError
        over = self.part(given[0], inner, depth).run
        name = given[1].name
        inside = inner | {name}
        first, *rest = (self.part(one, inside, depth).run for one in given[2:])
        match function:
            case ".exists":
                fold: Callable[[Sequence[Any], Callable[[Any], Any]], Any] = partial(one_decides, True)
            case ".all":
                fold = partial(one_decides, False)
            case ".exists_one":
                fold = exactly_one
            case ".filter":
                fold = those
            case _:
                fold = each
        is_choosing = bool(rest)

        def run(record: Mapping[str, Any], bound: Bound | None, inner: Locals) -> Any:
            value = over(record, bound, inner)
            kind = type(value)
            if kind is dict:
                value = sorted(value)
            elif kind is not list:
                return NO_ANSWER
            own = dict(inner) if inner else {}

            def of(run: Run, item: Any) -> Any:
                own[name] = item
                return run(record, bound, own)

            if is_choosing:
                value = those(value, partial(of, first))
                if value is NO_ANSWER:
                    return value
            return fold(value, partial(of, rest[0] if is_choosing else first))

        return run
