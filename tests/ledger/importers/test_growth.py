"""Files that grow, for every importer with a fixture of lines: read in two parts, they tell what they tell at once."""

import json
import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ledger.events import Record
from ledger.home import Ledger, open_ledger
from ledger.importers._intake import import_paths
from ledger.store import verify
from tests.ledger.importers.fixtures import FIXTURES, case_folders, trace_files

_READ_AGAIN = {
    "compaction.done": "compaction_id",  # its summary may come lines later
    "model_call.answered": "call_id",  # its usage may come lines later
    "session.forked": "origin",  # copied lines say where a fork left; the last of them says it best
}
"""Events that a later reading completes, and what names them: the last one counts."""

_BY_TRACE = frozenset({"otlp/agents/quote.otlp.jsonl", "openai-agents/spans/spans.jsonl"})
"""Files whose records go to other sessions when they come in two parts: a child span comes before the one that names
its conversation or its agent. Their source records are compared, not what is said of them."""


def _is_lines(path: Path) -> bool:
    """Whether a file is JSON lines, unpacked, with enough of them to be cut."""
    lines = path.read_bytes().split(b"\n")
    if len(lines) < 4 or lines[0][:1] not in (b"{", b"[") or lines[1][:1] not in (b"{", b"["):
        return False
    try:
        json.loads(lines[0])
    except ValueError:
        return False
    return True


FILES = [path for case in case_folders() for path in trace_files(case) if _is_lines(path)]


def _facts(ledger: Ledger) -> Counter[str]:
    """What the records say, in any order, without the seqs and reports that depend on how often was imported."""
    told: Counter[str] = Counter()
    last: dict[tuple[str, ...], dict[str, Any]] = {}
    places = {record.place: record for record in ledger.store.read_all()}
    for record in places.values():
        if record.type == "ledger.imported":
            continue
        said: dict[str, Any] = {"session": record.session, "type": record.type}
        said |= json.loads(record.event.model_dump_json())
        if record.type == "recovery.rolled_back" and said["to_seq"] is not None:
            said["to_seq"] = _item(places[f"{record.session}#{said['to_seq']}"])
        if record.type in _READ_AGAIN:
            said.pop("revision", None)
            said.pop("origin_item", None)
            last[record.session, record.type, said[_READ_AGAIN[record.type]]] = said
        else:
            told[json.dumps(said, sort_keys=True)] += 1
    told.update(json.dumps(said, sort_keys=True) for said in last.values())
    return told


def _item(record: Record) -> str | None:
    return record.source.item if record.source is not None else None


def _places(ledger: Ledger) -> Counter[str]:
    """The source records that the ledger tells of."""
    return Counter({f"{_item(record)}" for record in ledger.store.read_all()})


def test_the_files_are_of_many_formats() -> None:
    assert len({path.relative_to(FIXTURES).parts[0] for path in FILES}) >= 12


@pytest.mark.parametrize("path", FILES, ids=[str(path.relative_to(FIXTURES)) for path in FILES])
def test_a_file_read_in_two_parts_tells_what_it_tells_at_once(
    path: Path, tmp_path: Path, clock: Callable[[], str]
) -> None:
    with open_ledger(tmp_path / "at-once", clock=clock):
        pass
    shutil.copytree(tmp_path / "at-once", tmp_path / "grown")  # with the same key, so that digests compare
    facts = _places if str(path.relative_to(FIXTURES)) in _BY_TRACE else _facts
    source, *parts = path.relative_to(FIXTURES).parts
    copy = tmp_path.joinpath(source, *parts)
    shutil.copytree(FIXTURES / source / parts[0], tmp_path / source / parts[0])
    whole = path.read_bytes()
    with open_ledger(tmp_path / "at-once", clock=clock) as ledger:
        import_paths(ledger.recorder, [copy])
        expected = facts(ledger)
    with open_ledger(tmp_path / "grown", clock=clock) as ledger:
        lines = whole.split(b"\n")
        copy.write_bytes(b"\n".join(lines[: len(lines) // 2]) + b"\n")
        import_paths(ledger.recorder, [copy])
        copy.write_bytes(whole)
        import_paths(ledger.recorder, [copy])
        told = facts(ledger)
        assert import_paths(ledger.recorder, [copy]).records_added == 0
        assert verify(ledger.store).problems == []
    assert (expected - told, told - expected) == (Counter(), Counter())
