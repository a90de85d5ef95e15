"""Queries that mean the same on both engines, one for each construct and function that is let through."""

ROWS = """(
    values (1, 'abc', 2.5, true), (2, null, -2.5, false), (3, 'a.b.a', 0.0, null), (4, 'Ünï x', 10.25, true)
) as v(i, s, d, b)"""
"""What stands for `ROWS` in a query."""

_QUERIES = {
    "max_by passes over NULL": "select max_by(agent, position) as a, min_by(tool, position) as t from events",
    "a condition within max_by": (
        r"select session, max_by(tool like '%\_%', seq) as r"
        " from events group by session order by session"
    ),
    "a backslash is a backslash": (
        r"select 'a\b' like 'a\_' as x, 'a\b' like '%\b' as y, 'a\nb' as a, 'it''s' as c, e'a\nb' as d, "
        "$$it's$$ as e"
    ),
    "LIKE": "select s like 'a!%' escape '!' as r, s ilike 'ÜN%' as t, s not like '%b%' as u from ROWS order by i",
    "a dollar is a dollar": "select '{} ${x}' as a, '${spark.app.name}' as b, '$x' as c",
    "order of NULL": "select distinct tool from events order by tool",
    "order of NULL, descending": "select distinct tool from events order by tool desc",
    "order of NULL in windows and lists": (
        "select i, row_number() over (order by s, i) as r, row_number() over (order by s desc, i) as t from "
        "ROWS order by i"
    ),
    "order of all": "select s, i from ROWS order by all",
    "string_agg in order": (
        "select session, string_agg(type, ',' order by seq desc) as types from events where seq < 9 group by "
        "session order by session"
    ),
    "string_agg with NULL": (
        "select string_agg(distinct s, ',' order by s) as r, string_agg(s, ',' order by i desc) filter (i > "
        "9) as n, string_agg(i, '-' order by s desc, i) as o from ROWS"
    ),
    "list sorted": "select list_sort(list(distinct type)) as types from events",
    "list with NULL, and of nothing": (
        "select list_sort(list(x)) as r, list_sort(list(distinct x)) as d, list_sort(list(x) filter (x > 1)) "
        "as f, list_sort(list(x) filter (x > 9)) as n from (values (3), (1), (null), (1)) as t(x)"
    ),
    "list of structs": "select list_sort(list({'a': x, 'b': 'y'})) as r from (values (3), (1)) as t(x)",
    "place in a list": (
        "select [1, 2][1] as a, [1, 2][9] as b, [1, 2][-1] as c, [1, 2][0] as d, string_split('a.b', '.')[2] "
        "as e"
    ),
    "qualify": (
        "select session, seq from events qualify row_number() over (partition by session order by seq) = 2 "
        "order by session"
    ),
    "filter first, then window": (
        "with chosen as (select session, seq, type from events where type in ('tool_call.requested', "
        "'compaction.done')) select session, seq, lag(type) over (partition by session order by seq) as "
        "before from chosen order by session, seq"
    ),
    "windows": (
        "select i, rank() over (order by b, i) as r, dense_rank() over (order by b) as d, percent_rank() over"
        " (order by i) as p, cume_dist() over (order by i) as c, ntile(3) over (order by i) as n, lead(i, 1, "
        "0) over (order by i) as l, first_value(s ignore nulls) over (order by i desc) as f, last_value(s) "
        "over (order by i) as z, nth_value(i, 2) over (order by i) as t, sum(i) over (order by i range "
        "between 1 preceding and current row) as w, count(*) filter (b) over (order by i) as x from ROWS "
        "order by i"
    ),
    "format": "select format('{} of 100 %, {}', seq, tool) as f from events order by position limit 20",
    "format within max_by": (
        "select session, max_by(format('{} {}', seq, type), seq) as r from events group by session order by "
        "session"
    ),
    "json": "select json_extract_string(payload, '$.call_id') as id from events order by id nulls last limit 5",
    "json of all kinds": (
        "select json_extract_string(x, '$.a') as a, json_extract_string(x, '$.\"b.c\"') as b, x ->> '$.d[1]' as"
        " d, json_array_length(json_extract(x, '$.d')) as n, cast(json_extract(x, '$.e') as bigint) as e, "
        r"""json_keys(x) as k from (values ('{"a": {"x": [1, 2]}, "b.c": null, "d": [5, "\u00e4"], "e": 7}')) as"""
        " t(x)"
    ),
    "median": "select median(seq) as m, round(avg(cast(cost_usd as double)), 6) as c from events",
    "message_text": (
        "select message_text(x) as t from (values ('plain'), ('\"a string\"'), ('{\"content\": \"words\"}'), "
        '(\'{"content": [{"text": "one"}, {"type": "image"}, {"text": "two"}]}\'), (\'[{"text": "x"}]\'), (\'[]\'),'
        " ('{\"a\": 1}'), ('7'), ('null'), ('{\"content\": null}'), ('[1, \"a\"]'), (null), ('{\"content\": [{\"text\":"
        ' {"b": [1]}}]}\')) as v(x) order by x'
    ),
    "division": (
        "select i, i / 3 as r0, i / 3.0 / 7 as r1, d / nullif(i - 1, 0) as r2, (i - 3) // 2 as r3, (i - 3) % "
        "2 as r4, 1.0 / 3 as r5 from ROWS order by i"
    ),
    "shares of money": (
        "select round(sum(cost_usd) / nullif(count(*), 0), 6) as a, round(100 * sum(cost_usd) / "
        "nullif(sum(sum(cost_usd)) over (), 0), 2) as b from events group by session order by 1, 2"
    ),
    "average of what is a decimal elsewhere": "select avg(c) as r from (select cost_usd as c from events) as t",
    "numbers": (
        "select i, round(d) as r0, round(d, 1) as r1, round(i * 15, -1) as r2, ceil(d) as r3, floor(d) as r4,"
        " abs(d) as r5, sign(d) as r6, trunc(d) as r7, i * 1.5 as r8, pow(i, 0.5) as r9, exp(i) as r10, "
        "sqrt(i) as r11, cbrt(i) as r12, factorial(i) as r13, i & 3 as r14, i << 2 as r15, greatest(i, d, "
        "null) as r16, least(s, 'b') as r17, isnan(d::double) as r18, cast(round(d) as bigint) as r19 from "
        "ROWS order by i"
    ),
    "logarithms": (
        "select round(ln(x), 9) as a, round(log(x), 9) as b, round(log10(x), 9) as c, round(log2(x), 9) as d,"
        " round(log(3, x), 9) as e from (values (0.0), (-1.0), (1.0), (1000.0), (null), (8.0)) as t(x) order by x"
    ),
    "parts of times": (
        "select year(recorded_at) as a, month(recorded_at) as b, day(recorded_date) as c, hour(recorded_at) as d,"
        " minute(recorded_at) as e, quarter(recorded_date) as f, now() > recorded_at as g"
        " from events order by position limit 3"
    ),
    "numbers in texts": (
        "select try_cast(x as bigint) as a, try_cast(x as int) as b from (values ('12.7'), ('x'), "
        "('9007199254740993'), ('-3.5'), ('1e3'), (null), ('  8 '), ('99999999999999999999')) as t(x) order "
        "by x"
    ),
    "sums": (
        "select sum(i) as a, sum(d) as b, count(distinct s) as c, count_if(i > 2) as e, bool_and(b) as f, "
        "bool_or(b) as g, bit_and(i) as h, bit_xor(i) as j, max(s) as k, min(b) as l, stddev(i) as m, "
        "stddev_samp(i) as sa, stddev_pop(i) as n, variance(i) as o, var_pop(i) as p, skewness(i) as q, "
        "covar_samp(i, d) as r, covar_pop(i, d) as t, regr_r2(i, d) as u from ROWS having count(*) > 1"
    ),
    "lines through few points": (
        "select g, round(regr_slope(y, x), 6) as r, round(corr(y, x), 6) as c from (values (1, 1.0, 2.0), (2,"
        " 1.0, 2.0), (2, 2.0, 4.5), (3, 1.0, 5.0), (3, 1.0, 5.0), (4, null, 1.0), (4, null, 2.0)) as t(g, y, "
        "x) group by g having count(*) > 1 order by g"
    ),
    "groupings": (
        "select b, s, count(*) as n, grouping(b) as g from ROWS group by grouping sets ((b), (s)) order by "
        "all"
    ),
    "texts": (
        "select i, length(s) as r0, lower(s) as r1, upper(s) as r2, s || '-' || i as r3, concat(s, 'x', i) as"
        " r4, concat_ws('-', s, i) as r5, replace(s, 'a', '') as r6, translate(s, 'ab', 'x') as r7, left(s, "
        "2) as r8, right(s, 2) as r9, substr(s, -2) as r10, reverse(s) as r11, repeat(s, 2) as r12, lpad(s, "
        "2, 'x') as r13, rpad(s, 6, 'xy') as r14, trim(s, 'a') as r15, contains(s, '.') as r16, "
        "starts_with(s, 'a') as r17, ends_with(s, 'c') as r18, instr(s, 'b') as r19, split_part(s, '.', 2) as"
        " r20, md5(s) as r21, sha1(s) as r22, sha256(s) as r23, levenshtein(s, 'abd') as r24, overlay(s "
        "placing 'X' from 2 for 1) as r25, chr(228) as r26, if(i > 2, 'a', 'b') as r27, ifnull(s, 'x') as "
        "r28, nullif(i, 2) as r29, 'b ' || b as r30 from ROWS order by i"
    ),
    "parts of texts": (
        "select substr(x, p, 2) as r, substr(x, p) as s, substring(x, p, n) as t from (values ('abcdef', 0, "
        "3), ('abcdef', 1, 0), ('abcdef', 3, 9), ('abcdef', -2, 1)) as t(x, p, n) order by p"
    ),
    "regular expressions": (
        "select regexp_matches('a' || chr(10), 'a$') as a, regexp_matches('Ü', '(?i)ü') as b, "
        r"regexp_matches('a.b', '^a\.b$') as c, regexp_matches('a$', '[$]$') as d, regexp_matches('x$y', "
        r"'\$y') as e, regexp_matches('a]', '^[]a]+$') as f, regexp_matches('ab' || chr(10) || 'c', '(?m)b$') "
        r"as g, regexp_extract('key=Val', '(?i)KEY=(\w+)', 1) as h, regexp_extract('abc', 'z') as i, "
        "regexp_extract_all('abab', 'a') as j, regexp_replace('a1b2', '[0-9]', '#', 'g') as k, "
        r"string_split_regex('a, b', ',\s*') as l"
    ),
    "borders between times": (
        "select date_diff('day', x, y) as d, date_diff('hour', x, y) as h, date_diff('minute', x, y) as m, "
        "date_diff('second', x, y) as s, date_diff('month', x, y) as mo, date_diff('year', x, y) as ye, "
        "date_diff('quarter', x, y) as qu, date_diff('millisecond', x, y) as ms, date_diff('microsecond', x, "
        "y) as us from (values (timestamp '2025-12-31 23:59:59.999', timestamp '2026-01-01 00:00:00.001'), "
        "(timestamp '2026-03-01 10:00:00', timestamp '2026-01-31 12:30:45.5')) as t(x, y) order by 1"
    ),
    "times": (
        "select date_trunc('hour', recorded_at) as a, date_trunc('month', recorded_date) as b, "
        "recorded_at::date as c, recorded_date + 1 as d, recorded_date + interval 1 day as e, recorded_at + "
        "interval '90 minutes' as f, strftime(recorded_at, '%Y-%m-%d %H:%M:%S') as g, extract(hour from "
        "recorded_at) as h, extract(quarter from recorded_date) as i, make_date(2026, 1, 2) as j, "
        "last_day(recorded_date) as k, recorded_at > timestamp '2026-01-02 00:00:00' as l, current_date > "
        "recorded_date as m, current_timestamp > recorded_at as n from events order by position limit 3"
    ),
    "seconds": (
        "select epoch(occurred_at) as a, round(epoch(recorded_at) - epoch(occurred_at), 3) as b from events "
        "where occurred_at is not null order by position limit 3"
    ),
    "lists": (
        "select list_contains([1, 2], 2) as a, array_length([1, 2]) as b, [1] || [2] as c, list_append([1], "
        "2) as d, flatten([[1], [2]]) as e, list_max([1, 2]) as f, list_transform([1, 2], lambda x: x + 1) as"
        " g, list_filter([1, 2, 3], lambda x: x > 1) as h, list_sort(list_distinct([2, 1, 2])) as i, "
        "array_to_string(['a', null, 'b'], ',') as j, list_sort([2, 1, null]) as k, generate_series(1, 3) as "
        "l, struct_extract({'a': 1}, 'a') as m, {'a': 2}.a as n, [1, 2] = [1, 2] as o, list_min([1, 2]) as p"
    ),
    "unnest in SELECT, EXISTS": (
        "select unnest([2, 1]) as x from ROWS where exists (select 1 from (values (1)) as w(y) where y = i) order by x"
    ),
    "unnest": "select i, p from ROWS, unnest(string_split(s, '.')) as t(p) order by i, p",
    "sets": "(select b from ROWS except select true) union all (values (true)) order by b",
    "joins": (
        "select v.i, w.x, u.i as y from ROWS full join (values (1), (9)) as w(x) on v.i = w.x left join "
        "(select i from ROWS semi join (values (1)) as z(x) on i = x) as u on u.i = v.i order by 1, 2"
    ),
    "recursion": (
        "with recursive t(n, p) as (select 1, 'a' union all select n + 1, p || 'b' from t where n < 4) select"
        " n, p from t order by n"
    ),
    "from first, groups and names of columns": "from ROWS select b, count(*) as n group by all having n > 0 order by b",
}

CONSTRUCTS = {name: query.replace("from ROWS", f"from {ROWS}") for name, query in _QUERIES.items()}
"""By what they show."""
