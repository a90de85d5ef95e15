"""What of DuckDB's SQL is refused for Spark: each construct with its reason and what to write instead.

A function has to be known to be the same (`known`); what is known is refused where its arguments make it mean
something else. The order matters: a construct is named by the first rule that is meant by it.
"""

from collections.abc import Callable

from sqlglot import exp

from ledger.lake.engines.constructs import (
    is_any_first,
    is_any_place,
    is_any_row,
    is_clause_of_duckdb,
    is_counted_apart,
    is_cut_off,
    is_cut_text,
    is_division,
    is_foreign,
    is_formatted,
    is_heaped,
    is_json_value,
    is_listed,
    is_of_decimals,
    is_of_one_point,
    is_part_of_time,
    is_path_of_duckdb,
    is_pattern,
    is_recursive_union,
    is_series,
    is_span,
    is_star_of_duckdb,
    is_unnamed,
    is_unnested_twice,
    is_written,
)
from ledger.lake.engines.known import FOREIGN_TYPES

_Rule = tuple[str, str, Callable[[exp.Expr], bool]]


def _kind(*kinds: type[exp.Expr]) -> Callable[[exp.Expr], bool]:
    return lambda node: isinstance(node, kinds)


def _joins(method: str) -> Callable[[exp.Expr], bool]:
    return lambda node: isinstance(node, exp.Join) and node.method.upper() == method


RULES: tuple[_Rule, ...] = (
    # Broken without a word.
    (
        "ASOF JOIN",
        "Spark takes ASOF for an alias and joins everything; filter first, then window",
        _joins("ASOF"),
    ),
    (
        "ordered array_agg",
        "the order is lost in the translation; use string_agg(... order by ...), or list_sort(list(...))",
        is_listed,
    ),
    (
        "unordered list",
        "each engine has an order of its own; use string_agg(... order by ...) or list_sort(...) around it",
        is_heaped,
    ),
    (
        "percentile",
        "it becomes an approximation, or another percentile; use median",
        _kind(exp.PercentileCont, exp.PercentileDisc, exp.Quantile, exp.ApproxQuantile),
    ),
    (
        "window EXCLUDE",
        "the clause is dropped; use two frames",
        lambda node: isinstance(node, exp.WindowSpec) and node.args.get("exclude") is not None,
    ),
    (
        "regression of one point",
        "NaN on DuckDB, NULL on Spark; add having count(*) > 1, without FILTER or OVER",
        is_of_one_point,
    ),
    (
        "avg of decimals",
        "a double on DuckDB, a decimal that rounds on Spark, for median the other way round; cast to double inside",
        is_of_decimals,
    ),
    (
        "cast of a fraction to a whole number",
        "DuckDB rounds, Spark cuts off; put round(), floor() or ceil() around it",
        is_cut_off,
    ),
    (
        "any_value",
        "each engine takes another row; use min_by(value, seq), or max_by",
        _kind(exp.AnyValue, exp.First, exp.Last),
    ),
    (
        "mode",
        "of several that are as frequent each engine takes another; count, order and limit",
        _kind(exp.Mode),
    ),
    (
        "DISTINCT ON",
        "the order is lost, and each engine keeps another row; use qualify row_number() over (... order by ...) = 1",
        is_any_row,
    ),
    (
        "LIMIT without ORDER BY",
        "each engine takes other rows, and what is around it goes on with them; order them",
        is_any_first,
    ),
    ("window without ORDER BY", "each engine has an order of its own; add one", is_any_place),
    (
        "several unnest",
        "side by side on DuckDB, each with each on Spark; unnest in FROM, one after the other",
        is_unnested_twice,
    ),
    (
        "generate_series",
        "where it is empty on DuckDB, Spark counts down; use numbers within unnest(), or a recursive CTE",
        is_series,
    ),
    ("VALUES without names", "col0 on DuckDB, col1 on Spark; write (values ...) as t(a, b)", is_unnamed),
    (
        "json_extract",
        "JSON on DuckDB, bare text on Spark; use json_extract_string, or cast it to a number",
        is_json_value,
    ),
    (
        "wildcard in a JSON path",
        "a list on DuckDB, JSON text on Spark; use message_text, or one path for each value",
        lambda node: isinstance(node, exp.JSONPathWildcard),
    ),
    ("path in JSON", "only $.a.b and $.a[0] mean the same", is_path_of_duckdb),
    (
        "format",
        "braces with anything in them mean nothing to Spark; use one {} for each value",
        is_formatted,
    ),
    (
        "regular expression",
        "Spark replaces all, and knows other flags and groups; give 'g' and a plain text, (?i) in the pattern, no [[",
        is_pattern,
    ),
    (
        "part of a text",
        "places before the first, negative lengths and splits by nothing differ; write 1 or more",
        is_cut_text,
    ),
    (
        "text of a time or a fraction",
        "each engine writes it in its own way; use strftime, or round it and cast it to a whole number",
        is_written,
    ),
    ("span of time", "a number, or a type of its own; use date_diff, or epoch and a difference", is_span),
    (
        "part or form of a time",
        "it counts from elsewhere, or has none; year to minute, date_diff of usual units, %Y %m %d %H %M %S",
        is_part_of_time,
    ),
    ("sample", "each run takes other rows; filter by what the rows say", _kind(exp.TableSample)),
    ("random value", "each run gives another; derive it from the rows", _kind(exp.Rand, exp.Uuid)),
    # Broken loudly, on the cluster.
    ("* of DuckDB", "Spark has no REPLACE, RENAME or LIKE there; name the columns", is_star_of_duckdb),
    ("COLUMNS(...)", "Spark has none; name the columns", _kind(exp.Columns)),
    (
        "map literal",
        "no common way to write it; use columns",
        _kind(exp.ToMap, exp.Map, exp.VarMap, exp.MapFromEntries),
    ),
    ("count(distinct) over a window", "Spark has none; group in a CTE and join", is_counted_apart),
    ("list slice", "Spark has none; filter before the list is made", _kind(exp.Slice, exp.ArraySlice)),
    ("SIMILAR TO", "Spark has none; use regexp_matches", _kind(exp.SimilarTo)),
    (
        "division",
        "infinite or NULL on DuckDB, an error on Spark where the divisor is 0; write x / nullif(y, 0)",
        is_division,
    ),
    ("json_type", "Spark has none; use message_text or json_extract_string", _kind(exp.JSONType)),
    ("positional join", "Spark has none; join by a key", _joins("POSITIONAL")),
    ("recursive UNION", "Spark has UNION ALL alone there; stop by a counter", is_recursive_union),
    (
        "clause of DuckDB",
        "Spark has none, or reads it as something else; write it in other words",
        is_clause_of_duckdb,
    ),
    (
        "type",
        "Spark has none, or another under the same name; use bigint, double, decimal, text, boolean, date or timestamp",
        lambda node: isinstance(node, exp.DataType) and node.this in FOREIGN_TYPES,
    ),
    ("function", "not known to be the same on both engines", is_foreign),
)
"""What is rejected: its name, why and what to write instead, and how it is recognized."""
