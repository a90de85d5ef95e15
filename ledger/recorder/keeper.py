"""Takes content in: redact, canonicalise, digest, stage for the next append. Content never skips this path."""

import json
from collections import OrderedDict
from collections.abc import Callable, Container
from typing import Any, Literal

from ledger.events import ContentRef
from ledger.events.canonical import canonical_json, decode_json
from ledger.events.credential import SecretRedacted
from ledger.recorder.spelling import pack_spelling
from ledger.redaction import Finding, Redactor
from ledger.store.content import BlobRow, NodeRow, chain_node, content_digest, pack_blob
from ledger.store.rows import Attachments

_KNOWN_KEPT = 20_000


class Keeper:
    """Content on its way into the ledger. One for each thread or importer; not shared.

    `json`, `text` and `raw` give the reference that an event carries. What they stage is written by the append that
    the same keeper is given to, in the same transaction as the records.
    """

    def __init__(self, salt: bytes, redactor: Redactor) -> None:
        self._salt = salt
        self._redactor = redactor
        self._blobs: dict[bytes, BlobRow] = {}
        self._nodes: dict[bytes, NodeRow] = {}
        self._findings: list[SecretRedacted] = []
        self._older_blobs: dict[bytes, BlobRow] = {}
        self._committed: OrderedDict[bytes, None] = OrderedDict()
        self.staged_bytes = 0
        """Packed bytes waiting for an append."""

    def json(self, value: Any, where: str = "") -> ContentRef:
        """Keep a JSON value, as RFC 8785 bytes. `where` tells people what it is when a secret is found in it."""
        return self.json_with_bytes(value, where)[0]

    def json_with_bytes(self, value: Any, where: str = "") -> tuple[ContentRef, bytes]:
        """Keep a JSON value; give also the bytes that are kept, for a digest over several such values."""
        clean, findings = self._redactor.value(value)
        self._note(findings, where)
        content = canonical_json(clean)
        return self._stage(content, "json"), content

    def text(self, text: str, where: str = "") -> ContentRef:
        """Keep a text, as UTF-8; a lone surrogate becomes U+FFFD."""
        clean, findings = self._redactor.text(text)
        self._note(findings, where)
        try:
            content = clean.encode()
        except UnicodeEncodeError:
            content = clean.encode("utf-16", "surrogatepass").decode("utf-16", "replace").encode()
        return self._stage(content, "text")

    def raw(self, content: bytes, where: str = "") -> ContentRef:
        """Keep bytes as they are, but for the secrets in them."""
        clean, findings = self._redactor.body(content)
        self._note(findings, where)
        return self._stage(clean, "bytes")

    def spelling(self, raw: bytes, kept: Container[str], name: str | None = None) -> tuple[ContentRef, bytes]:
        """Keep how a JSON value was spelled; give also the bytes. The secrets in it are those of the value.

        `kept` holds the digests of values that are kept: a spelling of one of these is small. `name`: the field that
        the value stands in.
        """
        spelled, canonical = self.spelled(raw, decode_json(raw), name)
        digest = content_digest(self._salt, canonical)
        blob = pack_spelling(spelled, digest if digest.hex() in kept else None, canonical)
        return self._stage(blob, "bytes"), spelled

    def spelled_bytes(self, raw: bytes) -> tuple[ContentRef, bytes]:
        """Keep bytes that are no JSON in the form of a spelling; give also the bytes."""
        clean, findings = self._redactor.body(raw)
        self._note(findings, "request")
        return self._stage(pack_spelling(clean, None, b""), "bytes"), clean

    def spelled(self, raw: bytes, value: Any, name: str | None = None) -> tuple[bytes, bytes]:
        """The bytes of a JSON value without its secrets, and its canonical form. `name`: the field it stands in."""
        clean, findings = self._redactor.value(value if name is None else {name: value})
        if name is not None:
            clean = next(iter(clean.values()))
        body, found = self._redactor.body(raw)
        if (findings or found) and not _is_json(body, clean):
            # A secret that only one of the two readings shows: the value decides, its bytes are written anew.
            try:
                body = json.dumps(clean, separators=(",", ":")).encode()
            except RecursionError:
                body = canonical_json(clean)
        return body, canonical_json(clean)

    def scalar(self, text: str, where: str = "") -> str:
        """A short text that an event carries itself, without its secrets."""
        clean, findings = self._redactor.text(text)
        self._note(findings, where)
        return clean

    def headers(self, headers: list[tuple[str, str]], where: str = "") -> list[tuple[str, str]]:
        """HTTP headers that an event or a blob carries, without their secrets, whatever the shape of these."""
        clean, findings = self._redactor.headers(headers)
        self._note(findings, where)
        return list(clean)

    def is_clean(self, text: str) -> bool:
        """Whether a text holds no secret: for what must not be cut where a secret might lie."""
        return self._redactor.is_clean(text)

    def is_clean_value(self, value: Any) -> bool:
        """The same for a JSON value."""
        return not self._redactor.value(value)[1]

    def cleaned(self, content: bytes) -> bytes:
        """Bytes without the secrets in them; these are not told again."""
        return self._redactor.body(content)[0]

    def digest(self, content: bytes) -> str:
        """Keyed digest of bytes that are not kept themselves."""
        return content_digest(self._salt, content).hex()

    def node(self, parent: NodeRow | None, message: bytes) -> NodeRow:
        """The context node that extends `parent` by a message, staged."""
        row = chain_node(self._salt, parent, message)
        if row.node not in self._committed and row.node not in self._nodes:
            self._nodes[row.node] = row
            self.staged_bytes += 100
        return row

    def take_findings(self) -> list[SecretRedacted]:
        """The secrets found since the last call, as events."""
        findings, self._findings = self._findings, []
        return findings

    def attachments(self, *, durable: bool = False) -> Attachments:
        """What is staged, for an append. Call `committed` when that has succeeded."""
        blobs = [*self._older_blobs.values(), *self._blobs.values()]
        return Attachments(blobs, list(self._nodes.values()), (), durable)

    def committed(self) -> None:
        """Forget what is staged: it is in the ledger now."""
        for digest in (*self._older_blobs, *self._blobs, *self._nodes):
            self._committed[digest] = None
        while len(self._committed) > _KNOWN_KEPT:
            self._committed.popitem(last=False)
        self._older_blobs, self._blobs, self._nodes, self.staged_bytes = {}, {}, {}, 0

    def known(self, has_node: Callable[[bytes], bool]) -> None:
        """Forget what is staged without an append: its records are in the ledger, and so is their content.

        But what comes next may need what was staged just now, so blobs are forgotten one call later. And context
        nodes may be new all the same, where a source has grown: these wait for the next append. Whoever has the
        last node of a chain has all of it.
        """
        self._older_blobs, self._blobs, self.staged_bytes = self._blobs, {}, 0
        parents = {row.parent for row in self._nodes.values()}
        if all(has_node(node) for node in self._nodes if node not in parents):
            self._committed.update(dict.fromkeys(self._nodes))
            self._nodes = {}

    def _stage(self, content: bytes, kind: Literal["json", "text", "bytes"]) -> ContentRef:
        digest = content_digest(self._salt, content)
        if digest not in self._committed and digest not in self._blobs:
            row = self._older_blobs.pop(digest, None) or pack_blob(digest, content)
            self._blobs[digest] = row
            self.staged_bytes += len(row.body)
        return ContentRef(digest=digest.hex(), size=len(content), kind=kind)

    def _note(self, findings: tuple[Finding, ...], where: str) -> None:
        for finding in findings:
            place = f"{where}{finding.where}" or "content"
            self._findings.append(
                SecretRedacted(
                    where=place, kind=finding.kind, secret_digest=finding.digest, count=finding.count
                )
            )


def _is_json(raw: bytes, value: Any) -> bool:
    """Whether bytes are the JSON of a value."""
    try:
        return bool(decode_json(raw) == value)
    except (ValueError, RecursionError):
        return False
