"""The redactor: texts, values, headers and bodies in, the same without secrets out.

Must not change what is clean.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from ledger.redaction.findings import Digester, Finding, Span, tally
from ledger.redaction.names import NOTHING, Name, judge_text
from ledger.redaction.rules import Rule
from ledger.redaction.scanner import Scanner
from ledger.redaction.tree import Copy, Leaf, pointer, strings
from ledger.redaction.values import secret_in_header, secret_in_string

_SHORTEST_SECRET = 6
_PASSES = 6

_Found = list[tuple[str, str]]
_Pairs = list[tuple[str, str]]


class Redactor:
    """Takes out secrets and leaves markers made with one ledger's key."""

    def __init__(self, key: bytes, *, extra_rules: Iterable[Rule] = ()) -> None:
        self._digester = Digester(key)
        self._scanner = Scanner(self._digester.has_made, extra_rules)

    def text(self, text: str) -> tuple[str, tuple[Finding, ...]]:
        """A text without its secrets; the very same text if it holds none."""
        redacted, found = self._text(text)
        if not found:
            return text, ()
        return redacted, tally((kind, "", digest) for kind, digest in found)

    def is_clean(self, text: str) -> bool:
        """Whether a text holds no secret."""
        return not self._scanner.find(text.encode("utf-8", "surrogatepass"))

    def are_clean(self, texts: list[str]) -> bool:
        """Whether none of some texts holds a secret: one pass over all of them, and a look at each that it suspects."""
        return all(self.is_clean(texts[index]) for index in self._scanner.suspects(texts))

    def body(self, raw: bytes) -> tuple[bytes, tuple[Finding, ...]]:
        """Raw bytes (an HTTP body, a stream) without their secrets; all other bytes stay as they are."""
        redacted, found = self._bytes(raw, is_text=False)
        return redacted, tally((kind, "", digest) for kind, digest in found)

    def value(self, value: Any) -> tuple[Any, tuple[Finding, ...]]:
        """A JSON value without its secrets, in keys and values; the very same object if it holds none."""
        if isinstance(value, str):
            return self.text(value)
        if not isinstance(value, dict | list):
            return value, ()
        sights = strings(value)
        suspects = self._scanner.suspects([sight[2] for sight in sights])
        suspects |= {index for index, sight in enumerate(sights) if sight[3] is not NOTHING}
        if not suspects:
            return value, ()
        copy = Copy()
        found: list[tuple[str, str, str]] = []
        for index in sorted(suspects):
            leaf = Leaf(*sights[index])
            redacted, secrets = self._leaf(leaf)
            if secrets:
                copy.put(leaf, redacted)
                where = pointer(leaf, redacted if leaf.is_key else None)
                found.extend((kind, where, digest) for kind, digest in secrets)
        return copy.finish(value), tally(found)

    def headers(self, headers: Any) -> tuple[Any, tuple[Finding, ...]]:
        """HTTP headers without their secrets, whatever the shape of those that always carry one.

        Takes a mapping or pairs, text or bytes; a mapping comes back as a dict, pairs as a list of tuples.
        """
        is_mapping = isinstance(headers, Mapping)
        pairs = list(headers.items()) if is_mapping else [tuple(pair) for pair in headers]
        found: list[tuple[str, str, str]] = []
        redacted = []
        for index, (name, value) in enumerate(pairs):
            label = name.decode("latin-1") if isinstance(name, bytes) else str(name)
            where = "/" + (label.replace("~", "~0").replace("/", "~1") if is_mapping else f"{index}/1")
            values = value if isinstance(value, list | tuple) else [value]
            clean = [self._header(label, item) for item in values]
            found.extend((kind, where, digest) for _, secrets in clean for kind, digest in secrets)
            shown = [item for item, _ in clean]
            redacted.append((name, type(value)(shown) if isinstance(value, list | tuple) else shown[0]))
        if not found:
            return headers, ()
        return (dict(redacted) if is_mapping else redacted), tally(found)

    def _header(self, label: str, value: Any) -> tuple[Any, _Found]:
        """One header value; of a header that always carries a secret nothing but the scheme is left."""
        if not isinstance(value, str | bytes) or not value:
            return value, []
        raw = value if isinstance(value, bytes) else value.encode("utf-8", "surrogatepass")
        name = judge_text(label)
        if name.strength >= 2:
            clean, found = self._named(raw, name, label, is_certain=name.strength == 3)
        else:
            clean, found = self._bytes(raw, is_text=isinstance(value, str))
        return (clean if isinstance(value, bytes) else clean.decode("utf-8", "surrogatepass")), found

    def _leaf(self, leaf: Leaf) -> tuple[str, _Found]:
        if leaf.name.strength == 0:
            return self._text(leaf.text)
        raw = leaf.text.encode("utf-8", "surrogatepass")
        clean, found = self._named(raw, leaf.name, leaf.label)
        return (clean.decode("utf-8", "surrogatepass") if found else leaf.text), found

    def _named(self, raw: bytes, name: Name, label: str, *, is_certain: bool = False) -> tuple[bytes, _Found]:
        """A whole string under a name that promises a secret."""
        is_cookie = "cookie" in label.lower()
        part = secret_in_header(raw, is_cookie=is_cookie) if is_certain else None
        part = part or secret_in_string(name, raw, is_cookie=is_cookie)
        if part is None:
            return self._bytes(raw, is_text=True)
        secret = raw[part.start : part.end]
        inner = self._scanner.find(secret)
        kind = part.kind
        if len(inner) == 1 and not (secret[: inner[0].start] + secret[inner[0].end :]).strip():
            kind, secret = inner[0].kind, secret[inner[0].start : inner[0].end]
        marker = self._digester.marker(kind, secret)
        return raw[: part.start] + marker.text + raw[part.end :], [(kind, marker.digest)]

    def _text(self, text: str) -> tuple[str, _Found]:
        if len(text) < _SHORTEST_SECRET:
            return text, []
        raw = text.encode("utf-8", "surrogatepass")
        spans = self._scanner.find(raw)
        if not spans:
            return text, []
        clean, found = self._bytes(raw, is_text=True, spans=spans)
        return clean.decode("utf-8", "surrogatepass"), found

    def _bytes(self, raw: bytes, *, is_text: bool, spans: list[Span] | None = None) -> tuple[bytes, _Found]:
        """Redacts until nothing more is found, so that redacting again changes nothing."""
        found: _Found = []
        for _ in range(_PASSES):
            spans = self._scanner.find(raw) if spans is None else spans
            if not spans:
                break
            raw = self._replace(raw, spans, found, is_text=is_text)
            spans = None
        return raw, found

    def _replace(self, raw: bytes, spans: list[Span], found: _Found, *, is_text: bool) -> bytes:
        pieces: list[bytes] = []
        done = 0
        for span in spans:
            start, end = max(span.start, done), span.end
            while is_text and end < len(raw) and raw[end] & 0xC0 == 0x80:
                end += 1  # never half a character
            if start >= end:
                continue
            marker = self._digester.marker(span.kind, span.secret or raw[start:end])
            pieces += raw[done:start], marker.text
            found.append((span.kind, marker.digest))
            done = end
        pieces.append(raw[done:])
        return b"".join(pieces)
