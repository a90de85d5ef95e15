"""Counts that somebody else made of the shared traces, against the import report and against the ledger.

`EXPECTED.json` beside the traces counts files of many formats. Every file of a format that an importer reads must have
each of its counts, in the report and in what lies in the ledger. Files that do not, with the proof that the count is
wrong: none.

The report has its own words for some counts (`_REPORTED`). In the ledger a count is taken from events alone (`_KEPT`).
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ledger.events import Record
from ledger.events.compaction import CompactionDone
from ledger.events.governance import ArtifactChanged, ModeChanged
from ledger.events.input import ContextInjected, MessageReceived
from ledger.events.keeping import SourceKept
from ledger.events.model_call import ModelCallAnswered
from ledger.events.recovery import DamageFound
from ledger.events.session import SessionStarted
from ledger.events.tool_call import ToolCallRequested, ToolCallSettled
from ledger.home import Ledger
from ledger.importers import discover
from ledger.importers._files import find_files, sniff
from ledger.importers._intake import FileReport, import_paths
from tests.ledger.importers.plain_traces import TRACES

_COUNTED = TRACES / "EXPECTED.json"
EXPECTED: dict[str, dict[str, Any]] = (
    json.loads(_COUNTED.read_text(encoding="utf-8")) if _COUNTED.is_file() else {}
)

Records = list[Record]


def _events(records: Records, *kinds: type[Any]) -> list[Any]:
    return [record.event for record in records if isinstance(record.event, kinds)]


def _answers(records: Records) -> int:
    return len(
        {
            (record.session, record.event.call_id)
            for record in records
            if isinstance(record.event, ModelCallAnswered) and not record.event.synthetic
        }
    )


def _results(records: Records) -> list[ToolCallSettled]:
    settled = _events(records, ToolCallSettled)
    return [one for one in settled if one.result is not None or one.outcome not in ("unknown", "not_started")]


def _unanswered(records: Records) -> int:
    asked = {event.call_id for event in _events(records, ToolCallRequested)}
    return len(asked - {event.call_id for event in _results(records) if not event.orphan})


def _messages(records: Records) -> int:
    return _answers(records) + len(_events(records, MessageReceived, ContextInjected, ArtifactChanged))


def _policies(records: Records) -> list[list[str]]:
    modes = [event.new for event in _events(records, ModeChanged) if event.mode in ("approval", "sandbox")]
    return [modes[place : place + 2] for place in range(0, len(modes), 2)]


def _kept(records: Records, name: str) -> int:
    return sum(event.native_type in (name, f"event_msg:{name}") for event in _events(records, SourceKept))


_KEPT: dict[str, Callable[[Records], Any]] = {
    "model_calls": _answers,
    "event:model": _answers,
    "tool_calls": lambda records: len(_events(records, ToolCallRequested)),
    "tool_results": lambda records: len(_results(records)),
    "event:tool": lambda records: len(_results(records)),
    "error_results": lambda records: sum(one.outcome in ("failed", "denied") for one in _results(records)),
    "orphan_results": lambda records: sum(one.orphan for one in _results(records)),
    "unanswered_calls": _unanswered,
    "compactions": lambda records: len(_events(records, CompactionDone)),
    "type:compaction": lambda records: len(_events(records, CompactionDone)),
    "compact_summaries": lambda records: sum(
        event.summary is not None for event in _events(records, CompactionDone)
    ),
    "summaries": lambda records: _kept(records, "summary"),
    "type:thinking_level_change": lambda records: _kept(records, "thinking_level_change"),
    "type:message": lambda records: (
        _answers(records) + len(_events(records, MessageReceived)) + len(_results(records))
    ),
    "messages": _messages,
    "bad": lambda records: sum(not event.repaired for event in _events(records, DamageFound)),
    "sessions": lambda records: len({record.session for record in records}),
    "samples": lambda records: len({record.session for record in records}),
    "session_meta": lambda records: len(_events(records, SessionStarted)),
    "type:session": lambda records: len(_events(records, SessionStarted)),
    "sidechain_lines": lambda records: len(
        {record.source.line for record in records if record.depth and record.source} - {None}
    ),
    "policy_sequence": _policies,
}
"""How a count is taken from the ledger; other names are source records that are kept whole."""

_IN_ANSWERS = frozenset({"lines", "entries", "message", "reasoning"})
"""Counts of source records that become parts of events: the report alone tells how many there were."""


def _reported(report: FileReport, name: str, records: Records) -> Any:
    """A count by the name that EXPECTED.json has for it."""
    native = report["native"]
    match name:
        case "sessions":
            return len(report["sessions"])
        case "bad":
            return len(report["quarantined"])
        case "entries":
            return report["lines"]
        case "summaries":
            return native["summary"]
        case "messages":
            return sum(number for kind, number in native.items() if kind.startswith("message:"))
        case "compact_summaries":
            return report["compactions"]
        case "sidechain_lines":
            return report["lines"] if all(".agent-" in one for one in report["sessions"]) else 0
        case "policy_sequence":
            return _policies(records)  # no number: the ledger tells
        case "session_meta" if not native.get(name):
            return sum(
                record.type == "session.started" for record in records
            )  # a header without the type's name
    if name in report:
        return report[name]
    found = [number for kind, number in native.items() if name.removeprefix("type:") in (kind, _last(kind))]
    return native[name] if name in native else sum(found)


def _last(kind: str) -> str:
    return kind.rpartition(":")[2]


@pytest.mark.skipif(not EXPECTED, reason="no traces of others on this machine")
@pytest.mark.parametrize("name", EXPECTED)
def test_a_file_has_the_counts_that_were_made_apart(name: str, ledger: Ledger) -> None:
    (report,) = import_paths(ledger.recorder, [TRACES / name]).files
    if report["format"] is None:
        pytest.skip(f"no importer reads this format: {report['reason']}")
    records = list(ledger.store.read_all())
    wanted = EXPECTED[name]
    assert {count: _reported(report, count, records) for count in wanted} == wanted
    kept = {
        count: _KEPT[count](records) if count in _KEPT else _kept(records, count)
        for count in wanted.keys() - _IN_ANSWERS
    }
    assert kept == {count: wanted[count] for count in kept}


@pytest.mark.skipif(not EXPECTED, reason="no traces of others on this machine")
def test_the_whole_tree_ends_in_sessions_or_named_reasons(ledger: Ledger) -> None:
    files = import_paths(ledger.recorder, [TRACES]).files
    assert len(files) == sum(path.is_file() for path in TRACES.rglob("*"))
    for report in files:
        if report["format"] is None:
            assert report["reason"], report["path"]
        else:
            assert report["sessions"], report["path"]
            assert "reason" not in report, report
    counted = {str(Path(report["path"]).relative_to(TRACES)): report for report in files}
    for name, wanted in EXPECTED.items():
        report = counted[name]
        if report["format"] is not None:  # beside all the others, a file's own counts stay the same
            for count in wanted.keys() & report.keys():
                assert report[count] == wanted[count] or count == "sessions", (name, count)
    assert import_paths(ledger.recorder, [TRACES]).records_added == 0


@pytest.mark.skipif(not EXPECTED, reason="no traces of others on this machine")
def test_one_importer_alone_takes_a_file() -> None:
    importers = discover().values()
    for path in find_files([TRACES]):
        facts = sniff(path)
        takers = [importer.FORMAT for importer in importers if importer.recognizes(facts)]
        assert len(takers) < 2, (path, takers)
