"""Where the proxy sends a request on to: the provider is told by its path and headers."""

import re
from collections.abc import Iterable
from urllib.parse import urlsplit

from ledger.errors import InputError
from ledger.protocols.http_bodies import header
from ledger.protocols.wire import Pairs

PUBLIC = {
    "anthropic": "https://api.anthropic.com",
    "openai": "https://api.openai.com",
    "gemini": "https://generativelanguage.googleapis.com",
}
"""Provider -> its public endpoint."""

_ANTHROPIC_PATH = re.compile(r"/(?:messages|messages/.*|api/hello|v1/complete)\Z")
_GEMINI_PATH = re.compile(r":[a-zA-Z]+\Z|/v1(?:alpha|beta|beta\d+)/")
_OPENAI_PATH = re.compile(r"/(?:chat/completions|responses(?:/.*)?|completions|embeddings)\Z")
_VERSION = re.compile(r"/v\d[a-z0-9]*\Z")


class Upstreams:
    """The endpoint of each provider."""

    def __init__(self, given: Iterable[str] = ()) -> None:
        """`given`: `PROVIDER=URL`, or a URL for all. Raises InputError for anything else."""
        self._urls = dict(PUBLIC)
        for text in given:
            name, _, url = text.rpartition("=") if text.partition("=")[0] in PUBLIC else ("", "", text)
            parts = urlsplit(url)
            if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
                raise InputError(
                    f"expected an upstream as {'|'.join(PUBLIC)}=URL, or one http or https URL for all, found {text!r}"
                )
            for provider in [name] if name else PUBLIC:
                self._urls[provider] = url.rstrip("/")

    def address(self, target: str, headers: Pairs) -> str:
        """Where to send a request for this path and query."""
        base = self._urls[provider_for(target, headers)]
        version = _VERSION.search(base)
        if version is not None and target.startswith(f"{version[0]}/"):
            base = base[: version.start()]  # both name the version: an SDK's base URL often ends in /v1
        return f"{base}{target}"

    def described(self) -> dict[str, str]:
        """Provider -> endpoint."""
        return dict(self._urls)


def provider_for(target: str, headers: Pairs) -> str:
    """The provider that a request is meant for."""
    path = target.partition("?")[0]
    if _OPENAI_PATH.search(path):
        return "openai"
    if _ANTHROPIC_PATH.search(path) or header(headers, "anthropic-version") is not None:
        return "anthropic"
    if _GEMINI_PATH.search(path) or header(headers, "x-goog-api-key") is not None:
        return "gemini"
    return "anthropic" if header(headers, "x-api-key") is not None else "openai"
