"""Which columns of `events` a query needs, as the engine itself plans it."""

import json
from collections.abc import Iterable, Iterator
from typing import Any

import duckdb

from ledger.lake.columns import COLUMNS
from ledger.lake.connection import connect_files, lock_up

# Where conditions go down into the scan, or rows are found to be none, a scan no longer names every column it needs.
_NOT_PLANNED = (
    "empty_result_pullup",
    "filter_pushdown",
    "join_filter_pushdown",
    "late_materialization",
    "limit_pushdown",
    "row_group_pruner",
    "sampling_pushdown",
    "scalar_fn_pushdown",
    "statistics_propagation",
    "type_pushdown",
)


def columns_read(queries: Iterable[str]) -> frozenset[str]:
    """Columns that some of the queries need. One that cannot be planned needs none: it cannot be run."""
    everything = frozenset(column.name for column in COLUMNS)
    needed: set[str] = set()
    with connect_files([], config={"threads": 1}) as connection:
        connection.execute(f"set disabled_optimizers = '{','.join(_NOT_PLANNED)}'")
        lock_up(connection, None)
        for text in queries:
            try:
                plans = connection.execute(f"explain (format json) {text}").fetchall()
            except duckdb.Error:
                continue
            for _, plan in plans:
                for scan in _scans(json.loads(plan)):
                    names = scan.get("Projections")
                    if names is None:
                        return everything
                    needed.update([names] if isinstance(names, str) else names)
    return everything & needed


def _scans(plan: Any) -> Iterator[dict[str, Any]]:
    """What the plan says of each scan of `events`."""
    waiting = [plan]
    while waiting:
        match waiting.pop():
            case list(several):
                waiting += several
            case {"extra_info": told, "children": children}:
                waiting += children
                if isinstance(told, dict) and str(told.get("Table", "")).rpartition(".")[2] == "events":
                    yield told
