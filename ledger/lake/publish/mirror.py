"""A lake on object storage: a mirror of one local lake, which readers on other machines see version by version.

Files go there first, then one entry of the manifest, by a put that fails where the entry exists: it alone makes files
count. Each entry lists all files, so a reader needs the last one only, and a copy of the place is a lake.
"""

import hashlib
import json
import os
import secrets
from contextlib import suppress
from dataclasses import asdict
from typing import Any

import obstore
from obstore.exceptions import AlreadyExistsError, BaseError
from obstore.store import ObjectStore, from_url

from ledger.errors import InputError, LakeDamagedError
from ledger.lake.files import EVENTS
from ledger.lake.lake import Lake
from ledger.lake.manifest import FOLDER, Version

_IDENTITY = "identity"
_TRIES = 20


def push(lake: Lake, url: str) -> int:
    """Bring the mirror up to the lake; give how many files were sent. Raises InputError."""
    try:
        store = _store(url)
        for _ in range(_TRIES):
            # First what is there: or a rival could send meanwhile what our manifest does not know.
            last = _last_entry(store)
            version = lake.manifest.read()
            _check(lake, version, last, url)
            if last is not None and last["source"]["number"] >= version.number:
                _clear(store, lake)
                return 0
            sent = _send(store, lake, version)
            if sent is not None and _commit(store, lake, version, last):
                _clear(store, lake)
                return sent
    except BaseError as error:
        raise InputError(f"{url} cannot be written: {str(error).partition(chr(10))[0]}") from error
    raise InputError(f"{url} did not come up to the lake in {_TRIES} tries: others write there all the time")


def _store(url: str) -> ObjectStore:
    endpoint = os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL") or ""
    options: Any = {"client_options": {"allow_http": True}} if endpoint.startswith("http://") else {}
    return from_url(url, **options)


def _name(number: int) -> str:
    return f"{FOLDER}/{number:012}.json"


def _last_entry(store: ObjectStore) -> dict[str, Any] | None:
    paths = [one["path"] for batch in obstore.list(store, FOLDER) for one in batch]
    if not paths:
        return None
    raw = bytes(obstore.get(store, max(paths)).bytes())
    try:
        entry: dict[str, Any] = json.loads(raw)
        _ = entry["number"] + entry["source"]["number"], entry["source"]["lake"], entry["source"]["digest"]
    except (ValueError, KeyError, TypeError) as error:
        raise LakeDamagedError(f"{max(paths)} is no entry of a mirrored lake: {error}") from error
    return {**entry, "digest": hashlib.sha256(raw).hexdigest()}


def _check(lake: Lake, version: Version, last: dict[str, Any] | None, url: str) -> None:
    """Whether the place mirrors this lake, and no other state of it."""
    if last is None:
        return
    source = last["source"]
    if source["lake"] != _identity(lake):
        raise InputError(f"{url} mirrors another lake: name another place")
    with suppress(FileNotFoundError):  # cleared away: nothing to compare with
        here = hashlib.sha256(lake.manifest.path_of(source["number"]).read_bytes()).hexdigest()
        if here != source["digest"] or source["number"] > version.number:
            raise InputError(f"{url} shows another history of this lake: name another place")


def _identity(lake: Lake) -> str:
    """What tells this lake from all others: made when it is mirrored first."""
    path = lake.folder / FOLDER / _IDENTITY
    if not path.exists():
        draft = lake.manifest.scratch / f"{_IDENTITY}.{secrets.token_hex(8)}"
        draft.write_text(secrets.token_hex(16), encoding="utf-8")
        with suppress(FileExistsError):  # a rival was first: whole or not there, nobody reads half of it
            os.link(draft, path)
        draft.unlink()
    return path.read_text(encoding="utf-8")


def _send(store: ObjectStore, lake: Lake, version: Version) -> int | None:
    """Send the files that are not there; None when one was merged away meanwhile."""
    there = {one["path"] for batch in obstore.list(store, EVENTS) for one in batch}
    sent = 0
    for path in version.files.keys() - there:
        try:
            with (lake.folder / path).open("rb") as file:
                obstore.put(store, path, file)
        except FileNotFoundError:
            return None
        sent += 1
    return sent


def _commit(store: ObjectStore, lake: Lake, version: Version, last: dict[str, Any] | None) -> bool:
    """Let the version count; False when another was first."""
    number = 1 if last is None else last["number"] + 1
    entry = {
        "number": number,
        "previous": "" if last is None else last["digest"],
        "ledger": version.ledger,
        "position": version.position,
        "head": version.head,
        "add": [],
        "remove": [],
        "files": [asdict(file) for file in version.files.values()],
        "source": {"lake": _identity(lake), "number": version.number, "digest": version.digest},
    }
    try:
        obstore.put(store, _name(number), json.dumps(entry, indent=1).encode(), mode="create")
    except AlreadyExistsError:
        return False
    listed = [{"path": file.path, "rows": file.rows} for file in version.files.values()]
    obstore.put(store, "files.json", json.dumps(listed, indent=1).encode())
    return True


def _clear(store: ObjectStore, lake: Lake) -> None:
    """Remove there what the lake itself no longer has: merged away an hour ago, or erased."""
    for batch in obstore.list(store, EVENTS):
        gone = [one["path"] for one in batch if not (lake.folder / one["path"]).exists()]
        if gone:
            obstore.delete(store, gone)
