"""Saved queries: `.sql` files whose head says what they answer and which parameters they take.

-- title: Slowest calls
-- doc:   What took longest, model calls and tool calls together.
-- param: least integer = 1000: milliseconds from which a call counts
-- chart: bar tool duration_ms
"""

import importlib.resources
import re
from collections.abc import Iterable, Mapping
from datetime import date
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any, Literal, NamedTuple, cast, get_args

from ledger.errors import InputError
from ledger.lake.head import head_of

FOLDER = "queries"
"""Folder of a user's own queries in the home."""

ParameterKind = Literal["text", "integer", "number", "date", "flag"]
"""What a parameter takes."""

_PARAMETER = re.compile(r"(\w+)\s+(\w+)(?:\s*=\s*([^:]*?))?\s*:\s*(.+)")
_FLAGS = {"true": True, "yes": True, "false": False, "no": False}


class Parameter(NamedTuple):
    """A parameter of a saved query: `$name` in its text."""

    name: str
    """Its name."""

    kind: ParameterKind
    """What it takes."""

    default: str | None
    """What it is when nobody gives it; None: it must be given."""

    doc: str
    """What it does."""

    def value(self, text: str) -> Any:
        """What a text says for it. Raises InputError."""
        try:
            match self.kind:
                case "integer":
                    return int(text)
                case "number":
                    return float(text)
                case "date":
                    return date.fromisoformat(text)
                case "flag":
                    return _FLAGS[text.lower()]
                case "text":
                    return text
        except (ValueError, KeyError):
            raise InputError(f"parameter {self.name} takes a {self.kind}: found {text!r}") from None


class SavedQuery(NamedTuple):
    """A query in a file."""

    name: str
    """That of the file."""

    title: str
    """What it answers, in few words."""

    doc: str
    """What to know about the answer."""

    parameters: tuple[Parameter, ...]
    """What it takes."""

    chart: str | None
    """How it is drawn: kind, column along, column up."""

    sql: str
    """The query."""

    is_own: bool
    """Whether it is the user's own and not one that is shipped."""

    def values(self, given: Mapping[str, str]) -> dict[str, Any]:
        """The parameters' values. Raises InputError for one that is missing, unknown, or of another kind."""
        known = {parameter.name for parameter in self.parameters}
        for name in given:
            if name not in known:
                expected = f"expected one of {', '.join(sorted(known))}" if known else "it takes none"
                raise InputError(f"{name!r} is no parameter of the query {self.name}: {expected}")
        values = {}
        for parameter in self.parameters:
            text = given.get(parameter.name, parameter.default)
            if text is None:
                raise InputError(f"the query {self.name} needs --param {parameter.name}=… ({parameter.doc})")
            values[parameter.name] = parameter.value(text)
        return values


def saved_queries(home: Path | None = None) -> dict[str, SavedQuery]:
    """All saved queries by name; one of the user's goes before a shipped one of the same name. Raises InputError."""
    shipped = _found((importlib.resources.files("ledger.lake") / FOLDER).iterdir(), is_own=False)
    folder = None if home is None else home / FOLDER
    own = _found(folder.iterdir(), is_own=True) if folder is not None and folder.is_dir() else {}
    return dict(sorted((shipped | own).items()))


def _found(files: Iterable[Traversable], *, is_own: bool) -> dict[str, SavedQuery]:
    queries = {}
    for file in files:
        if file.name.endswith(".sql"):
            name = file.name.removesuffix(".sql")
            try:
                queries[name] = parse(name, file.read_text(encoding="utf-8"), is_own=is_own)
            except (OSError, UnicodeDecodeError) as error:
                raise InputError(f"the query {file} cannot be read: {error}") from error
    return queries


def parse(name: str, text: str, *, is_own: bool = False) -> SavedQuery:
    """A saved query from the text of its file. Raises InputError."""
    told = {word: [line.text for line in lines] for word, lines in head_of(text).items()}
    parameters = tuple(_parameter(name, line) for line in told.get("param", []))
    return SavedQuery(
        name,
        " ".join(told.get("title", [name])),
        " ".join(told.get("doc", [])),
        parameters,
        next(iter(told.get("chart", [])), None),
        text,
        is_own,
    )


def _parameter(query: str, line: str) -> Parameter:
    found = _PARAMETER.fullmatch(line)
    if found is None or found[2] not in get_args(ParameterKind):
        kinds = ", ".join(get_args(ParameterKind))
        raise InputError(
            f"the query {query} has a parameter line {line!r}: expected NAME KIND [= DEFAULT]: TEXT, of kind {kinds}"
        )
    return Parameter(found[1], cast(ParameterKind, found[2]), found[3], found[4])
