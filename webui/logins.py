"""Who may look: one-time links, sessions of browsers, one token for programs. Keeps digests, never the secrets."""

import contextlib
import hashlib
import hmac
import os
import secrets
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from ledger.errors import InputError

COOKIE = "loopledger"
"""Name of the cookie that a login sets."""

_LINK_LIVES_S = 300
_MOST = 1000
_SHORTEST_TOKEN = 32


class Login(NamedTuple):
    """Somebody who is logged in."""

    name: str
    """Who it is."""

    form_token: str
    """What every form of this login carries; empty for a program, which has no forms."""


class Logins:
    """All logins of one server. They end with it. Threads may share it."""

    def __init__(self, name: str, token: str | None = None, *, now: Callable[[], float] = time.monotonic):
        self._name = name
        self._token = None if token is None else _digest(token)
        self._key = secrets.token_bytes(32)
        self._now = now
        self._lock = threading.Lock()
        self._codes: OrderedDict[str, float] = OrderedDict()
        self._cookies: OrderedDict[str, str] = OrderedDict()

    def new_code(self) -> str:
        """A code that logs in once, within five minutes."""
        code = secrets.token_urlsafe(32)
        with self._lock:
            self._codes[_digest(code)] = self._now() + _LINK_LIVES_S
            _keep_last(self._codes)
        return code

    def redeem(self, code: str) -> str | None:
        """A cookie for a code, or None when it was used, is too old, or never was."""
        with self._lock:
            ends_at = self._codes.pop(_digest(code), None)
        if ends_at is None or self._now() > ends_at:
            return None
        return self._cookie(self._name)

    def with_token(self, token: str, name: str) -> str | None:
        """A cookie for somebody who knows the token, or None."""
        return self._cookie(name or self._name) if self._is_token(token) else None

    def _cookie(self, name: str) -> str:
        cookie = secrets.token_urlsafe(32)
        with self._lock:
            self._cookies[_digest(cookie)] = name
            _keep_last(self._cookies)
        return cookie

    def by_cookie(self, cookie: str) -> Login | None:
        """The login of a cookie."""
        digest = _digest(cookie)
        name = self._cookies.get(digest)
        if name is None:
            return None
        return Login(name, hmac.new(self._key, digest.encode(), "sha256").hexdigest())

    def by_token(self, token: str) -> Login | None:
        """The login of a program that knows the token."""
        return Login(self._name, "") if self._is_token(token) else None

    def leave(self, cookie: str) -> None:
        """End a login."""
        with self._lock:
            self._cookies.pop(_digest(cookie), None)

    def _is_token(self, token: str) -> bool:
        return self._token is not None and hmac.compare_digest(self._token, _digest(token))


def read_token(path: Path, *, make: bool = False) -> str:
    """The token in a file; `make`: written there when there is no file. Raises InputError."""
    try:
        if make and not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            draft = path.with_name(f"{path.name}.{secrets.token_hex(4)}")
            draft.touch(mode=0o600)
            draft.write_text(secrets.token_urlsafe(32) + "\n", encoding="ascii")
            with contextlib.suppress(FileExistsError):
                os.link(draft, path)  # of two servers that start at once, one wins; nobody reads half of it
            draft.unlink()
        token = path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"the token file {path} cannot be read: {error}") from error
    if len(token) < _SHORTEST_TOKEN:
        raise InputError(
            f"{path} holds a token of {len(token)} characters: expected at least {_SHORTEST_TOKEN}"
        )
    return token


def _digest(secret: str) -> str:
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


def _keep_last(entries: "OrderedDict[str, float] | OrderedDict[str, str]") -> None:
    while len(entries) > _MOST:
        entries.popitem(last=False)
