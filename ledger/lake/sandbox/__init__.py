"""SQL of a stranger over a lake: checked by its syntax tree, run in a worker process that may do nothing else."""

from ledger.lake.sandbox.limits import Limits
from ledger.lake.sandbox.queries import QueriesBusyError, QueryHandle, SafeQueries
from ledger.lake.sandbox.result import QueryRefusedError, SafeResult, Stopped

__all__ = [
    "Limits",
    "QueriesBusyError",
    "QueryHandle",
    "QueryRefusedError",
    "SafeQueries",
    "SafeResult",
    "Stopped",
]
