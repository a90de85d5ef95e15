"""A detector that breaks, in whatever way, is told of, and all others find what they find without it."""

import re
from pathlib import Path
from typing import Any

import pytest

from ledger.audit import Detector, discover
from ledger.audit.report import Report
from ledger.audit.running import events_read
from tests.ledger.audit.histories import History, Told
from tests.ledger.audit.test_detectors import SHIPPED
from tests.ledger.audit.test_running import HEAD, SOURCE, own

GOOD = "select session, requested_seq as seq, tool as message from tool_calls"
CALLS: list[Told] = [
    event
    for number in range(3)
    for event in (
        {"type": "tool_call.requested", "call_id": f"c{number}", "tool": "pay", "arguments": {"to": number}},
        {"type": "tool_call.settled", "call_id": f"c{number}", "outcome": "returned", "result": "ok"},
    )
]

FOLD = """from ledger.audit import Found
{source}
class Fold:
    def take(self, record):
        {take}
    def end(self):
        {end}
def start(given):
    {start}
    return Fold()
"""

BROKEN = {
    "raises_when_it_begins.py": {"start": "raise ValueError('no')"},
    "raises_at_a_record.py": {"take": "raise ValueError('no')"},
    "raises_at_the_end.py": {"end": "raise ValueError('no')"},
    "exits.py": {"take": "raise SystemExit(3)"},
    "gives_none.py": {"take": "return None"},
    "gives_what_is_no_finding.py": {"take": "return [1]"},
    "gives_no_seq.py": {"take": "return [Found(None, 'x')]"},
    "gives_seq_zero.py": {"take": "return [Found(0, 'x')]"},
    "gives_a_seq_that_is_not_there.py": {"take": "return [Found(10**6, 'x')]"},
    "gives_no_text.py": {"take": "return [Found(1, b'x')]"},
    "gives_an_unknown_severity.py": {"take": "return [Found(1, 'x', severity='awful')]"},
    "gives_an_unknown_level.py": {"take": "return [Found(1, 'x', level='awful')]"},
    "gives_half_a_character.py": {"take": "return [Found(1, 'x', part='\\ud800')]"},
    "gives_a_list_as_key.py": {"take": "return [Found(1, 'x', key=[1])]"},
    "recurses.py": {"take": "return self.take(record)"},
}
BROKEN_QUERIES = {
    "no_column.sql": "select session, 1 as seq from tool_calls",
    "a_column_too_many.sql": "select session, 1 as seq, '' as message, 1 as more from tool_calls",
    "no_session.sql": "select null as session, 1 as seq, 'x' as message",
    "no_such_session.sql": "select 'nowhere' as session, 1 as seq, 'x' as message",
    "no_such_record.sql": "select session, 1000000 as seq, 'x' as message from tool_calls",
    "no_number.sql": "select session, 'one' as seq, 'x' as message from tool_calls",
    "half_a_number.sql": "select session, 1.5 as seq, 'x' as message from tool_calls",
    "no_list.sql": "select session, 1 as seq, 'x' as message, 'y' as witnesses from tool_calls",
    "no_text.sql": "select session, 1 as seq, 2 as message from tool_calls",
    "fails_at_a_row.sql": "select session, cast(tool as int) as seq, 'x' as message from tool_calls",
    "no_table.sql": "select session, 1 as seq, 'x' as message from nothing",
    "no_select.sql": "drop view tool_calls",
    "two_queries.sql": f"{GOOD}; {GOOD}",
}


def fold(**parts: str) -> str:
    """The text of a fold in Python."""
    told = {"take": "return []", "end": "return []", "start": "pass"} | parts
    return FOLD.format(source=SOURCE, **told)


def broken(home: Path) -> Path:
    """A folder in which every detector is broken but one, `good`."""
    own(home, "good.sql", HEAD + GOOD)
    own(home, "no_head.sql", GOOD)
    own(home, "no_rules.yaml", "rules: 3\n")
    own(home, "no_python.py", "this is no Python\n")
    own(home, "exits_at_once.py", "import sys\nsys.exit(0)\n")
    (home / "detectors" / "no_words.sql").write_bytes(b"\xff\xfe\x00")
    for name, parts in BROKEN.items():
        own(home, name, fold(**parts))
    for name, query in BROKEN_QUERIES.items():
        own(home, name, HEAD + query)
    return home / "detectors"


