"""What the lake is fed with: stored records by position, and a way to their contents. Knows no store."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

StoredRow = tuple[int, str, int, str, bytes]
"""The fields of a `Stored`, as the database gives them."""


class Stored(NamedTuple):
    """A record as its store keeps it."""

    position: int
    """Place in the whole ledger, from 1."""

    session: str
    """Session."""

    seq: int
    """Place in the session."""

    type: str
    """Name of the event."""

    state: bytes
    """Canonical JSON of the event with its stamp and link."""


@dataclass(frozen=True)
class Feed:
    """One ledger, as the lake sees it."""

    ledger: str
    """Identity of the ledger: a lake takes records of one ledger only."""

    rows: Callable[[int], Iterator[StoredRow]]
    """All records after a position, in order."""

    contents: Callable[[list[str]], Mapping[str, bytes]]
    """Contents by digest; those that are gone are left out."""

    record_hash: Callable[[Stored], str]
    """Hash of a record, hexadecimal: the head that a file of the lake names."""
