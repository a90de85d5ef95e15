"""How the constructs are recognized that mean something else on Spark than on DuckDB, or nothing: see `rules`."""

import re

from sqlglot import exp

from ledger.lake.engines import patterns
from ledger.lake.engines.known import (
    DATES,
    FRACTIONS,
    MONEY,
    PARTS,
    SAME_FUNCTIONS,
    TEXT,
    TIME_CODES,
    TIMES,
    UNITS,
    WHOLE,
    is_known,
)

_OF_SEVERAL = (exp.Corr, exp.CovarSamp, exp.CovarPop)
_DIVIDED = (exp.Div, exp.Avg, exp.Median, *_OF_SEVERAL)
_THROUGH = (exp.Paren, exp.Add, exp.Sub, exp.Mul, exp.Neg, exp.Coalesce, exp.Nullif)
_AROUND = (exp.Paren, exp.Max, exp.Min, exp.Coalesce, exp.Filter, exp.Window, exp.Round)
_RANKED = (exp.RowNumber, exp.Rank, exp.DenseRank, exp.PercentRank, exp.CumeDist, exp.Ntile)
_PLACED = (exp.FirstValue, exp.LastValue, exp.NthValue, exp.Lag, exp.Lead)
_FOREIGN = (exp.Glob, exp.Comprehension, exp.PositionalColumn, exp.Collate, exp.AtTimeZone, exp.Any, exp.All)


def literal(node: exp.Expr | None) -> float | None:
    """A number that stands in the text; None for anything else."""
    if isinstance(node, exp.Neg):
        below = literal(node.this)
        return None if below is None else -below
    return float(node.name) if isinstance(node, exp.Literal) and node.is_number else None


def _text(node: exp.Expr | None) -> str | None:
    """A string that stands in the text."""
    return node.name if isinstance(node, exp.Literal) and node.is_string else None


def _inside(node: exp.Expr) -> exp.Expr:
    """What a value is taken from, where that leaves its type as it is."""
    while isinstance(node, _AROUND):
        node = node.this
    return node


# -- rows and their order --------------------------------------------------------------------------------------------


def is_listed(node: exp.Expr) -> bool:
    """Whether a list is made in an order."""
    return isinstance(node, exp.ArrayAgg) and node.this.find(exp.Order) is not None


def is_heaped(node: exp.Expr) -> bool:
    """Whether a list is made in no order."""
    if isinstance(node, exp.ArrayDistinct):
        return not isinstance(node.parent, exp.ArraySort)
    if not isinstance(node, exp.ArrayAgg | exp.GroupConcat) or node.find(exp.Order) is not None:
        return False
    outer = node.parent if isinstance(node.parent, exp.Filter) else node
    return not isinstance(outer.parent, exp.ArraySort | exp.WithinGroup)


def is_any_row(node: exp.Expr) -> bool:
    """Whether one row of several is kept, whichever comes first."""
    return isinstance(node, exp.Distinct) and node.args.get("on") is not None


def is_any_first(node: exp.Expr) -> bool:
    """Whether a query inside another has a limit and no order."""
    if not isinstance(node, exp.Limit | exp.Fetch) or not isinstance(node.parent, exp.Query):
        return False
    query = node.parent
    if query.parent is None or query.args.get("order") is not None or isinstance(query.parent, exp.Exists):
        return False
    return not (
        isinstance(query, exp.Select)
        and query.args.get("group") is None
        and all(value.find(exp.AggFunc) is not None for value in query.expressions)
    )


def is_any_place(node: exp.Expr) -> bool:
    """Whether a place among rows is asked for that have no order."""
    if not isinstance(node, exp.Window) or node.args.get("order") is not None:
        return False
    select = node.find_ancestor(exp.Select)
    named = select.args.get("windows") or [] if select is not None else []
    given = node.args.get("alias")
    for window in named:
        if given is not None and window.name.lower() == given.name.lower() and window.args.get("order"):
            return False
    inner = node.this
    while isinstance(inner, exp.Filter | exp.IgnoreNulls | exp.RespectNulls):
        inner = inner.this
    return isinstance(inner, (*_RANKED, *_PLACED))


def is_counted_apart(node: exp.Expr) -> bool:
    """Whether different values are counted in a window."""
    return isinstance(node, exp.Window) and node.this.find(exp.Distinct) is not None


def is_unnested_twice(node: exp.Expr) -> bool:
    """Whether two lists are unnested side by side."""
    if not isinstance(node, exp.Select):
        return False
    return sum(value.find(exp.Explode, exp.Unnest) is not None for value in node.expressions) > 1


def is_series(node: exp.Expr) -> bool:
    """Whether numbers are counted up, or perhaps down."""
    if not isinstance(node, exp.GenerateSeries):
        return False
    first, last = literal(node.args.get("start")), literal(node.args.get("end"))
    is_up = first is not None and last is not None and first <= last and node.args.get("step") is None
    return not is_up or isinstance(node.parent, exp.Table)


