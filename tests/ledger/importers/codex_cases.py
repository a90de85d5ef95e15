"""The cases of the Codex importer, and short ways to what an import of them gives."""

import json
from pathlib import Path
from typing import Any, TypeVar

from ledger.events import Record
from ledger.home import Ledger
from tests.ledger.importers.fixtures import FIXTURES, trace_files

Found = TypeVar("Found")

FOLDER = FIXTURES / "codex"
"""Folder of the cases."""

CASES = sorted(case.name for case in FOLDER.iterdir() if case.is_dir())
"""Names of the cases."""


def sources(case: str) -> list[Path]:
    """The files of a case."""
    return trace_files(FOLDER / case)


def rollout(case: str, number: int = 0) -> Path:
    """One of them."""
    return sources(case)[number]


def records(ledger: Ledger) -> list[Record]:
    """All records of a ledger."""
    return list(ledger.store.read_all())


def events(ledger: Ledger, kind: type[Found]) -> list[Found]:
    """All events of a kind."""
    return [record.event for record in records(ledger) if isinstance(record.event, kind)]


def content(ledger: Ledger, digest: str) -> Any:
    """A JSON blob."""
    return json.loads(ledger.store.content(digest))
