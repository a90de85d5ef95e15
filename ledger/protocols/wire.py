"""An HTTP exchange with a model provider: what it holds, and whose conversation it belongs to. Must not fail on any."""

import re
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from ledger.events.model_call import Purpose
from ledger.protocols.http_bodies import header, json_of
from ledger.protocols.recognition import is_compaction, is_count
from ledger.protocols.tool_use import text

Pairs = list[tuple[str, str]]
"""Header names and values."""

Ended = Literal["complete", "cut", "aborted"]
"""How a response ended: whole, dropped by the provider, or left by the client."""

_SESSION_HEADERS = (
    "x-claude-code-session-id",
    "x-deepseek-harness-session-id",
    "x-session-id",
    "session_id",
    "session-id",
    "x-session-affinity",
)
_AGENT_HEADERS = ("x-claude-code-agent-id",)
_TURN_METADATA = "x-codex-turn-metadata"
_LONGEST_NAME = 200


@dataclass
class HttpExchange:
    """A request and its response, as they went over the wire."""

    url: str
    """Address, or path and query where the host is not known."""
    method: str = "POST"
    """Method."""
    request_headers: Pairs = field(default_factory=list)
    """Headers of the request."""
    request_body: bytes = b""
    """Body of the request, as sent."""
    status: int | None = None
    """Status of the response; None when none came."""
    response_headers: Pairs = field(default_factory=list)
    """Headers of the response."""
    response_body: bytes = b""
    """Body of the response, as received."""
    chunks: list[tuple[int, bytes]] | None = None
    """The body in pieces with milliseconds since the request, where these were seen."""
    host: str | None = None
    """Who is asked, where the address does not say it."""
    ended: Ended = "complete"
    """How the response ended."""
    started: str | None = None
    """When it was sent."""
    duration_ms: int | None = None
    """Milliseconds until its last byte."""
    error: str | None = None
    """What went wrong on the way, where the source says it."""
    at_us: int | None = None
    """When it was sent, in microseconds by the monotonic clock of its session."""
    first_byte_at_us: int | None = None
    """When the first byte came, by that clock."""
    ended_at_us: int | None = None
    """When it ended, by that clock."""


class Client(NamedTuple):
    """Whose request it is, in the client's words."""

    session: str | None
    """Session or thread; None when the client names none."""

    agent: str | None
    """Agent inside it; None for the main one."""

    is_sub_agent: bool
    """Whether the client says that another agent delegated to this one."""

    purpose: Purpose
    """What the request is for, as far as it shows."""

    @property
    def lane(self) -> str | None:
        """Session and agent as one word."""
        return "/".join(name for name in (self.session, self.agent) if name) or None


def client_of(url: str, headers: Pairs, body: Any) -> Client:
    """Whose request it is, and what for."""
    fields = body if isinstance(body, dict) else {}
    turn = json_of(header(headers, _TURN_METADATA) or "")
    turn = turn if isinstance(turn, dict) else {}
    agent = next((found for name in _AGENT_HEADERS if (found := header(headers, name))), None)
    session = text(turn.get("thread_id")) or session_of(headers, fields)
    is_sub = bool(
        agent or header(headers, "x-openai-subagent") or header(headers, "x-codex-parent-thread-id")
    )
    if is_sub and agent is None and session is not None:
        agent = session
    return Client(_short(session), _short(agent), is_sub, _purpose(url, turn, fields, is_sub=is_sub))


def session_of(headers: Pairs, body: dict[str, Any]) -> str | None:
    """The session that a client names in headers or body."""
    for name in _SESSION_HEADERS:
        if found := header(headers, name):
            return found
    metadata = body.get("metadata")
    if isinstance(metadata, dict):
        for name in ("session_id", "thread_id", "conversation_id"):
            if found := text(metadata.get(name)):
                return found
        user = text(metadata.get("user_id")) or ""
        if "_session_" in user:
            return user.rpartition("_session_")[2] or None
        told = json_of(user) if user.startswith("{") else None
        if isinstance(told, dict) and (found := text(told.get("session_id"))):
            return found
    return text(body.get("prompt_cache_key")) or text(body.get("session_id"))


def _purpose(url: str, turn: dict[str, Any], body: dict[str, Any], *, is_sub: bool) -> Purpose:
    if is_count(url):
        return "token-count"
    if is_compaction(url) or turn.get("request_kind") == "compaction":
        return "compaction"
    if is_sub:
        return "sub-agent"
    match body.get("output_config"):
        case {"format": {"schema": {"properties": {"title": _, **others}}}} if not others:
            return "title" if not body.get("tools") else "unknown"
    return "unknown"


_UNPRINTABLE = re.compile(r"[\x00-\x20\x7f]+")


def _short(name: str | None) -> str | None:
    return None if name is None else _UNPRINTABLE.sub("_", name)[:_LONGEST_NAME] or None
