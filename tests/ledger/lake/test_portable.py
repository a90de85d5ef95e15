"""One set of SQL for two engines: what means something else on the other is named before it is asked."""

import importlib.util
from pathlib import Path

import pytest
import sqlglot

import ledger.audit
import ledger.lake
from ledger.errors import InputError
from ledger.lake import Lake
from ledger.lake.engines.known import FUNCTIONS
from ledger.lake.engines.portable import check_files, problems
from ledger.lake.engines.rules import RULES
from ledger.lake.engines.translation import to_spark
from tests.commands import run
from tests.ledger.lake.feeds import feed_of
from tests.spark.constructs import CONSTRUCTS

DETECTORS = Path(ledger.audit.__file__).parent / "detectors"
"""Where detectors lie, some of them in SQL."""

SHIPPED = [*Path(ledger.lake.__file__).parent.glob("[qt]*/*.sql"), *DETECTORS.glob("*.sql")]
"""All SQL that both engines run."""

REJECTED = {
    "ASOF JOIN": "select *\nfrom a\nasof join b on true",
    "ordered array_agg": "select\n\n array_agg(x order by y desc) from a",
    "unordered list": "select\n\n list(x) from a",
    "percentile": "select\n\n quantile_cont(x, 0.5) from a",
    "window EXCLUDE": (
        "select\n\n sum(x) over (order by y rows between 1 preceding and 1 following exclude current row) from a"
    ),
    "regression of one point": "select\n\n regr_slope(x, y) from a group by z",
    "avg of decimals": "select\n\n avg(case when x then 1.0 else 0 end) from a",
    "cast of a fraction to a whole number": "select\n\n cast(coalesce(avg(x), 0) as bigint) from a",
    "any_value": "select\n\n any_value(x) from a",
    "json_extract": "select\n\n x -> '$.y' from a",
    "wildcard in a JSON path": "select\n\n json_extract_string(x, '$.y[*].z') from a",
    "format": "select\n\n format('{:>8}', x) from a",
    "sample": "select x from\n\n a using sample 10",
    "random value": "select x,\n\n random() from a",
    "mode": "select\n\n mode(x) from a",
    "DISTINCT ON": "select\n\n distinct on (x) x, y from a",
    "LIMIT without ORDER BY": "select y from (\n\nselect x as y from a limit 3) as t",
    "window without ORDER BY": "select\n\n first_value(x) over (partition by y) from a",
    "several unnest": "select\n\n unnest(x) as x, unnest(y) as y from a",
    "generate_series": "select\n\n unnest(generate_series(1, x)) as y from a",
    "VALUES without names": "select *\n\nfrom (values (1, 2))",
    "path in JSON": "select\n\n json_extract_string(x, '$.y[-1]') from a",
    "regular expression": "select\n\n regexp_replace(x, 'y', 'z') from a",
    "part of a text": "select\n\n substr(x, 0, 2) from a",
    "text of a time or a fraction": "select\n\n happened_at::varchar as x from a",
    "span of time": "select\n\n last_at - started_at as x from a",
    "part or form of a time": "select\n\n extract(dow from x) as y from a",
    "positional join": "select *\nfrom a\npositional join b",
    "recursive UNION": "with recursive\n\n r(n) as (select 1 union select n + 1 from r) select n from r",
    "clause of DuckDB": "select\n\n x glob 'y' as z from a",
    "type": "select\n\n x::hugeint as y from a",
    "* of DuckDB": "select * replace (1 as x)\n\n from a",
    "COLUMNS(...)": "select columns('x.*') as y\n\n from a",
    "map literal": "select\n\n map {'x': y} from a",
    "count(distinct) over a window": "select\n\n count(distinct x) over (partition by y) from a",
    "list slice": "select\n\n x[1:2] from a",
    "SIMILAR TO": "select\n\n x similar to 'y' from a",
    "division": "select\n\n x / y from a",
    "json_type": "select\n\n json_type(x) from a",
    "function": "select\n\n read_text(x) from a",
}
"""A query for each rule; the construct stands in line 3, where it names something."""

NAMELESS = ("sample", "random value", "* of DuckDB", "COLUMNS(...)", "DISTINCT ON", "VALUES without names")
"""Constructs without a name of their own: the line is that of what they stand in."""

