"""The part of DuckDB's SQL that means the same on Spark. Runs nothing, reads no data.

Some constructs pass through the translation and mean something else on the other side, without a word. Each of them is
a rule here, named in the answer with the line and what to write instead. Statements that only one engine can run are
rules too: it is better to hear of them before the cluster does.
"""

import importlib.resources
from collections.abc import Iterator
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import NamedTuple

import sqlglot
from sqlglot import exp
from sqlglot.errors import ParseError, TokenError

from ledger.errors import InputError
from ledger.lake.engines import rules
from ledger.lake.engines.translation import to_spark
from ledger.lake.saved import FOLDER


class Problem(NamedTuple):
    """A construct that is not portable."""

    line: int
    """Line of the text, from 1."""

    construct: str
    """What it is."""

    reason: str
    """What it would do, and what to write instead."""

    def __str__(self) -> str:
        return f"{self.construct}: {self.reason}"


def problems(text: str) -> list[Problem]:
    """What of a query is not portable, by line."""
    try:
        statements = sqlglot.parse(text, read="duckdb")
    except (ParseError, TokenError) as error:
        return [_unreadable(error)]
    if len(statements) != 1 or not isinstance(statements[0], exp.Query | exp.Values):
        return [Problem(1, "statement", "expected one query: SELECT, WITH or a union of them")]
    found = [problem for node in statements[0].walk() if (problem := _problem(node)) is not None]
    if not found:
        try:
            to_spark(text)
        except InputError as error:
            found.append(Problem(1, "translation", str(error)))
    return sorted(set(found))


def _problem(node: exp.Expr) -> Problem | None:
    for name, reason, is_meant in rules.RULES:
        if is_meant(node):
            return Problem(_line(node), f"{name} {_function(node)}" if name == "function" else name, reason)
    return None


def _function(node: exp.Expr) -> str:
    if isinstance(node, exp.Func) and not isinstance(node, exp.Anonymous):
        return node.sql_name().lower()
    return node.name


def _unreadable(error: ParseError | TokenError) -> Problem:
    told = error.errors[0] if isinstance(error, ParseError) and error.errors else {}
    line = told.get("line")
    reason = str(told.get("description") or error).splitlines()[0]
    return Problem(line if isinstance(line, int) else 1, "statement", f"it cannot be read: {reason}")


def _line(node: exp.Expr) -> int:
    """The first line that the node names; of a node without names, of what it stands in."""
    above: exp.Expr | None = node
    while above is not None:
        lines = [part.meta["line"] for part in above.walk() if "line" in part.meta]
        if lines:
            return int(min(lines))
        above = above.parent
    return 1


def check_files(*own: Path | Traversable) -> Iterator[tuple[str, Problem]]:
    """File and problem of each construct that is not portable: in tables, saved queries and folders of your own."""
    shipped = importlib.resources.files("ledger.lake")
    for folder in (shipped / "tables", shipped / FOLDER, *own):
        if not folder.is_dir():
            continue
        for file in sorted(folder.iterdir(), key=lambda file: file.name):
            if file.name.endswith(".sql"):
                for problem in problems(file.read_text(encoding="utf-8")):
                    yield str(file), problem
