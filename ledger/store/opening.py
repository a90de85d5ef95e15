"""Opens a store by its URL: `sqlite:///path` or `postgresql://…`."""

import importlib.util
import re
from pathlib import Path

from eventsourcing.application import Application
from eventsourcing.persistence import PersistenceError

from ledger.errors import StoreUnavailableError
from ledger.store.event_store import EventStore

_COMMON = {
    "MAPPER_TOPIC": "ledger.store.mapper:RecordMapper",
    "TRANSCODER_TOPIC": "ledger.store.mapper:NoTranscoder",
    "ORIGINATOR_ID_TYPE": "text",
    "IS_SNAPSHOTTING_ENABLED": "n",
    "CIPHER_KEY": "",
    "CIPHER_TOPIC": "",
    "COMPRESSOR_TOPIC": "",
}
"""Given explicitly, because the library lets the process environment fill what is missing."""


class _Ledger(Application[str]):
    name = "ledger"


def open_store(url: str) -> EventStore:
    """The store at a URL, made if it does not exist yet. Raises StoreUnavailableError."""
    if url.startswith("sqlite:///"):
        path = Path(url.removeprefix("sqlite:///"))
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StoreUnavailableError(f"{path.parent} cannot be made: {error.strerror}") from error
        env = {
            "PERSISTENCE_MODULE": "ledger.store.sqlite_recorder:SQLiteLedgerFactory",
            "SQLITE_DBNAME": str(path),
        }
    elif url.startswith(("postgresql://", "postgres://")):
        if importlib.util.find_spec("psycopg_pool") is None:
            raise StoreUnavailableError(
                "a PostgreSQL store needs the driver: pip install 'loopledger[postgres]'"
            )
        env = {
            "PERSISTENCE_MODULE": "ledger.store.postgres_recorder:PostgresLedgerFactory",
            "LEDGER_URL": url,
        }
    else:
        raise StoreUnavailableError(
            f"{_shown(url)!r} is no store: expected sqlite:///PATH or postgresql://USER@HOST/DATABASE"
        )
    try:
        return EventStore(_Ledger(env=_COMMON | env))
    except (PersistenceError, OSError) as error:
        raise StoreUnavailableError(f"the store at {_shown(url)} cannot be opened: {error}") from error


def _shown(url: str) -> str:
    """The address without its password."""
    return re.sub(r"(://[^/@:]*:)[^@]*(@)|(password=)[^&]*", r"\1\3***\2", url)
