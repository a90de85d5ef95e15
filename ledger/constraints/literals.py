"""Which words a regular expression cannot do without, so that most texts need not be searched with it. Pure.

Only what the turns of phrase use is understood: groups, alternatives, classes, escapes, quantifiers, looks around. What
is not understood needs nothing, and is always searched for.
"""

from collections.abc import Iterator
from typing import NamedTuple

_FEWEST = 3
_OPTIONAL = frozenset("?*{")
_SPECIAL = frozenset(".^$")


def needed(pattern: str) -> frozenset[str]:
    """Texts one of which stands in whatever a pattern matches; none: nobody knows."""
    return _of_any(_alternatives(pattern))


def _of_any(alternatives: list[str]) -> frozenset[str]:
    found = [_of_one(one) for one in alternatives]
    return frozenset[str]().union(*found) if all(found) else frozenset()


class _Piece(NamedTuple):
    text: str
    is_group: bool


def _of_one(pattern: str) -> frozenset[str]:
    """The longest plain text in a pattern without alternatives, or what one of its groups needs."""
    best = frozenset[str]()
    shortest = 0
    for piece in _pieces(pattern):
        some = _of_any(_alternatives(piece.text)) if piece.is_group else frozenset({piece.text})
        length = min(map(len, some), default=0)
        if length >= _FEWEST and length > shortest:
            best, shortest = some, length
    return best


def _pieces(pattern: str) -> Iterator[_Piece]:
    """Runs of plain text, and groups, that no match can leave out."""
    run = ""
    at = 0
    while at < len(pattern):
        end = _end(pattern, at)
        token, after = pattern[at:end], pattern[end : end + 1]
        is_plain = len(token) == 1 and token not in _SPECIAL
        if is_plain and after not in _OPTIONAL:
            run += token
        else:
            if run:
                yield _Piece(run, False)
            run = ""
            if token.startswith("(") and not token.startswith(("(?!", "(?<")) and after not in _OPTIONAL:
                yield _Piece(token[1:-1].removeprefix("?:").removeprefix("?="), True)
        at = end
        if after in _OPTIONAL or after == "+":
            if run:  # `ab+`
                yield _Piece(run, False)
            run = ""
            at = pattern.index("}", end) + 1 if after == "{" else end + 1
            at += pattern[at : at + 1] == "?"
    if run:
        yield _Piece(run, False)


def _alternatives(pattern: str) -> list[str]:
    found = [""]
    at = 0
    while at < len(pattern):
        end = _end(pattern, at)
        if pattern[at] == "|":
            found.append("")
        else:
            found[-1] += pattern[at:end]
        at = end
    return found


def _end(pattern: str, at: int) -> int:
    """Where the token that begins there ends: an escape, a class, a group, or one character."""
    if pattern[at] == "\\":
        return at + 2
    if pattern[at] == "[":
        end = at + 1
        while pattern[end] != "]" or end == at + 1:
            end += 2 if pattern[end] == "\\" else 1
        return end + 1
    if pattern[at] == "(":
        end = at + 1
        while pattern[end] != ")":
            end = _end(pattern, end)
        return end + 1
    return at + 1
