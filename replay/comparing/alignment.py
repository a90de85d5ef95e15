"""The longest common subsequence of two lists of numbers, in linear space and bounded time. Pure.

Myers' algorithm finds it exactly, in time that grows with the differences. Lists that differ too much for that are cut
at what stands once in each; what then still costs too much is matched from left to right. That gives a common
subsequence all the same, and says that there may be a longer one.
"""

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

BUDGET = 4_000_000
"""Steps that a search may take: some seconds."""

_MOST_CUTS = 8


class Block(NamedTuple):
    """A stretch that both lists have."""

    left: int
    """Where it begins in the left list."""

    right: int
    """Where it begins in the right list."""

    length: int
    """How long it is."""


class Alignment(NamedTuple):
    """What two lists have in common, in order."""

    blocks: list[Block]
    """Stretches, as long as they can be."""

    is_longest: bool
    """Whether no longer common subsequence exists; False: that would have taken too long to find out."""


class _Box(NamedTuple):
    """A part of the left list and one of the right list that are still to be matched."""

    left: int
    left_end: int
    right: int
    right_end: int
    cuts: int
    """How often it was cut at what stands once in each."""


def align(left: Sequence[int], right: Sequence[int], budget: int = BUDGET) -> Alignment:
    """Match two lists. Memory grows with their lengths, never with the product of these."""
    return _Search(left, right, budget).run()


class _Search:
    def __init__(self, left: Sequence[int], right: Sequence[int], budget: int) -> None:
        self._left = left
        self._right = right
        self._budget = budget
        self._found: list[Block] = []
        self._is_longest = True

    def run(self) -> Alignment:
        boxes = [_Box(0, len(self._left), 0, len(self._right), 0)]
        while boxes:
            box = self._trimmed(boxes.pop())
            if box.left == box.left_end or box.right == box.right_end:
                continue
            snake = self._snake(box)
            if snake is not None:
                x, y, length = snake
                self._take(x, y, length)
                boxes.append(box._replace(left_end=x, right_end=y))
                boxes.append(box._replace(left=x + length, right=y + length))
                continue
            self._is_longest = False
            anchors = self._anchors(box) if box.cuts < _MOST_CUTS else []
            if anchors:
                boxes += self._between(box, anchors)
            else:
                self._from_left_to_right(box)
        return Alignment(_joined(self._found), self._is_longest)

    def _take(self, left: int, right: int, length: int = 1) -> None:
        if length:
            self._found.append(Block(left, right, length))

    def _trimmed(self, box: _Box) -> _Box:
        """The box without what its two parts begin and end with alike."""
        left, right, (x, x_end, y, y_end, cuts) = self._left, self._right, box
        while x < x_end and y < y_end and left[x] == right[y]:
            x, y = x + 1, y + 1
        self._take(box.left, box.right, x - box.left)
        while x < x_end and y < y_end and left[x_end - 1] == right[y_end - 1]:
            x_end, y_end = x_end - 1, y_end - 1
        self._take(x_end, y_end, box.left_end - x_end)
        return _Box(x, x_end, y, y_end, cuts)

    def _snake(self, box: _Box) -> tuple[int, int, int] | None:
        """A stretch in the middle of a shortest way through the box; None when it is too far to find.

        E. W. Myers, "An O(ND) difference algorithm and its variations", section 4b: ways are followed from both ends
        until they meet. The ends of the box differ, so the way has two steps at least.
        """
        left, right = self._left, self._right
        wide, high = box.left_end - box.left, box.right_end - box.right
        size, ring = wide + high, 2 * min(wide, high) + 2
        forward, backward = [0] * ring, [0] * ring
        allowed = self._budget // 2
        spent = 0
        for step in range((size + 1) // 2 + 1):
            lowest, highest = -(step - 2 * max(0, step - high)), step - 2 * max(0, step - wide)
            if spent > allowed:
                break
            for is_forward in (True, False):
                own, other = (forward, backward) if is_forward else (backward, forward)
                odd = 1 if is_forward else 0
                for line in range(lowest, highest + 1, 2):
                    below, above = own[(line - 1) % ring], own[(line + 1) % ring]
                    x = above if line == -step or (line != step and below < above) else below + 1
                    first, y = x, x - line
                    if is_forward:
                        while x < wide and y < high and left[box.left + x] == right[box.right + y]:
                            x, y = x + 1, y + 1
                    else:
                        while (
                            x < wide
                            and y < high
                            and left[box.left_end - 1 - x] == right[box.right_end - 1 - y]
                        ):
                            x, y = x + 1, y + 1
                    own[line % ring] = x
                    spent += 1 + x - first
                    mirrored = wide - high - line
                    if (
                        size % 2 == odd
                        and -(step - odd) <= mirrored <= step - odd
                        and x + other[mirrored % ring] >= wide
                    ):
                        self._budget -= spent
                        length = x - first
                        if is_forward:
                            return box.left + first, box.right + first - line, length
                        return box.left_end - x, box.right_end - y, length
        self._budget -= spent
        return None

    def _anchors(self, box: _Box) -> list[tuple[int, int]]:
        """Places of what stands once in either part, as many as can be had in one order."""
        once_left = _once(self._left, box.left, box.left_end)
        once_right = _once(self._right, box.right, box.right_end)
        pairs = [(x, once_right[value]) for value, x in once_left.items() if value in once_right]
        ends: list[int] = []
        tails: list[int] = []
        before: list[int] = []
        for index, (_, y) in enumerate(pairs):
            place = bisect_left(ends, y)
            before.append(tails[place - 1] if place else -1)
            if place == len(ends):
                ends.append(y)
                tails.append(index)
            else:
                ends[place], tails[place] = y, index
        found: list[tuple[int, int]] = []
        index = tails[-1] if tails else -1
        while index >= 0:
            found.append(pairs[index])
            index = before[index]
        return found[::-1]

    def _between(self, box: _Box, anchors: list[tuple[int, int]]) -> list[_Box]:
        boxes = []
        x, y = box.left, box.right
        for left, right in anchors:
            boxes.append(_Box(x, left, y, right, box.cuts + 1))
            self._take(left, right)
            x, y = left + 1, right + 1
        boxes.append(_Box(x, box.left_end, y, box.right_end, box.cuts + 1))
        return boxes

    def _from_left_to_right(self, box: _Box) -> None:
        """Take each item where it comes next on the other side; one that would pass over too much there is left."""
        places: dict[int, list[int]] = {}
        for y in range(box.right, box.right_end):
            places.setdefault(self._right[y], []).append(y)
        wide, high = box.left_end - box.left, box.right_end - box.right
        y = box.right
        for x in range(box.left, box.left_end):
            there = places.get(self._left[x], [])
            place = bisect_left(there, y)
            # As far through the right part as through the left one, and an eighth of it further at most.
            furthest = box.right + (x + 1 - box.left) * high // wide + high // 8
            if place < bisect_right(there, furthest):
                self._take(x, there[place])
                y = there[place] + 1


def _once(items: Sequence[int], start: int, end: int) -> dict[int, int]:
    """What stands once in a part of a list, and where, in order."""
    counts = Counter(items[start:end])
    return {items[place]: place for place in range(start, end) if counts[items[place]] == 1}


def _joined(found: list[Block]) -> list[Block]:
    """The blocks in order, neighbours made one."""
    blocks: list[Block] = []
    for block in sorted(found):
        last = blocks[-1] if blocks else None
        if last is not None and (last.left + last.length, last.right + last.length) == block[:2]:
            blocks[-1] = last._replace(length=last.length + block.length)
        else:
            blocks.append(block)
    return blocks
