"""What reads model traffic asks of whoever writes it down: an importer's scribe, or the recording proxy's."""

from typing import Any, NamedTuple, Protocol

from ledger.events import Draft, Event
from ledger.events.record import ActorKind, Grade
from ledger.recorder import Keeper

_WORD = 200


class Place(NamedTuple):
    """Where a source record stands."""

    key: str
    """Its identity in the session."""

    line: int | None = None
    """Its line, or its number in a list, from 1."""

    time: str | None = None
    """Its time as given."""


class Drafter(Protocol):
    """Makes the drafts of one session."""

    @property
    def keep(self) -> Keeper:
        """Way in for content."""

    def draft(
        self,
        place: Place,
        event: Event,
        actor: ActorKind = "system",
        *,
        rest: Any = None,
        grade: Grade | None = None,
    ) -> Draft:
        """A draft. `rest`: native fields that no event field carries."""

    def word(self, value: Any, where: str = "") -> str | None:
        """A short text that an event carries itself, or None: without secrets, cut to a bearable length."""


def short_word(keep: Keeper, value: Any, where: str = "") -> str | None:
    """What `Drafter.word` gives."""
    if not isinstance(value, str) or not value:
        return None
    clean = keep.scalar(value, where)
    return clean if len(clean) <= _WORD else f"{clean[: _WORD - 1]}…"
