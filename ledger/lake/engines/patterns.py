"""Regular expressions of DuckDB as Spark's, which are Java's: the same text may mean something else to each."""

import re
from collections.abc import Iterator
from itertools import pairwise

_FLAGS = re.compile(r"\(\?([a-z]*)(?:-[a-z]*)?[:)]")


def is_foreign(pattern: str) -> bool:
    """Whether it has what Java reads in another way: a bracket or && within brackets, such as `[[:alpha:]]`."""
    inside = [part for part, is_inside in _parts(pattern) if is_inside]
    return "[" in inside or any(one == two == "&" for one, two in pairwise(inside))


def to_java(pattern: str) -> str:
    """The same for Java: there `$` also stands before a last line break, and `(?i)` is for ASCII alone."""
    flags = "".join(_FLAGS.findall(pattern))
    text = "".join(
        r"\z" if part == "$" and not is_inside and "m" not in flags else part
        for part, is_inside in _parts(pattern)
    )
    return re.sub(r"(?<!\\)\(\?([a-z]*i)", r"(?\1u", text)


def _parts(pattern: str) -> Iterator[tuple[str, bool]]:
    """Characters, an escaped one with its backslash, and whether they stand within brackets."""
    is_inside = False
    place = 0
    while place < len(pattern):
        part = pattern[place : place + 2] if pattern[place] == "\\" else pattern[place]
        place += len(part)
        if part == "[" and not is_inside:
            yield part, False
            is_inside = True
            first = re.match(r"\^?\]?", pattern[place:])
            if first is not None and first[0]:  # a bracket that stands first is one of the characters
                yield first[0], True
                place += len(first[0])
            continue
        if part == "]" and is_inside:
            is_inside = False
        yield part, is_inside
