"""Pickles and class names in any place of any fixture: an import loads none, whatever the format does with them."""

import base64
import copy
import gzip
import json
import pickle
import sqlite3
import sys
from pathlib import Path
from random import Random
from typing import Any

import pytest

from ledger.home import Ledger
from ledger.importers import discover
from ledger.importers._files import sniff
from ledger.importers._intake import import_paths
from ledger.store import verify
from tests.ledger.importers.fixtures import FIXTURES, case_folders, trace_files
from tests.ledger.importers.langgraph_cases import FOLDER, Extension, built, pack
from tests.ledger.importers.plain_traces import places

MODULE = "canary_of_every_format"


class _Canary:
    """Writes a file when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (self.path,)


@pytest.fixture
def canary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file that is written when the module is imported, or the pickle loaded."""
    folder, written = tmp_path / "modules", tmp_path / "canary"
    folder.mkdir()
    (folder / f"{MODULE}.py").write_text(
        f"import pathlib; pathlib.Path({str(written)!r}).touch()\nclass Bird: pass\n", encoding="utf-8"
    )
    monkeypatch.syspath_prepend(folder)
    return written


def _hostile(canary: Path) -> list[Any]:
    """Values by which frameworks name classes and carry pickles."""
    pickled = pickle.dumps(_Canary(canary))
    packed = base64.b64encode(pickled).decode()
    return [
        {"__pickled__": packed, "__type__": f"{MODULE}:Bird"},
        {"lc": 2, "type": "constructor", "id": [MODULE, "Bird"], "kwargs": {}, "method": [None]},
        {"provider": f"{MODULE}.Bird", "component_type": "agent", "version": 1, "config": {}},
        {"py/object": f"{MODULE}.Bird", "py/reduce": [{"py/function": f"{MODULE}.Bird"}]},
        {"__class__": "Bird", "__module__": MODULE, "type": f"{MODULE}.Bird"},
        f"!!python/object/apply:{MODULE}.Bird []",
        f"{MODULE}.Bird",
        packed,
        pickled.decode("latin-1"),
    ]


JSON_FILES = [
    path
    for case in case_folders()
    for path in trace_files(case)
    if path.stat().st_size < 60_000 and path.suffix in (".json", ".jsonl", ".ndjson", ".har")
]


@pytest.mark.parametrize("path", JSON_FILES, ids=[str(path.relative_to(FIXTURES)) for path in JSON_FILES])
def test_what_a_file_names_or_pickles_is_never_loaded(
    path: Path, canary: Path, ledger: Ledger, tmp_path: Path
) -> None:
    random, hostile = Random(path.name), _hostile(canary)
    facts = sniff(path)
    format_name = next(name for name, one in discover().items() if one.recognizes(facts))
    changed = tmp_path / path.relative_to(FIXTURES).name
    try:
        whole = [json.loads(path.read_bytes())]
    except ValueError:
        whole = [_read(line) for line in path.read_bytes().splitlines()]
    for number in range(3):
        told = copy.deepcopy(whole)
        found = list(places(told))
        for container, key in random.sample(found, min(len(found), 4 * (number + 1))):
            container[key] = random.choice(hostile)
        changed.write_text("\n".join(map(json.dumps, told)), encoding="utf-8")
        import_paths(ledger.recorder, [changed], format_name=format_name)
    assert not canary.exists() and MODULE not in sys.modules
    assert verify(ledger.store).problems == []


def _read(line: bytes) -> Any:
    try:
        return json.loads(line)
    except ValueError:
        return {}


_COLUMNS = [
    ("checkpoints", "checkpoint"),
    ("checkpoints", "metadata"),
    ("checkpoints", "type"),
    ("writes", "value"),
    ("writes", "type"),
    ("writes", "channel"),
]


@pytest.mark.parametrize(("table", "column"), _COLUMNS)
@pytest.mark.parametrize("kind", ["pickle", "msgpack", "json", None])
def test_no_column_of_a_langgraph_database_is_loaded(
    table: str, column: str, kind: str | None, canary: Path, ledger: Ledger, tmp_path: Path
) -> None:
    pickled = pickle.dumps(_Canary(canary))
    classes = [built(MODULE, "Bird", {"a": 1}, code) for code in range(8)]
    nested = pack(
        {"v": 4, "id": "x", "channel_values": {"messages": [*classes, Extension(99, pickled), pickled]}}
    )
    constructor = json.dumps({"lc": 2, "type": "constructor", "id": [MODULE, "Bird"], "kwargs": {}}).encode()
    for number, value in enumerate([pickled, nested, constructor, f"{MODULE}.Bird"]):
        path = tmp_path / f"{number}.sqlite"
        path.write_bytes(gzip.decompress((FOLDER / "one-run" / "checkpoints.sqlite.gz").read_bytes()))
        connection = sqlite3.connect(path)
        connection.execute(f"update {table} set {column} = ? where rowid % 2 = 0", (value,))
        if kind is not None and column != "type":
            connection.execute("update checkpoints set type = ? where rowid % 3 = 0", (kind,))
            connection.execute("update writes set type = ? where rowid % 3 = 0", (kind,))
        connection.commit()
        connection.close()
        import_paths(ledger.recorder, [path], format_name="langgraph")
    assert not canary.exists() and MODULE not in sys.modules


def test_the_canary_would_sing(canary: Path) -> None:
    pickle.loads(pickle.dumps(_Canary(canary)))  # noqa: S301 - our own
    assert canary.exists()
