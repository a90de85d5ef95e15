"""What the tests of framework importers share: mutations of real files, and the promise that nothing breaks."""

import copy
import functools
import json
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from ledger.events.model_call import ModelCallRequested
from ledger.home import Ledger, open_ledger
from ledger.importers import discover
from ledger.importers._files import find_files, sniff
from ledger.importers._intake import import_paths
from ledger.store import verify
from tests.ledger.importers.plain_traces import ODD_VALUES


def places(value: Any, limit: int = 4000) -> list[tuple[Any, ...]]:
    """Paths of all values inside a JSON value."""
    found: list[tuple[Any, ...]] = []
    stack: list[tuple[tuple[Any, ...], Any]] = [((), value)]
    while stack and len(found) < limit:
        path, one = stack.pop()
        inner: Iterator[tuple[Any, Any]] = iter(())
        if isinstance(one, dict):
            inner = iter(one.items())
        elif isinstance(one, list):
            inner = iter(enumerate(one))
        for key, part in inner:
            found.append((*path, key))
            stack.append(((*path, key), part))
    return found


@st.composite
def out_of_shape(draw: st.DrawFn, value: Any) -> Any:
    """The value with a few of its parts replaced by odd ones, or taken out."""
    changed = copy.deepcopy(value)
    paths = places(changed)
    for path in draw(st.lists(st.sampled_from(paths), min_size=1, max_size=4)):
        parent = changed
        try:
            for key in path[:-1]:
                parent = parent[key]
            if draw(st.booleans()):
                parent[path[-1]] = draw(ODD_VALUES)
            else:
                del parent[path[-1]]
        except (KeyError, IndexError, TypeError):
            continue  # an earlier change took the parent away
    return changed


def survives(write: Callable[[Path], None], format_name: str, name: str) -> None:
    """Import what `write` puts down, twice: no exception, nothing new the second time, a ledger that verifies."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        write(path)
        with open_ledger(Path(folder) / "home") as ledger:
            import_paths(ledger.recorder, [path], format_name=format_name)
            again = import_paths(ledger.recorder, [path], format_name=format_name)
            assert again.records_added == 0
            assert verify(ledger.store).problems == []


def written(value: Any) -> str:
    """JSON, with whatever stands in it."""
    return json.dumps(value, allow_nan=False)


def recognized(folder: Path, format_name: str) -> dict[Path, list[str]]:
    """For each file below a folder that a format takes: all formats that would take it."""
    return {path: takers for path, takers in _takers(folder).items() if format_name in takers}


@functools.cache  # every format asks about the same folder
def _takers(folder: Path) -> dict[Path, list[str]]:
    importers = discover()
    found: dict[Path, list[str]] = {}
    for path in find_files([folder]):
        facts = sniff(path)
        found[path] = [name for name, importer in importers.items() if importer.recognizes(facts)]
    return found


def contexts(ledger: Ledger) -> dict[str, list[Any]]:
    """Messages of each model call, by call id."""
    found: dict[str, list[Any]] = {}
    for record in ledger.store.read_all():
        event = record.event
        if isinstance(event, ModelCallRequested) and event.context is not None:
            chain = ledger.store.context(event.context)
            found[event.call_id] = [json.loads(ledger.store.content(digest)) for digest in chain]
    return found
