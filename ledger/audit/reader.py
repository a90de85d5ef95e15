"""What a detector may look up beside the records that it is given: contents, contexts, records of other sessions."""

from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import Any, Protocol

from ledger.constraints.speakers import texts_in as texts_in
from ledger.events import ContentRef, Record
from ledger.events.canonical import decode_json

_KEPT = 256
_LARGEST_KEPT = 64 * 1024


class Records(Protocol):
    """Gives records of a session, in order."""

    def __call__(self, session: str, *, after: int = 0, upto: int | None = None) -> Iterator[Record]:
        """Those after a seq, up to another."""


class Reader:
    """Looks up; never raises on content that was erased or is damaged: it is None, or empty, then."""

    def __init__(
        self,
        content: Callable[[str], bytes],
        context: Callable[[str], list[str]],
        records: Records,
    ) -> None:
        self._content = content
        self._context = context
        self.records = records
        """Records of any session."""
        self._values: OrderedDict[tuple[str, str], Any] = OrderedDict()
        self._contents: OrderedDict[str, bytes] = OrderedDict()

    def content(self, digest: str) -> bytes | None:
        """Bytes of a blob; several detectors look at the same ones, one after the other."""
        found = self._looked_up(digest)
        if found is not None and len(found) <= _LARGEST_KEPT:
            self._contents[digest] = found
            if len(self._contents) > _KEPT:
                self._contents.popitem(last=False)
        return found

    def _looked_up(self, digest: str) -> bytes | None:
        found = self._contents.get(digest)
        if found is not None:
            return found
        try:
            return self._content(digest)
        except Exception:  # noqa: BLE001 - erased or damaged content is no reason to stop a check
            return None

    def context(self, node: str | None) -> list[str]:
        """Digests of the messages of a context, first message first."""
        if node is None:
            return []
        try:
            return self._context(node)
        except Exception:  # noqa: BLE001 - as above
            return []

    def value(self, reference: ContentRef | None) -> Any:
        """Content as JSON, or as text. Shared between detectors: never change it."""
        if reference is None:
            return None
        key = reference.digest, reference.kind
        found = self._values.get(key)
        if found is not None:
            self._values.move_to_end(key)
            return found
        found = self._decoded(reference)
        if found is not None and reference.size <= _LARGEST_KEPT:
            self._values[key] = found
            if len(self._values) > _KEPT:
                self._values.popitem(last=False)
        return found

    def _decoded(self, reference: ContentRef) -> Any:
        content = self._looked_up(reference.digest)
        if content is None:
            return None
        if reference.kind == "json":
            try:
                return decode_json(content)
            except (ValueError, RecursionError):
                return None
        return content.decode("utf-8", "replace")

    def message(self, digest: str) -> Any:
        """A message of a context."""
        return self.value(ContentRef(digest=digest, size=0, kind="json"))

    def text(self, reference: ContentRef | None) -> str:
        """Content as text: JSON as it is written, text as it is; empty where it cannot be had."""
        if reference is None:
            return ""
        return (self.content(reference.digest) or b"").decode("utf-8", "replace")

    def words(self, reference: ContentRef | None) -> list[str]:
        """All texts in a content, the keys of objects left out: what a person or a model would read of it."""
        return texts_in(self.value(reference))
