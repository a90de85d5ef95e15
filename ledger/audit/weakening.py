"""Whether a change of what governs an agent lets it do more or less, and what exactly it lets loose. Pure."""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Literal, NamedTuple

from ledger.audit.bounding import SENTENCE_END
from ledger.audit.modes import laxness
from ledger.audit.scripts import commands, shell_command
from ledger.audit.settings import parsed, settings_of
from ledger.effects.words import words_of

Direction = Literal["weaker", "stronger", "neutral", "unknown"]
"""`weaker`: the agent may do more unasked; `neutral`: no rule differs; `unknown`: a side was not seen."""


class Change(NamedTuple):
    """What a change does."""

    direction: Direction
    """Which way it goes; one that does both is weaker."""

    loosened: tuple[str, ...] = ()
    """Rules and patterns that no longer hold, or that allow more now, as they are written."""

    allowed_before: tuple[str, ...] = ()
    """Patterns that allowed something before as well."""


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
_WORD = re.compile(r"[a-z0-9_./-]{3,}")
_FRONT_MATTER = re.compile(r"\A\s*---\n")
_SAME = 0.6
_MOST = 400


def compare(old: Any, new: Any) -> Change:
    """Two versions of an artifact, as settings or as text; None: not seen, or not there."""
    if old is None and new is None:
        return Change("unknown")
    before, after = _structured(old), _structured(new)
    are_texts = not (isinstance(before, Mapping | list) or isinstance(after, Mapping | list))
    said = Change("neutral")
    if not are_texts:
        said = _compare_settings(before, after)
    texts = [_text(old), _text(new)]
    if are_texts or said.direction == "neutral" or any(_FRONT_MATTER.match(one) for one in texts):
        words = _compare_texts(*texts)
        said = said if said.direction == "weaker" else words if words.direction != "neutral" else said
    return said


def _structured(value: Any) -> Any:
    return parsed(value) if isinstance(value, str) else value


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


def _compare_settings(old: Any, new: Any) -> Change:
    before, after = settings_of(old), settings_of(new)
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
    direction: Direction = "weaker" if loosened else "stronger" if tightened else "neutral"
    return Change(direction, tuple(sorted(set(loosened))), tuple(sorted(before.allowed)))


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
    sentences = (" ".join(one.split()).strip("-*#• ") for one in SENTENCE_END.split(text))
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


def lets_through(change: Change, tool: str, arguments: Any, text: str) -> str | None:
    """The first of what was loosened that covers a call, where nothing had allowed it before; `text` is the call's
    arguments as they are written.
    """
    if any(_is_pattern(rule) and _covers(rule, tool, arguments, text) for rule in change.allowed_before):
        return None
    return next((rule for rule in change.loosened if _covers(rule, tool, arguments, text)), None)


def _is_pattern(rule: str) -> bool:
    found = _PATTERN.match(rule)
    return found is not None and (" " not in rule or found[2] is not None)


def _covers(rule: str, tool: str, arguments: Any, text: str) -> bool:
    pattern = _PATTERN.match(rule)
    if pattern is not None and _is_pattern(rule):
        name, spec = pattern[1], pattern[2]
        if not re.fullmatch(re.escape(name).replace(r"\*", ".*"), tool, re.IGNORECASE):
            return False
        return spec in (None, "", "*") or _meets(str(spec), tool, arguments, text)
    said = f"{' '.join(words_of(tool))} {text}".lower()
    if quoted := [one for one in _QUOTED.findall(rule) if not one.isspace()]:
        return any(one.lower() in said for one in quoted)
    words = [word for word in _WORD.findall(rule.lower()) if word not in _COMMON]
    hits = sum(_stem(word) in said for word in words)
    return hits >= 2 and hits * 2 >= len(words)


def _meets(spec: str, tool: str, arguments: Any, text: str) -> bool:
    """Whether a call meets what stands in the brackets of a pattern: how a command begins, a place, a host."""
    is_place = spec.startswith(("domain:", "./", "/", "~", "**"))
    wanted = (
        spec.removeprefix("domain:")
        .removesuffix(":*")
        .removesuffix("*")
        .strip("/* ")
        .removeprefix("./")
        .lower()
    )
    script = None if is_place else shell_command(tool, arguments)
    if script is None:
        return re.search(rf"(?<![\w-]){re.escape(wanted)}(?![\w-])", text.lower()) is not None
    lines = (" ".join(command.words).lower() for command in commands(script))
    return any(line == wanted or line.startswith(f"{wanted} ") or (wanted in ("", "*")) for line in lines)


def _stem(word: str) -> str:
    for ending in ("ing", "es", "ed", "s"):
        if len(word) > len(ending) + 3 and word.endswith(ending):
            return word.removesuffix(ending)
    return word
