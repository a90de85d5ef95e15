"""How blobs and context nodes are digested, packed and checked. Knows bytes only, no database."""

import hashlib
import hmac
import struct
import threading
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import zstandard

RAW, ZSTD = 0, 1
"""Codecs of a stored blob."""

_COMPRESS_FROM = 256  # below, a compressor costs more than its few bytes are worth; measured against 512
_LEVEL = 3
_packers = threading.local()  # a compressor costs more to make than to use, and threads may not share one
_LARGEST_BLOB = 2**31
_NO_PARENT = bytes(32)
_NUMBERS = struct.Struct(">qq")
_TYPES = (bytes, int, int, bytes, bytes)


class BlobRow(NamedTuple):
    """A blob as stored."""

    digest: bytes
    """HMAC-SHA256 of the content under the ledger's salt."""
    size: int
    """Length of the content."""
    codec: int
    """RAW or ZSTD."""
    body: bytes
    """Content, packed."""
    checksum: bytes
    """First 16 bytes of SHA-256 over all the columns before: finds a change that unpacking would hide."""


class NodeRow(NamedTuple):
    """A context node as stored: a message at the end of a list that goes on at the parent."""

    node: bytes
    """HMAC-SHA256 of the columns below under the ledger's salt."""
    parent: bytes | None
    """Node of the message before; None for the first message."""
    message: bytes
    """Digest of the message's blob."""
    depth: int
    """Messages in the list, this one included."""


def content_digest(salt: bytes, content: bytes) -> bytes:
    """Keyed digest of a blob's content, 32 bytes (HMAC, RFC 2104; the salt keeps short texts from being guessed)."""
    return hmac.digest(salt, content, "sha256")


def pack_blob(digest: bytes, content: bytes) -> BlobRow:
    """The row that keeps `content`, compressed where that pays."""
    codec, body = RAW, content
    if len(content) >= _COMPRESS_FROM:
        packer = getattr(_packers, "packer", None)
        if packer is None:
            packer = _packers.packer = zstandard.ZstdCompressor(level=_LEVEL)
        packed = packer.compress(content)
        if len(packed) < len(content):
            codec, body = ZSTD, packed
    return BlobRow(digest, len(content), codec, body, _checksum(digest, len(content), codec, body))


def unpack_blob(row: BlobRow) -> bytes:
    """The content of a row. Raises ValueError when the row is damaged."""
    if not has_checksum(row):
        raise ValueError("its stored bytes do not have their checksum")
    _, size, codec, body, _ = row
    if codec == RAW:
        content = body
    elif codec == ZSTD and size <= _LARGEST_BLOB:
        try:
            content = _unpacker().decompress(body, max_output_size=size)
        except zstandard.ZstdError as error:
            raise ValueError(f"it cannot be unpacked: {error}") from error
    else:
        raise ValueError(f"unknown codec {codec}")
    if len(content) != size:
        raise ValueError(f"it holds {len(content)} bytes instead of {size}")
    return content


def _unpacker() -> zstandard.ZstdDecompressor:
    unpacker: zstandard.ZstdDecompressor | None = getattr(_packers, "unpacker", None)
    if unpacker is None:
        unpacker = _packers.unpacker = zstandard.ZstdDecompressor()
    return unpacker


def has_checksum(row: BlobRow) -> bool:
    """Whether a row is as it was written. In a damaged database, a column may have any type."""
    if tuple(map(type, row)) != _TYPES:
        return False
    digest, size, codec, body, checksum = row
    return checksum == _checksum(digest, size, codec, body)


def chain_node(salt: bytes, parent: NodeRow | None, message: bytes) -> NodeRow:
    """The node that extends `parent` by one message."""
    depth = parent.depth + 1 if parent else 1
    above = parent.node if parent else None
    return NodeRow(node_digest(salt, above, message, depth), above, message, depth)


def link_chain(node: bytes, rows: Iterable[Sequence[Any]]) -> list[NodeRow]:
    """The nodes that lead to `node`, first message first, from rows in any order; ends where a node is missing."""
    rows_by_node = {row[0]: NodeRow(*row) for row in rows if _has_types(*row)}
    chain: list[NodeRow] = []
    above: bytes | None = node
    while above is not None and (row := rows_by_node.pop(above, None)) is not None:  # a circle ends at once
        chain.append(row)
        above = row.parent
    return chain[::-1]


def _has_types(node: Any, parent: Any, message: Any, depth: Any) -> bool:
    """Whether a row holds what was written: in a damaged database, a column may have any type."""
    return type(message) is bytes and type(depth) is int and (parent is None or type(parent) is bytes)


def node_digest(salt: bytes, parent: bytes | None, message: bytes, depth: int) -> bytes:
    """Keyed digest of a context node, 32 bytes."""
    return hmac.digest(salt, b"node" + (parent or _NO_PARENT) + message + depth.to_bytes(8, "big"), "sha256")


def _checksum(digest: bytes, size: int, codec: int, body: bytes) -> bytes:
    return hashlib.sha256(digest + _NUMBERS.pack(size, codec) + body).digest()[:16]
