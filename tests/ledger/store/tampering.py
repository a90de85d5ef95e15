"""A ledger's file in which nothing is wrong, and the means to change it past the store."""

import shutil
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from ledger.events import ContentRef, Draft, Source
from ledger.events.model_call import ModelCallRequested
from ledger.events.review import NoteWritten
from ledger.store import EventStore, Verification, open_store, verify
from ledger.store.content import chain_node, content_digest, pack_blob
from ledger.store.rows import Attachments
from tests.ledger.store.databases import stamp, started

RECORDS = 14
"""Records in it: alpha has 8, beta 5, gamma 1."""


def _reference(store: EventStore, content: bytes) -> ContentRef:
    digest = content_digest(store.salt, content).hex()
    return ContentRef(digest=digest, size=len(content), kind="text")


def _fill(store: EventStore) -> None:
    """Two sessions, interleaved; content in references, in contexts and in the rest of a source."""
    nodes: list[Any] = []
    for turn in range(1, 5):
        texts = [f"turn {turn}: short".encode(), f"turn {turn}: long, so that it is packed. ".encode() * 20]
        blobs = [pack_blob(content_digest(store.salt, text), text) for text in texts]
        for blob in blobs:
            nodes.append(chain_node(store.salt, nodes[-1] if nodes else None, blob.digest))
        rest = pack_blob(content_digest(store.salt, b'{"turn":%d}' % turn), b'{"turn":%d}' % turn)
        request = ModelCallRequested(
            call_id=f"call {turn}",
            protocol="genai",
            context=nodes[-1].node.hex(),
            context_length=len(nodes),
            context_added=2,
            completeness="messages",
        )
        note = NoteWritten(about="alpha", text=_reference(store, texts[0]))
        source = Source(format="test", line=turn, rest=rest.digest.hex())
        store.append(
            {"alpha": [Draft(request, source=source), Draft(note)], "beta": [started(f"call {turn}")]},
            stamp=stamp,
            attachments=Attachments([*blobs, rest], nodes[-2:]),
        )
    store.append({"gamma": [started("1")]}, stamp=stamp)
    store.append({"beta": [started("5")]}, stamp=stamp)


@pytest.fixture(scope="session")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file of a ledger in which nothing is wrong."""
    path = tmp_path_factory.mktemp("whole") / "ledger.sqlite"
    with open_store(f"sqlite:///{path}") as store:
        _fill(store)
        assert verify(store).ok
        assert verify(store).records == RECORDS
    assert not path.with_name("ledger.sqlite-wal").exists()
    return path


@pytest.fixture
def path(whole: Path, tmp_path: Path) -> Path:
    """A copy of that file to tamper with."""
    return Path(shutil.copy(whole, tmp_path))


def tamper(path: Path, *statements: str | tuple[str, tuple[Any, ...]]) -> None:
    """Change the file as somebody who has it can: without the triggers that guard it, which come back."""
    connection = sqlite3.connect(path, isolation_level=None)
    triggers = connection.execute("select name, sql from sqlite_master where type = 'trigger'").fetchall()
    for name, _ in triggers:
        connection.execute(f"drop trigger {name}")
    for statement in statements:
        text, parameters = (statement, ()) if isinstance(statement, str) else statement
        connection.execute(text, parameters)
    for _, create in triggers:
        connection.execute(create)
    connection.close()


def verify_file(path: Path, session: str | None = None) -> Verification:
    """What verification says of the file."""
    with open_store(f"sqlite:///{path}") as store:
        return verify(store, session)


def named(result: Verification) -> set[tuple[str, str | None, int | None]]:
    """Kind, session and seq of its problems."""
    return {(problem.kind, problem.session, problem.seq) for problem in result.problems}
