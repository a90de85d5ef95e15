"""The grammar of CEL expressions: a text that the library has taken for one becomes a tree.

Judges nothing: what it does not know it leaves to the library.
"""

import re
from typing import Any, NamedTuple

_TOKEN = re.compile(
    r"(?P<space>\s+|//[^\n]*)"
    r"|(?P<text>[rR](?:'''(?s:.*?)'''|\"\"\"(?s:.*?)\"\"\"|'[^'\n]*'|\"[^\"\n]*\")"
    r"|'''(?s:(?:\\.|[^\\])*?)'''|\"\"\"(?s:(?:\\.|[^\\])*?)\"\"\"|'(?:\\.|[^'\\\n])*'|\"(?:\\.|[^\"\\\n])*\")"
    r"|(?P<number>0[xX][0-9a-fA-F]+|\d+\.\d+(?:[eE][+-]?\d+)?|\.\d+(?:[eE][+-]?\d+)?|\d+(?:[eE][+-]?\d+)?)"
    r"|(?P<name>[A-Za-z_][A-Za-z0-9_]*)"
    r"|(?P<sign>&&|\|\||[<>=!]=|[-+*/%<>!?:.,()\[\]])"
)
_CONSTANTS = {"true": True, "false": False, "null": None}
_LEVELS = (
    frozenset({"<", "<=", ">", ">=", "==", "!=", "in"}),
    frozenset({"+", "-"}),
    frozenset({"*", "/", "%"}),
)
_DEEPEST = 40


class NotKnownError(Exception):
    """An expression holds what is left to the library."""


class Written(NamedTuple):
    """A text or a number as it is written."""

    text: str
    """It, with its quotes."""


class Constant(NamedTuple):
    """true, false or null."""

    value: Any
    """It."""


class Name(NamedTuple):
    """A variable."""

    name: str
    """It."""


class Member(NamedTuple):
    """A field of a value."""

    of: "Node"
    """The value."""

    name: str
    """The field."""


class Items(NamedTuple):
    """A list."""

    items: tuple["Node", ...]
    """What is in it."""


class Call(NamedTuple):
    """An operator, a function, or a method of its first argument."""

    function: str
    """`&&`, `size`, `.startsWith`: a method has a dot before it; `[]` is a look-up, `-x` the negative."""

    arguments: tuple["Node", ...]
    """What it is given."""


Node = Written | Constant | Name | Member | Items | Call


def tree_of(text: str) -> Node:
    """An expression as a tree. Raises NotKnownError."""
    parsing = _Parsing(text)
    found = parsing.expression(0)
    if not parsing.is_at("", "end"):
        raise NotKnownError
    return found


class _Parsing:
    def __init__(self, text: str) -> None:
        self._tokens: list[tuple[str, str]] = []
        place = 0
        while place < len(text):
            found = _TOKEN.match(text, place)
            if found is None:
                raise NotKnownError
            kind, place = str(found.lastgroup), found.end()
            if kind in ("number", "name") and re.match(r"[\w'\"]", text[place : place + 1]):
                raise NotKnownError  # `1u`, `b'bytes'`
            if kind != "space":
                is_sign = kind == "sign" or found[0] == "in"
                self._tokens.append(("sign" if is_sign else kind, found[0]))
        self._tokens.append(("end", ""))
        self._next = 0

    def is_at(self, text: str, kind: str = "sign") -> bool:
        """Whether this comes next."""
        return self._tokens[self._next] == (kind, text)

    def _takes(self, text: str) -> bool:
        is_there = self.is_at(text)
        self._next += is_there
        return is_there

    def _must(self, text: str) -> None:
        if not self._takes(text):
            raise NotKnownError

    def expression(self, depth: int) -> Node:
        """`a ? b : c`, or less."""
        if depth > _DEEPEST:
            raise NotKnownError
        found = self._any(depth)
        if not self._takes("?"):
            return found
        yes = self._any(depth)
        self._must(":")
        return Call("?:", (found, yes, self.expression(depth + 1)))

    def _any(self, depth: int) -> Node:
        sides = [self._all(depth)]
        while self._takes("||"):
            sides.append(self._all(depth))
        return sides[0] if len(sides) == 1 else Call("||", tuple(sides))

    def _all(self, depth: int) -> Node:
        sides = [self._level(0, depth)]
        while self._takes("&&"):
            sides.append(self._level(0, depth))
        return sides[0] if len(sides) == 1 else Call("&&", tuple(sides))

    def _level(self, level: int, depth: int) -> Node:
        if level == len(_LEVELS):
            return self._unary(depth)
        found = self._level(level + 1, depth)
        for _ in range(_DEEPEST):
            kind, sign = self._tokens[self._next]
            if kind != "sign" or sign not in _LEVELS[level]:
                return found
            self._next += 1
            found = Call(sign, (found, self._level(level + 1, depth)))
        raise NotKnownError

    def _unary(self, depth: int) -> Node:
        for sign in ("!", "-"):
            if self._takes(sign):
                if self.is_at("!") or self.is_at("-"):
                    raise NotKnownError
                return Call("!" if sign == "!" else "-x", (self._member(depth),))
        return self._member(depth)

    def _member(self, depth: int) -> Node:
        found = self._primary(depth)
        for _ in range(_DEEPEST):
            if self._takes("["):
                found = Call("[]", (found, self.expression(depth + 1)))
                self._must("]")
            elif self._takes("."):
                kind, name = self._tokens[self._next]
                if kind != "name":
                    raise NotKnownError
                self._next += 1
                if self._takes("("):
                    found = Call(f".{name}", (found, *self._until(")", depth)))
                else:
                    found = Member(found, name)
            else:
                return found
        raise NotKnownError

    def _primary(self, depth: int) -> Node:
        kind, text = self._tokens[self._next]
        self._next += 1
        if kind in ("text", "number"):
            return Written(text)
        if kind == "name":
            if self._takes("("):
                return Call(text, self._until(")", depth))
            return Constant(_CONSTANTS[text]) if text in _CONSTANTS else Name(text)
        if (kind, text) == ("sign", "("):
            found = self.expression(depth + 1)
            self._must(")")
            return found
        if (kind, text) == ("sign", "["):
            return Items(self._until("]", depth))
        raise NotKnownError

    def _until(self, closing: str, depth: int) -> tuple[Node, ...]:
        found: list[Node] = []
        while not self._takes(closing):
            found.append(self.expression(depth + 1))
            if not self._takes(","):
                self._must(closing)
                break
        return tuple(found)
