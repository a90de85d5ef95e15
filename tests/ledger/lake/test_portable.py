"""One set of SQL for two engines: what means something else on the other is named before it is asked."""

import importlib.util
from pathlib import Path

import pytest

import ledger.audit
from ledger.errors import InputError
from ledger.lake import Lake
from ledger.lake.engines.portable import RULES, check_files, problems, to_spark
from tests.commands import run
from tests.ledger.lake.feeds import feed_of

DETECTORS = Path(ledger.audit.__file__).parent / "detectors"
"""Where detectors lie, some of them in SQL."""

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
    "* REPLACE": "select * replace (1 as x)\n\n from a",
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

NAMELESS = ("sample", "random value", "* REPLACE", "COLUMNS(...)")
"""Constructs without a name of their own: the line is that of what they stand in."""

ACCEPTED = [
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
    assert "MAX_BY(x, y) FILTER(WHERE NOT x IS NULL)" in " ".join(spark.split())
    assert "FILTER(WHERE z = 1 AND NOT x IS NULL)" in " ".join(spark.split())
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
