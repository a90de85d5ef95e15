"""Reads a small YAML file of a user's. What is wrong is named with its line, what was expected and what was found."""

from pathlib import Path
from typing import Any, TypeVar

import yaml
from pydantic import BaseModel, ValidationError

from ledger.errors import InputError

LARGEST = 1_000_000
"""A larger file is not read."""

_DEEPEST = 20
_MOST_PARTS = 100_000
_LONGEST_SHOWN = 100
_TIMESTAMP = "tag:yaml.org,2002:timestamp"
_EXPECTED = {
    "model_type": "words and what they are set to",
    "dict_type": "words and what they are set to",
    "tuple_type": "a list",
    "too_short": "at least one",
    "bool_type": "true or false",
    "bool_parsing": "true or false",
    "string_type": "a text",
    "string_too_short": "a text that is not empty",
    "string_pattern_mismatch": "a name of small letters, digits and _ that begins with a letter",
    "int_type": "a whole number",
    "int_parsing": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "float_parsing": "a number",
    "decimal_type": "a number",
    "decimal_parsing": "a number",
    "finite_number": "a number",
}
_BOUNDS = {
    "greater_than": "more than",
    "greater_than_equal": "at least",
    "less_than": "less than",
    "less_than_equal": "at most",
}

Where = tuple[str | int, ...]
"""A place in the file: the keys and numbers that lead to it."""

Model = TypeVar("Model", bound=BaseModel)


def read_yaml(kind: type[Model], path: Path) -> Model:
    """Read a file of a kind. Raises InputError that names the line, what was expected and what was found."""
    text = text_of(path)
    file = YamlFile(str(path))
    value = file.value(text)
    first_field = next(iter(kind.model_fields))
    if not isinstance(value, dict):
        found = "nothing" if value is None else f"a {type(value).__name__}"
        raise InputError(
            f"{path}:{file.line(())}: expected a list of rules under {first_field!r}, found {found}"
        )
    try:
        return kind.model_validate(value)
    except ValidationError as error:
        raise file.wrong(error) from error


def text_of(path: Path) -> str:
    """The text of a file. Raises InputError for one that cannot be read, is too large, or is not UTF-8."""
    try:
        size = path.stat().st_size
        if size > LARGEST:
            raise InputError(f"{path}:1: expected a file of at most {LARGEST} bytes, found {size}")
        raw = path.read_bytes()
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}") from error
    try:
        return raw.decode()
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise InputError(f"{path}:{line}: expected UTF-8, found the byte {raw[error.start]:#04x}") from error


class YamlFile:
    """One file: its value, and the line of each of its parts."""

    def __init__(self, place: str) -> None:
        self.place = place
        """The file, for messages."""
        self._lines: dict[Where, int] = {}

    def value(self, text: str) -> Any:
        """The file as plain values; None for an empty one. Raises InputError."""
        try:
            loader = yaml.SafeLoader(text)
        except yaml.reader.ReaderError as error:
            line = text.count("\n", 0, error.position) + 1
            found = (
                f"the character {chr(error.character)!r}" if isinstance(error.character, int) else str(error)
            )
            raise self._bad(line, f"expected YAML, found {found}") from error
        try:
            node = loader.get_single_node()
            return None if node is None else self._plain(loader, node, (), [])
        except yaml.YAMLError as error:
            mark = getattr(error, "problem_mark", None)
            problem = getattr(error, "problem", None) or str(error)
            if "mapping values" in problem or "the tag '!" in problem:
                problem += "; a text that holds ': ' or begins with '!' needs quotes around it"
            raise self._bad(
                1 if mark is None else mark.line + 1, f"expected YAML, found an error: {problem}"
            ) from error
        except RecursionError:
            raise self._bad(1, "expected YAML, found something nested too deep") from None
        finally:
            loader.dispose()

    def _plain(self, loader: yaml.SafeLoader, node: yaml.Node, where: Where, above: list[yaml.Node]) -> Any:
        line = node.start_mark.line + 1
        self._lines.setdefault(where, line)
        if len(above) > _DEEPEST or node in above:
            raise self._bad(line, "expected YAML, found something nested too deep")
        if len(self._lines) > _MOST_PARTS:
            raise self._bad(line, "expected a file without so many repeated parts")
        below = [*above, node]
        if isinstance(node, yaml.SequenceNode):
            return [
                self._plain(loader, one, (*where, number), below) for number, one in enumerate(node.value)
            ]
        if isinstance(node, yaml.MappingNode):
            return self._mapping(loader, node, where, below)
        if node.tag == _TIMESTAMP:
            return node.value  # no word of ours is a day: it is a text
        try:
            return loader.construct_object(node)
        except (ValueError, OverflowError) as error:
            told = str(node.value)[:_LONGEST_SHOWN]
            raise self._bad(line, f"expected a value, found {told!r}: {error}") from error

    def _mapping(
        self, loader: yaml.SafeLoader, node: yaml.MappingNode, where: Where, below: list[yaml.Node]
    ) -> dict[str, Any]:
        names: set[str] = set()
        for key, _ in node.value:
            line = key.start_mark.line + 1
            if not isinstance(key, yaml.ScalarNode):
                raise self._bad(line, f"expected a word, found a {key.id}")
            if key.value in names:
                raise self._bad(line, f"{key.value!r} stands there for the second time")
            names.add(key.value)
        loader.flatten_mapping(node)  # what `<<` brings in
        found: dict[str, Any] = {}
        for key, one in node.value:
            self._lines[(*where, key.value)] = key.start_mark.line + 1
            found[key.value] = self._plain(loader, one, (*where, key.value), below)
        return found

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
        context = first.get("ctx", {})
        where = tuple(first["loc"]) + context.get("where", ())
        told = ".".join(str(step + 1) if isinstance(step, int) else step for step in where)
        found = str(first["input"])[:_LONGEST_SHOWN]
        message = first["msg"].removeprefix("Value error, ")
        match first["type"]:
            case "extra_forbidden":
                message = f"expected a known word, found {str(where[-1])!r}"
            case "missing":
                message = f"expected {where[-1]!r}, found none"
            case "value_error" | "rule":
                pass
            case "literal_error":
                message = f"expected {context['expected']}, found {found!r}"
            case bound if bound in _BOUNDS:
                number = next(iter(context.values()))
                message = f"expected a number of {_BOUNDS[bound]} {number:g}, found {found!r}"
            case name if name in _EXPECTED:
                message = f"expected {_EXPECTED[name]}, found {found!r}"
            case _:
                message = f"{message[0].lower()}{message[1:]}, found {found!r}"
        return self._bad(self.line(where), f"{told + ': ' if told else ''}{message}")

    def _bad(self, line: int, message: str) -> InputError:
        return InputError(f"{self.place}:{line}: {message}")
