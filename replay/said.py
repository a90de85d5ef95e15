"""What was said since a context: a list that only grows at its end, so that states share its beginning.

It ends in links, one for each message. What came long ago is packed: bytes that cost nothing until somebody looks.
"""

import hashlib
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from ledger.events.canonical import canonical_json, decode_json

_COUNT = 8  # bytes of a count


class Item(NamedTuple):
    """A message of the conversation that came after the last request, by its digest."""

    role: str
    """Who said it: `user`, `assistant` or `tool`."""

    digest: str
    """Blob that holds it."""

    kind: str
    """Kind of the blob: a `json` one may be a whole message already."""

    call_id: str | None = None
    """Model call that answered it, or tool call whose result it is."""


class Pack:
    """Many messages as one. Never changed; equal packs after equal ones have the same name."""

    __slots__ = ("__weakref__", "before", "body", "name", "total")

    def __init__(self, before: "Pack | None", body: bytes) -> None:
        self.before: Pack | None = before
        """The pack before it."""
        self.body: bytes = body
        """How many items it has, and their RFC 8785 form without the brackets around them."""
        self.total: int = self.count + (before.total if before is not None else 0)
        """How many items there are up to its end."""
        self.name: bytes = pack_name(before.name if before is not None else b"", body)
        """Digest of all up to its end."""

    @classmethod
    def of(cls, before: "Pack | None", items: list[Item]) -> "Pack":
        """These items after a pack."""
        return cls(before, len(items).to_bytes(_COUNT, "big") + text_of(items))

    @property
    def count(self) -> int:
        """How many items it has."""
        return int.from_bytes(self.body[:_COUNT], "big")

    @property
    def text(self) -> bytes:
        """Its items in RFC 8785 form, without the brackets around them."""
        return self.body[_COUNT:]

    def items(self) -> list[Item]:
        """Its items. Raises ValueError or TypeError for bytes that are none."""
        return [Item(*item) for item in decode_json(b"[" + self.text + b"]")]


class Link(NamedTuple):
    """The end of a list that all states share which have its beginning. Flat, because there can be many."""

    before: "Link | Pack | None"
    """The list without its last item."""

    role: str
    digest: str
    kind: str
    call_id: str | None


Tail = Link | Pack | None
"""A list of messages, by its end."""


def pack_name(before: bytes, body: bytes) -> bytes:
    """The name of a pack after the one named `before`; before the first there is none, named by no bytes."""
    return hashlib.sha256(before + body).digest()


def text_of(items: Iterable[Item]) -> bytes:
    """Items as a pack holds them."""
    return canonical_json([list(item) for item in items])[1:-1]


def split(tail: Tail) -> tuple[Pack | None, list[Item]]:
    """The last pack, and the items after it."""
    items: list[Item] = []
    while isinstance(tail, Link):
        items.append(Item(*tail[1:]))
        tail = tail.before
    items.reverse()
    return tail, items


def packed(tail: Tail) -> Pack | None:
    """The same list with nothing left unpacked."""
    pack, items = split(tail)
    return Pack.of(pack, items) if items else pack


def packs_of(tail: Tail) -> Iterator[Pack]:
    """The packs of a list, the last one first."""
    pack, _ = split(tail)
    while pack is not None:
        yield pack
        pack = pack.before


def length(tail: Tail) -> int:
    """How many items a list has."""
    pack, items = split(tail)
    return len(items) + (pack.total if pack is not None else 0)


def texts_of(tail: Tail) -> list[bytes]:
    """The items in RFC 8785 form, in pieces to be joined by commas."""
    _, items = split(tail)
    texts = [text_of(items)] if items else []
    texts.extend(pack.text for pack in packs_of(tail))
    return texts[::-1]


def items_of(tail: Tail, first: int, end: int) -> list[Item]:
    """The items from one place up to another. Packs that have none of them are not opened."""
    pack, items = split(tail)
    begin = pack.total if pack is not None else 0
    pieces = [items[max(0, first - begin) : max(0, end - begin)]]
    while pack is not None and first < begin:
        begin = pack.total - pack.count
        if begin < end:
            pieces.append(pack.items()[max(0, first - begin) : end - begin])
        pack = pack.before
    return [item for piece in reversed(pieces) for item in piece]


def is_answered(tail: Tail, call_id: str) -> bool:
    """Whether an answer of a model call is in the list."""
    pack, items = split(tail)
    if any(item.role == "assistant" and item.call_id == call_id for item in items):
        return True
    name = canonical_json(call_id)
    return any(
        name in pack.text
        and any(item.role == "assistant" and item.call_id == call_id for item in pack.items())
        for pack in packs_of(pack)
    )
