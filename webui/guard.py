"""The wall around the server: who may call it, from where, and what a browser may do with the answer.

A plain ASGI application around another. It never looks at what the pages show.

Pages and API need a login. The machine endpoints (OTLP, recording proxy, health) need none, since exporters and
harnesses have none; a browser that acts for another site is refused there too.
"""

import re
import secrets
from collections.abc import Awaitable, Callable, MutableMapping
from http.cookies import CookieError, SimpleCookie
from typing import Any, Literal
from urllib.parse import quote

from webui.asgi import Application, Receive, Scope, Send
from webui.logins import COOKIE, Login, Logins

Refuse = Callable[[Scope, Receive, Send, int, str], Awaitable[None]]
"""Answers a request with a status and a sentence."""

API = "/api/"
"""Where programs ask."""

_MACHINES = ("/v1/", "/run/", "/healthz")
_OPEN = ("/login", "/static/")
_SAFE = ("GET", "HEAD", "OPTIONS")
_POLICY = (
    "default-src 'none'; script-src 'nonce-{nonce}'; style-src 'self'; img-src data:; connect-src 'self';"
    " form-action 'self'; base-uri 'none'; frame-ancestors 'none'; require-trusted-types-for 'script';"
    " trusted-types htmx"
)
_HOST = re.compile(r"(?:\[([0-9a-f:.]+)\]|([a-z0-9._-]+))(?::[0-9]{0,5})?")
_HEADERS = [
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"permissions-policy", b"camera=(), geolocation=(), microphone=()"),
    (b"x-dns-prefetch-control", b"off"),
]


class Guard:
    """The application inside, guarded. `hosts` are the names by which it may be called."""

    def __init__(self, app: Application, *, logins: Logins, hosts: frozenset[str], refuse: Refuse) -> None:
        self._app = app
        self._logins = logins
        self._hosts = hosts
        self._refuse = refuse

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request, or refuse it."""
        if scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})
            return
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = _headers(scope)
        nonce = secrets.token_urlsafe(16)
        state = scope.setdefault("state", {})
        state["nonce"], state["login"] = nonce, None
        guarded = _with_headers(send, nonce)
        host = headers.get("host", "")
        if _name_of(host) not in self._hosts:
            await self._refuse(
                scope,
                receive,
                guarded,
                421,
                "This server answers only to its own names; `serve --allow-host NAME` adds one.",
            )
            return
        path: str = scope["path"]
        origin = _origin(headers, scope.get("scheme", "http"), host)
        if _is_under(path, _MACHINES):
            if origin == "foreign":
                await self._refuse(
                    scope, receive, guarded, 403, "A page of another site may not call this server."
                )
            else:
                await self._app(scope, receive, send)
            return
        login, is_program = self._login(headers)
        state["login"] = login
        if scope["method"] not in _SAFE and origin != "own" and not (origin == "unknown" and is_program):
            await self._refuse(
                scope,
                receive,
                guarded,
                403,
                "This request did not come from a page of this server, so nothing was done.",
            )
            return
        if login is None and not _is_under(path, _OPEN):
            await self._ask_to_log_in(scope, receive, guarded)
            return
        if scope["method"] == "HEAD":
            await self._app({**scope, "method": "GET"}, receive, guarded)  # the server sends no body for it
            return
        await self._app(scope, receive, guarded)

    def _login(self, headers: dict[str, str]) -> tuple[Login | None, bool]:
        """Who asks, and whether it is a program."""
        kind, _, token = headers.get("authorization", "").partition(" ")
        if kind.lower() == "bearer":
            login = self._logins.by_token(token.strip())
            return login, login is not None
        cookie = cookie_of(headers.get("cookie", ""))
        return (self._logins.by_cookie(cookie) if cookie else None), False

    async def _ask_to_log_in(self, scope: Scope, receive: Receive, send: Send) -> None:
        is_page = scope["method"] in ("GET", "HEAD") and not scope["path"].startswith(API)
        if not is_page:
            await self._refuse(
                scope, receive, send, 401, "Expected a login, or `Authorization: Bearer` with the token."
            )
            return
        query = scope["query_string"].decode("latin-1")
        there = quote(scope["path"], safe="/%") + (f"?{query}" if query else "")
        location = f"/login?next={quote(there, safe='')}"
        headers = [(b"location", location.encode("ascii")), (b"content-length", b"0")]
        await send({"type": "http.response.start", "status": 303, "headers": headers})
        await send({"type": "http.response.body", "body": b""})


def cookie_of(text: str) -> str | None:
    """The value of our cookie in a header of cookies."""
    try:
        found = SimpleCookie(text).get(COOKIE)
    except CookieError:
        return None
    return found.value if found else None


def _headers(scope: Scope) -> dict[str, str]:
    """The headers; one that is given twice has both values, which then are neither of the two."""
    found: dict[str, str] = {}
    for raw_name, raw_value in scope["headers"]:
        name, value = raw_name.decode("latin-1").lower(), raw_value.decode("latin-1")
        found[name] = f"{found[name]}, {value}" if name in found else value
    return found


def _name_of(host: str) -> str | None:
    """A `Host` header without its port; None where it is no host."""
    found = _HOST.fullmatch(host.lower())
    return (found[1] or found[2]) if found else None


def _origin(headers: dict[str, str], scheme: str, host: str) -> Literal["own", "foreign", "unknown"]:
    """Where a browser says that the request comes from; programs say nothing."""
    site, origin = headers.get("sec-fetch-site"), headers.get("origin")
    if site is not None:
        if origin is not None and origin.lower().partition("://")[2] != host.lower():
            return "foreign"  # no browser says both; behind a proxy the scheme may be another
        return "own" if site == "same-origin" else "unknown" if site == "none" else "foreign"
    if origin is None:
        return "unknown"
    return "own" if origin.lower() == f"{scheme}://{host}".lower() else "foreign"


def _is_under(path: str, places: tuple[str, ...]) -> bool:
    return any(
        path == place or path.startswith(place if place[-1] == "/" else f"{place}/") for place in places
    )


def _with_headers(send: Send, nonce: str) -> Send:
    policy = _POLICY.format(nonce=nonce).encode("ascii")

    async def sending(message: MutableMapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            headers = [*message.get("headers", ()), *_HEADERS, (b"content-security-policy", policy)]
            if not any(name.lower() == b"cache-control" for name, _ in headers):
                headers.append((b"cache-control", b"no-store"))
            message = {**message, "headers": headers}
        await send(message)

    return sending
