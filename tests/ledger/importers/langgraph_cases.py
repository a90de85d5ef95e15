"""Databases of LangGraph for tests: the fixtures unpacked, and small ones written by hand."""

import gzip
import json
import sqlite3
import struct
from pathlib import Path
from typing import Any, TypeVar

from ledger.events import Event, Record
from ledger.events.approval import ApprovalAsked, ApprovalDecided, ApprovalUsed
from ledger.events.recovery import BranchOpened
from ledger.events.session import SessionForked
from ledger.events.tool_call import ToolCallSettled
from ledger.home import Ledger
from ledger.importers._intake import FileReport, import_paths
from tests.ledger.importers.fixtures import FIXTURES

E = TypeVar("E", bound=Event)

FOLDER = FIXTURES / "langgraph"
"""The cases of this format."""

_TABLES = """
create table checkpoints (thread_id text not null, checkpoint_ns text not null default '',
    checkpoint_id text not null, parent_checkpoint_id text, type text, checkpoint blob, metadata blob,
    primary key (thread_id, checkpoint_ns, checkpoint_id));
create table writes (thread_id text not null, checkpoint_ns text not null default '', checkpoint_id text not null,
    task_id text not null, task_path text not null default '', idx integer not null, channel text not null,
    type text, value blob, primary key (thread_id, checkpoint_ns, checkpoint_id, task_id, idx));
"""


def case(name: str) -> Path:
    """The packed database of a case."""
    return FOLDER / name / "checkpoints.sqlite.gz"


def unpacked(name: str, folder: Path) -> Path:
    """A copy of a case's database that may be changed."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.sqlite"
    path.write_bytes(gzip.decompress(case(name).read_bytes()))
    return path


def change(path: Path, *statements: str) -> None:
    """Run statements on a database."""
    connection = sqlite3.connect(path)
    try:
        for statement in statements:
            connection.execute(statement)
        connection.commit()
    finally:
        connection.close()


def column(path: Path, statement: str) -> list[Any]:
    """First column of a query."""
    connection = sqlite3.connect(path)
    try:
        return [row[0] for row in connection.execute(statement)]
    finally:
        connection.close()


def new_database(path: Path) -> sqlite3.Connection:
    """An empty database of the saver's shape."""
    connection = sqlite3.connect(path)
    connection.executescript(_TABLES)
    return connection


def add_checkpoint(
    connection: sqlite3.Connection,
    number: int,
    body: bytes,
    *,
    parent: int | None = None,
    kind: str = "msgpack",
    source: str = "loop",
    thread: str = "thread-1",
) -> str:
    """Write one checkpoint; its id is made from its number."""
    name = checkpoint_id(number)
    before = None if parent is None else checkpoint_id(parent)
    metadata = json.dumps({"source": source, "step": number - 1, "parents": {}}).encode()
    row = (thread, "", name, before, kind, body, metadata)
    connection.execute("insert into checkpoints values (?, ?, ?, ?, ?, ?, ?)", row)
    return name


def checkpoint_id(number: int) -> str:
    """An id as LangGraph makes them: later ones sort behind."""
    return f"1f1ec135-{number:04x}-6c80-8000-6f9c6c00f339"


def state(**channels: Any) -> bytes:
    """A checkpoint that holds these channels."""
    return pack({"v": 4, "ts": "2026-11-29T12:00:00.000000+00:00", "channel_values": channels})


class Extension:
    """A value that `pack` writes as an extension."""

    def __init__(self, code: int, content: bytes) -> None:
        self.code = code
        self.content = content


def message(kind: str, name: str, /, **fields: Any) -> Extension:
    """A message as the serializer writes it: `message("ai", "AIMessage", content="...")`."""
    values = {"type": kind, "additional_kwargs": {}, "response_metadata": {}, "name": None, **fields}
    return built(f"langchain_core.messages.{kind}", name, values)


def built(module: str, name: str, argument: Any, code: int = 5) -> Extension:
    """An object that the reader is asked to construct."""
    return Extension(code, pack([module, name, argument, "model_validate_json"]))


def pack(value: Any) -> bytes:
    """A value in msgpack, in its longest forms."""
    if value is None:
        return b"\xc0"
    if isinstance(value, bool):
        return b"\xc3" if value else b"\xc2"
    if isinstance(value, int):
        return b"\xd3" + struct.pack(">q", value)
    if isinstance(value, float):
        return b"\xcb" + struct.pack(">d", value)
    if isinstance(value, str):
        content = value.encode("utf-8", "surrogatepass")
        return b"\xdb" + struct.pack(">I", len(content)) + content
    if isinstance(value, bytes):
        return b"\xc6" + struct.pack(">I", len(value)) + value
    if isinstance(value, list):
        return b"\xdd" + struct.pack(">I", len(value)) + b"".join(map(pack, value))
    if isinstance(value, dict):
        pairs = b"".join(pack(key) + pack(inner) for key, inner in value.items())
        return b"\xdf" + struct.pack(">I", len(value)) + pairs
    assert isinstance(value, Extension)
    return b"\xc9" + struct.pack(">Ib", len(value.content), value.code) + value.content


def brought_in(ledger: Ledger, *sources: Path | str) -> FileReport:
    """Import as this format; the report of the last source."""
    return import_paths(ledger.recorder, sources, format_name="langgraph").files[-1]


def records(ledger: Ledger) -> list[Record]:
    """All records of all sessions but the reports, session by session."""
    return [
        record
        for session in ledger.store.sessions()
        for record in ledger.store.read(session)
        if record.type != "ledger.imported"
    ]


def found(ledger: Ledger, kind: type[E]) -> list[tuple[Record, E]]:
    """All events of a kind, with their records."""
    return [(record, record.event) for record in records(ledger) if isinstance(record.event, kind)]


def events(ledger: Ledger, kind: type[E]) -> list[E]:
    """All events of a kind."""
    return [event for _, event in found(ledger, kind)]


def check_stale_approval(ledger: Ledger) -> None:
    """Both answers are there, and the call that ran twice names the first of them both times."""
    main = events(ledger, SessionForked)[0].origin
    (question, asked), *more = found(ledger, ApprovalAsked)
    assert not more and question.session == main and asked.tool == "place_order"
    decided = {event.outcome: (record, event) for record, event in found(ledger, ApprovalDecided)}
    assert decided.keys() == {"approved", "denied"}
    approved, denied = decided["approved"], decided["denied"]
    assert (approved[0].session, approved[0].cause) == (main, question.seq)
    assert denied[0].session != main and denied[0].cause == question.place
    assert approved[1].approval_id == asked.approval_id != denied[1].approval_id
    assert {event.call_id for _, event in decided.values()} == {"call_order"}
    ran = found(ledger, ApprovalUsed)
    assert [event.approval_id for _, event in ran] == [asked.approval_id] * 2
    assert {record.session: record.cause for record, _ in ran} == {
        main: approved[0].seq,
        denied[0].session: approved[0].place,
    }
    orders = [event for event in events(ledger, ToolCallSettled) if event.call_id == "call_order"]
    assert [event.outcome for event in orders] == ["returned", "returned"]
    forked = events(ledger, SessionForked)[0]
    opened = events(ledger, BranchOpened)[0]
    assert forked.origin_seq == opened.at_seq == question.seq
    assert opened.branch == denied[0].session
