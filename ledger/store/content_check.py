"""Checks blobs and context nodes, those that records name and the rest. Must not trust what a damaged row holds."""

from collections import OrderedDict
from collections.abc import Iterator
from typing import Any, Literal, NamedTuple, Protocol

from ledger.store.content import content_digest, has_checksum, node_digest, unpack_blob
from ledger.store.rows import LedgerRecorder

ProblemKind = Literal[
    "record_changed",
    "record_unreadable",
    "chain_broken",
    "seq_missing",
    "seq_changed",
    "position_missing",
    "position_changed",
    "blob_changed",
    "blob_missing",
    "node_changed",
    "node_missing",
    "storage_damaged",
]
"""What can be wrong."""

_CHECKED_KEPT = 100_000
_NAMED_KEPT = 10_000
_CHUNK = 1_000
_CONTEXT_FIELDS = ("context", "context_before", "context_after", "raw_context")


class Problem(NamedTuple):
    """One damaged place."""

    kind: ProblemKind
    """What is wrong."""

    session: str | None
    """Session of the record that shows it; None where no record does."""

    seq: int | None
    """Its seq."""

    detail: str
    """What was expected and found."""


class Report(Protocol):
    """Takes a problem."""

    def __call__(self, kind: ProblemKind, session: Any, seq: Any, detail: str) -> None:
        """Note it."""


class ContentCheck:
    """Checks the content that records name, each blob once as far as memory allows, then everything else."""

    def __init__(self, recorder: LedgerRecorder, salt: bytes, report: Report) -> None:
        self._recorder = recorder
        self._salt = salt
        self._report = report
        self._blobs: OrderedDict[tuple[bytes, int | None], str | None] = OrderedDict()
        self._named: set[bytes] = set()

    def check_references(self, session: str, seq: int, fields: dict[str, Any]) -> None:
        """Check what a record names. Raises what a record of the wrong shape leads to."""
        data = fields["data"]
        for ref in _content_refs(data):
            self._blob(session, seq, bytes.fromhex(ref["digest"]), ref["size"])
        rest = fields.get("source", {}).get("rest")
        if rest is not None:
            self._blob(session, seq, bytes.fromhex(rest), None)
        added = {"context_before": 1, "raw_context": data.get("raw_added", 0)}
        for name in _CONTEXT_FIELDS:
            node = data.get(name)
            if node is not None and not isinstance(
                node, dict
            ):  # what a decider was shown is a blob, checked above
                count = max(added.get(name, data.get("context_added", 0)), 1)
                self._nodes(session, seq, bytes.fromhex(node), count)

    def _blob(self, session: str, seq: int, digest: bytes, size: int | None) -> None:
        key = (digest, size)
        if key in self._blobs:
            self._blobs.move_to_end(key)
            complaint = self._blobs[key]
        else:
            complaint = self._check_blob(digest, size)
            self._blobs[key] = complaint
            if len(self._blobs) > _CHECKED_KEPT:
                self._blobs.popitem(last=False)
        if complaint is not None:
            kind: ProblemKind = "blob_missing" if complaint == "" else "blob_changed"
            self._name(digest)
            self._report(kind, session, seq, f"blob {digest.hex()} {complaint or 'is not there'}")

    def _check_blob(self, digest: bytes, size: int | None) -> str | None:
        try:
            row = self._recorder.get_blob(digest)
            if row is None:
                return ""
            content = unpack_blob(row)
        except Exception as error:  # noqa: BLE001 - damaged columns raise what they like
            return f"is damaged: {error}"
        if row.digest != digest or content_digest(self._salt, content) != digest:
            return "has other content than its digest says"
        if size is not None and size != len(content):
            return f"holds {len(content)} bytes, its record says {size}"
        return None

    def _nodes(self, session: str, seq: int, node: bytes | None, count: int) -> None:
        """Check the nodes at the end of a context that this record answers for, and their messages."""
        while node is not None and count > 0:
            try:
                row = self._recorder.get_node(node)
                if row is None:
                    self._report("node_missing", session, seq, f"context node {node.hex()} is not there")
                    return
                actual = node_digest(self._salt, row.parent, row.message, row.depth)
            except Exception as error:  # noqa: BLE001
                self._name(node)
                self._report("node_changed", session, seq, f"context node {node.hex()} is damaged: {error}")
                return
            if actual != node:
                self._name(node)
                detail = f"context node {node.hex()} has other content than its digest says"
                self._report("node_changed", session, seq, detail)
                return
            self._blob(session, seq, row.message, None)
            node, count = row.parent, count - 1

    def check_the_rest(self) -> None:
        """Check the rows of all blobs and nodes, so that what no checked record names is seen as well."""
        for digest in self._walk(self._recorder.list_blobs):
            try:
                row = self._recorder.get_blob(digest)
                is_good = row is not None and row.digest == digest and has_checksum(row)
            except Exception:  # noqa: BLE001
                is_good = False
            if not is_good and digest not in self._named:
                self._report("blob_changed", None, None, f"blob {_hex(digest)} does not have its checksum")
        for node in self._walk(self._recorder.list_nodes):
            try:
                found = self._recorder.get_node(node)
                is_good = (
                    found is not None
                    and node_digest(self._salt, found.parent, found.message, found.depth) == node
                )
            except Exception:  # noqa: BLE001
                is_good = False
            if not is_good and node not in self._named:
                detail = f"context node {_hex(node)} has other content than its digest says"
                self._report("node_changed", None, None, detail)

    def _walk(self, list_after: Any) -> Iterator[bytes]:
        """All digests of a table, in chunks."""
        after = b""
        while True:
            try:
                found = list_after(after, _CHUNK)
            except Exception as error:  # noqa: BLE001
                self._report("storage_damaged", None, None, f"a table of content cannot be listed: {error}")
                return
            if not found:
                return
            for digest in found:
                if not isinstance(digest, bytes) or digest <= after:
                    self._report("storage_damaged", None, None, "a table of content is not in order")
                    return
                yield digest
                after = digest

    def _name(self, digest: bytes) -> None:
        """Remember that a record has told of it, so that it is told once."""
        if len(self._named) < _NAMED_KEPT:
            self._named.add(digest)


def _hex(digest: Any) -> str:
    return digest.hex() if isinstance(digest, bytes) else repr(digest)


def _content_refs(data: Any) -> Iterator[dict[str, Any]]:
    """Everything in an event that has the shape of a ContentRef."""
    stack = [data]
    while stack:
        value = stack.pop()
        if isinstance(value, dict):
            if len(value) == 3 and "digest" in value and "size" in value and "kind" in value:
                yield value
            else:
                stack.extend(value.values())
        elif isinstance(value, list):
            stack.extend(value)
