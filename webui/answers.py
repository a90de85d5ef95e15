"""Answers that cost much and never change, or not before the session goes on: the last few of them, in memory."""

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any, TypeVar

_T = TypeVar("_T")
_REMEMBERED = 32


class Answers:
    """The last answers of one server. Threads may share it; what it gives is shared too, so nobody changes it."""

    def __init__(self) -> None:
        self._changed = threading.Lock()
        self._known: OrderedDict[Hashable, Any] = OrderedDict()

    def of(self, key: Hashable, make: Callable[[], _T]) -> _T:
        """The answer to a question, which the key names whole; made when it is not known."""
        with self._changed:
            if key in self._known:
                self._known.move_to_end(key)
                found: _T = self._known[key]
                return found
        made = make()
        with self._changed:
            self._known[key] = made
            while len(self._known) > _REMEMBERED:
                self._known.popitem(last=False)
        return made
