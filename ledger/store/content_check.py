"""Checks blobs and context nodes, those that records name and the rest. Must not trust what a damaged row holds."""

from collections import OrderedDict
from collections.abc import Iterator
from typing import Any, Literal, NamedTuple, Protocol

from ledger.store.content import BlobRow, NodeRow, content_digest, has_checksum, node_digest, unpack_blob
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
    "source_key_wrong",
    "storage_damaged",
]
"""What can be wrong."""

_CHECKED_KEPT = 100_000
_NAMED_KEPT = 10_000
_CHUNK = 1_000
_TOGETHER = 500
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


class _Verdict(NamedTuple):
    """What is known of a blob."""

    complaint: str | None
    """What is wrong with it: empty when it is not there, None when nothing is."""
    size: int
    """Length of its content."""


class _Named(NamedTuple):
    """A blob, and the record that names it."""

    session: str
    seq: int
    digest: bytes
    size: int | None
    """What the record says of its length."""


class _Walk(NamedTuple):
    """Nodes at the end of a context, last first, that a record answers for."""

    session: str
    seq: int
    node: bytes
    """The next one to look at."""
    left: int
    """How many there are still, this one included."""


class ContentCheck:
    """Checks the content that records name, each blob once as far as memory allows, then everything else.

    What is named waits until it is worth a round trip to the database: `flush` ends the waiting.
    """

    def __init__(self, recorder: LedgerRecorder, salt: bytes, report: Report) -> None:
        self._recorder = recorder
        self._salt = salt
        self._report = report
        self._checked: OrderedDict[bytes, _Verdict] = OrderedDict()
        self._told: set[bytes] = set()
        self._blobs: list[_Named] = []
        self._walks: list[_Walk] = []

    def check_references(self, session: str, seq: int, fields: dict[str, Any]) -> None:
        """Check what a record names, now or later. Raises what a record of the wrong shape leads to."""
        data = fields["data"]
        for ref in _content_refs(data):
            self._blobs.append(_Named(session, seq, bytes.fromhex(ref["digest"]), ref["size"]))
        rest = fields.get("source", {}).get("rest")
        if rest is not None:
            self._blobs.append(_Named(session, seq, bytes.fromhex(rest), None))
        added = {"context_before": 1, "raw_context": data.get("raw_added", 0)}
        for name in _CONTEXT_FIELDS:
            node = data.get(name)
            if node is not None and not isinstance(
                node, dict
            ):  # what a decider was shown is a blob, checked above
                count = max(added.get(name, data.get("context_added", 0)), 1)
                self._walks.append(_Walk(session, seq, bytes.fromhex(node), count))
        if len(self._blobs) + len(self._walks) >= _TOGETHER:
            self.flush()

    def flush(self) -> None:
        """Check what waits."""
        walks, self._walks = self._walks, []
        while walks:
            rows = self._nodes({walk.node for walk in walks})
            walks = [further for walk in walks if (further := self._step(walk, rows)) is not None]
            if len(self._blobs) >= _TOGETHER:
                self._check_blobs()
        self._check_blobs()

    # -- what records name ------------------------------------------------------------------------------------------

    def _check_blobs(self) -> None:
        named, self._blobs = self._blobs, []
        for start in range(0, len(named), _TOGETHER):
            part = named[start : start + _TOGETHER]
            new = {each.digest for each in part if each.digest not in self._checked}
            for row in self._rows(new):
                self._remember(row.digest, self._judge(row.digest, row))
            for each in part:
                self._tell(each)

    def _tell(self, named: _Named) -> None:
        session, seq, digest, size = named
        if digest not in self._checked:
            self._remember(digest, self._look(digest))
        self._checked.move_to_end(digest)
        verdict = self._checked[digest]
        complaint = verdict.complaint
        if complaint is None and size is not None and size != verdict.size:
            complaint = f"holds {verdict.size} bytes, its record says {size}"
        if complaint is not None:
            self._note_told(digest)
            kind: ProblemKind = "blob_changed" if complaint else "blob_missing"
            self._report(kind, session, seq, f"blob {digest.hex()} {complaint or 'is not there'}")

    def _look(self, digest: bytes) -> _Verdict:
        """The verdict on one blob by itself: where it is missing, or where the database stumbles over it."""
        try:
            row = self._recorder.get_blob(digest)
        except Exception as error:  # noqa: BLE001 - a damaged database raises what it likes
            return _Verdict(f"is damaged: {error}", 0)
        return _Verdict("", 0) if row is None else self._judge(digest, row)

    def _judge(self, digest: bytes, row: BlobRow) -> _Verdict:
        try:
            content = unpack_blob(row)
        except Exception as error:  # noqa: BLE001 - damaged columns raise what they like
            return _Verdict(f"is damaged: {error}", 0)
        if row.digest != digest or content_digest(self._salt, content) != digest:
            return _Verdict("has other content than its digest says", 0)
        return _Verdict(None, len(content))

    def _remember(self, digest: bytes, verdict: _Verdict) -> None:
        self._checked[digest] = verdict
        if len(self._checked) > _CHECKED_KEPT:
            self._checked.popitem(last=False)

    def _step(self, walk: _Walk, rows: dict[bytes, NodeRow]) -> _Walk | None:
        """Check one node, and name its message; what is left of the walk."""
        session, seq, node, left = walk
        try:
            row = rows.get(node) or self._recorder.get_node(node)
            if row is None:
                self._report("node_missing", session, seq, f"context node {node.hex()} is not there")
                return None
            actual = node_digest(self._salt, row.parent, row.message, row.depth)
        except Exception as error:  # noqa: BLE001
            self._note_told(node)
            self._report("node_changed", session, seq, f"context node {node.hex()} is damaged: {error}")
            return None
        if actual != node:
            self._note_told(node)
            detail = f"context node {node.hex()} has other content than its digest says"
            self._report("node_changed", session, seq, detail)
            return None
        self._blobs.append(_Named(session, seq, row.message, None))
        return _Walk(session, seq, row.parent, left - 1) if row.parent is not None and left > 1 else None

    # -- everything else --------------------------------------------------------------------------------------------

    def check_the_rest(self) -> None:
        """Check the rows of all blobs and nodes, so that what no checked record names is seen as well."""
        self.flush()
        for digests in self._listed(self._recorder.list_blobs):
            left = {digest for digest in digests if not self._is_good(digest)} - self._told
            left -= {row.digest for row in self._rows(left) if row.digest in left and has_checksum(row)}
            for digest in sorted(left):
                if not self._has_good_row(digest):
                    self._report(
                        "blob_changed", None, None, f"blob {digest.hex()} does not have its checksum"
                    )
        for nodes in self._listed(self._recorder.list_nodes):
            rows = self._nodes(set(nodes))
            for node in nodes:
                if node not in self._told and not self._is_good_node(node, rows):
                    detail = f"context node {node.hex()} has other content than its digest says"
                    self._report("node_changed", None, None, detail)

    def _is_good(self, digest: bytes) -> bool:
        verdict = self._checked.get(digest)
        return verdict is not None and verdict.complaint is None

    def _has_good_row(self, digest: bytes) -> bool:
        try:
            row = self._recorder.get_blob(digest)
            return row is not None and row.digest == digest and has_checksum(row)
        except Exception:  # noqa: BLE001
            return False

    def _is_good_node(self, node: bytes, rows: dict[bytes, NodeRow]) -> bool:
        try:
            row = rows.get(node) or self._recorder.get_node(node)
            return row is not None and node_digest(self._salt, row.parent, row.message, row.depth) == node
        except Exception:  # noqa: BLE001
            return False

    def _listed(self, list_after: Any) -> Iterator[list[bytes]]:
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
            good: list[bytes] = []
            for digest in found:
                if not isinstance(digest, bytes) or digest <= after:
                    yield good
                    self._report("storage_damaged", None, None, "a table of content is not in order")
                    return
                good.append(digest)
                after = digest
            yield good

    # -- rows, many at once -----------------------------------------------------------------------------------------

    def _rows(self, digests: set[bytes]) -> Iterator[BlobRow]:
        """Rows of blobs, as far as the database gives them: what is missing here is looked at by itself."""
        try:
            for row in self._recorder.get_blobs(sorted(digests)):
                if isinstance(row.digest, bytes):
                    yield row
        except Exception:  # noqa: BLE001
            return

    def _nodes(self, nodes: set[bytes]) -> dict[bytes, NodeRow]:
        """The same for context nodes."""
        try:
            return self._recorder.get_nodes(sorted(nodes))
        except Exception:  # noqa: BLE001
            return {}

    def _note_told(self, digest: bytes) -> None:
        """Remember that a record has told of it, so that it is told once."""
        if len(self._told) < _NAMED_KEPT:
            self._told.add(digest)


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
