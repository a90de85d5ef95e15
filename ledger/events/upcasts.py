"""Bring stored events of older schema versions up to the current one: one pure function per step."""

from collections.abc import Callable
from typing import Any

Fields = dict[str, Any]

UPCASTS: dict[tuple[str, int], Callable[[Fields], Fields]] = {}
"""(stored name, version) -> function that gives the fields of the next version."""


def upcast(name: str, version: int, current: int, fields: Fields) -> Fields:
    """The fields of `name` at schema `version`, as the `current` schema has them. Raises KeyError without a step."""
    while version < current:
        fields = UPCASTS[name, version](fields)
        version += 1
    return fields
