"""Codex: OpenAI's responses, with metadata of its own in the body and in a header."""

from typing import Any

from ledger.events.canonical import decode_json
from ledger.events.model_call import Purpose
from replay.matching.request import ModelRequest
from replay.matching.rules import Rule, Work, collected, dropped, masked

NAME = "codex"

_TURN = "x-codex-turn-metadata"
_UUID = r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
_KINDS: dict[str, Purpose] = {"compaction": "compaction", "title": "title"}


def recognizes(request: ModelRequest) -> bool:
    """By the name of the client, or by its metadata."""
    if request.protocol != "openai.responses":
        return False
    agent = (request.header("user-agent") or "").lower()
    if agent.startswith("codex") or (request.header("originator") or "").startswith("codex"):
        return True
    metadata = request.body.get("client_metadata")
    return isinstance(metadata, dict) and any(str(name).startswith("x-codex-") for name in metadata)


def purpose(request: ModelRequest) -> Purpose:
    """The turn's metadata tell what kind of request it is, and whose."""
    turn = _turn(request)
    kind = _KINDS.get(str(turn.get("request_kind")))
    if kind is not None:
        return kind
    is_sub_agent = (
        request.header("x-openai-subagent") or turn.get("parent_thread_id") or turn.get("subagent_kind")
    )
    return "sub-agent" if is_sub_agent else "main"


def _turn(request: ModelRequest) -> dict[str, Any]:
    metadata = request.body.get("client_metadata")
    packed = request.header(_TURN) or (metadata.get(_TURN) if isinstance(metadata, dict) else None)
    try:
        turn = decode_json(packed) if isinstance(packed, str) else None
    except ValueError:
        return {}
    return turn if isinstance(turn, dict) else {}


def _drop_item_ids(work: Work) -> bool:
    listed = work.body.get("input")
    changed = False
    for item in listed if isinstance(listed, list) else ():
        if isinstance(item, dict) and item.pop("id", None) is not None:
            changed = True
    return changed


BEFORE: tuple[Rule, ...] = (
    dropped("client-metadata", "prompt_cache_key", "client_metadata"),
    Rule("item-ids", "/input/*/id", _drop_item_ids),
)
"""Before the rules of the protocol."""

RULES: tuple[Rule, ...] = (
    masked(
        "date",
        "environment_context",
        r"<current_date>(?P<value>[^<]{1,40})</current_date>",
        "date",
        "user",
        inside="<environment_context>",
    ),
    masked("chunk-ids", "outputs", r"\AChunk ID: (?P<value>[0-9a-f]+)(?=\n|\Z)", "chunk", "result"),
    masked("wall-times", "outputs", r"(?m)^Wall time: (?P<value>[\d.]+) seconds", "number", "result"),
    masked(
        "nicknames", "outputs of spawn_agent", r'"nickname":"(?P<value>[^"]{1,80})"', "nickname", "result"
    ),
    collected("agent-ids", "outputs of spawn_agent", rf'"agent_id":"(?P<value>{_UUID})"', "result"),
    collected(
        "agent-paths", "notices of sub-agents", rf'"agent_path":"(?P<value>{_UUID})"', "user", "result"
    ),
)
