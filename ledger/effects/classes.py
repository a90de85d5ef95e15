"""The effect class of a tool call: as declared, as a user's policy says, or inferred and marked as such.

Inference looks at the arguments, not only at the name of the tool: `manage_file(action="delete")` is no write. It is
a guess that errs to the graver side; what it rests on is in `why`.
"""

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Literal, NamedTuple

from ledger.effects.policy import EffectPolicy
from ledger.effects.shell import shell_effects, sql_class
from ledger.effects.words import TARGET_FIELDS, VERB_FIELDS, verbs, words_of
from ledger.events.tool_call import EffectClass

RANK: dict[EffectClass, int] = {"read": 0, "write": 1, "external": 2, "credential": 3, "irreversible": 4}
"""How grave each class is."""

_SHELL_NAMES = frozenset("bash shell exec terminal sh run execute powershell console".split())
_SHELL_FIELDS = ("command", "cmd", "script", "commands")
_SQL_FIELDS = ("sql", "query", "statement")
_SQL_STARTS = ("select", "insert", "update", "delete", "drop", "create", "alter", "truncate", "with", "merge")
_TELLING = VERB_FIELDS.union(_SHELL_FIELDS, _SQL_FIELDS)
_LONGEST_NAME = 200  # of a tool that is remembered: tools are few, and each is called again and again
_LONGEST_TARGET = 300
_LONGEST_VERB = 40
_HAND_OFF = re.compile(r"(transfer|transfer_back|hand_?off|delegate)_to_\w+", re.IGNORECASE)
_HANDED = frozenset("agent agent_name reason message task context summary".split())


class Effect(NamedTuple):
    """What a tool call does outside."""

    effect_class: EffectClass
    """How grave."""

    said_by: Literal["declared", "policy", "inferred"]
    """The tool's own metadata, a policy, or inference."""

    operation: str | None = None
    """What is done, in a word or two."""

    target: str | None = None
    """On what: a path, an address, a table."""

    why: str = ""
    """What the verdict rests on."""

    idempotency_key: str | None = None
    """Key under which a repetition must act once."""


def classify(
    tool: str,
    arguments: Any,
    *,
    declared: EffectClass | None = None,
    annotations: Mapping[str, Any] | None = None,
    policy: EffectPolicy | None = None,
) -> Effect:
    """The effect of a call. A policy goes before what the tool declares, and that before inference.

    `annotations` are those of the Model Context Protocol (readOnlyHint, destructiveHint, openWorldHint).
    """
    fields = arguments if isinstance(arguments, dict | Mapping) else {}
    inferred = _inferred(tool, fields)
    rule = None if policy is None else policy.rule_for(tool, fields)
    if rule is not None:
        return inferred._replace(
            effect_class=rule.effect_class or inferred.effect_class,
            said_by="policy" if rule.effect_class is not None else inferred.said_by,
            target=rule.target_in(fields) or inferred.target,
            why=f"rule {rule.name}" if rule.effect_class is not None else inferred.why,
            idempotency_key=rule.key_in(fields),
        )
    stated = declared or from_annotations(annotations)
    if stated is not None:
        return inferred._replace(effect_class=stated, said_by="declared", why="the tool's own metadata")
    return inferred


def inferred_class(tool: str, arguments: Any) -> EffectClass:
    """The class alone that `classify` infers."""
    fields = arguments if isinstance(arguments, dict | Mapping) else {}
    return class_by_name(tool, arguments) or _inferred(tool, fields).effect_class


def class_by_name(tool: str, arguments: Any) -> EffectClass | None:
    """The class alone that `classify` infers, at once; None where an argument says what is done."""
    fields = arguments if isinstance(arguments, dict | Mapping) else {}
    if len(tool) <= _LONGEST_NAME and _TELLING.isdisjoint(map(str.lower, fields)):
        return _class_by_name(tool, _HANDED.issuperset(fields))
    return None


@lru_cache(maxsize=1024)
def _class_by_name(tool: str, may_hand_off: bool) -> EffectClass:
    return _inferred(tool, {} if may_hand_off else {"": None}).effect_class


