"""What tests look at after an import of OTLP files."""

import json
from pathlib import Path
from typing import Any, TypeVar

from ledger.events import ContentRef, Event, Record
from ledger.home import Ledger
from ledger.importers._intake import import_paths
from tests.ledger.importers.fixtures import FIXTURES

FOLDER = FIXTURES / "otlp"
"""The fixtures."""

_OF_THE_LEDGER = ("ledger.imported", "credential.secret_redacted")

_Kind = TypeVar("_Kind", bound=Event)


def report_of(ledger: Ledger, *paths: Path) -> list[dict[str, Any]]:
    """Import files; gives the report of each."""
    return import_paths(ledger.recorder, list(paths)).files


def sessions(ledger: Ledger) -> list[str]:
    """All sessions by name."""
    return sorted(ledger.store.sessions())


def records(ledger: Ledger) -> list[Record]:
    """All records, session by session."""
    return [record for session in sessions(ledger) for record in ledger.store.read(session)]


def events(ledger: Ledger, kind: type[_Kind]) -> list[_Kind]:
    """All events of a kind, session by session."""
    return [record.event for record in records(ledger) if isinstance(record.event, kind)]


def content(ledger: Ledger, ref: ContentRef | None) -> Any:
    """What a reference points to."""
    assert ref is not None
    raw = ledger.store.content(ref.digest)
    return json.loads(raw) if ref.kind == "json" else raw.decode()


def rests(ledger: Ledger) -> list[str]:
    """Digests of what no event field carries."""
    sources = [record.source for record in records(ledger)]
    return [source.rest for source in sources if source is not None and source.rest is not None]


def told(ledger: Ledger) -> list[Any]:
    """What a ledger tells, with content in the place of digests, which are the ledger's own."""
    return [
        [
            record.session,
            record.seq,
            record.type,
            record.occurred_at,
            record.agent,
            record.cause,
            _open(ledger, event),
        ]
        for record in records(ledger)
        if record.type not in _OF_THE_LEDGER
        for event in [record.event.model_dump(mode="json")]
    ]


def _open(ledger: Ledger, value: Any) -> Any:
    if isinstance(value, dict) and set(value) == {"digest", "size", "kind"}:
        return ledger.store.content(value["digest"]).decode()
    if isinstance(value, dict):
        return {name: _open(ledger, item) for name, item in value.items() if not _is_node(name)}
    if isinstance(value, list):
        return [_open(ledger, item) for item in value]
    return value


def _is_node(name: str) -> bool:
    return name.startswith("context") or name in ("digest", "artifacts")
