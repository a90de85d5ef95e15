"""Answers that cost much are made once, and the oldest is forgotten first."""

from webui.answers import Answers


def test_an_answer_is_made_once_and_forgotten_last() -> None:
    answers, made = Answers(), []

    def make(number: int) -> int:
        made.append(number)
        return number

    for number in (*range(32), 0, 32, 0, 1):
        assert answers.of(("square", number), lambda number=number: make(number)) == number  # type: ignore[misc]
    assert made == [*range(33), 1]
