"""Opens a ledger: its folder with the keys, its store, its recorder. What a program starts with."""

import contextlib
import os
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from ledger.errors import InputError
from ledger.recorder import Recorder, new_id, utc_now
from ledger.redaction import Redactor
from ledger.store import EventStore, open_store


@dataclass(frozen=True)
class Ledger:
    """An open ledger. Use as a context manager, or call `close()`."""

    home: Path
    """Folder with keys, views and the default store."""

    store: EventStore
    """Reads."""

    recorder: Recorder
    """Writes."""

    def __enter__(self) -> "Ledger":
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the store."""
        self.store.close()


def open_ledger(
    home: str | Path | None = None,
    store: str | None = None,
    *,
    clock: Callable[[], str] = utc_now,
    ids: Callable[[], str] = new_id,
) -> Ledger:
    """The ledger in a folder, made if it does not exist.

    `home` defaults to `$LOOPLEDGER_HOME`, then `./.loopledger`; `store` to `$LOOPLEDGER_STORE`, then a SQLite file in
    the home. Raises StoreUnavailableError or InputError.
    """
    folder = Path(home or os.environ.get("LOOPLEDGER_HOME") or ".loopledger")
    url = store or os.environ.get("LOOPLEDGER_STORE") or f"sqlite:///{folder / 'ledger.sqlite'}"
    redactor = Redactor(_redaction_key(folder))
    opened = open_store(url)
    return Ledger(folder, opened, Recorder(opened, redactor, clock=clock, ids=ids))


def _redaction_key(folder: Path) -> bytes:
    """The key of secret digests: in the home, never in the store, so that the store alone does not let one guess."""
    path = folder / "keys" / "redaction.key"
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        draft = path.with_name(f"{path.name}.{os.getpid()}.{secrets.token_hex(4)}")
        if not path.exists():
            draft.touch(mode=0o600)
            draft.write_bytes(secrets.token_bytes(32))
            with contextlib.suppress(FileExistsError):
                os.link(draft, path)  # atomic: of two processes that start at once, one wins
            draft.unlink()
        key = path.read_bytes()
    except OSError as error:
        raise InputError(f"{path} cannot be read or made: {error.strerror}") from error
    if len(key) != 32:
        raise InputError(f"{path} holds {len(key)} bytes: expected a key of 32")
    return key
