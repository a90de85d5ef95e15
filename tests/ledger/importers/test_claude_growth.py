"""Logs that grow, come in pieces, from two places, or while the importer is killed: complete, and nothing twice."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ledger.events.model_call import ModelCallAnswered, ModelCallRequested
from ledger.home import Ledger, open_ledger
from ledger.store import verify
from tests.ledger.importers.claude_rows import (
    SESSION,
    Session,
    bring_in,
    call,
    line,
    simple_session,
    text,
    write,
)

ROOT = Path(__file__).parents[3]


def busy_session() -> Session:
    """A session with everything that is put together from several rows."""
    log = simple_session(turns=1)
    log.bare("mode", mode="normal")
    log.bare("mode", mode="normal")  # said twice, and meant twice
    log.says("Both at once.")
    log.part("msg_both", text("Two calls."))
    log.part("msg_both", call("call_x"))
    log.result("call_x")
    log.part("msg_both", call("call_y"))
    log.result("call_y")
    log.compacts()
    log.says("Go on.")
    log.says("And on.")
    log.answers("msg_on", text("Yes."), call("call_task", "Task", prompt="Look."))
    log.rows.append(Session(first=200).says("Look.", isSidechain=True))
    log.result("call_task")
    log.says("Back.", parentUuid=log.rows[4]["uuid"])
    log.answers("msg_back", text("Here."))
    return log


def facts(ledger: Ledger, session: str = SESSION) -> list[str]:
    """What a session's events say, in any order; of an answer or compaction the last reading, under one revision."""
    last: dict[str, Any] = {}
    for record in ledger.store.read(session):
        said = json.loads(record.event.model_dump_json())
        if record.type == "ledger.imported":
            continue
        if isinstance(record.event, ModelCallAnswered):
            said["revision"] = 0
        if record.type == "recovery.rolled_back":
            target = ledger.store.record(session, said["to_seq"])
            said["to_seq"] = None if target.source is None else target.source.item
        identity = said.get("compaction_id") or (
            said["call_id"] if record.type in ("model_call.answered", "model_call.requested") else None
        )
        source = record.source
        place = (source.item, source.line) if source is not None else None
        name = f"{record.type} {identity}" if identity else json.dumps([record.type, place, said])
        last[name] = [record.type, said]
    return sorted(json.dumps(value, sort_keys=True) for value in last.values())


def one_go(tmp_path: Path, path: Path) -> Ledger:
    """A ledger that got the whole file at once; with the salt of no other, so only facts can be compared."""
    ledger = open_ledger(tmp_path / "whole")
    bring_in(ledger, path)
    return ledger


def test_a_file_that_grows_line_by_line_gives_the_facts_of_the_whole_file(
    ledger: Ledger, tmp_path: Path
) -> None:
    rows = busy_session().rows
    path = tmp_path / f"{SESSION}.jsonl"
    for size in range(1, len(rows) + 1):
        write(path, rows[:size])
        bring_in(ledger, path)
        assert bring_in(ledger, path)["records"] == 0
    grown = without_digests(facts(ledger), ledger)
    with one_go(tmp_path, path) as whole:
        assert grown == without_digests(facts(whole), whole)
        assert sorted(ledger.store.sessions()) == sorted(whole.store.sessions())
    assert verify(ledger.store).problems == []


def without_digests(said: list[str], ledger: Ledger) -> list[str]:
    """Facts with contents in the place of digests, which every ledger keys differently."""

    def shown(value: Any) -> Any:
        if isinstance(value, dict):
            if value.keys() == {"digest", "size", "kind"}:
                return ledger.store.content(value["digest"]).decode()
            return {
                name: [ledger.store.content(one).decode() for one in ledger.store.context(inner)]
                if name in ("context", "context_before", "context_after") and inner
                else shown(inner)
                for name, inner in value.items()
            }
        return [shown(inner) for inner in value] if isinstance(value, list) else value

    return sorted(json.dumps(shown(json.loads(fact)), sort_keys=True) for fact in said)


def test_an_answer_that_grows_is_read_again_and_counted_once(ledger: Ledger, tmp_path: Path) -> None:
    log = Session()
    log.says("Go.")
    log.answers("msg_1", text("One."), call("call_1"), call("call_2"))
    path = tmp_path / f"{SESSION}.jsonl"
    for size in (2, 3, 4):
        report = bring_in(ledger, write(path, log.rows[:size]))
        assert (report["model_calls"], report["tokens"]["output"]) == (1, 7)
    answers = [
        record.event for record in ledger.store.read(SESSION) if isinstance(record.event, ModelCallAnswered)
    ]
    assert [answer.revision for answer in answers] == [0, 1, 2]
    assert len(json.loads(ledger.store.content(answers[-1].message.digest))["content"]) == 3


