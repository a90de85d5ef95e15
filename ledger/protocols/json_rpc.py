"""JSON-RPC 2.0 messages: what is one, and one with what its carrier says of it."""

from typing import Any, NamedTuple

_WORD = 200


class Rpc(NamedTuple):
    """One message."""

    number: int
    """Its line, or its place in the file, from 1."""
    message: dict[str, Any]
    """The message."""
    to_server: bool | None
    """Which way it went; None where nobody says."""
    time: str | None
    """When it was seen."""
    server: str | None
    """Name of the server, where the carrier says it."""
    session: str | None
    """Session that the carrier names."""
    around: dict[str, Any]
    """What else the carrier says."""
    raw: bytes
    """Its bytes."""


def is_message(value: Any) -> bool:
    """Whether a value is a JSON-RPC message."""
    if not isinstance(value, dict) or value.get("jsonrpc") != "2.0":
        return False
    return bool(value.keys() & {"method", "result", "error"})


def id_of(message: dict[str, Any]) -> str:
    """The id of a message as a word; `1` and `"1"` are taken for the same."""
    return word(message.get("id"))


def word(value: Any) -> str:
    """An id as a word."""
    return value if isinstance(value, str) else str(value)[:_WORD]
