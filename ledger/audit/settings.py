"""Settings of an agent, in whatever form they are written: what they allow, refuse, limit and switch off. Pure."""

import json
import re
import tomllib
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

import yaml

from ledger.effects.words import words_of

_ALLOWS = frozenset(
    "allow allowed allowlist allow_list autoapprove auto_approve permitted permit trusted whitelist tools"
    " allowed_tools alwaysallow always_allow".split()
)
_REFUSES = frozenset(
    "deny denied denylist deny_list ask block blocked blocklist disallowed disallow forbidden blacklist"
    " require_approval requires_approval protected disallowed_tools needs_approval".split()
)
_LIMITS = re.compile(
    r"(^|_)(max|limit|budget|threshold|most|cap|timeout|quota)(_|$)|^max|limit$", re.IGNORECASE
)
_OFF = re.compile(
    r"^(disable\w*|skip\w*|bypass\w*|auto_?approve\w*|yolo|dangerously\w*|allow_?all|enable_?all\w*)$",
    re.IGNORECASE,
)
_ON = re.compile(
    r"(^|_)(require[sd]?|needs?|must|confirm|enforce[sd]?|verify|protected?|audit|sandbox(ed)?)(_|$)",
    re.IGNORECASE,
)
_MODES = ("approval_policy", "sandbox")
_SERVERS = ("mcpservers", "mcp_servers")
_GUARDING = frozenset(
    {"PreToolUse", "PermissionRequest", "Stop", "SubagentStop", "UserPromptSubmit", "preToolUse"}
)
_LINES = re.compile(r"^(---|\s*#.*|\s*|\s*-\s.*|\s*[\w.\"-]+\s*:(\s.*)?)$")
_TOML = re.compile(r"^\s*(\[[^\]\n]+\]|[\w.\"-]+\s*=\s*\S.*)$", re.MULTILINE)
_FRONT = re.compile(r"\A---\n(.*?)\n---\s*(?:\n|\Z)", re.DOTALL)
_LONGEST = 20_000


class Settings(NamedTuple):
    """What settings say, each part in the order in which it stands there."""

    allowed: dict[str, None]
    """What may be done unasked: patterns of calls."""
    refused: dict[str, None]
    """What may not, or not unasked: patterns, and hooks that look at calls."""
    limits: dict[str, float]
    """Limits by their names."""
    modes: dict[str, str]
    """Standing modes by their names."""
    off: dict[str, None]
    """Switches by which a control is off."""

    def __bool__(self) -> bool:
        return any(self[:])


class _WithoutAliases(yaml.SafeLoader):
    """YAML in which nothing refers to something else: such a file may stand for much more than its length."""

    def compose_node(self, parent: Any, index: Any) -> Any:
        if self.check_event(yaml.AliasEvent):
            raise yaml.YAMLError("an alias")
        return super().compose_node(parent, index)


def parsed(text: str) -> Any:
    """A text as the settings that it is, whole or a piece of them; None where it is none."""
    plain = text.strip()
    if not plain or len(plain) > _LONGEST:
        return _json(plain) if plain[:1] in "{[" else None
    if plain[:1] in "{[" and (value := _json(plain)) is not None:
        return value
    if plain[:1] == '"' and (value := _json(f"{{{plain.rstrip(',')}}}")) is not None:
        return value
    if (front := _FRONT.match(plain)) is not None:
        return _yaml(front[1])
    if _TOML.search(plain) and (value := _toml(plain)) is not None:
        return value
    return _yaml(plain) if all(_LINES.match(line) for line in plain.split("\n")) and ":" in plain else None


def _json(text: str) -> Any:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict | list) else None


def _toml(text: str) -> Any:
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError):
        return None


def _yaml(text: str) -> Any:
    try:
        value = yaml.load(text, _WithoutAliases)  # noqa: S506 - a safe loader
    except (yaml.YAMLError, ValueError, RecursionError):
        return None
    if isinstance(value, list) and not any(isinstance(one, dict) for one in value):
        return None  # a list of sentences
    return value if isinstance(value, dict | list) else None


def settings_of(value: Any) -> Settings:
    """What settings say, wherever in them it stands."""
    found = Settings({}, {}, {}, {}, {})
    waiting: list[tuple[str, Any]] = [("", value)]
    while waiting:
        key, one = waiting.pop()
        sort = _sort(key)
        if isinstance(one, Mapping):
            _rule(one, found)
            if key.replace("-", "_").lower() in _SERVERS:
                found.allowed.update(dict.fromkeys(f"mcp__{name}__*" for name in one))
            if key == "hooks":
                found.refused.update(dict.fromkeys(_hooks(one)))
                continue
            if one.get("enabled") is False and _ON.search(_plain(key)):
                found.off[f"{key}.enabled"] = None
            waiting.extend((str(name), part) for name, part in reversed(list(one.items())))
        elif isinstance(one, list):
            for part in one:
                if isinstance(part, str) and sort is not None:
                    (found.allowed if sort == "allow" else found.refused)[part] = None
                elif isinstance(part, Mapping | list):
                    waiting.append((key, part))
        elif isinstance(one, bool):
            if (one and _OFF.match(key)) or (not one and _ON.search(_plain(key))):
                found.off[key] = None
        elif isinstance(one, int | float):
            if _LIMITS.search(key):
                found.limits[key] = float(one)
        elif isinstance(one, str):
            if "mode" in (key, *words_of(key)) or key in _MODES:
                found.modes[key] = one
            elif sort is not None and len(one) < _LONGEST:
                names = (part.strip() for part in one.split(","))
                (found.allowed if sort == "allow" else found.refused).update(
                    dict.fromkeys(filter(None, names))
                )
    return found


def _plain(key: str) -> str:
    return "_".join(words_of(key))


def _hooks(hooks: Mapping[str, Any]) -> list[str]:
    """Hooks that can stop a call, by what they run."""
    waiting = [part for name, part in hooks.items() if name in _GUARDING]
    found: list[str] = []
    while waiting:
        one = waiting.pop()
        if isinstance(one, Mapping):
            if isinstance(command := one.get("command"), str):
                found.append(f"hook {command}")
            waiting.extend(one.values())
        elif isinstance(one, list):
            waiting.extend(one)
    return found


def _rule(rule: Mapping[str, Any], found: Settings) -> None:
    """A rule of the form `{"tool": ..., "ask": true}` or `{"tool": ..., "decision": "allow"}`."""
    tool = rule.get("tool") or rule.get("pattern") or rule.get("match")
    if not isinstance(tool, str):
        return
    said = rule.get("decision", rule.get("action", rule.get("verdict", rule.get("decide"))))
    if rule.get("ask") is True or said in ("ask", "deny", "forbid", "prompt", "block"):
        found.refused[tool] = None
    elif rule.get("ask") is False or said in ("allow", "permit", "approve"):
        found.allowed[tool] = None


def _sort(key: str) -> Literal["allow", "refuse"] | None:
    plain = key.lower().replace("-", "_")
    for name in (plain, plain.replace("_", ""), _plain(key)):
        if name in _ALLOWS:
            return "allow"
        if name in _REFUSES:
            return "refuse"
    return None
