"""What the tests of plain traces share: real traces where they lie about, and values put out of shape."""

import copy
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import strategies as st

from ledger.events import Event, Record
from ledger.events.canonical import decode_json
from ledger.home import Ledger
from ledger.importers._intake import FileReport, import_paths

TRACES = Path(os.environ.get("LOOPLEDGER_TRACES", Path(__file__).parents[3].parent / "shared" / "traces"))
"""Folder with real traces; tests that need it skip where it is not."""

ODD_VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=8),
    st.sampled_from(["\ud800", "system", "tool", "2026-01-01T00:00:00Z", "9999-99-99", 10**400]),
    st.lists(st.integers(), max_size=2),
    st.dictionaries(st.text(max_size=3), st.none(), max_size=2),
    st.just([[[[{"role": []}]]]]),
)
"""Values of the wrong type, or of the right one and without sense."""


def shared(*names: str) -> list[Path]:
    """Real traces by their path in the folder of traces. Skips the test where they are not."""
    paths = [TRACES / name for name in names]
    if not all(path.exists() for path in paths):
        pytest.skip(f"no traces at {TRACES}; LOOPLEDGER_TRACES names another folder")
    return paths


def imported(ledger: Ledger, *paths: Path, format_name: str | None = None) -> FileReport:
    """Import files; give the report of the first."""
    return import_paths(ledger.recorder, paths, format_name=format_name).files[0]


def records(ledger: Ledger) -> list[Record]:
    """Every record, in the order of the ledger."""
    return list(ledger.store.read_all())


def events(ledger: Ledger, *kinds: type[Event]) -> list[Any]:
    """The events of these kinds, in the order of the ledger."""
    return [record.event for record in records(ledger) if isinstance(record.event, kinds)]


def content(ledger: Ledger, ref: Any) -> Any:
    """A content, as JSON or text."""
    raw = ledger.store.content(ref.digest)
    return decode_json(raw) if ref.kind == "json" else raw.decode()


def places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every container of a value with one of its keys or indexes."""
    stack = [value]
    while stack:
        item = stack.pop()
        for key in item if isinstance(item, dict) else range(len(item)):
            yield item, key
            if isinstance(item[key], dict | list):
                stack.append(item[key])


@st.composite
def misshapen(draw: st.DrawFn, original: Any) -> Any:
    """A JSON value with up to four of its parts replaced by odd ones."""
    value = copy.deepcopy(original)
    for _ in range(draw(st.integers(1, 4))):
        found = list(places(value))
        if found:
            container, key = found[draw(st.integers(0, len(found) - 1))]
            container[key] = copy.deepcopy(draw(ODD_VALUES))
    return value
