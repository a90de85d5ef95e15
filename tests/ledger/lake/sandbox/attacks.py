"""What strangers might send. Each text may name places of the test: the lake, a secret beside it, a listening port."""

from typing import NamedTuple


class Places(NamedTuple):
    """Where an attack aims."""

    secret: str
    """A text file outside the lake."""
    lake: str
    """The folder of the lake."""
    file: str
    """A file of the lake, as its manifest names it."""
    out: str
    """A folder outside the lake that can be written."""
    port: int
    """A port of loopback that somebody listens on."""


KNOWN = {
    "read_csv": "select * from read_csv('{secret}')",
    "read_json": "select * from read_json('{secret}')",
    "read_parquet": "select * from read_parquet('{lake}/{file}')",
    "path as a table": "from '{secret}'",
    "parquet path as a table": "from '{lake}/{file}'",
    "glob": "select * from glob('/etc/*')",
    "sniff_csv": "select * from sniff_csv('{secret}')",
    "parquet_metadata": "select * from parquet_metadata('{lake}/{file}')",
    "read_text": "select * from read_text('{secret}')",
    "read_blob": "select * from read_blob('{secret}')",
    "path with dots": "select * from read_text('events/../../secret.csv')",
    "query": "select * from query('select * from read_text(''{secret}'')')",
    "macro": "create macro m() as table select * from read_text('{secret}'); from m()",
    "serialized sql": (
        "select * from json_execute_serialized_sql(json_serialize_sql('select * from read_text(''{secret}'')'))"
    ),
    "link inside the lake": "select * from read_text('{lake}/link.csv')",
    "copy to": "copy (select 1) to '{out}/a.csv'",
    "export": "export database '{out}/a'",
    "import": "import database '{out}'",
    "prepare copy": "prepare p as copy (select 1) to '{out}/a.csv'",
    "prepare and execute copy": "prepare p as copy (select 1) to '{out}/a.csv'; execute p",
    "explain analyze copy": "explain analyze copy (select 1) to '{out}/a.csv'",
    "copy into the lake": "copy (select 1) to '{lake}/a.parquet'",
    "with copy into the lake": "with c as (copy (select 1) to '{lake}/a.parquet') select * from c",
    "with copy outside": "with c as (copy (select 1) to '{out}/a.csv') select * from c",
    "overwrite a file of the lake": "copy (select 1 as a) to '{file}' (use_tmp_file false)",
    "attach a file": "attach '{out}/a.duckdb' as a",
    "copy from": "copy events from '{secret}'",
    "attach memory": "attach ':memory:' as a",
    "create table": "create table a as select 1",
    "drop view": "drop view sessions",
    "set variable": "set variable a = 1",
    "checkpoint": "checkpoint",
    "two statements": "select 1; select 2",
    "set memory_limit": "set memory_limit = '90GB'",
    "set threads": "set threads = 64",
    "set max_execution_time": "set max_execution_time = 0",
    "reset": "reset memory_limit",
    "pragma": "pragma memory_limit = '90GB'",
    "set log_query_path": "set log_query_path = '{out}/log'",
    "enable_logging": "call enable_logging(storage = 'file', storage_config = {{'path': '{out}/log'}})",
    "variable of the program": "select * from names",
    "install": "install httpfs",
    "load": "load httpfs",
    "remote file": "select * from 'http://127.0.0.1:{port}/a.parquet'",
    "remote csv": "select * from read_csv('http://127.0.0.1:{port}/a.csv')",
    "connect": "connect 'quack://127.0.0.1:{port}'",
    "persistent secret": "create persistent secret s (type http, bearer_token 'a')",
    "duckdb_settings": "select * from duckdb_settings()",
    "duckdb_databases": "select * from duckdb_databases()",
}
"""The 49 of the study that the sandbox was designed after."""

