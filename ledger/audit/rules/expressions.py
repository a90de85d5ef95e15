"""The text of a CEL expression taken apart, to see which fields it reads. Judges no grammar."""

import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any, Literal, NamedTuple

ABSENT = object()
"""The value of a field that is not there."""

_NAMES = r"[A-Za-z_]\w*(?:\s*\.\s*[A-Za-z_]\w*)*"
_WORD = re.compile(
    rf"(?P<member>(?P<name>'[^'\\\n]*'|\"[^\"\\\n]*\")\s+in\s+(?P<of>{_NAMES})(?!\s*[.(\[\w]))"
    r"|(?P<text>(?:[bB]?[rR]|[rR][bB])(?:'''(?s:.*?)'''|\"\"\"(?s:.*?)\"\"\"|'[^'\n]*'|\"[^\"\n]*\")"
    r"|[bB]?(?:'''(?s:(?:\\.|[^\\])*?)'''|\"\"\"(?s:(?:\\.|[^\\])*?)\"\"\""
    r"|'(?:\\.|[^'\\\n])*'|\"(?:\\.|[^\"\\\n])*\"))"
    rf"|(?P<tested>\bhas\s*\(\s*(?P<what>{_NAMES})\s*\))"
    rf"|(?P<names>{_NAMES})"
    r"|(?P<other>//[^\n]*|\d[\w.]*|&&|\|\||\s+|.)",
    re.DOTALL,
)
_CHOICES = frozenset({"_&&_", "_||_", "_?_:_"})
_BEFORE_MEMBERS = frozenset({"", "(", "[", "{", ",", "?", ":", "&&", "||"})
_LOOPS = frozenset({"all", "exists", "exists_one", "filter", "map"})
_OPENING, _CLOSING = frozenset("([{"), frozenset(")]}")
_CALLED = re.compile(r"\s*\(")


class Field(NamedTuple):
    """What an expression reads of a variable, or whether it is there."""

    root: str
    """The variable."""

    path: tuple[str, ...]
    """The names after it; none: all of it."""

    asked: Literal["value", "has", "in"] = "value"
    """Whether only its being there is asked, as in `has(args.path)` or `'path' in args`."""

    @property
    def is_tested(self) -> bool:
        """Whether its value is not asked."""
        return self.asked != "value"

    @property
    def own(self) -> str:
        """A name by which the expression can read it as a variable."""
        names = "".join(
            name if name.isascii() and name.isalnum() else f"_{name.encode().hex()}_" for name in self.path
        )
        lengths = "_".join(str(len(name)) for name in self.path)
        return f"{self.asked}_{self.root}_{lengths}_{names}"

    def of(self, value: Any, known: int = 0) -> Any:
        """It, of the variable's value, or of what its first `known` names lead to; ABSENT where there is none."""
        path = self.path[known:-1] if self.is_tested else self.path[known:]
        for name in path:
            if not isinstance(value, dict) or name not in value:
                return ABSENT
            value = value[name]
        if self.asked == "value":
            return value
        is_told = isinstance(value, dict) or (self.asked == "in" and isinstance(value, list))
        return self.path[-1] in value if is_told else ABSENT


class Piece(NamedTuple):
    """A word of an expression, or what stands between words."""

    text: str
    """As it stands there."""

    kind: str
    """`member`, `text`, `tested`, `names` or `other`."""

    field: Field | None = None
    """What it reads."""

    called: str | None = None
    """The function, or the method of what it reads, that is called with the brackets after it."""


def pieces_of(text: str, variables: Collection[str]) -> Iterator[Piece]:
    """The pieces of an expression; put together again they are the expression."""
    before = ""
    for found in _WORD.finditer(text):
        piece, kind = found[0], str(found.lastgroup)
        field, called = None, None
        if kind == "tested" and before != ".":
            root, *path = _split(found["what"])
            if root in variables and path:
                field = Field(root, tuple(path), "has")
        elif kind == "member" and before in _BEFORE_MEMBERS:
            root, *path = _split(found["of"])
            if root in variables:
                field = Field(root, (*path, found["name"][1:-1]), "in")
        elif kind == "names":
            names = _split(piece)
            if _CALLED.match(text, found.end()):
                called = names.pop()
            if names and names[0] in variables and before != ".":
                field = Field(names[0], tuple(names[1:]))
        yield Piece(piece, kind, field, called)
        if not piece.isspace():
            before = piece


def _split(names: str) -> list[str]:
    return [name.strip() for name in names.split(".")]


def written(pieces: Collection[Piece], names: Mapping[Field, str], functions: Mapping[str, str]) -> str:
    """The expression with other names for its fields, their own where none is given, and for functions."""
    return "".join(_written(piece, names, functions) for piece in pieces)


def _written(piece: Piece, names: Mapping[Field, str], functions: Mapping[str, str]) -> str:
    called = functions.get(piece.called or "", piece.called)
    if piece.field is not None:
        name = names.get(piece.field, piece.field.own)
        return name if called is None else f"{name}.{called}"
    if called == piece.called or called is None or piece.called is None:
        return piece.text
    return piece.text.removesuffix(piece.called) + called


def patterns_in(pieces: Collection[Piece]) -> Iterator[str]:
    """The texts, as they are written, that stand alone as the pattern with which `matches` is called."""
    words = [piece for piece in pieces if not piece.text.isspace()]
    for place, called in enumerate(words):
        if called.called != "matches":
            continue
        depth = 0
        inside: list[Piece] = []
        for word in words[place + 1 :]:
            depth += (word.text in _OPENING) - (word.text in _CLOSING)
            if depth == 0:
                break
            inside.append(word)
        if len(inside) > 1 and inside[-1].kind == "text" and inside[-2].text in ("(", ","):
            yield inside[-1].text


def needs_all(pieces: Collection[Piece], functions: Collection[str]) -> bool:
    """Whether an expression has an answer only where each field that it reads is there.

    Not where one side can do without the other, nor where a loop may run over nothing.
    """
    return _CHOICES.isdisjoint(functions) and all(piece.called not in _LOOPS for piece in pieces)
