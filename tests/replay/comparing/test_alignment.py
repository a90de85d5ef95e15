"""The longest common subsequence: right on everything small, bounded on everything large."""

import random
import tracemalloc

from hypothesis import given
from hypothesis import strategies as st

from replay.comparing.alignment import Alignment, align

LISTS = st.lists(st.integers(0, 4), max_size=40)


def longest(left: list[int], right: list[int]) -> int:
    """The length of the longest common subsequence, by the table of the textbook."""
    row = [0] * (len(right) + 1)
    for one in left:
        before = row
        row = [0]
        for index, other in enumerate(right):
            row.append(before[index] + 1 if one == other else max(before[index + 1], row[index]))
    return row[-1]


def is_common(found: Alignment, left: list[int], right: list[int]) -> bool:
    """Whether the blocks are stretches of both, in order, with a difference between any two."""
    x = y = 0
    for number, (start, there, length) in enumerate(found.blocks):
        if (
            start < x
            or there < y
            or length < 1
            or left[start : start + length] != right[there : there + length]
        ):
            return False
        if number and (start, there) == (x, y):
            return False
        x, y = start + length, there + length
    return x <= len(left) and y <= len(right)


def common(found: Alignment) -> int:
    return sum(block.length for block in found.blocks)


@given(LISTS, LISTS)
def test_it_is_common_and_the_longest(left: list[int], right: list[int]) -> None:
    found = align(left, right)
    assert is_common(found, left, right)
    assert found.is_longest
    assert common(found) == longest(left, right)


@given(LISTS, LISTS, st.integers(0, 30))
def test_without_time_it_is_still_common_and_says_so(left: list[int], right: list[int], budget: int) -> None:
    found = align(left, right, budget)
    assert is_common(found, left, right)
    assert common(found) <= longest(left, right)
    assert not found.is_longest or common(found) == longest(left, right)


def test_long_lists_with_few_differences_are_matched_exactly() -> None:
    draw = random.Random(7)
    left = [draw.randrange(1000) for _ in range(20_000)]
    right = left.copy()
    for place in draw.sample(range(19_000), 40):
        right[place] = -1
    del right[5000:5020]
    right[9000:9000] = [-2] * 30
    found = align(left, right)
    assert found.is_longest
    assert common(found) >= 20_000 - 60
    assert is_common(found, left, right)


def test_what_stands_once_is_found_again_in_lists_that_differ_everywhere() -> None:
    left = [value for number in range(6000) for value in (number, -1 - number % 3)]
    right = [value for number in range(6000) for value in (number, -4 - number % 3)]
    found = align(left, right, budget=50_000)
    assert not found.is_longest
    assert common(found) == 6000


def test_hostile_lists_take_no_memory_that_grows_with_their_product() -> None:
    draw = random.Random(3)
    left = [draw.randrange(2) for _ in range(20_000)]
    right = [draw.randrange(2) for _ in range(20_000)]
    tracemalloc.start()
    try:
        found = align(left, right, budget=200_000)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert is_common(found, left, right)
    assert common(found) > 5_000
    assert peak < 30_000_000
