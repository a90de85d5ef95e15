"""Whether a change of what governs an agent lets it do more or less, and what exactly it lets loose. Pure."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Literal, NamedTuple

from ledger.audit.modes import laxness
from ledger.effects.words import words_of

Direction = Literal["weaker", "stronger", "neutral", "unknown"]
"""`weaker`: the agent may do more unasked; `neutral`: no rule differs; `unknown`: a side was not seen."""


class Change(NamedTuple):
    """What a change does."""

    direction: Direction
    """Which way it goes; one that does both is weaker."""

    loosened: tuple[str, ...] = ()
    """Rules and patterns that no longer hold, or that allow more now, as they are written."""


_ALLOWS = frozenset(
    "allow allowed allowlist allow_list autoapprove auto_approve permitted permit trusted whitelist".split()
)
_REFUSES = frozenset(
    "deny denied denylist deny_list ask block blocked blocklist disallowed disallow forbidden blacklist"
    " require_approval requires_approval protected".split()
)
_LIMITS = re.compile(
    r"(^|_)(max|limit|budget|threshold|most|cap|timeout|quota)(_|$)|^max|limit$", re.IGNORECASE
)
_OFF = re.compile(
    r"^(disable\w*|skip\w*|bypass\w*|auto_?approve\w*|yolo|dangerously\w*|allow_?all)$", re.IGNORECASE
)
_MODES = ("approval_policy", "sandbox")
_STRONG = re.compile(
    r"\b(never|must|always|do not|don't|shall|forbidden|prohibited|required?|mandatory|only|not allowed|ask before"
    r"|without (an? )?(approval|permission|asking)|under no circumstances)\b",
    re.IGNORECASE,
)
_SOFT = re.compile(r"\b(should|avoid|prefer|try to|if possible|ideally|usually|consider)\b", re.IGNORECASE)
_PERMITS = re.compile(
    r"\b(may|you can|are allowed to|is allowed|feel free|no (need|approval|permission|confirmation)\b|skip|ignore"
    r"|without asking|not (required|necessary|needed)|auto-?approve|pre-?approved|go ahead)\b",
    re.IGNORECASE,
)
_SENTENCE = re.compile(r"(?<=[.!?;])\s+|\n+")
_WORD = re.compile(r"[a-z0-9_./-]{3,}")
_SAME = 0.6
_MOST = 400


def compare(old: Any, new: Any) -> Change:
    """Two versions of an artifact, as JSON or as text; None: not seen, or not there."""
    before, after = _structured(old), _structured(new)
    if isinstance(before, Mapping | list) and isinstance(after, Mapping | list):
        return _compare_settings(before, after)
    if old is None and new is None:
        return Change("unknown")
    return _compare_texts(_text(old), _text(new))


def _structured(value: Any) -> Any:
    if isinstance(value, str) and value.lstrip()[:1] in ("{", "["):
        try:
            return json.loads(value)
        except (ValueError, RecursionError):
            return None
    return value


def _text(value: Any) -> str:
    return value if isinstance(value, str) else " \n".join(_strings(value))


def _strings(value: Any) -> Iterator[str]:
    waiting = [value]
    while waiting:
        one = waiting.pop()
        if isinstance(one, str):
            yield one
        elif isinstance(one, Mapping):
            waiting.extend(reversed(list(one.values())))
        elif isinstance(one, list):
            waiting.extend(reversed(one))


def likeness(old: Any, new: Any) -> float:
    """How much two versions have in common, by their words: 1 for the same words, 0 for none in common."""
    mine, theirs = (set(_WORD.findall(_text(one).lower())) for one in (old, new))
    return len(mine & theirs) / max(1, len(mine | theirs))


# -- settings -----------------------------------------------------------------------------------------------


class _Settings(NamedTuple):
    allowed: dict[str, None]
    refused: dict[str, None]
    limits: dict[str, float]
    modes: dict[str, str]
    off: dict[str, None]


def _compare_settings(old: Any, new: Any) -> Change:
    before, after = _settings(old), _settings(new)
    loosened = [one for one in after.allowed if one not in before.allowed]
    loosened += [one for one in before.refused if one not in after.refused]
    loosened += [one for one in after.off if one not in before.off]
    tightened = [one for one in before.allowed if one not in after.allowed]
    tightened += [one for one in after.refused if one not in before.refused]
    tightened += [one for one in before.off if one not in after.off]
    for name in before.limits.keys() & after.limits.keys():
        if after.limits[name] != before.limits[name]:
            (loosened if after.limits[name] > before.limits[name] else tightened).append(name)
    for name in before.modes.keys() | after.modes.keys():
        step = laxness(after.modes.get(name)) - laxness(before.modes.get(name))
        if step:
            (loosened if step > 0 else tightened).append(f"mode {after.modes.get(name)}")
    return Change(
        "weaker" if loosened else "stronger" if tightened else "neutral", tuple(sorted(set(loosened)))
    )


def _settings(value: Any) -> _Settings:
    found = _Settings({}, {}, {}, {}, {})
    waiting: list[tuple[str, Any]] = [("", value)]
    while waiting:
        key, one = waiting.pop()
        if isinstance(one, Mapping):
            _rule(one, found)
            waiting.extend((str(name), part) for name, part in one.items())
        elif isinstance(one, list):
            sort = _sort(key)
            for part in one:
                if isinstance(part, str) and sort is not None:
                    (found.allowed if sort == "allow" else found.refused)[part] = None
                elif isinstance(part, Mapping | list):
                    waiting.append((key, part))
        elif isinstance(one, bool):
            if _OFF.match(key) and one:
                found.off[key] = None
        elif isinstance(one, int | float):
            if _LIMITS.search(key):
                found.limits[key] = float(one)
        elif isinstance(one, str) and ("mode" in (key, *words_of(key)) or key in _MODES):
            found.modes[key] = str(one)
    return found


def _rule(rule: Mapping[str, Any], found: _Settings) -> None:
    """A rule of the form `{"tool": ..., "ask": true}` or `{"tool": ..., "decision": "allow"}`."""
    tool = rule.get("tool") or rule.get("pattern") or rule.get("match")
    if not isinstance(tool, str):
        return
    said = rule.get("decision", rule.get("action", rule.get("verdict")))
    if rule.get("ask") is True or said in ("ask", "deny", "forbid", "prompt", "block"):
        found.refused[tool] = None
    elif rule.get("ask") is False or said in ("allow", "permit", "approve"):
        found.allowed[tool] = None


def _sort(key: str) -> Literal["allow", "refuse"] | None:
    plain = key.lower().replace("-", "_")
    if plain in _ALLOWS or plain.replace("_", "") in _ALLOWS:
        return "allow"
    return "refuse" if plain in _REFUSES else None


# -- texts --------------------------------------------------------------------------------------------------


def _compare_texts(old: str, new: str) -> Change:
    before, after = _rules(old), _rules(new)
    gone = [one for one in before if one not in after]
    came = [one for one in after if one not in before]
    loosened: list[str] = []
    tightened = False
    for rule in gone:
        instead = max(came, key=lambda one: _overlap(rule, one), default=None)
        if instead is None or _overlap(rule, instead) < _SAME:
            loosened.append(rule)
            continue
        came.remove(instead)
        step = _strength(instead) - _strength(rule)
        if step < 0 or (step == 0 and _numbers(rule) != _numbers(instead)):
            loosened.append(rule)
        tightened = tightened or step > 0
    for rule in came:
        if _PERMITS.search(rule) and not re.search(r"\b(never|do not|must not|don't)\b", rule, re.IGNORECASE):
            loosened.append(rule)
        elif _STRONG.search(rule):
            tightened = True
    # What a rule says and its removal are alike in weight: a prohibition that goes is a permission.
    kept = tuple(rule for rule in loosened if _STRONG.search(rule) or _PERMITS.search(rule))
    return Change("weaker" if kept else "stronger" if tightened else "neutral", kept)


def _rules(text: str) -> list[str]:
    """The sentences that rule something, in order, each once."""
    sentences = (" ".join(one.split()).strip("-*#• ") for one in _SENTENCE.split(text))
    rules = (
        one for one in sentences if one and (_STRONG.search(one) or _SOFT.search(one) or _PERMITS.search(one))
    )
    return list(dict.fromkeys(rules))[:_MOST]


def _overlap(one: str, other: str) -> float:
    mine, theirs = set(_WORD.findall(one.lower())), set(_WORD.findall(other.lower()))
    return len(mine & theirs) / max(1, min(len(mine), len(theirs)))


def _strength(rule: str) -> int:
    if _PERMITS.search(rule) and not re.search(r"\b(never|do not|don't|must not)\b", rule, re.IGNORECASE):
        return 0
    return 2 if _STRONG.search(rule) and not _SOFT.search(rule) else 1


def _numbers(rule: str) -> list[str]:
    return re.findall(r"\d+(?:[.,]\d+)*", rule)


# -- what it lets through -------------------------------------------------------------------------------------

_PATTERN = re.compile(r"^([\w*.-]+)(?:\((.*)\))?$")
_QUOTED = re.compile(r"[`\"']([^`\"'\n]{2,60})[`\"']")
_COMMON = frozenset(
    "never must always only should shall not without with from into that this they them your you the and for any all"
    " are may can approval permission asking before after under circumstances required allowed forbidden human user"
    " unless first ask it's its when where which who what how need needed run use using make call tool tools"
    " agent".split()
)


def lets_through(loosened: Iterable[str], tool: str, text: str) -> str | None:
    """The first of what was loosened that covers a call; `text` is the call's arguments as they are written."""
    return next((rule for rule in loosened if _covers(rule, tool, text)), None)


def _covers(rule: str, tool: str, text: str) -> bool:
    pattern = _PATTERN.match(rule)
    if pattern is not None and (" " not in rule or pattern[2] is not None):
        name, spec = pattern[1], pattern[2]
        if not re.fullmatch(name.replace("*", ".*"), tool, re.IGNORECASE):
            return False
        if spec in (None, "", "*"):
            return True
        wanted = spec.removeprefix("domain:").removesuffix(":*").removesuffix("*").strip("/ ")
        return wanted.lower() in text.lower()
    said = f"{' '.join(words_of(tool))} {text}".lower()
    if quoted := [one for one in _QUOTED.findall(rule) if not one.isspace()]:
        return any(one.lower() in said for one in quoted)
    words = [word for word in _WORD.findall(rule.lower()) if word not in _COMMON]
    hits = sum(_stem(word) in said for word in words)
    return hits >= 2 and hits * 2 >= len(words)


def _stem(word: str) -> str:
    for ending in ("ing", "es", "ed", "s"):
        if len(word) > len(ending) + 3 and word.endswith(ending):
            return word.removesuffix(ending)
    return word