def test_rows_that_are_known_keep_their_place_in_a_context_that_is_new(
    ledger: Ledger, tmp_path: Path
) -> None:
    log = Session()
    log.says("Go.")
    log.part("msg_1", call("call_1"))
    for number in range(1300):  # more than two batches of the intake
        log.result("call_1", f"still at it, {number}")
    path = log.write(tmp_path)
    bring_in(ledger, path)
    log.part("msg_1", text("The answer is longer now."))
    log.says("And?")
    log.answers("msg_2", text("Done."))
    bring_in(ledger, log.write(tmp_path))
    assert len(last_context(ledger)) == 1303
    assert verify(ledger.store).problems == []


def test_the_same_session_from_two_places_is_one(ledger: Ledger, tmp_path: Path) -> None:
    rows = busy_session().rows
    first = write(tmp_path / "one" / f"{SESSION}.jsonl", rows)
    second = write(tmp_path / "two" / "backup.jsonl", rows)
    added = bring_in(ledger, first)["records"]
    assert added > 0
    report = bring_in(ledger, second)
    assert report["records"] == 0
    assert report["sessions"] == bring_in(ledger, first)["sessions"]


def test_an_extract_of_a_session_adds_nothing_and_a_later_whole_adds_the_rest(
    ledger: Ledger, tmp_path: Path
) -> None:
    rows = busy_session().rows
    extract = write(tmp_path / "extract.jsonl", rows[2:5] + rows[9:12])
    whole = write(tmp_path / f"{SESSION}.jsonl", rows)
    bring_in(ledger, whole)
    head = ledger.store.last_position()
    report = bring_in(ledger, extract)
    assert (report["records"], ledger.store.last_position()) == (0, head)
    with open_ledger(tmp_path / "other") as other:
        bring_in(other, extract)
        bring_in(other, whole)
        assert bring_in(other, whole)["records"] == 0
        calls = {json.loads(fact)[1]["call_id"] for fact in facts(other) if '"tool_call.requested"' in fact}
        assert calls == {"call_0", "call_x", "call_y", "call_task"}


_IMPORT = """
import sys
from pathlib import Path
from ledger.home import open_ledger
from ledger.importers._intake import import_paths
with open_ledger(sys.argv[1]) as ledger:
    def tell(path, lines):
        if lines:
            print(ledger.store.last_position(), flush=True)
    import_paths(ledger.recorder, [Path(sys.argv[2])], progress=tell)
"""


@pytest.mark.parametrize("batches", [1, 3])
def test_a_killed_import_is_completed_by_the_next(tmp_path: Path, batches: int) -> None:
    path = simple_session(turns=300).write(tmp_path)
    home = tmp_path / "home"
    command = [sys.executable, "-c", _IMPORT, str(home), str(path)]
    importer = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    assert importer.stdout is not None
    acknowledged = 0
    for _ in range(batches):
        acknowledged = int(importer.stdout.readline())
    os.kill(importer.pid, signal.SIGKILL)
    importer.wait()
    importer.stdout.close()
    with open_ledger(home) as ledger:
        assert verify(ledger.store).problems == []
        assert ledger.store.last_position() >= acknowledged > 0
        report = bring_in(ledger, path)
        assert report["records"] > 0
        assert (report["model_calls"], report["tool_calls"], report["unanswered_calls"]) == (600, 300, 0)
        assert bring_in(ledger, path)["records"] == 0
        with one_go(tmp_path, path) as whole:
            assert types(ledger) == types(whole)
            assert last_context(ledger) == last_context(whole)
        assert verify(ledger.store).problems == []


def types(ledger: Ledger) -> list[str]:
    """Types of the session's events, without the ledger's own."""
    return [record.type for record in ledger.store.read(SESSION) if record.type != "ledger.imported"]


def last_context(ledger: Ledger) -> list[bytes]:
    """Messages of the session's last request."""
    *_, last = (
        record.event for record in ledger.store.read(SESSION) if isinstance(record.event, ModelCallRequested)
    )
    return [ledger.store.content(digest) for digest in ledger.store.context(last.context or "")]


def test_two_importers_of_one_file_at_once_record_it_once(tmp_path: Path) -> None:
    path = simple_session(turns=300).write(tmp_path)
    home = tmp_path / "home"
    open_ledger(home).close()
    command = [sys.executable, "-c", _IMPORT, str(home), str(path)]
    importers = [subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL) for _ in range(2)]
    assert [importer.wait() for importer in importers] == [0, 0]
    with open_ledger(home) as ledger, one_go(tmp_path, path) as whole:
        assert bring_in(ledger, path)["records"] == 0
        assert sorted(types(ledger)) == sorted(types(whole))
        assert verify(ledger.store).problems == []


def test_a_cut_last_line_that_is_whole_in_the_next_import(ledger: Ledger, tmp_path: Path) -> None:
    lines = [line(row) for row in simple_session().rows]
    path = write(tmp_path / f"{SESSION}.jsonl", [*lines[:-1], lines[-1][:60]])
    assert len(bring_in(ledger, path)["quarantined"]) == 1
    report = bring_in(ledger, write(path, lines))
    assert report["quarantined"] == []
    assert report["model_calls"] == 4
