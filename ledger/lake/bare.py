"""All tables of a lake as SQL for DuckDB alone: for a copy of the files where this program is not."""

from ledger.lake.columns import COLUMNS
from ledger.lake.connection import SQL_TYPES, branch_macro, tables
from ledger.lake.engines.functions import duckdb_functions

_HEAD = """-- All tables of a lake of loopledger in DuckDB 2, where this program is not. Say which files first:
--   set variable files = (select list('lake/' || path) from 'lake/files.json');
"""


def tables_in_sql() -> str:
    """Statements that make `events` of the files in the variable `files`, every other table, and `events_on`."""
    typed = ",\n    ".join(f'cast(null as {SQL_TYPES[column.kind]}) as "{column.name}"' for column in COLUMNS)
    events = (
        "create view events as\n"
        "from read_parquet(getvariable('files'), union_by_name = true, hive_types = {recorded_date: date})\n"
        f"union all by name select -- columns that no file has yet are NULL\n    {typed}\nwhere false;\n"
    )
    views = "".join(f"create view {table.name} as\n{table.sql.rstrip().rstrip(';')};\n" for table in tables())
    return "\n".join([_HEAD, "set TimeZone = 'UTC';", duckdb_functions(), events, views, branch_macro()])
