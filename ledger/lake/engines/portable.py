"""The part of DuckDB's SQL that means the same on Spark, and its translation. Runs nothing, reads no data.

Some constructs pass through the translation and mean something else on the other side, without a word. Each of them is
a rule here, named in the answer with the line and what to write instead. Statements that only one engine can run are
rules too: it is better to hear of them before the cluster does.
"""

import importlib.resources
from collections.abc import Callable, Iterator
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import NamedTuple

import sqlglot
from sqlglot import exp
from sqlglot.errors import ErrorLevel, ParseError, SqlglotError, TokenError

from ledger.errors import InputError
from ledger.lake.saved import FOLDER

OWN_FUNCTIONS = frozenset({"message_text", "events_on"})
"""Functions of ours, defined on each engine."""

_SAME_FUNCTIONS = OWN_FUNCTIONS | {"json_array_length"}
_WHOLE = {exp.DType.TINYINT, exp.DType.SMALLINT, exp.DType.INT, exp.DType.BIGINT, exp.DType.INT128}
_OF_SEVERAL = (exp.Corr, exp.CovarSamp, exp.CovarPop)
_PERCENTILES = (exp.PercentileCont, exp.PercentileDisc, exp.Quantile, exp.ApproxQuantile)
_FRACTIONS = (exp.Div, exp.Avg, exp.Median, *_OF_SEVERAL)
_THROUGH = (exp.Paren, exp.Add, exp.Sub, exp.Mul, exp.Neg, exp.Coalesce, exp.Nullif)
_MONEY = frozenset({"cost_usd"})
_NO_ESCAPE = "\x01"


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


_Rule = tuple[str, str, Callable[[exp.Expr], bool]]


def _is_asof(node: exp.Expr) -> bool:
    return isinstance(node, exp.Join) and node.method.upper() == "ASOF"


def _is_listed(node: exp.Expr) -> bool:
    return isinstance(node, exp.ArrayAgg) and isinstance(node.this, exp.Order)


def _is_heaped(node: exp.Expr) -> bool:
    if not isinstance(node, exp.ArrayAgg | exp.GroupConcat):
        return False
    return node.find(exp.Order) is None and not isinstance(node.parent, exp.ArraySort | exp.WithinGroup)


def _is_counted_apart(node: exp.Expr) -> bool:
    return isinstance(node, exp.Window) and node.this.find(exp.Distinct) is not None


def _is_of_one_point(node: exp.Expr) -> bool:
    is_one = isinstance(node, _OF_SEVERAL) or type(node).__name__.startswith("Regr")
    if not is_one or not isinstance(node, exp.Expr):
        return False
    select = node.find_ancestor(exp.Select)
    having = select.args.get("having") if select is not None else None
    return having is None or having.find(exp.Count) is None


def _is_avg_of_decimals(node: exp.Expr) -> bool:
    if not isinstance(node, exp.Avg) or isinstance(node.this, exp.Cast):
        return False
    literals = any(literal.is_number and not literal.is_int for literal in node.find_all(exp.Literal))
    return literals or any(column.name in _MONEY for column in node.find_all(exp.Column))


def _is_cut_off(node: exp.Expr) -> bool:
    if not isinstance(node, exp.Cast) or node.to.this not in _WHOLE:
        return False
    stack = [node.this]
    while stack:
        part = stack.pop()
        is_decimal = isinstance(part, exp.Literal) and part.is_number and not part.is_int
        if is_decimal or isinstance(part, _FRACTIONS):
            return True
        if isinstance(part, _THROUGH):
            stack.extend(part.iter_expressions())
    return False


def _is_json_value(node: exp.Expr) -> bool:
    if not isinstance(node, exp.JSONExtract):
        return False
    parent = node.parent
    is_number = isinstance(parent, exp.Cast) and not parent.is_type("text", "json")
    return not is_number and not (isinstance(parent, exp.Anonymous) and parent.name == "json_array_length")


def _is_division(node: exp.Expr) -> bool:
    if not isinstance(node, exp.Div | exp.IntDiv | exp.Mod):
        return False
    below = node.expression.unnest()
    is_safe = isinstance(below, exp.Nullif) or (
        isinstance(below, exp.Literal) and float(below.name or 0) != 0
    )
    return not is_safe


def _is_foreign(node: exp.Expr) -> bool:
    if not isinstance(node, exp.Anonymous):
        return False
    return node.name.lower() not in _SAME_FUNCTIONS or (
        node.name.lower() == "json_array_length" and len(node.expressions) != 1
    )


def _is_formatted(node: exp.Expr) -> bool:
    if not isinstance(node, exp.Format):
        return False
    pattern = node.this
    is_plain = isinstance(pattern, exp.Literal) and pattern.name.count("{}") == len(node.expressions)
    return not is_plain or any(mark in pattern.name.replace("{}", "") for mark in "{}")


def _kind(*kinds: type[exp.Expr]) -> Callable[[exp.Expr], bool]:
    return lambda node: isinstance(node, kinds)


