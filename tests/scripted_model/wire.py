"""What went over the wire: one exchange per request, kept in memory and as JSON lines.

Secrets in headers and queries are left out before anything is kept.
"""

import json
import threading
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlencode

SECRET_HEADERS = frozenset(
    {
        "authorization",
        "proxy-authorization",
        "x-api-key",
        "x-goog-api-key",
        "api-key",
        "cookie",
        "chatgpt-account-id",
    }
)
SECRET_PARAMETERS = frozenset({"key", "api_key", "access_token"})


@dataclass(frozen=True)
class Exchange:
    """One request and all that was answered to it."""

    number: int
    """Order of arrival, from 1."""
    protocol: str | None
    lane: str | None
    """None: no lane took the request."""
    step: int | None
    """Place in the lane, from 0; None: the default answer, or no answer of a model at all."""
    method: str
    path: str
    query: str
    headers: Mapping[str, str]
    """As sent, in lower case, without those that carry a secret."""
    raw_body: str
    """The bytes of the request body, one character (Latin-1) per byte."""
    body: Any
    """The parsed body; None if it was no JSON."""
    status: int
    response_headers: Mapping[str, str]
    chunks: Sequence[str]
    """Each write of the response body; a body that was not streamed is one chunk."""
    chunk_times_ns: Sequence[int]
    started_ns: int
    ended_ns: int
    aborted: bool
    """The connection ended before the answer did, by script or by the client."""


class WireLog:
    """All exchanges of one server, in order of their end; safe to share between threads."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._exchanges: list[Exchange] = []

    def keep(self, exchange: Exchange) -> None:
        """Append one exchange."""
        with self._lock:
            self._exchanges.append(exchange)
            if self._path is not None:
                with self._path.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(asdict(exchange), ensure_ascii=False) + "\n")

    def exchanges(self) -> list[Exchange]:
        """A copy, by order of arrival."""
        with self._lock:
            return sorted(self._exchanges, key=lambda exchange: exchange.number)


def open_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """Headers in lower case without those that carry a secret."""
    lower = {name.lower(): value for name, value in headers.items()}
    return {name: value for name, value in lower.items() if name not in SECRET_HEADERS}


def open_query(query: str) -> str:
    """A query without the parameters that carry a secret; untouched if there are none."""
    pairs = parse_qsl(query, keep_blank_values=True)
    kept = [pair for pair in pairs if pair[0] not in SECRET_PARAMETERS]
    return query if len(kept) == len(pairs) else urlencode(kept)
