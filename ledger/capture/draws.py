"""Outside inputs that a replay must give back: each is read once, recorded, and handed on."""

import os
import random
from collections.abc import Callable, Mapping
from typing import Any, Literal, TypeVar

from ledger.capture.journal import Journal
from ledger.events import Actor
from ledger.events.draw import Drawn
from ledger.protocols.plain import plain

_Value = TypeVar("_Value")

DrawKind = Literal["clock", "random", "identifier", "environment", "other"]
"""What is read."""


class Draws:
    """`run.draw`: use it in the place of `datetime.now()`, `random.random()`, `uuid4()` and `os.environ`."""

    def __init__(self, journal: Journal, environ: Mapping[str, str] = os.environ) -> None:
        self._journal = journal
        self._environ = environ

    def clock(self, label: str = "clock") -> str:
        """The time, RFC 3339 UTC, by the recorder's clock."""
        return self._draw("clock", label, self._journal.surroundings.recorder.clock)

    def random(self, label: str = "random") -> float:
        """A number from 0 up to 1."""
        return self._draw("random", label, self._journal.surroundings.random or random.random)

    def uuid(self, label: str = "uuid") -> str:
        """An identifier, by the recorder's source of ids."""
        return self._draw("identifier", label, self._journal.new_id)

    def environ(self, name: str, default: str | None = None) -> str | None:
        """A variable of the environment. A secret in it is handed on and not kept."""
        return self._draw("environment", name, lambda: self._environ.get(name, default))

    def other(self, label: str, read: Callable[[], _Value]) -> _Value:
        """Whatever else a second run would read differently; `read` must give a JSON value."""
        return self._draw("other", label, read)

    def _draw(self, kind: DrawKind, label: str, read: Callable[[], _Value]) -> _Value:
        value = read()
        kept: Any = {label: plain(value)} if kind == "environment" else plain(value)
        with self._journal.intent(f"draw of {label!r}"):
            event = Drawn(kind=kind, label=label, value=self._journal.keep.json(kept, "draw"))
            self._journal.append([self._journal.draft(event, actor=Actor("system"))])
        return value
