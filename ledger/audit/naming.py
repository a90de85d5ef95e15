"""Sentences of instructions, and the names that they set off: by quotes, or by their form."""

import re
from collections.abc import Iterator
from typing import NamedTuple

_FLAGS = re.IGNORECASE
SENTENCE = re.compile(r"(?<=[.!?])(?<!\b\d\.)(?<!e\.g\.)(?<!i\.e\.)[\"')]?\s+(?=\S)")
"""Between sentences."""

_QUOTED = re.compile(r"(?:[`\"“]|(?<!\w)')([^`\"'”\n]{1,80})[`\"'”]")
_BARE = re.compile(
    r"(?<![\w`/.-])((?<=\bthe )\w+-[\w-]+(?= wrapper\b)|(?:~|\.{1,2})?/?[\w.-]+(?:/[\w.*-]+)+"
    r"|\.{1,2}/[\w.-]+|/[\w.-]{3,}"
    r"|[\w-]+\.(?:sh|py|js|ts|rb|json|ya?ml|toml|log|jsonl|service|timer|slice|socket)|(?:make|just"
    r"|npm run|task) [a-z][\w:-]+)(?![\w])"
)


class Named(NamedTuple):
    """A name that a sentence sets off, by quotes or by its form."""

    place: int
    """Where it stands."""

    name: str
    """The name itself."""

    end: int
    """Where it ends, with its quotes."""

    is_quoted: bool
    """Whether it stands in quotes."""


def names_in(sentence: str) -> Iterator[Named]:
    """Names that a sentence sets off."""
    spans = []
    for found in _QUOTED.finditer(sentence):
        spans.append(found.span())
        yield Named(found.start(), found[1].strip(), found.end(), True)
    for found in _BARE.finditer(sentence):
        if not any(start <= found.start() < end for start, end in spans):
            yield Named(found.start(), found[1].rstrip("."), found.end(), False)
