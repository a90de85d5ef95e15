"""Reads a file of rules. What is wrong in it is named with its line, what was expected, and what was found."""

import fnmatch
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from ledger.audit.rules.conditions import Condition
from ledger.audit.rules.values import ConditionError
from ledger.audit.rules.words import Pattern, Rule, RulesFile, Step
from ledger.effects.yaml_file import Where, YamlFile, text_of
from ledger.errors import InputError

_LONGEST_SHOWN = 100
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")
_OF_CALLS = (
    "tool",
    "args",
    "command",
    "target",
    "words",
    "effect",
    "server",
    "agent",
    "actor",
    "seq",
    "call_id",
)
_OF_RESULTS = (*_OF_CALLS, "outcome", "result")
_OF_EVENTS = ("event", "agent", "actor", "seq")


@dataclass(frozen=True)
class RuleSet:
    """The rules of one file, ready to be matched."""

    name: str
    """That of the file."""

    file: RulesFile
    """What it says."""

    text: str
    """As it was written."""

    place: str
    """The file, for messages."""

    conditions: dict[str, Condition]
    """Every distinct expression, compiled."""


def load_rules(path: Path) -> RuleSet:
    """Read a file. Raises InputError that names the line, what was expected and what was found."""
    return read_rules(path.stem, text_of(path), str(path))


def read_rules(name: str, text: str, place: str) -> RuleSet:
    """Read the text of a file. Raises InputError."""
    if not _NAME.fullmatch(name):
        raise InputError(
            f"{place}: expected the file to be named with letters, digits, _ and -, found {name!r}"
        )
    reading = _Reading(place)
    value = reading.value(text)
    if value is None:
        raise InputError(f"{place}:1: expected rules, found nothing")
    try:
        file = RulesFile.model_validate(value)
    except ValidationError as error:
        raise reading.wrong(error) from error
    if empty := _empty(value):
        told = f"expected something after {empty[-1]!r}, found nothing"  # a condition that is missing matches all
        raise InputError(f"{place}:{reading.line(empty)}: {told}")
    for number, rule in enumerate(file.rules):
        reading.compile(rule, ("rules", number))
    return RuleSet(name, file, text, place, reading.conditions)


def _empty(value: Any) -> Where:
    """Where a word has nothing after it; () where none has."""
    waiting: list[tuple[Where, Any]] = [((), value)]
    while waiting:
        where, one = waiting.pop()
        if one is None:
            return where
        if isinstance(one, dict | list):
            inside = one.items() if isinstance(one, dict) else enumerate(one)
            waiting += [((*where, name), part) for name, part in reversed(list(inside))]
    return ()


class _Reading(YamlFile):
    """One file: its value, the line of each of its parts, its conditions."""

    def __init__(self, place: str) -> None:
        super().__init__(place)
        self.conditions: dict[str, Condition] = {}

    def compile(self, rule: Rule, where: Where) -> None:
        """Compile all conditions of a rule."""
        named: list[str] = []
        for number, step in enumerate(rule.steps):
            at = (*where, "steps", number)
            for word, text in (("if", step.condition), ("by", step.by), ("sum", step.sum)):
                self._condition(text, step, named, (*at, word))
            if step.without is not None:
                self._condition(step.without.condition, step.without, named, (*at, "without", "if"))
            if step.name is not None:
                if step.name in (*_OF_RESULTS, "event"):
                    raise InputError(
                        f"{self.place}:{self.line((*at, 'as'))}: as: expected a name of its own, found {step.name!r}"
                    )
                named.append(step.name)

    def _condition(self, text: str | None, pattern: Pattern | Step, named: list[str], where: Where) -> None:
        if text is None:
            return
        known = _OF_RESULTS if pattern.result else _OF_CALLS if pattern.tools else _OF_EVENTS
        try:
            condition = self.conditions[text] = Condition(text, known, named)
            if where[-1] == "if" and condition.is_constant_but_no_truth:
                raise ConditionError("it is neither true nor false")
        except ConditionError as error:
            found = text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}…"
            raise InputError(
                f"{self.place}:{self.line(where)}: {where[-1]}: expected a CEL expression, found {found!r}: {error}"
            ) from error


def glob(names: tuple[str, ...]) -> re.Pattern[str]:
    """What the names with `*` and `?` fit."""
    return re.compile("|".join(fnmatch.translate(name) for name in names))
