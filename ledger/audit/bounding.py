"""What the folds of a session share: how much they keep of it, and how they shorten and compare its words. Pure."""

import re
from collections import OrderedDict
from typing import Any

SENTENCE_END = re.compile(r"(?<=[.!?;])\s+|\n+")
"""Between the sentences and lines of instructions and memory."""


def bound(kept: OrderedDict[Any, Any], most: int) -> None:
    """Forget the oldest of what is kept, until so many are left."""
    while len(kept) > most:
        kept.popitem(last=False)


def plain(text: str) -> str:
    """A text in small letters with single blanks."""
    return " ".join(text.lower().split())


def short(text: str, most: int = 120) -> str:
    """A text on one line, cut after so many characters."""
    shown = " ".join(text.split())
    return shown if len(shown) <= most else f"{shown[: most - 1]}…"
