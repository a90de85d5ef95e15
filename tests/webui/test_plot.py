"""Scales, ticks and paths of charts."""

import re

from hypothesis import given
from hypothesis import strategies as st

from webui.plot import WIDTH, field_of, round_values

VALUES = st.floats(-1e9, 1e9)


@given(VALUES, VALUES, st.integers(1, 12))
def test_ticks_are_few_and_lie_within(low: float, high: float, most: int) -> None:
    low, high = min(low, high), max(low, high)
    values = round_values(low, high, most)
    slack = 1e-6 * max(1.0, abs(low), abs(high))
    assert len(values) <= most
    assert all(low - slack <= value <= high + slack for value in values)


@given(st.lists(st.tuples(VALUES, VALUES), min_size=1, max_size=30))
def test_a_line_stays_inside_its_chart(points: list[tuple[float, float]]) -> None:
    field = field_of((-1e6, 1e6), (0, 1e6), 160)
    numbers = [float(number) for number in re.findall(r"-?[0-9.]+(?:e-?[0-9]+)?", field.line(points))]
    assert all(0 <= x <= WIDTH for x in numbers[0::2])
    assert all(0 <= y <= 160 for y in numbers[1::2])


def test_forms_are_drawn_as_expected() -> None:
    field = field_of((0, 10), (0, 10), 160)
    assert field.line([(0, 0), (10, 10)]) == "M52 136L432 8"
    assert field.step([(0, 0), (5, 10)]) == "M52 136L242 136L242 8"
    assert field.band([(0, 0), (10, 0)], [(0, 5), (10, 5)]) == "M52 72L432 72L432 136L52 136z"
    assert field.bar(0, 5, 0, 10) == "M52 136V8h190V136z"
    assert [tick.label for tick in field.up.ticks(4)] == ["0", "5", "10"]
