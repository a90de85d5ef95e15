"""The words of ASGI that our plain applications use: the guard, the proxy, the player of recordings."""

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]


async def has_left(receive: Receive) -> None:
    """Wait until the client has gone. Its body must have been read."""
    while (await receive())["type"] != "http.disconnect":
        pass