def is_unnamed(node: exp.Expr) -> bool:
    """Whether rows are written out whose columns have no name."""
    if not isinstance(node, exp.Values):
        return False
    alias = node.args.get("alias")
    if (
        isinstance(alias, exp.TableAlias) and alias.name == "_values"
    ):  # what the parser makes of a bare VALUES
        select = node.find_ancestor(exp.Select)
        above = select.parent if select is not None else None
        while isinstance(above, exp.Subquery):
            above = above.parent
        return not isinstance(above, exp.SetOperation)
    return not isinstance(alias, exp.TableAlias) or not alias.columns


def is_recursive_union(node: exp.Expr) -> bool:
    """Whether a recursion drops rows that it had."""
    if (
        not isinstance(node, exp.CTE)
        or not isinstance(node.this, exp.Union)
        or not node.this.args.get("distinct")
    ):
        return False
    return any(table.name.lower() == node.alias.lower() for table in node.this.find_all(exp.Table))


def is_star_of_duckdb(node: exp.Expr) -> bool:
    """Whether `*` says more than which columns to leave out."""
    if isinstance(node, exp.Star):
        return bool(node.args.get("replace") or node.args.get("rename"))
    return isinstance(node, exp.Like | exp.ILike) and isinstance(node.this, exp.Star)


def is_clause_of_duckdb(node: exp.Expr) -> bool:
    """Whether it is something that DuckDB alone has."""
    match node:
        case exp.WindowSpec():
            return str(node.args.get("kind")).lower() == "groups"
        case exp.SetOperation():
            return bool(node.args.get("by_name"))
        case exp.CTE():
            return bool(node.args.get("key_expressions")) or node.args.get("materialized") is not None
        case exp.LimitOptions():
            return bool(node.args.get("percent"))
        case exp.Unnest():
            return bool(node.args.get("offset"))
        case exp.Alias():  # 0xFF is read as 0 with the name xFF
            return literal(node.this) == 0 and re.fullmatch(r"x[0-9a-fA-F]+", node.alias) is not None
        case _:
            return isinstance(node, _FOREIGN)


# -- numbers ---------------------------------------------------------------------------------------------------------


def is_of_one_point(node: exp.Expr) -> bool:
    """Whether a line may be drawn through one point."""
    is_one = isinstance(node, _OF_SEVERAL) or type(node).__name__.startswith("Regr")
    if not is_one or not isinstance(node, exp.Expr):
        return False
    select = node.find_ancestor(exp.Select)
    having = select.args.get("having") if select is not None else None
    if isinstance(node.parent, exp.Filter | exp.Window) or having is None:
        return True
    return not any(_asks_for_two(test) for test in having.find_all(exp.GT, exp.GTE, exp.LT, exp.LTE))


def _asks_for_two(test: exp.Expr) -> bool:
    more, less = test.this, test.expression
    if isinstance(test, exp.LT | exp.LTE):
        more, less = less, more
    least = literal(less)
    if least is None or not isinstance(more, exp.Count):
        return False
    return least >= (1 if isinstance(test, exp.GT | exp.LT) else 2)


def is_of_decimals(node: exp.Expr) -> bool:
    """Whether decimals are averaged."""
    if not isinstance(node, exp.Avg | exp.Median) or isinstance(node.this, exp.Cast):
        return False
    literals = any(
        literal.is_number and not literal.is_int and not isinstance(literal.parent, exp.Cast)
        for literal in node.find_all(exp.Literal)
    )
    return literals or any(
        column.name in MONEY and not isinstance(column.parent, exp.Cast)
        for column in node.find_all(exp.Column)
    )


def is_cut_off(node: exp.Expr) -> bool:
    """Whether a fraction is made a whole number."""
    if not isinstance(node, exp.Cast) or node.to.this not in WHOLE:
        return False
    stack = [node.this]
    while stack:
        part = stack.pop()
        is_decimal = isinstance(part, exp.Literal) and part.is_number and not part.is_int
        if is_decimal or isinstance(part, _DIVIDED):
            return True
        if isinstance(part, _THROUGH):
            stack.extend(part.iter_expressions())
    return False


def is_division(node: exp.Expr) -> bool:
    """Whether something may be divided by nothing."""
    if not isinstance(node, exp.Div | exp.IntDiv | exp.Mod):
        return False
    below = node.expression.unnest()
    return not isinstance(below, exp.Nullif) and not literal(below)


# -- texts and times -------------------------------------------------------------------------------------------------


def is_cut_text(node: exp.Expr) -> bool:
    """Whether a text is cut where each engine counts in its own way."""
    match node:
        case exp.Substring():
            length = literal(node.args.get("length"))
            return literal(node.args.get("start")) == 0 or (length is not None and length < 0)
        case exp.Left() | exp.Right():
            count = literal(node.expression)
            return count is not None and count < 0
        case exp.Split():
            return _text(node.expression) == ""
        case _:
            return False


