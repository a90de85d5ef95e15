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
_LONGEST_SHOWN = 100
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")
_TIMESTAMP = "tag:yaml.org,2002:timestamp"
_EXPECTED = {
    "model_type": "words and what they are set to",
    "tuple_type": "a list",
    "too_short": "at least one",
    "string_type": "a text",
    "string_too_short": "a text that is not empty",
    "string_pattern_mismatch": "a name of small letters, digits and _ that begins with a letter",
    "int_type": "a whole number",
    "int_parsing": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "float_parsing": "a number",
    "finite_number": "a number",
}
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
        size = path.stat().st_size
        if size > _LARGEST:
            raise InputError(f"{path}:1: expected rules of at most {_LARGEST} bytes, found {size}")
        raw = path.read_bytes()
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}") from error
    try:
        text = raw.decode()
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise InputError(f"{path}:{line}: expected UTF-8, found the byte {raw[error.start]:#04x}") from error
    return read_rules(path.stem, text, str(path))


def read_rules(name: str, text: str, place: str) -> RuleSet:
    """Read the text of a file. Raises InputError."""
    if not _NAME.fullmatch(name):
        raise InputError(
            f"{place}: expected the file to be named with letters, digits, _ and -, found {name!r}"
        )
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
                if not isinstance(key, yaml.ScalarNode):
                    raise InputError(
                        f"{self._place}:{key.start_mark.line + 1}: expected a word, found a {key.id}"
                    )
                name = str(key.value)
                if name in found:
                    raise InputError(
                        f"{self._place}:{key.start_mark.line + 1}: {name!r} stands there for the second time"
                    )
                self._lines[(*where, name)] = key.start_mark.line + 1
                found[name] = self._plain(loader, one, (*where, name), below)
            return found
        if node.tag == _TIMESTAMP:
            return node.value  # no rule is about a day: it is a text
        try:
            return loader.construct_object(node)
        except (ValueError, OverflowError) as error:
            told = str(node.value)[:_LONGEST_SHOWN]
            raise InputError(f"{self._place}:{line}: expected a value, found {told!r}: {error}") from error

    def line(self, where: Where) -> int:
        """The line of a place, or of what it would be in."""
        while where and where not in self._lines:
            where = where[:-1]
        return self._lines.get(where, 1)

    def wrong(self, error: ValidationError) -> InputError:
        """The first thing that is wrong, in words."""
        errors = error.errors()
        # a word that is misspelt is missed as well: it is told first
        first = next((one for one in errors if one["type"] == "extra_forbidden"), errors[0])
        where = tuple(first["loc"]) + first.get("ctx", {}).get("where", ())
        told = ".".join(str(step + 1) if isinstance(step, int) else step for step in where)
        found = first["input"]
        message = first["msg"].removeprefix("Value error, ")
        match first["type"]:
            case "extra_forbidden":
                message = f"expected a known word, found {str(where[-1])!r}"
            case "missing":
                message = f"expected {where[-1]!r}, found none"
            case "value_error" | "rule":
                pass
            case "literal_error":
                message = f"expected {first['ctx']['expected']}, found {str(found)[:_LONGEST_SHOWN]!r}"
            case "greater_than" | "greater_than_equal" as least:
                bound = "more than" if least == "greater_than" else "at least"
                number = next(iter(first["ctx"].values()))
                message = f"expected a number of {bound} {number:g}, found {str(found)[:_LONGEST_SHOWN]!r}"
            case name if name in _EXPECTED:
                message = f"expected {_EXPECTED[name]}, found {str(found)[:_LONGEST_SHOWN]!r}"
            case _:
                message = f"{message[0].lower()}{message[1:]}, found {str(found)[:_LONGEST_SHOWN]!r}"
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
            condition = self.conditions[text] = Condition(text, known, named)
            if where[-1] == "if" and condition.is_constant_but_no_truth:
                raise ConditionError("it is neither true nor false")
        except ConditionError as error:
            found = text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}…"
            raise InputError(
                f"{self._place}:{self.line(where)}: {where[-1]}: expected a CEL expression, found {found!r}: {error}"
            ) from error


def glob(names: tuple[str, ...]) -> re.Pattern[str]:
    """What the names with `*` and `?` fit."""
    return re.compile("|".join(fnmatch.translate(name) for name in names))
