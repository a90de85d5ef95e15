"""The head of a `.sql` file: comment lines `-- word: text` that say what the query is for."""

import re
from typing import NamedTuple

_LINE = re.compile(r"--\s*(\w+):\s*(.*)")


class HeadLine(NamedTuple):
    """What one line says."""

    text: str
    """The text after the word."""

    line: int
    """Its number in the file, from 1."""


def head_of(text: str) -> dict[str, list[HeadLine]]:
    """The lines by their word, before the first line that is no comment. A word may stand several times."""
    told: dict[str, list[HeadLine]] = {}
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip() and not line.startswith("--"):
            break
        if (found := _LINE.match(line)) is not None:
            told.setdefault(found[1], []).append(HeadLine(found[2].strip(), number))
    return told
