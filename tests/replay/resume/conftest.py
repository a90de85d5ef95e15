"""A conversation of two prompts."""

import pytest

from .conversations import Asked, Exchange


@pytest.fixture
def talk() -> list[Exchange]:
    """Two calls at once, an answer, a second prompt and a last call."""
    first = ("I look.", [Asked("read", {"path": "a"}, "one"), Asked("bash", {"text": "ls"}, "two")])
    return [
        Exchange("Look.", [first, ("Done.", [])]),
        Exchange("More.", [("So.", [Asked("read", {}, "three")])]),
    ]