MORE_REJECTED = [
    "select * from b AsOf /* c */ Left\nJOIN a ON a.k = b.k and a.t <= b.t",
    "select * from b asof/**/join a on true",
    "with q as (select b.x from b asof join a using (s, t)) select * from q",
    "select (select max(x) from (select 1 as x from b asof join a on a.t >= b.t) as q) as y",
    'select "percentile_cont"(0.5) within group (order by x) from a',
    "select Percentile_Cont(0.5) Within Group (Order By x desc) from a",
    "select percentile_disc(0.5) within group (order by x) from a",
    "select sum(x) over w from a window w as (order by y rows between 1 preceding and 1 following exclude ties)",
    "select x, list(y order by z desc) filter (where z) from a group by x",
    "select array_agg(distinct y order by y) from a",
    "select regr_slope(x, y) from a group by z having count(*) > 0",
    "select regr_slope(x, y) filter (z) from a having count(*) > 1",
    "select corr(x, y) over (partition by z) from a",
    "select avg(if(x = 'y', 1.0, 0)) from a",
    "select mean(case x when 'a' then 1 else 0.5 end) from a",
    "select AVG(cost_usd) filter (x) from a",
    "select t.* Replace (upper(x) as x) from a as t",
    "select columns('s.*') from a",
    "select min(COLUMNS(*)) from a",
    "select MAP(['a'], [1]) as m",
    "select map_from_entries([('a', 1)]) as m",
    "select count(DISTINCT x) over w from a window w as (partition by y)",
    "select x not similar to 'a.*' from a",
    "select array_slice([1, 2, 3], 1, 2)",
    "select first_value(x) over () from a",
    "select entropy(x), approx_count_distinct(x), kurtosis(x), typeof(x) from a",
    "select date_diff('week', x, y) from a",
    "select strftime(x, '%j') from a",
    "select regexp_matches(x, 'a', 'i') from a",
    "select regexp_matches(x, '[[:alpha:]]') from a",
    "select regexp_replace(x, '(a)', '\\1', 'g') from a",
    "select 'at ' || recorded_at from a",
    "select format('{}', max(happened_at)) from a",
    "select (x / 2.0)::varchar from a",
    "select recorded_date - date '2026-01-01' from a",
    "select x, o from unnest([1]) with ordinality as t(x, o)",
    "select 0xFF as x",
    "select 1 as a union all by name select 2 as a",
    "pivot a on x using sum(y)",
    "select 1; select 2",
]
"""The same and others in other words: a cased, nested, quoted or commented construct is still that construct."""

ACCEPTED = [
    "-- asof join, percentile_cont, columns(*)\nselect session /* map {'a': 1} */ from a",
    "select 'asof join' as a, 'percentile_cont(0.5)' as b, x as \"columns\", y as \"percentile_cont\" from a",
    "select avg(case when x then 1.0::double else 0.0::double end) as z, avg(cost_usd::double) as c from a",
    "select x from a where exists (select 1 from b where b.y = a.y limit 1) limit 5",
    "select 1 as n, (select count(*) from a limit 1) as m",
    "select lag(x) over w as y from a window w as (partition by y order by z)",
    "select x, unnest(y) as y from a",
    "select x from a join (values (1), (2)) as t(y) on x = y",
    "select regexp_replace(x, '[^a-z]$', '-', 'g') as y, regexp_matches(z, '(?i)a') as w from a",
    "select string_agg(x, ',' order by y desc nulls last) as z from a",
    "select list_sort(list(x)) as z, median(y) as m from a",
    "select regr_slope(x, y) as z from a group by b having count(*) > 1",
    "select avg(cast(cost_usd as double)) as z, cast(round(avg(x)) as bigint) as r from a",
    "select x / nullif(y, 0) as z, x / 1000 as s, x // 2 as h from a",
    "select cast(json_extract(x, '$.y') as bigint) as z, json_array_length(json_extract(x, '$.l')) as n from a",
    "select format('{} of {}, 5 %', x, y) as z from a",
    "select min_by(x, seq) as z, max_by(x, seq) filter (y = 1) as w from a",
    "select x from a qualify row_number() over (partition by x order by y) = 1",
    "select * exclude (x) from a anti join b using (y)",
    "with recursive r as (select 1 as n union all select n + 1 from r where n < 9) select n from r",
    "from a select message_text(x) as t where x like $pattern",
    "(select 1 as x) union all (values (2)) order by x",
]


