"""Detectors are found, run, and told apart when they are broken; the same input gives the same findings."""

import re
from pathlib import Path

import pytest

from ledger.audit import discover
from ledger.audit.discovery import chosen
from ledger.cli.auditing import run as run_audit
from ledger.errors import InputError
from tests.ledger.audit.histories import History, Told
from tests.ledger.audit.test_detectors import SHIPPED, cases_of

HEAD = """-- title:    Any call at all
-- severity: low
-- why:      Because this is a test of detectors.
-- misses:   Nothing that is a call.
-- reads:    tool_calls
-- source:   Nowhere at all.
"""
CALL: list[Told] = [
    {"type": "tool_call.requested", "call_id": "a", "tool": "pay", "arguments": {"to": "x"}},
    {"type": "tool_call.settled", "call_id": "a", "outcome": "returned", "result": "ok"},
]
SOURCE = 'TITLE = WHY = MISSES = SOURCE = "any text"\nSEVERITY = "low"\nREADS = ()\n'


def own(home: Path, name: str, text: str) -> Path:
    """A detector of the user's own."""
    folder = home / "detectors"
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(text, encoding="utf-8")
    return folder


def test_sql_in_the_home_is_found_and_run(tmp_path: Path) -> None:
    own(
        tmp_path,
        "any_call.sql",
        HEAD + "select session, requested_seq as seq, tool as message from tool_calls",
    )
    found = discover(tmp_path)
    assert found["any_call"].is_own and found["any_call"].misses == "Nothing that is a call."
    with History(tmp_path) as history:
        history.add(CALL)
        (finding,) = history.findings([found["any_call"]])
    assert (finding.detector, finding.session, finding.seq, finding.message) == ("any_call", "main", 1, "pay")


def test_python_of_the_home_is_not_run_but_that_of_a_named_folder_is(tmp_path: Path) -> None:
    text = f"""from ledger.audit import Found
{SOURCE}
class Fold:
    def take(self, record):
        yield Found(record.seq, record.type, part="seen")
    def end(self):
        return ()
def start(given):
    return Fold()
"""
    folder = own(tmp_path, "all_of_it.py", text)
    assert "all_of_it" not in discover(tmp_path)
    detector = discover(tmp_path, folder)["all_of_it"]
    with History(tmp_path) as history:
        history.add(CALL)
        found = history.findings([detector])
    assert [(one.detector, one.message) for one in found] == [
        ("all_of_it.seen", "tool_call.requested"),
        ("all_of_it.seen", "tool_call.settled"),
    ]