RULES: tuple[_Rule, ...] = (
    # Broken without a word.
    ("ASOF JOIN", "Spark takes ASOF for an alias and joins everything; filter first, then window", _is_asof),
    (
        "ordered array_agg",
        "the order is lost in the translation; use string_agg(... order by ...), or list_sort(list(...))",
        _is_listed,
    ),
    (
        "unordered list",
        "each engine has an order of its own; use string_agg(... order by ...) or list_sort(list(...))",
        _is_heaped,
    ),
    ("percentile", "it becomes an approximation, or another percentile; use median", _kind(*_PERCENTILES)),
    (
        "window EXCLUDE",
        "the clause is dropped; use two frames",
        lambda node: isinstance(node, exp.WindowSpec) and node.args.get("exclude") is not None,
    ),
    (
        "regression of one point",
        "NaN on DuckDB, NULL on Spark; add having count(*) > 1",
        _is_of_one_point,
    ),
    (
        "avg of decimals",
        "a double on DuckDB, a decimal that rounds on Spark; cast to double inside",
        _is_avg_of_decimals,
    ),
    (
        "cast of a fraction to a whole number",
        "DuckDB rounds, Spark cuts off; put round(), floor() or ceil() around it",
        _is_cut_off,
    ),
    (
        "any_value",
        "each engine takes another row; use min_by(value, seq), or max_by",
        _kind(exp.AnyValue, exp.First, exp.Last),
    ),
    (
        "json_extract",
        "JSON on DuckDB, bare text on Spark; use json_extract_string, or cast it to a number",
        _is_json_value,
    ),
    (
        "wildcard in a JSON path",
        "a list on DuckDB, JSON text on Spark; use message_text, or one path for each value",
        lambda node: isinstance(node, exp.JSONPathWildcard),
    ),
    (
        "format",
        "braces with anything in them mean nothing to Spark; use one {} for each value",
        _is_formatted,
    ),
    ("sample", "each run takes other rows; filter by what the rows say", _kind(exp.TableSample)),
    ("random value", "each run gives another; derive it from the rows", _kind(exp.Rand, exp.Uuid)),
    # Broken loudly, on the cluster.
    (
        "* REPLACE",
        "Spark has none; name the columns",
        lambda node: isinstance(node, exp.Star) and bool(node.args.get("replace")),
    ),
    ("COLUMNS(...)", "Spark has none; name the columns", _kind(exp.Columns)),
    ("map literal", "no common way to write it; use columns", _kind(exp.ToMap, exp.Map, exp.VarMap)),
    ("count(distinct) over a window", "Spark has none; group in a CTE and join", _is_counted_apart),
    ("list slice", "Spark has none; filter before the list is made", _kind(exp.Slice)),
    ("SIMILAR TO", "Spark has none; use regexp_matches", _kind(exp.SimilarTo)),
    (
        "division",
        "infinite or NULL on DuckDB, an error on Spark where the divisor is 0; write x / nullif(y, 0)",
        _is_division,
    ),
    ("json_type", "Spark has none; use message_text or json_extract_string", _kind(exp.JSONType)),
    ("function", "not known to be the same on both engines", _is_foreign),
)
"""What is rejected: its name, why and what to write instead, and how it is recognized."""


def problems(text: str) -> list[Problem]:
    """What of a query is not portable, by line."""
    try:
        statements = sqlglot.parse(text, read="duckdb")
    except (ParseError, TokenError) as error:
        return [_unreadable(error)]
    if len(statements) != 1 or not isinstance(statements[0], exp.Query):
        return [Problem(1, "statement", "expected one query: SELECT, VALUES, WITH or a union of them")]
    found = [
        Problem(_line(node), f"{name} {node.name}" if name == "function" else name, reason)
        for node in statements[0].walk()
        for name, reason, is_meant in RULES
        if is_meant(node)
    ]
    if not found:
        try:
            to_spark(text)
        except InputError as error:
            found.append(Problem(1, "translation", str(error)))
    return sorted(set(found))


def to_spark(text: str) -> str:
    """The query in Spark's dialect. Raises InputError for what has no translation."""
    try:
        query = sqlglot.parse_one(text, read="duckdb")
        return query.transform(_as_meant).sql("spark", unsupported_level=ErrorLevel.RAISE, comments=False)
    except SqlglotError as error:
        raise InputError(
            f"the query has no translation to Spark's SQL: {str(error).splitlines()[0]}"
        ) from error


def _as_meant(node: exp.Expr) -> exp.Expr:
    """The node with what DuckDB does unasked written out."""
    if isinstance(node, exp.ArgMax | exp.ArgMin) and not node.meta.get("meant"):
        node.meta["meant"] = True
        known = exp.Not(this=exp.Is(this=node.this.copy(), expression=exp.Null()))
        if isinstance(node.parent, exp.Filter):
            where = node.parent.expression
            where.set("this", exp.and_(where.this, known))
            return node
        return exp.Filter(this=node, expression=exp.Where(this=known))
    if isinstance(node, exp.Format) and not node.meta.get("meant"):
        return _formatted(node)
    if isinstance(node, exp.Like | exp.ILike) and not isinstance(node.parent, exp.Escape):
        # A backslash is only a backslash in DuckDB.
        return exp.Escape(this=node, expression=exp.Literal.string(_NO_ESCAPE))
    return node


def _formatted(node: exp.Format) -> exp.Expr:
    """Braces as Spark's `%s`; NULL where one of the values is NULL, as on DuckDB."""
    node.meta["meant"] = True
    values = [value.copy() for value in node.expressions]
    node.set("this", exp.Literal.string(node.this.name.replace("%", "%%").replace("{}", "%s")))
    if not values:
        return node
    missing = exp.or_(*(exp.Is(this=value, expression=exp.Null()) for value in values))
    return exp.Case(ifs=[exp.If(this=exp.Not(this=exp.paren(missing)), true=node)])


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