def from_annotations(annotations: Mapping[str, Any] | None) -> EffectClass | None:
    """The class that MCP tool annotations state; None where they state none. Hints that are not given say nothing."""
    if not annotations:
        return None
    if annotations.get("readOnlyHint") is True:
        return "read"
    if annotations.get("destructiveHint") is True:
        return "irreversible"
    if annotations.get("openWorldHint") is True:
        return "external"
    if annotations.get("destructiveHint") is False or annotations.get("readOnlyHint") is False:
        return "write" if annotations.get("openWorldHint") is False else "external"
    return None


def worst(effects: list[Effect]) -> Effect | None:
    """The gravest; of equals the first. None for none."""
    return max(effects, key=lambda effect: RANK[effect.effect_class], default=None)


def _inferred(tool: str, fields: Mapping[str, Any]) -> Effect:
    target = _target(fields)
    if _HAND_OFF.fullmatch(tool) and _HANDED.issuperset(fields):
        why = "its name and arguments hand over to another agent, and do nothing else"
        return Effect("read", "inferred", "hand over", target, why)
    found = [*_by_command(tool, fields), *_by_sql(fields)]
    if not found:
        found = [*_by_name(tool), *_by_fields(fields)]
    effect = worst(found)
    if effect is None:
        return Effect(
            "write", "inferred", None, target, "nothing tells what it does, so it may change something"
        )
    return effect if effect.target is not None else effect._replace(target=target)


def command_in(tool: str, fields: Mapping[str, Any]) -> str | None:
    """The shell command in the arguments of a tool that runs such."""
    if _SHELL_NAMES.isdisjoint(words_of(tool)):
        return None
    for name in _SHELL_FIELDS:
        command = fields.get(name)
        if isinstance(command, list) and all(isinstance(word, str) for word in command):
            # `["bash", "-lc", "script"]`, as some harnesses pass it, or the words of one command
            command = command[-1] if len(command) > 2 and command[-2].startswith("-") else " ".join(command)
        if isinstance(command, str) and command.strip():
            return command
    return None


def _by_command(tool: str, fields: Mapping[str, Any]) -> list[Effect]:
    command = command_in(tool, fields)
    return [
        Effect(effect_class, "inferred", operation, _short(target), f"the shell command {operation!r}")
        for effect_class, operation, target in (shell_effects(command) if command is not None else ())
    ]


def _by_sql(fields: Mapping[str, Any]) -> list[Effect]:
    for name in _SQL_FIELDS:
        statement = fields.get(name)
        if isinstance(statement, str) and statement.lstrip().lower().startswith(_SQL_STARTS):
            verb = statement.split(None, 1)[0].upper()
            return [Effect(sql_class(statement), "inferred", verb, None, f"the SQL statement {verb}")]
    return []


def _by_name(tool: str) -> list[Effect]:
    """The first verb of a name counts: `delete_search_index` deletes, `search_deleted_files` searches."""
    own = tool.rpartition("__")[2] if tool.startswith("mcp__") else tool.rpartition(".")[2]
    found = verbs(words_of(own))[:1]
    return [Effect(sort, "inferred", word, None, f"the word {word!r} in its name") for word, sort in found]


def _by_fields(fields: Mapping[str, Any]) -> list[Effect]:
    effects = []
    for name, value in fields.items():
        if name.lower() in VERB_FIELDS and isinstance(value, str) and len(value) <= _LONGEST_VERB:
            effects += [
                Effect(sort, "inferred", word, None, f"its argument {name} = {value!r}")
                for word, sort in verbs(words_of(value))[:1]
            ]
            if value in ("POST", "PUT", "PATCH"):
                effects.append(
                    Effect("external", "inferred", value, None, f"its argument {name} = {value!r}")
                )
    return effects


def _target(fields: Mapping[str, Any]) -> str | None:
    if fields.keys().isdisjoint(TARGET_FIELDS):
        return None
    for name in TARGET_FIELDS:
        value = fields.get(name)
        if value is None:
            continue
        if isinstance(value, list) and value and all(isinstance(item, str) for item in value):
            value = ", ".join(value)
        if isinstance(value, str | int) and not isinstance(value, bool) and str(value):
            return _short(str(value))
    return None


def _short(text: str | None) -> str | None:
    return text if text is None or len(text) <= _LONGEST_TARGET else f"{text[:_LONGEST_TARGET]}…"
