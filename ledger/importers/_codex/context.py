"""What a Codex message is and where it came from: a person, an agent, or the harness."""

import re
from typing import Any, Literal, NamedTuple

_AGENTS_MD = re.compile(r"# AGENTS\.md instructions for (?P<folder>[^\n]*)\n")
_WRAPPED = re.compile(r"<(INSTRUCTIONS|user_instructions)>\n(?P<text>.*?)\n</\1>\s*\Z", re.DOTALL)

_STARTS = (
    ("<environment_context>", "environment"),
    ("<user_instructions>", "instructions"),
    ("# AGENTS.md instructions", "instructions"),
    ("<permissions instructions>", "permissions"),
    ("<skills_instructions>", "skill"),
    ("<skill>", "skill"),
    ("<tools>", "tools"),
    ("<multi_agent_mode>", "mode"),
    ("<collaboration_mode>", "mode"),
    ("<model_switch>", "mode"),
    ("<personality_spec>", "instructions"),
    ("<turn_aborted>", "reminder"),
    ("<subagent_notification>", "agent"),
    ("<hook_prompt", "hook"),
)
_KINDS = {
    "agents_md": "instructions",
    "environments": "environment",
    "host_skills": "skill",
    "skills": "skill",
    "permissions": "permissions",
    "tools": "tools",
    "hooks": "hook",
    "multi_agent_mode": "mode",
    "collaboration_mode": "mode",
    "model": "mode",
}

Origin = Literal["human", "agent", "unknown"]


class Part(NamedTuple):
    """One block of a message."""

    block: Any
    """The block, or None for a message without blocks."""

    provenance: str | None
    """Kind of injected text; None for a message that somebody sent."""

    origin: Origin
    """Who sent it, where somebody did."""

    artifact: str | None
    """Rule file that it shows."""

    rules: str | None
    """Text of that rule file."""


def parts_of(payload: dict[str, Any], *, in_subagent: bool) -> list[Part]:
    """The blocks of a user, developer or system message, with where each came from."""
    content = payload.get("content")
    blocks = content if isinstance(content, list) else [content]
    passed = payload.get("internal_chat_message_metadata_passthrough")
    kinds = passed.get("content_item_kinds") if isinstance(passed, dict) else None
    kinds = kinds if isinstance(kinds, list) and len(kinds) == len(blocks) else [None] * len(blocks)
    sender: Origin = "agent" if in_subagent else "human"
    typed = payload.get("role") == "user"
    return [_part(block, kind, sender, typed) for block, kind in zip(blocks, kinds, strict=True)]


def starts_turn(payload: dict[str, Any]) -> bool:
    """Whether a message is a prompt: somebody sent it, and undoing a turn begins there."""
    if payload.get("role") != "user":
        return False
    return any(
        part.provenance is None and part.origin != "agent" for part in parts_of(payload, in_subagent=False)
    )


def _part(block: Any, kind: Any, sender: Origin, typed: bool) -> Part:
    text = _text(block)
    by_text = next((name for start, name in _STARTS if text.startswith(start)), None)
    family = kind.partition(".")[0] if isinstance(kind, str) else None
    if family == "user" or (family in (None, "unknown") and by_text is None and typed):
        return Part(block, None, sender, None, None)
    if by_text == "agent":
        return Part(block, None, "agent", None, None)
    provenance = (
        _KINDS.get(family or "") or by_text or (family if family not in (None, "unknown") else "instructions")
    )
    if provenance == "instructions" and (by_text == "instructions" or family == "agents_md"):
        artifact, rules = _rules(text)
        return Part(block, provenance, "unknown", artifact, rules)
    return Part(block, provenance, "unknown", None, None)


def _rules(text: str) -> tuple[str, str | None]:
    """Name and text of the rule file that a block shows."""
    found = _AGENTS_MD.match(text)
    folder = found.group("folder").strip().rstrip("/") if found else ""
    wrapped = _WRAPPED.search(text)
    return rule_file(folder), wrapped.group("text") if wrapped else None


def rule_file(folder: str | None) -> str:
    """Stable name of the rule file of a folder."""
    return f"file:{folder}/AGENTS.md" if folder else "file:AGENTS.md"


def _text(block: Any) -> str:
    if isinstance(block, str):
        return block
    text = block.get("text") if isinstance(block, dict) else None
    return text if isinstance(text, str) else ""
