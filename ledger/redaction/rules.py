"""A rule for secrets that can be told by their shape.

Must not need more than a bounded look around its literal.
"""

import re
from collections.abc import Callable
from typing import NamedTuple

# A token may start after any byte that is no letter or digit, and after what only ends in one: an
# escape in JSON text
# (`\n`, `\u003d`), a percent escape, a terminal colour.
_AFTER_ESCAPE = (
    rb"|(?<=\\[nrtbf])|(?<=\\u00[0-9a-fA-F]{2})|(?<=%[0-9A-Fa-f]{2})"
    rb"|(?<=\x1b\[[0-9]m)|(?<=\x1b\[[0-9]{2}m)|(?<=\[[0-9];[0-9]{2}m)"
)


def starts_after(characters: bytes) -> bytes:
    """A pattern for the start of a token: none of these characters before it, unless they end an escape."""
    return rb"(?:(?<![" + characters + rb"])" + _AFTER_ESCAPE + rb")"


BOUNDARY = starts_after(rb"A-Za-z0-9_")
_VARIETY_AT_LEAST = 6


class Rule(NamedTuple):
    """One shape of secret."""

    kind: str
    """Kind as shown in the marker: small letters, digits, underscores."""

    literals: tuple[str, ...]
    """Texts one of which stands in every such secret, any case; at least two bytes, the rarer the better."""

    pattern: re.Pattern[bytes]
    """The secret; its group `secret`, if any, is the part to take out. Quantifiers have to be bounded."""

    before: int = 0
    """How many bytes before the literal the secret may start; 0: the literal starts it."""

    check: Callable[[bytes], bool] | None = None
    """Says no to what has the shape and is harmless."""

    tail: re.Pattern[bytes] | None = None
    """What else belongs to the secret after the bounded pattern."""

    near: re.Pattern[bytes] | None = None
    """What has to stand within 200 bytes of it, where the shape alone proves little."""


def token(
    kind: str,
    prefixes: str,
    body: str,
    *,
    strict: bool = True,
    check: Callable[[bytes], bool] | None = None,
    near: str | None = None,
) -> Rule:
    """A rule for vendor tokens: one of some prefixes (separated by blanks), then a body.

    A prefix that is a word part in prose is strict: it counts only at the start of a word.
    """
    literals = tuple(prefixes.split())
    start = BOUNDARY if strict else b""
    alternatives = b"|".join(re.escape(literal.encode()) for literal in literals)
    return Rule(
        kind,
        literals,
        re.compile(start + b"(?:" + alternatives + b")" + body.encode()),
        check=check or varied,
        tail=re.compile(rb"[A-Za-z0-9_\-]*+"),
        near=re.compile(near.encode(), re.I) if near else None,
    )


def varied(secret: bytes) -> bool:
    """Whether the end of a token is more than a filler such as `xxxx` or `...`."""
    return len(set(secret[-20:])) >= _VARIETY_AT_LEAST


def has_digit(secret: bytes) -> bool:
    """Whether a varied token has a digit, as random tokens of 20 letters and more nearly always do."""
    return varied(secret) and any(48 <= byte <= 57 for byte in secret)


def has_digit_and_letter_run(secret: bytes) -> bool:
    """Whether a long part without dashes mixes digits and letters: no name made of words is like that."""
    return varied(secret) and any(
        len(part) >= 16 and re.search(rb"[0-9]", part) and re.search(rb"[A-Za-z]", part)
        for part in re.split(rb"[-_]", secret)
    )
