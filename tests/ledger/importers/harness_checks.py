"""What every importer of a harness log must stand: damage, cuts, wrong types, foreign files."""

import copy
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

from hypothesis import strategies as st

from ledger.events import Event, Record
from ledger.home import Ledger, open_ledger
from ledger.importers import Sniff, discover
from ledger.importers._files import find_files, sniff
from ledger.importers._intake import import_paths
from ledger.store import verify

TRACES = Path(os.environ.get("LOOPLEDGER_TRACES", Path(__file__).parents[4] / "shared" / "traces"))
"""Traces for development; tests that want them are skipped when they are not there."""

FOREIGN = (
    b"",
    b"{",
    b"[",
    b"\xff\xfe{\x00",
    b"SQLite format 3\0",
    b'{"type":"user","uuid":"1","parentUuid":null,"sessionId":"s","message":{}}\n',
    b'{"resourceSpans":[]}',
    b'{"type":"session_meta","payload":{"id":"x"}}\n',
    b'[{"role":"user","content":"hi"}]',
    b'{"id":"1","messages":[{"role":"user","content":"hi"}]}',
)
"""Beginnings of files that none of these importers may take."""

LEAVES = (
    st.none()
    | st.booleans()
    | st.integers(-1, 2**70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=6)
    | st.sampled_from(["user", "assistant", "tool", "", "2026-11-29T16:00:00Z", "\ud800"])
)
"""Values that a hostile file may hold anywhere."""

VALUES = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=5,
)
"""The same, nested."""


def with_damage(folder: Path, log: Path, *, line: int, spoiled: bytes, cut: int) -> list[Record]:
    """The records of a log with one line spoiled, and its last line without its last bytes."""
    lines = log.read_bytes().splitlines(keepends=True)
    lines[line] = spoiled
    lines[-1] = lines[-1][:-cut]
    path = folder / log.name
    path.write_bytes(b"".join(lines))
    return with_ledger(folder / "home", [path])


def places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every container in a JSON value, with each key or index in it."""
    todo = [value]
    while todo:
        one = todo.pop()
        inside = one.items() if isinstance(one, dict) else enumerate(one) if isinstance(one, list) else ()
        for name, part in inside:
            yield one, name
            todo.append(part)


def mutated(data: st.DataObject, value: Any) -> Any:
    """A copy of a JSON value with something else, or nothing, in a few places."""
    changed = {"root": copy.deepcopy(value)}
    for _ in range(data.draw(st.integers(1, 4))):
        found = list(places(changed["root"]))
        if not found:
            break
        container, name = found[data.draw(st.integers(0, len(found) - 1))]
        if data.draw(st.booleans()) or isinstance(container, list):
            container[name] = data.draw(VALUES)
        else:
            del container[name]
    return changed["root"]


def check_import(files: list[Path], home: Path, format_name: str) -> None:
    """Importing ends without an exception, twice the same, and the ledger verifies."""
    with open_ledger(home) as ledger:
        import_paths(ledger.recorder, files, format_name=format_name)
        assert import_paths(ledger.recorder, files, format_name=format_name).records_added == 0
        assert verify(ledger.store).problems == []


def check_foreign(importer: ModuleType, tmp_path: Path) -> None:
    """Files of others are not taken."""
    for start in FOREIGN:
        path = tmp_path / "file.jsonl"
        path.write_bytes(start)
        assert not importer.recognizes(Sniff(path, start, len(start))), start


def check_traces(importer: ModuleType) -> list[Path]:
    """No trace file is taken by this importer and another one; gives those that this one takes."""
    others = [one for one in discover().values() if one is not importer]
    taken = []
    for path in find_files([TRACES]):
        facts = sniff(path)
        if importer.recognizes(facts):
            taken.append(path)
            assert [one.FORMAT for one in others if one.recognizes(facts)] == [], path
    return taken


def with_ledger(
    home: Path, files: list[Path], use: Callable[[Ledger], None] = lambda ledger: None
) -> list[Record]:
    """All records of an import into a fresh ledger."""
    with open_ledger(home) as ledger:
        import_paths(ledger.recorder, files)
        use(ledger)
        return list(ledger.store.read_all())


def lines_of(path: Path) -> list[Any]:
    """The records of a file of JSON lines."""
    return [json.loads(line) for line in path.read_bytes().splitlines()]


def write_lines(path: Path, rows: list[Any]) -> Path:
    """Write a file of JSON lines."""
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def events_of(records: list[Record], kind: type[Event]) -> list[Any]:
    """The events of a kind, in the order of their records."""
    return [record.event for record in records if isinstance(record.event, kind)]
