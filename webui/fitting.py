"""How much fits on a page: its bytes, not its items, for a text may be any. Renders nothing."""

from collections.abc import Callable, Sequence
from typing import TypeVar
from urllib.parse import quote

from markupsafe import escape

from webui.visible import visible

_T = TypeVar("_T")


def weight(text: str) -> int:
    """Bytes of a text in a page."""
    return len(str(escape(visible(text))).encode("utf-8", "replace"))


def weight_in_address(text: str) -> int:
    """Bytes of a text in an address."""
    return len(quote(text, safe="", errors="replace"))


def fit(text: str, most: int) -> str:
    """The longest beginning of a text that takes at most so many bytes in a page."""
    if weight(text) <= most:
        return text
    short, long = 0, len(text)
    while long - short > 1:
        middle = (short + long) // 2
        short, long = (middle, long) if weight(text[:middle]) <= most else (short, middle)
    return text[:short]


def fitting(lists: Sequence[Sequence[_T]], weigh: Callable[[_T], int], most: int) -> list[int]:
    """How many of each list fit, from its beginning, when all lists take turns in `most` bytes; of each the first."""
    counts = [min(1, len(items)) for items in lists]
    left = most - sum(weigh(items[0]) for items in lists if items)
    growing = [number for number, items in enumerate(lists) if len(items) > 1]
    while growing:
        for number in list(growing):
            left -= weigh(lists[number][counts[number]])
            if left < 0:
                return counts
            counts[number] += 1
            if counts[number] == len(lists[number]):
                growing.remove(number)
    return counts
