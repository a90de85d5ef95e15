"""Reads a file of rules. What is wrong in it is named with its line, what was expected, and what was found."""

import fnmatch
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError

from ledger.audit.rules.conditions import Condition, ConditionError
from ledger.audit.rules.words import Pattern, Rule, RulesFile, Step
from ledger.errors import InputError

_LARGEST = 1_000_000
_DEEPEST = 20
_NAME = re.compile(r"[a-z][a-z0-9_]*")
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

Where = tuple[str | int, ...]
"""A place in the file: the keys and numbers that lead to it."""


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
    try:
        if path.stat().st_size > _LARGEST:
            raise InputError(f"{path}: expected rules of at most {_LARGEST} bytes")
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path} cannot be read: {error}") from error
    return read_rules(path.stem, text, str(path))


def read_rules(name: str, text: str, place: str) -> RuleSet:
    """Read the text of a file. Raises InputError."""
    if not _NAME.fullmatch(name):
        raise InputError(f"{place}: expected a name of small letters, digits and _, found {name!r}")
    reading = _Reading(place)
    value = reading.value(text)
    try:
        file = RulesFile.model_validate(value)
    except ValidationError as error:
        raise reading.wrong(error) from error
    for number, rule in enumerate(file.rules):
        reading.compile(rule, ("rules", number))
    return RuleSet(name, file, text, place, reading.conditions)


class _Reading:
    """One file: its value, the line of each of its parts, its conditions."""

    def __init__(self, place: str) -> None:
        self._place = place
        self._lines: dict[Where, int] = {}
        self.conditions: dict[str, Condition] = {}

    def value(self, text: str) -> Any:
        """The file as plain values."""
        try:
            loader = yaml.SafeLoader(text)
        except yaml.reader.ReaderError as error:
            line = text.count("\n", 0, error.position) + 1
            found = (
                f"the character {chr(error.character)!r}" if isinstance(error.character, int) else str(error)
            )
            raise InputError(f"{self._place}:{line}: expected YAML, found {found}") from error
        try:
            node = loader.get_single_node()
            if node is None:
                raise InputError(f"{self._place}:1: expected rules, found nothing")
            return self._plain(loader, node, (), [])
        except yaml.YAMLError as error:
            mark = getattr(error, "problem_mark", None)
            line = 1 if mark is None else mark.line + 1
            problem = getattr(error, "problem", None) or str(error)
            raise InputError(f"{self._place}:{line}: expected YAML, found an error: {problem}") from error
        except RecursionError:
            raise InputError(f"{self._place}:1: expected rules, found something nested too deep") from None
        finally:
            loader.dispose()

    def _plain(self, loader: yaml.SafeLoader, node: yaml.Node, where: Where, above: list[yaml.Node]) -> Any:
        line = node.start_mark.line + 1
        self._lines.setdefault(where, line)
        if len(above) > _DEEPEST or node in above:
            raise InputError(f"{self._place}:{line}: expected rules, found something nested too deep")
        if len(self._lines) > _LARGEST // 10:
            raise InputError(f"{self._place}:{line}: expected a file without so many repeated parts")
        below = [*above, node]
        if isinstance(node, yaml.SequenceNode):
            return [
                self._plain(loader, one, (*where, number), below) for number, one in enumerate(node.value)
            ]
        if isinstance(node, yaml.MappingNode):
            found: dict[str, Any] = {}
            for key, one in node.value:
                name = str(key.value)
                if name in found:
                    raise InputError(
                        f"{self._place}:{key.start_mark.line + 1}: {name!r} stands there for the second time"
                    )
                self._lines[(*where, name)] = key.start_mark.line + 1
                found[name] = self._plain(loader, one, (*where, name), below)
            return found
        return loader.construct_object(node)

    def line(self, where: Where) -> int:
        """The line of a place, or of what it would be in."""
        while where and where not in self._lines:
            where = where[:-1]
        return self._lines.get(where, 1)

    def wrong(self, error: ValidationError) -> InputError:
        """The first thing that is wrong, in words."""
        first = error.errors()[0]
        where = tuple(first["loc"])
        told = ".".join(str(step + 1) if isinstance(step, int) else step for step in where)
        found = first["input"]
        message = first["msg"].removeprefix("Value error, ")
        match first["type"]:
            case "extra_forbidden":
                message = f"expected a known word, found {str(where[-1])!r}"
            case "missing":
                message = f"expected {where[-1]!r}, found none"
            case "value_error":
                pass
            case _:
                message = f"{message[0].lower()}{message[1:]}, found {str(found)[:60]!r}"
        return InputError(f"{self._place}:{self.line(where)}: {told + ': ' if told else ''}{message}")

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
                        f"{self._place}:{self.line((*at, 'as'))}: as: expected a name of its own, found {step.name!r}"
                    )
                named.append(step.name)

    def _condition(self, text: str | None, pattern: Pattern | Step, named: list[str], where: Where) -> None:
        if text is None:
            return
        known = _OF_RESULTS if pattern.result else _OF_CALLS if pattern.tools else _OF_EVENTS
        try:
            self.conditions[text] = Condition(text, known, named)
        except ConditionError as error:
            raise InputError(
                f"{self._place}:{self.line(where)}: {where[-1]}: expected a CEL expression, found {text!r}: {error}"
            ) from error


def glob(names: tuple[str, ...]) -> re.Pattern[str]:
    """What the names with `*` and `?` fit."""
    return re.compile("|".join(fnmatch.translate(name) for name in names))