def is_pattern(node: exp.Expr) -> bool:
    """Whether a regular expression is used in a way that Spark's are not."""
    match node:
        case exp.RegexpLike():
            if node.args.get("flag") is not None:
                return True
        case exp.RegexpReplace():
            given = _text(node.args.get("replacement"))
            if _text(node.args.get("modifiers")) != "g" or given is None or set(given) & set("\\$"):
                return True
        case exp.RegexpExtract():
            if node.args.get("parameters") is not None:
                return True
        case exp.RegexpExtractAll() | exp.RegexpSplit():
            pass
        case _:
            return False
    pattern = _text(node.expression)
    return pattern is not None and patterns.is_foreign(pattern)


def is_written(node: exp.Expr) -> bool:
    """Whether a time or a fraction is made a text, which each engine does in its own way."""
    match node:
        case exp.Cast() if node.to.this in TEXT:
            parts = [node.this]
        case exp.DPipe():
            parts = [node.this, node.expression]
        case exp.Concat() | exp.ConcatWs() | exp.Format():
            parts = node.expressions
        case _:
            return False
    return any(_is_time(part) or _is_fraction(part) for part in parts)


def _is_fraction(node: exp.Expr) -> bool:
    inner = _inside(node)
    if isinstance(inner, exp.Cast):
        return inner.to.this in FRACTIONS
    return isinstance(inner, _DIVIDED)


def _is_time(node: exp.Expr) -> bool:
    inner = _inside(node)
    if isinstance(inner, exp.Cast):
        return inner.to.this in TIMES
    is_named = isinstance(inner, exp.Column) and inner.name.lower().endswith("_at")
    return is_named or isinstance(inner, exp.TimestampTrunc | exp.CurrentTimestamp)


def is_date(node: exp.Expr) -> bool:
    """Whether a value is a day, as far as its text says."""
    inner = _inside(node)
    if isinstance(inner, exp.Cast):
        return bool(inner.to.this == exp.DType.DATE)
    is_named = isinstance(inner, exp.Column) and inner.name.lower() in DATES
    return is_named or isinstance(inner, exp.CurrentDate | exp.DateFromParts | exp.LastDay)


def is_span(node: exp.Expr) -> bool:
    """Whether the time between two times is taken."""
    if isinstance(node, exp.Interval):
        return not isinstance(node.parent, exp.Add | exp.Sub | exp.WindowSpec)
    if not isinstance(node, exp.Sub):
        return False
    sides = (node.this, node.expression)
    if any(isinstance(side, exp.Interval) or literal(side) is not None for side in sides):
        return False
    return any(_is_time(side) or is_date(side) for side in sides)


def is_part_of_time(node: exp.Expr) -> bool:
    """Whether a part or a form of a time is taken that differs."""
    match node:
        case exp.Extract():
            return node.name.upper() not in PARTS
        case exp.DateDiff():
            unit = node.args.get("unit")
            return unit is None or unit.name.upper() not in UNITS
        case exp.TimeToStr():
            form = _text(node.args.get("format"))
            return form is None or any(code not in TIME_CODES for code in re.findall(r"%(.?)", form))
        case _:
            return False


def is_formatted(node: exp.Expr) -> bool:
    """Whether `format` is more than one {} for each value."""
    if not isinstance(node, exp.Format):
        return False
    pattern = node.this
    is_plain = isinstance(pattern, exp.Literal) and pattern.name.count("{}") == len(node.expressions)
    return not is_plain or any(mark in pattern.name.replace("{}", "") for mark in "{}")


# -- JSON and all the rest -------------------------------------------------------------------------------------------


def is_json_value(node: exp.Expr) -> bool:
    """Whether JSON is taken out of JSON."""
    if not isinstance(node, exp.JSONExtract):
        return False
    parent = node.parent
    is_number = isinstance(parent, exp.Cast) and not parent.is_type("text", "json")
    return not is_number and not (isinstance(parent, exp.Anonymous) and parent.name == "json_array_length")


def is_path_of_duckdb(node: exp.Expr) -> bool:
    """Whether a path into JSON is one of DuckDB's own."""
    if isinstance(node, exp.JSONPathSubscript):
        place = node.this
        return isinstance(place, int) and place < 0
    is_json = isinstance(node, exp.JSONExtract | exp.JSONExtractScalar)
    return bool(is_json and (_text(node.expression) or "").startswith("/"))


def is_foreign(node: exp.Expr) -> bool:
    """Whether a function is not known to be the same."""
    if not isinstance(node, exp.Func) or isinstance(node, exp.And | exp.Or):
        return False
    if not isinstance(node, exp.Anonymous):
        return not is_known(node)
    return node.name.lower() not in SAME_FUNCTIONS or (
        node.name.lower() == "json_array_length" and len(node.expressions) != 1
    )
