"""The lake: records as Parquet files, and SQL over them. Takes records, never a store."""

from ledger.lake.connection import connect
from ledger.lake.feed import Feed, Stored
from ledger.lake.lake import Exported, Lake

__all__ = ["Exported", "Feed", "Lake", "Stored", "connect"]