MORE = {
    "views show their files": "select sql from duckdb_views()",
    "settings without brackets": "from duckdb_settings",
    "information_schema": "select * from information_schema.tables",
    "pg_catalog": "select * from pg_catalog.pg_settings",
    "sqlite_master": "select * from sqlite_master",
    "name of a with that means the catalog": (
        "with duckdb_settings as (select * from duckdb_settings) select * from duckdb_settings"
    ),
    "later name of a with": "with a as (from duckdb_settings), duckdb_settings as (select 1) from a",
    "first half of a recursive with": (
        "with recursive duckdb_settings as (select name from duckdb_settings union all "
        "select name from duckdb_settings where false) from duckdb_settings"
    ),
    "name of a with out of its scope": (
        'select * from (with "{secret}" as (select 1) select 1) as a, "{secret}"'
    ),
    "with in a subquery": "select (with duckdb_views as (select 1 as a) select a from duckdb_views) from duckdb_views",
    "current_setting": "select current_setting('secret_directory')",
    "getvariable": "select getvariable('a')",
    "plan as json": "select json_serialize_plan('select * from events')",
    "qualified function": "select system.main.current_setting('temp_directory')",
    "function as method": "select ('temp_directory').current_setting()",
    "describe a file": "describe '{secret}'",
    "describe a table function": "describe from read_csv('{secret}')",
    "summarize a file": "summarize '{secret}'",
    "show databases": "show databases",
    "show variables": "show variables",
    "show of a hidden table": "show duckdb_settings",
    "explain of a file": "explain select * from read_text('{secret}')",
    "explain analyze": "explain analyze select * from read_text('{secret}')",
    "explain of two": "explain select 1; copy (select 1) to '{out}/a.csv'",
    "explain of explain": "explain explain select 1",
    "comment before explain": "/* é */ explain copy (select 1) to '{out}/a.csv'",
    "lateral": "select * from events, lateral (select * from read_text('{secret}'))",
    "subquery in order by": "select 1 order by (select content from read_text('{secret}'))",
    "subquery in a lambda": "select list_transform([1], lambda x: (select content from read_text('{secret}')))",
    "subquery in a window": "select sum((select size from read_text('{secret}'))) over () from events",
    "subquery in a filter": "select count(*) filter (exists (from read_text('{secret}'))) from events",
    "subquery in values": "values ((select content from read_text('{secret}')))",
    "subquery in limit": "select 1 limit (select size from read_text('{secret}'))",
    "argument of a table function": "select * from range((select size from read_text('{secret}')))",
    "argument of a table macro": "select * from events_on((select content from read_text('{secret}')))",
    "in a set operation": "select 'a' union all select content from read_text('{secret}')",
    "in a pivot": "from read_text('{secret}') pivot (count(*) for filename in ('a'))",
    "pivot as a statement": "pivot events on type using count(*)",
    "insert in a with": "with a as (insert into events select * from events returning 1) select * from a",
    "delete in a with": "with a as (delete from events returning 1) select * from a",
    "update": "update events set text = 'a'",
    "merge": "merge into events using events as b on true when matched then delete",
    "transaction": "begin transaction",
    "use": "use system",
    "vacuum": "vacuum",
    "analyze": "analyze",
    "call": "call pragma_version()",
    "pragma that lists": "pragma database_list",
    "query_table": "from query_table('duckdb_settings')",
    "table_info": "from pragma_table_info('events')",
    "arrow_scan of an address": "from arrow_scan(4096, 4096, 4096)",
    "pandas_scan of an address": "from pandas_scan(4096)",
    "read_duckdb": "from read_duckdb('{out}/a.duckdb')",
    "secrets": "from duckdb_secrets()",
    "which_secret": "from which_secret('s3://a', 's3')",
    "table with a catalog": "from system.main.duckdb_settings",
    "table with a schema": "from main.events",
    "write_log": "select write_log('a')",
    "sleep_ms": "select sleep_ms(100000)",
    "nextval": "select nextval('a')",
    "setseed": "select setseed(0.5)",
    "endless device": "from read_blob('/dev/zero')",
    "environment": "from read_text('/proc/self/environ')",
    "memory of the worker": "from read_blob('/proc/self/mem')",
    "statement in a comment": "select 1 /* ; */ ; -- ;\ncopy (select 1) to '{out}/a.csv'",
    "NUL": "select 1\0; copy (select 1) to '{out}/a.csv'",
    "empty": "",
    "only a comment": "-- select 1",
    "half a character": "select '\ud83d' from '{secret}'",
    "too long": "select 1 --" + "a" * 70_000,
    "deep brackets": "select " + "(" * 20_000 + "1" + ")" * 20_000,
    "external resource": "create external resource a (type file, path '{secret}')",
    "type": "create type a as enum (select content from read_text('{secret}'))",
    "type in a cast": "select 1::enum((select content from read_text('{secret}')))",
    "table with a version": "from events at (version => (select size from read_text('{secret}')))",
    "sample with a query": "from events tablesample ((select 1) rows)",
    "load by path": "load '{out}/a.duckdb_extension'",
    "grammar": "call add_grammar_extension('a', 'b')",
}
"""Those that came to mind since."""

HUNGRY = {
    "cross join": "select sum(a.range * b.range) from range(100000000000) as a, range(100) as b",
    "endless recursion": "with recursive a as (select 1 as n union all select n + 1 from a) select max(n) from a",
    "long text": "select repeat('x', 4000000000)",
    "many long texts": "select length(repeat('x', 300000000) || range::varchar) from range(1000)",
    "padding": "select length(rpad('x', 2000000000, 'yz'))",
    "sorted list": "select list_sort(list_transform(range(30000000), lambda x: hash(x)))[1]",
    "edit distance": "select levenshtein(repeat('ab', 100000), repeat('ba', 100000))",
    "wide number": "select printf('%1000000000d', 1)",
    "large list": "select list(range) from range(1000000000)",
    "large map": "select map_from_entries(list((range, range))) from range(100000000)",
    "large text aggregate": "select length(string_agg(repeat('x', 1000), ',')) from range(100000000)",
    "large sort": "select * from range(500000000) order by hash(range)",
    "large distinct": "select count(distinct hash(range)) from range(1000000000)",
    "large group": "select hash(range), count(*) from range(1000000000) group by all",
    "large window": "select sum(range) over (order by hash(range)) from range(500000000)",
    "many unions": "select 1" + " union all select 1" * 3300,
    "many joins": "from events as e0" + "".join(f", events as e{n}" for n in range(1, 1200)),
    "deep functions": "select " + "abs(" * 3000 + "1" + ")" * 3000,
    "wide select": "select " + ", ".join(f"range + {n}" for n in range(4000)) + " from range(100000000)",
    "regular expression": (
        "select count(*) from range(100000000) where regexp_matches(repeat('a', 3000) || range, '(a|aa)+$')"
    ),
    "cubes": "select count(*) from events group by cube (" + ", ".join(f"seq + {n}" for n in range(14)) + ")",
    "tree of json": "select json_structure(repeat('[', 1000000) || repeat(']', 1000000))",
    "cells": "select repeat('x', 100000000) from range(1000)",
    "product of powers": "select list_reduce(range(100000000), lambda a, b: hash(a * b))",
}
"""What takes time or memory without end: allowed by the syntax tree, stopped by the limits."""