def test_every_rule_has_a_query() -> None:
    assert set(REJECTED) == {name for name, _, _ in RULES}


@pytest.mark.parametrize("name", REJECTED)
def test_a_construct_that_means_something_else_is_named_with_its_line(name: str) -> None:
    found = problems(REJECTED[name])
    assert [problem.construct.removesuffix(" read_text") for problem in found] == [name]
    assert len(found[0].reason) > 20
    if name not in NAMELESS:
        assert found[0].line == 3


@pytest.mark.parametrize("query", MORE_REJECTED)
def test_it_is_named_in_whatever_form_it_is_written(query: str) -> None:
    assert problems(query)


def test_every_function_that_is_let_through_is_asked_on_both_engines() -> None:
    asked = [*CONSTRUCTS.values(), *(path.read_text(encoding="utf-8") for path in SHIPPED)]
    shown = {
        type(node).__name__ for query in asked for node in sqlglot.parse_one(query, read="duckdb").walk()
    }
    assert FUNCTIONS - shown == set()


@pytest.mark.parametrize("query", ACCEPTED)
def test_what_is_portable_passes(query: str) -> None:
    assert problems(query) == []


@pytest.mark.parametrize(
    "text",
    [
        "summarize a",
        "select 1; select 2",
        "create table a (x int)",
        "copy (select 1) to 'x'",
        "select * from a match_recognize (order by b measures c.x as y pattern (c d) define c as x > 1)",
        "selec 1",
        "select 'open",
        "",
    ],
)
def test_only_one_query_is_portable(text: str) -> None:
    assert [problem.construct for problem in problems(text)] == ["statement"]


def test_shipped_tables_and_queries_are_portable() -> None:
    assert [f"{file}:{problem.line}: {problem}" for file, problem in check_files(DETECTORS)] == []


def test_what_the_translation_writes_out() -> None:
    spark = to_spark("select max_by(x, y) as a, min_by(x, y) filter (z = 1) as b from t order by a desc, b")
    assert "MAX_BY(x, y) FILTER(WHERE NOT (x) IS NULL)" in " ".join(spark.split())
    assert "FILTER(WHERE z = 1 AND NOT (x) IS NULL)" in " ".join(spark.split())
    assert spark.endswith("ORDER BY a DESC, b NULLS LAST")
    assert "FORMAT_STRING('%s of 5 %%', x)" in to_spark("select format('{} of 5 %', x) as y from t")
    assert "ESCAPE" in to_spark("select x like 'a' as y from t")
    with pytest.raises(InputError, match="no translation"):
        to_spark("selec 1 from")


def test_the_command_checks_the_user_s_own_queries_too(tmp_path: Path) -> None:
    assert run(tmp_path, "queries", "--portable").exit_code == 0
    (tmp_path / "queries").mkdir()
    (tmp_path / "queries" / "mine.sql").write_text(
        "-- title: mine\nselect\n    any_value(tool) as tool\nfrom tool_calls\n"
    )
    result = run(tmp_path, "queries", "--portable")
    assert result.exit_code == 1
    assert "queries/mine.sql:3: any_value: each engine takes another row" in result.stdout


def test_spark_is_asked_only_where_it_is(tmp_path: Path) -> None:
    Lake(tmp_path / "lake").export(feed_of([]))
    asked = ("sql", "select 1 as x", "--lake", tmp_path / "lake", "--engine", "spark")
    result = run(tmp_path, *asked)
    assert (result.exit_code, "needs --spark sc://HOST:PORT" in result.stderr) == (2, True)
    result = run(tmp_path, *asked, "--spark", "sc://127.0.0.1:9")
    expected = "answers at 127.0.0.1:9" if importlib.util.find_spec("pyspark") else "loopledger[spark]"
    assert (result.exit_code, expected in result.stderr) == (2, True)