def test_another_distribution_offers_detectors_by_an_entry_point(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package, told = tmp_path / "their_detectors", tmp_path / "theirs-1.0.dist-info"
    package.mkdir()
    told.mkdir()
    (package / "__init__.py").write_text("")
    (package / "any_call.sql").write_text(HEAD + "select session, 1 as seq, tool as message from tool_calls")
    (told / "METADATA").write_text("Metadata-Version: 2.1\nName: theirs\nVersion: 1.0\n")
    (told / "entry_points.txt").write_text("[loopledger.detectors]\ntheirs = their_detectors\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    found = discover()
    assert found["any_call"].title == "Any call at all" and set(SHIPPED) < set(found)


def test_the_users_own_sql_reads_no_file_outside_the_lake(tmp_path: Path) -> None:
    secret = tmp_path / "secret.csv"
    secret.write_text("a\n1\n")
    home = tmp_path / "home"
    home.mkdir()
    query = f"select '' as session, 1 as seq, a::text as message from read_csv('{secret}')"
    own(home, "thief.sql", HEAD + query)
    with History(home) as history:
        history.add(CALL)
        report = run_audit(history.ledger, [discover(home)["thief"]], None)
    (failure,) = report.failures
    assert report.findings == []
    assert re.search(r"thief\.sql:7: the query cannot be run: Permission Error", failure.error)


@pytest.mark.parametrize(
    ("name", "text", "told"),
    [
        ("a.sql", "select 1", r"a\.sql:1: the head lacks a line `-- title: \.\.\.`"),
        ("a.sql", HEAD.replace("low", "awful"), r"a\.sql:2: expected one of info, low, .* found 'awful'"),
        ("a.sql", HEAD + "-- colour: red\n", r"a\.sql:7: 'colour' is no word of a detector's head"),
        ("a.py", "TITLE = 1\n", r"a\.py:1: expected a text TITLE = \.\.\., found 1"),
        ("a.py", "x = 1\nthis is no Python\n", r"a\.py:2: the detector is no Python"),
        ("a.py", "x = 1\n\nx.nothing\n", r"a\.py:3: the detector cannot be loaded: AttributeError"),
        ("a.py", SOURCE, r"a\.py:1: expected a function start\(given\), found None"),
        (
            "a.py",
            SOURCE.replace("()", "('no.event',)") + "start = print\n",
            r"a\.py:3: READS names no event 'no\.event'",
        ),
    ],
)
def test_a_bad_file_is_named_with_its_line(tmp_path: Path, name: str, text: str, told: str) -> None:
    broken = discover(None, own(tmp_path, name, text))["a"].broken
    assert broken is not None and re.search(told, broken)


@pytest.mark.parametrize(
    ("query", "told"),
    [
        ("select\n  nonsense\nfrom tool_calls", r"a\.sql:8: the query cannot be run: Binder Error"),
        ("select session, requested_seq as seq from tool_calls", r"gives no column 'message'"),
        (
            "select session, 1 as seq, '' as message, 1 as more from tool_calls",
            r"a column 'more' that nobody reads",
        ),
        ("create table x (a integer)", r"a detector is one select"),
        (
            "select session, 1 as seq, 'x' as message, 'awful' as severity from tool_calls",
            r"'awful' is none of info",
        ),
    ],
)
def test_a_query_that_cannot_be_run_is_named_with_its_line(tmp_path: Path, query: str, told: str) -> None:
    own(tmp_path, "a.sql", HEAD + query)
    with History(tmp_path) as history:
        history.add(CALL)
        (failure,) = history.report([discover(tmp_path)["a"]]).failures
    assert failure.detector == "a" and re.search(told, failure.error)


def test_a_fold_that_breaks_is_named_with_the_record(tmp_path: Path) -> None:
    text = SOURCE + "def start(given):\n    return given\n"
    detector = discover(None, own(tmp_path, "broken.py", text))["broken"]
    with History(tmp_path) as history:
        history.add(CALL)
        (failure,) = history.report([detector]).failures
    assert re.search(r"broken\.py: detector broken failed at main#1", failure.error)


def test_a_name_that_no_detector_has_is_an_error() -> None:
    assert [one.name for one in chosen(SHIPPED, ["approval.stale"], everything=False)] == ["approval"]
    with pytest.raises(InputError, match="no detector is named 'nothing': expected one of "):
        chosen(SHIPPED, ["nothing"], everything=False)


def test_the_same_sessions_in_another_order_give_the_same_findings(tmp_path: Path) -> None:
    cases = [(name, case.events) for name in SHIPPED for case in cases_of(name)]
    told = []
    for place, order in (("one", cases), ("two", cases[::-1])):
        (tmp_path / place).mkdir()
        with History(tmp_path / place) as history:
            for name, events in order:
                number = cases.index((name, events))
                history.add(events, prefix=f"{number:03}-")
            told.append([one.as_json() for one in history.findings(list(SHIPPED.values()))])
    assert told[0] == told[1] and len(told[0]) > 5


def test_one_session_gives_what_all_sessions_give_of_it(tmp_path: Path) -> None:
    with History(tmp_path) as history:
        for name in SHIPPED:
            for number, case in enumerate(cases_of(name)):
                history.add(case.events, prefix=f"{name}-{number}-")
        everything = history.findings(list(SHIPPED.values()))
        session = everything[-1].session
        assert history.findings(list(SHIPPED.values()), [session]) == [
            one for one in everything if one.session == session
        ]
