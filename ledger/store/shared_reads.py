"""Reads that both databases are asked for in the same words."""

from collections.abc import Sequence
from typing import Any, cast

from ledger.store.content import NodeRow, link_chain

_FIND_GAPS = """
    select place + 1, nid - 1
    from (select nid, lag(nid, 1, 0) over (order by nid) as place from stored_events) as positions
    where nid > place + 1
    order by nid
    limit ?
"""

_GET_CHAIN = """
    with recursive chain (node, parent, message, depth) as (
        select node, parent, message, depth
        from context_nodes
        where node = ?
        union
        select above.node, above.parent, above.message, above.depth
        from context_nodes as above
        join chain on above.node = chain.parent
        where chain.depth > 1
    )
    select * from chain
"""


class SharedReads:
    """A part of both recorders; what the methods give is said in `LedgerRecorder`."""

    def _rows(self, query: str, parameters: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Rows of a query in which `?` stands for a parameter. Raises StoreUnavailableError."""
        raise NotImplementedError

    def next_key(self, session: str, seq: int) -> tuple[str, int] | None:
        """Session and seq of the record after the given one, by the index alone."""
        rows = self._rows(
            "select originator_id, originator_version from stored_events"
            " where (originator_id, originator_version) > (?, ?)"
            " order by originator_id, originator_version limit 1",
            (session, seq),
        )
        return cast("tuple[str, int]", rows[0]) if rows else None

    def count_positions(self) -> tuple[int, int, int]:
        """Number of records, lowest and highest position."""
        count, lowest, highest = self._rows("select count(*), min(nid), max(nid) from stored_events")[0]
        return count, lowest or 0, highest or 0

    def find_gaps(self, limit: int) -> list[tuple[int, int]]:
        """First and last position of each hole in the positions, in order."""
        return [(first, last) for first, last in self._rows(_FIND_GAPS, (limit,))]

    def list_blobs(self, after: bytes, limit: int) -> list[bytes]:
        """Digests of blobs, in order, after the given one."""
        query = "select digest from blobs where digest > ? order by digest limit ?"
        return [row[0] for row in self._rows(query, (after, limit))]

    def list_nodes(self, after: bytes, limit: int) -> list[bytes]:
        """Digests of context nodes, in order, after the given one."""
        query = "select node from context_nodes where node > ? order by node limit ?"
        return [row[0] for row in self._rows(query, (after, limit))]

    def get_node(self, node: bytes) -> NodeRow | None:
        """A context node's row."""
        rows = self._rows("select * from context_nodes where node = ?", (node,))
        return NodeRow(*rows[0]) if rows else None

    def get_chain(self, node: bytes) -> list[NodeRow]:
        """The context that ends at this node, first message first."""
        return link_chain(node, self._rows(_GET_CHAIN, (node,)))