def names_of_broken() -> set[str]:
    """Those that an audit of some calls tells of."""
    unusable = {"no_head", "no_rules", "no_python", "exits_at_once", "no_words"}
    return unusable | {name.rpartition(".")[0] for name in (*BROKEN, *BROKEN_QUERIES)}


def without_failures(report: Report) -> dict[str, Any]:
    """What a report tells of findings."""
    told = report.as_json()
    return {"findings": told["findings"]}


def test_every_other_detector_goes_on_and_the_broken_ones_are_told(tmp_path: Path) -> None:
    folder = broken(tmp_path)
    found = discover(None, folder)
    with History(tmp_path) as history:
        history.add(CALLS)
        alone = history.report([*SHIPPED.values(), found["good"]])
        report = history.report(list(found.values()))
    assert without_failures(report) == without_failures(alone) and len(alone.findings) >= 3
    assert {one.detector for one in report.failures} == names_of_broken()
    assert all(one.detector in one.error and one.place.startswith(str(folder)) for one in report.failures)
    assert report.as_json()["failed"][0].keys() == {"detector", "place", "error", "times"}
    assert alone.as_json()["failed"] == []


def test_a_fold_breaks_in_one_session_and_looks_at_the_next(tmp_path: Path) -> None:
    take = "\n        ".join(
        (
            "if record.session == 'bad' and record.seq == 3: raise ValueError('no')",
            "return [Found(record.seq, record.type, part='seen')]",
        )
    )
    detector = discover(None, own(tmp_path, "picky.py", fold(take=take)))["picky"]
    with History(tmp_path) as history:
        for session in ("bad", "good"):
            history.add([{**event, "@session": session} for event in CALLS])
        report = history.report([detector])
    assert [(one.session, one.seq) for one in report.findings] == [
        ("bad", 1),
        ("bad", 2),
        *(("good", seq) for seq in range(1, 7)),
    ]
    (failure,) = report.failures
    assert failure.times == 1 and "failed at bad#3" in failure.error


def test_a_package_of_which_a_part_is_broken_gives_the_rest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, files in (
        (
            "half_of_it",
            {"__init__.py": "", "bad.py": "import nothing_of_this_name\n", "fine.sql": HEAD + GOOD},
        ),
        ("none_of_it", {"__init__.py": "raise RuntimeError('not here')\n"}),
    ):
        (tmp_path / name).mkdir()
        for file, text in files.items():
            (tmp_path / name / file).write_text(text)
    told = tmp_path / "theirs-1.0.dist-info"
    told.mkdir()
    (told / "METADATA").write_text("Metadata-Version: 2.1\nName: theirs\nVersion: 1.0\n")
    points = "half = half_of_it\nnone = none_of_it\ngone = gone_for_good\nexits = exits_at_once\n"
    (told / "entry_points.txt").write_text(f"[loopledger.detectors]\n{points}")
    (tmp_path / "exits_at_once.py").write_text("raise SystemExit('bye')\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    found = discover()
    assert found["fine"].broken is None and not found["fine"].is_shipped
    assert {name: one.broken for name, one in found.items() if name in SHIPPED} == dict.fromkeys(SHIPPED)
    said = {name: one.broken for name, one in found.items() if one.broken is not None}
    assert set(said) == {"bad", "none", "gone", "exits"}
    assert re.search("nothing_of_this_name", said["bad"] or "") and re.search("not here", said["none"] or "")


def test_a_broken_file_takes_the_place_of_no_detector_that_works(tmp_path: Path) -> None:
    own(tmp_path, "hijack.sql", "select 1")
    found = discover(tmp_path)
    assert found["hijack"] == SHIPPED["hijack"]
    assert found["hijack.sql"].broken is not None and found["hijack.sql"].name == "hijack.sql"


def test_what_we_ship_is_not_broken() -> None:
    assert [one.name for one in SHIPPED.values() if one.broken is not None or not one.is_shipped] == []


def test_a_query_rests_on_the_events_that_its_head_names_and_on_all_where_it_names_none() -> None:
    def reads(*names: str) -> frozenset[str] | None:
        detector = SHIPPED["duplicated_effect"]
        return events_read(Detector(**{**detector.__dict__, "reads": names}))

    calls = frozenset(f"tool_call.{phase}" for phase in ("requested", "started", "settled"))
    assert reads("tool_calls", "session.ended") == calls | {"session.ended"}
    assert reads("tool_calls") is None  # a head that was written without a thought of this
    for table in ("events", "events_main", "sessions", "no_such_table"):
        assert reads(table, "session.ended") is None
