"""One byte of a ledger's file is changed, anywhere: no reader is deceived, and `verify` never fails itself."""

import hashlib
import shutil
import sqlite3
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ledger.errors import InputError, LedgerError
from ledger.store import Verification, open_store, verify
from tests.ledger.store.tampering import whole

__all__ = ["whole"]


class _Cell(NamedTuple):
    """A stored value and where it lies in the file."""

    table: str
    value: bytes
    offset: int


@pytest.fixture(scope="session")
def cells(whole: Path) -> list[_Cell]:
    """Every place in the file where a value of a record, a blob or a node lies."""
    connection = sqlite3.connect(whole)
    content = whole.read_bytes()
    found = []
    for table, columns in (
        ("stored_events", ("state", "hash")),
        ("blobs", ("body", "checksum", "digest")),
        ("context_nodes", ("node", "parent", "message")),
    ):
        for column in columns:
            for (value,) in connection.execute(f"select {column} from {table} where {column} <> ''"):
                offset = content.find(value)
                assert offset >= 0, f"{column} of {table} lies in one piece"
                while offset >= 0:
                    found.append(_Cell(table, value, offset))
                    offset = content.find(value, offset + 1)
    connection.close()
    return found


@pytest.fixture(scope="session")
def before(whole: Path) -> str:
    """What a reader gets out of the whole file."""
    return _everything(whole, whole)


def _everything(path: Path, whole: Path) -> str:
    """Digest of all that a reader gets out of a ledger, with the kind of error in the place of what it cannot."""
    connection = sqlite3.connect(whole)
    nodes = [row[0].hex() for row in connection.execute("select node from context_nodes order by node")]
    digests = [row[0].hex() for row in connection.execute("select digest from blobs order by digest")]
    connection.close()
    found: list[Any] = []

    def read(work: Callable[..., Any], *arguments: Any) -> None:
        try:
            found.append(work(*arguments))
        except LedgerError as error:
            found.append(type(error))

    with open_store(f"sqlite:///{path}") as store:
        read(lambda: list(store.sessions()))
        for session in ("alpha", "beta", "gamma"):
            read(lambda name: list(store.read(name)), session)
            read(store.resolve, session)
        read(lambda: list(store.read_all()))
        for node in nodes:
            read(store.context, node)
        for digest in digests:
            read(store.content, digest)
    return hashlib.sha256(repr(found).encode()).hexdigest()


def _with_byte(whole: Path, folder: Path, offset: int, change: int) -> Path:
    path = Path(shutil.copy(whole, folder / "changed.sqlite"))
    with path.open("r+b") as file:
        file.seek(offset)
        old = file.read(1)[0]
        file.seek(offset)
        file.write(bytes([old ^ change]))
    return path


def _judge(path: Path) -> Verification | None:
    """The verdict on a file; None when it is refused as no ledger, with the reason."""
    try:
        with open_store(f"sqlite:///{path}") as store:
            return verify(store)
    except InputError:
        return None


@settings(max_examples=120)
@given(data=st.data(), change=st.integers(1, 255))
def test_a_byte_of_a_record_a_blob_or_a_node(
    whole: Path, cells: list[_Cell], data: st.DataObject, change: int
) -> None:
    cell = data.draw(st.sampled_from(cells))
    place = data.draw(st.integers(0, len(cell.value) - 1))
    with tempfile.TemporaryDirectory() as folder:
        result = _judge(_with_byte(whole, Path(folder), cell.offset + place, change))
    assert result is not None
    assert not result.ok
    assert any(
        problem.session in ("alpha", "beta", "gamma") and problem.seq for problem in result.problems
    ), result.problems


@settings(max_examples=200)
@given(data=st.data(), change=st.integers(1, 255))
def test_any_byte_of_the_file(whole: Path, before: str, data: st.DataObject, change: int) -> None:
    offset = data.draw(st.integers(0, whole.stat().st_size - 1))
    with tempfile.TemporaryDirectory() as folder:
        path = _with_byte(whole, Path(folder), offset, change)
        result = _judge(path)
        if result is not None and result.ok:
            assert _everything(path, whole) == before, f"byte {offset} of the file deceives a reader"
        elif result is not None:
            _everything(path, whole)  # reads or refuses, but does not fail in another way
