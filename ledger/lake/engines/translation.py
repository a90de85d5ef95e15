"""From DuckDB's SQL to Spark's: by a library, and what DuckDB means beyond the words written out."""

import sqlglot
from sqlglot import exp
from sqlglot.errors import ErrorLevel, SqlglotError

from ledger.errors import InputError
from ledger.lake.engines import patterns
from ledger.lake.engines.constructs import is_date, literal
from ledger.lake.engines.known import WHOLE

_NO_ESCAPE = "\x01"
_PATTERNS = (exp.RegexpLike, exp.RegexpReplace, exp.RegexpExtract, exp.RegexpExtractAll, exp.RegexpSplit)


def to_spark(text: str) -> str:
    """The query in Spark's dialect. Raises InputError for what has no translation."""
    try:
        query: exp.Expr = sqlglot.parse_one(text, read="duckdb")
        for node in reversed(list(query.bfs())):  # from the leaves: what is put around a part finds it done
            meant = _as_meant(node)
            if node is query:
                query = meant
            elif meant is not node:
                node.replace(meant)
        return query.sql("spark", unsupported_level=ErrorLevel.RAISE, comments=False)
    except SqlglotError as error:
        raise InputError(
            f"the query has no translation to Spark's SQL: {str(error).splitlines()[0]}"
        ) from error


def _spark(template: str, **parts: exp.Expr) -> exp.Expr:
    """An expression in Spark's words, with parts in place of `:names`."""
    return exp.replace_placeholders(
        sqlglot.parse_one(template, read="spark"), **{name: part.copy() for name, part in parts.items()}
    )


def _as_meant(node: exp.Expr) -> exp.Expr:
    """The node with what DuckDB does unasked written out."""
    match node:
        case exp.ArgMax() | exp.ArgMin():
            return _of_known(node)
        case exp.Filter() if isinstance(node.this, exp.ArrayAgg):
            return _listed(node.this, node.expression)
        case exp.ArrayAgg() if not isinstance(node.parent, exp.Filter):
            return _listed(node, None)
        case exp.Format():
            return _formatted(node)
        case exp.Like() | exp.ILike() if not isinstance(node.parent, exp.Escape):
            # A backslash is only a backslash in DuckDB.
            return exp.Escape(this=node.copy(), expression=exp.Literal.string(_NO_ESCAPE))
        case exp.Div():
            node.set("this", _spark("cast(:x as double)", x=node.this))
        case exp.Avg() if not isinstance(node.this, exp.Distinct):
            node.set("this", _spark("cast(:x as double)", x=node.this))
        case exp.RegrSlope() | exp.Corr() if not isinstance(node.parent, exp.Filter | exp.Window):
            # One point, or several on a line straight up: no number, and not nothing.
            return _spark(
                "coalesce(:s, case when regr_count(:y, :x) > 0 then double('nan') end)",
                s=node,
                y=node.this,
                x=node.expression,
            )
        case exp.Ln() | exp.Log():
            return _logarithm(node)
        case exp.DateDiff():
            _count_borders(node)
        case exp.TimeToUnix():
            return _spark("unix_micros(cast(:x as timestamp)) / 1000000D", x=node.this)
        case exp.TimestampTrunc() if is_date(node.this):
            return _spark("cast(:t as timestamp_ntz)", t=node)
        case exp.Add() | exp.Sub() if isinstance(node.expression, exp.Interval) and is_date(node.this):
            node.set("this", _spark("cast(:x as timestamp_ntz)", x=node.this))
        case exp.TryCast() if node.to.this in WHOLE and not isinstance(node.this, exp.JSONExtract):
            # DuckDB rounds a fraction that stands in a text, where Spark finds no number.
            kind = node.to.sql("spark")
            return _spark(
                f"coalesce(:c, try_cast(round(try_cast(:x as decimal(38, 10))) as {kind}))",
                c=node,
                x=node.this,
            )
        case exp.Bracket() if (
            len(node.expressions) == 1 and (place := literal(node.expressions[0])) is not None
        ):
            # What is beyond the end is NULL; the parser counts from 0.
            return _spark(f"try_element_at(:x, {place + 1:.0f})", x=node.this) if place != -1 else exp.Null()
        case exp.Substring() if node.args.get("length") is not None:
            return _cut(node)
        case _ if isinstance(node, _PATTERNS) and isinstance(node.expression, exp.Literal):
            node.set("expression", exp.Literal.string(patterns.to_java(node.expression.name)))
    return node


def _of_known(node: exp.ArgMax | exp.ArgMin) -> exp.Expr:
    """Only rows that have a value."""
    known = exp.Not(this=exp.Is(this=exp.paren(node.this), expression=exp.Null()))
    if isinstance(node.parent, exp.Filter):
        where = node.parent.expression
        where.set("this", exp.and_(where.this, known))
        return node
    return exp.Filter(this=node.copy(), expression=exp.Where(this=known))


def _listed(node: exp.ArrayAgg, where: exp.Expr | None) -> exp.Expr:
    """With what is NULL, which Spark leaves out; NULL where there is no row, which Spark makes an empty list."""
    value = node.this
    is_distinct = isinstance(value, exp.Distinct)
    if isinstance(value, exp.Distinct):
        value = value.expressions[0]
    taken = _spark(f"collect_list({'distinct ' if is_distinct else ''}struct(:x as v))", x=value)
    if where is not None:
        taken = exp.Filter(this=taken, expression=where.copy())
    return _spark("nullif(transform(:taken, one -> one.v), array())", taken=taken)


def _formatted(node: exp.Format) -> exp.Expr:
    """Braces as Spark's `%s`; NULL where one of the values is NULL, as on DuckDB."""
    values = [value.copy() for value in node.expressions]
    node.set("this", exp.Literal.string(node.this.name.replace("%", "%%").replace("{}", "%s")))
    if not values:
        return node
    missing = exp.or_(*(exp.Is(this=exp.paren(value), expression=exp.Null()) for value in values))
    return exp.Case(ifs=[exp.If(this=exp.Not(this=exp.paren(missing)), true=node.copy())])


def _logarithm(node: exp.Ln | exp.Log) -> exp.Expr:
    """To the base 10 where none is named; of 0 and less it is a number of its own kind, and NULL on Spark."""
    value, base = node.this, None
    if isinstance(node, exp.Log):
        base = node.this if node.expression else exp.Literal.number(10)
        value = node.expression or node.this
    taken = _spark("ln(:x)", x=value) if base is None else _spark("log(:base, :x)", base=base, x=value)
    if base is not None and literal(base) == 10:
        taken = exp.Anonymous(this="log10", expressions=[value.copy()])  # exact where a quotient is not
    return _spark(
        "case when :x > 0 then :taken when :x = 0 then double('-inf') when :x < 0 then double('nan') end",
        x=value,
        taken=taken,
    )


def _count_borders(node: exp.DateDiff) -> None:
    """DuckDB counts the borders between, and Spark whole units: from the beginnings of units it is the same."""
    unit = node.args["unit"].name
    for side in ("this", "expression"):
        node.set(side, _spark(f"date_trunc('{unit}', :x)", x=node.args[side]))


def _cut(node: exp.Substring) -> exp.Expr:
    """The place 0 is before the first character, which Spark takes for the first."""
    start = node.args["start"]
    if isinstance(start, exp.Literal | exp.Neg):
        return node
    return _spark(
        "case when :start = 0 then substring(:x, 1, :length - 1) else :cut end",
        start=start,
        x=node.this,
        length=node.args["length"],
        cut=node,
    )
