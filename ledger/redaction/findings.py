"""What was found and what is left in its place. Must not hold a secret longer than it takes to digest it."""

import hashlib
import hmac
import re
from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple
from urllib.parse import unquote_to_bytes

MARKER_SHAPE = rb"\[redacted:([a-z0-9_]{1,40}):([0-9a-f]{16})([0-9a-f]{8})?\]"
"""What a reader takes for a marker: kind, digest, check. Ours always have a check, and it proves them."""

MARKER = re.compile(MARKER_SHAPE)

FOREIGN = "foreign_marker"
"""Kind of what looks like a marker and was not made with this ledger's key: by another ledger, or by hand."""

_ESCAPED = re.compile(rb'\\+(["/\\])')
_ARMOUR = re.compile(rb"-----[A-Z0-9 ]{5,60}-----")
_NOT_ARMOURED = re.compile(rb"\\+[nrt]|[^A-Za-z0-9+/=]")


class Finding(NamedTuple):
    """One secret at one place, said without the secret."""

    kind: str
    """Kind of secret, as the marker says."""

    where: str
    """JSON pointer into the redacted value; empty for a bare text or body."""

    digest: str
    """Keyed digest, as the marker says."""

    count: int  # type: ignore[assignment]  # the name is promised; nobody counts in a finding
    """How often it stood at that place."""


class Span(NamedTuple):
    """A stretch of bytes that is a secret."""

    start: int
    """Offset of the first secret byte."""

    end: int
    """Offset after the last one."""

    kind: str
    """Kind of secret."""

    rank: int
    """Who wins where two spans cover the same bytes: the lower rank."""

    secret: bytes = b""
    """The secret itself, where the bytes are its base64 or its hexadecimal digits."""


class Marker(NamedTuple):
    """A secret's replacement."""

    text: bytes
    """What stands in the secret's place."""

    digest: str
    """Its digest, as in the text."""


class Digester:
    """Makes markers with the ledger's key: equal secrets, however escaped, give equal digests."""

    def __init__(self, key: bytes) -> None:
        if len(key) < 16:
            raise ValueError(f"a redaction key has at least 16 random bytes, found {len(key)}")
        self._keyed = hmac.new(key, digestmod=hashlib.sha256)

    def marker(self, kind: str, secret: bytes) -> Marker:
        """The marker for a secret of that kind."""
        keyed = self._keyed.copy()
        keyed.update(_plain(kind, secret))
        digest = keyed.hexdigest()[:16]
        return Marker(f"[redacted:{kind}:{digest}{self._check(kind, digest)}]".encode(), digest)

    def has_made(self, marker: re.Match[bytes]) -> bool:
        """Whether a match of `MARKER` was made with this key: what a source wrote itself proves nothing."""
        kind, digest, check = marker.groups(b"")
        return hmac.compare_digest(self._check(kind.decode(), digest.decode()).encode(), check)

    def _check(self, kind: str, digest: str) -> str:
        keyed = self._keyed.copy()
        keyed.update(f"marker:{kind}:{digest}".encode())
        return keyed.hexdigest()[:8]


def tally(found: Iterable[tuple[str, str, str]]) -> tuple[Finding, ...]:
    """Findings from (kind, where, digest), equal ones counted, in order of first sight."""
    return tuple(Finding(*key, count) for key, count in Counter(found).items())


def _plain(kind: str, secret: bytes) -> bytes:
    """The secret as its owner knows it: without the escapes of the JSON, URL or file that it stood in."""
    if kind == "private_key":
        return _NOT_ARMOURED.sub(b"", _ARMOUR.sub(b"", secret))
    if kind in ("url_password", "url_parameter") and b"%" in secret:
        return unquote_to_bytes(secret)
    if b"\\" in secret:
        return _ESCAPED.sub(rb"\1", secret)
    return secret
