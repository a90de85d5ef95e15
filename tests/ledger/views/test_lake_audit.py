"""The law of an audit of Parquet files: the same bytes as from the store that they were exported from.

Where no file carries what a detector asks for, that is told, and only there may it find anything else.
"""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest

from ledger.audit import Detector, Report, discover
from ledger.cli.engines import Engine, auditing
from ledger.errors import AmbiguousSessionError, ContentMissingError, RecordDamagedError, SessionNotFoundError
from ledger.events import Draft, Record
from ledger.events.input import MessageReceived
from ledger.events.keeping import Erased
from ledger.events.model_call import ModelCallAnswered
from ledger.home import Ledger, open_ledger
from ledger.lake import Lake, records
from ledger.lake.publish import push
from ledger.lake.records import LakeRecords
from ledger.views.findings import audit, reader_of
from ledger.views.lake import lake_feed
from ledger.views.lake_audit import audit_lake
from tests.commands import FIXTURES, answer, run
from tests.ledger.audit.histories import History
from tests.ledger.audit.test_detectors import cases_of
from tests.ledger.lake.feeds import feed_of, golden_rows
from tests.object_storage import BUCKET, SETTINGS, object_storage

SHIPPED = discover()
EXAMPLES = sorted(folder.name for folder in FIXTURES.iterdir() if folder.is_dir())


def assert_same(in_store: Report, in_lake: Report) -> None:
    """The same bytes, but for what detectors asked for in vain."""
    assert in_lake.missing is not None
    gone = {(one.detector, session) for one in in_lake.missing for session in one.sessions}

    def told(report: Report) -> bytes:
        kept = [one for one in report.findings if (one.detector.partition(".")[0], one.session) not in gone]
        whole = {**report.as_json(everything=True), "missing_input": None} if not gone else {}
        return orjson.dumps([[one.as_json() for one in kept], whole])

    assert told(in_lake) == told(in_store)


def history_of(detector: str, history: History) -> None:
    """All cases of a detector, in one ledger that is exported."""
    for number, case in enumerate(cases_of(detector)):
        history.add(case.events, prefix=f"case-{number:02}-")
    Lake(history.ledger.home / "lake").export(lake_feed(history.ledger.store))


@pytest.mark.parametrize("detector", SHIPPED.values(), ids=SHIPPED)
def test_a_detector_finds_the_same_bytes_in_the_lake_as_in_the_store(
    detector: Detector, tmp_path: Path
) -> None:
    with History(tmp_path) as history:
        history_of(detector.name, history)
        in_store = history.report([detector])
    with auditing(tmp_path, Engine.DUCKDB, None) as there:
        assert_same(in_store, audit_lake(LakeRecords(there.ask), [detector], there.query))


@pytest.mark.parametrize("example", EXAMPLES)
def test_all_detectors_find_the_same_bytes_in_what_an_importer_read(example: str, tmp_path: Path) -> None:
    run(tmp_path, "import", FIXTURES / example)
    with open_ledger(tmp_path) as ledger:
        Lake(tmp_path / "lake").export(lake_feed(ledger.store))
        with auditing(tmp_path, Engine.DUCKDB, None) as there:
            in_store = audit(ledger.store, list(SHIPPED.values()), there.query)
            in_lake = audit_lake(LakeRecords(there.ask), list(SHIPPED.values()), there.query)
    assert in_store.sessions == in_lake.sessions > 0
    assert_same(in_store, in_lake)


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    """Sessions of Claude Code, in a ledger and its lake."""
    home = tmp_path / "home"
    run(home, "import", FIXTURES / "claude-code")
    with open_ledger(home) as opened:
        Lake(home / "lake").export(lake_feed(opened.store))
        yield opened


def without_hashes(record: Record) -> Record:
    """What a lake has of it: times to the microsecond, no hashes, no link to the rest of a source's line."""
    source = record.source
    if source is not None:
        source = type(source)(source.format, source.file, source.item, source.line)
    return record._replace(previous="", hash="", source=source, recorded_at="", occurred_at=None)


@pytest.mark.parametrize("most_rows", [10_000, 7])
def test_records_are_the_same_in_many_steps_or_in_one(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch, most_rows: int
) -> None:
    monkeypatch.setattr(records, "_MOST_ROWS", most_rows)
    store = ledger.store
    with auditing(ledger.home, Engine.DUCKDB, None) as there:
        lake = LakeRecords(there.ask)
        sessions = list(lake.sessions())
        assert sessions == sorted(store.sessions())
        for session in [*sessions, *reversed(sessions)]:
            theirs = list(map(without_hashes, store.read(session)))
            assert list(map(without_hashes, lake.read(session))) == theirs
        longest = max(sessions, key=lambda one: store.head(one).seq)
        some = [record.seq for record in lake.read(longest, after=3, upto=12)]
        assert some == list(range(4, 13))
        answers = list(lake.read(longest, names=(ModelCallAnswered.TYPE,)))
        assert answers and all(isinstance(record.event, ModelCallAnswered) for record in answers)
        times = [(one.recorded_at, one.occurred_at) for one in lake.read(longest)]
        assert [time[0][:19] for time in times] == [one.recorded_at[:19] for one in store.read(longest)]
        assert list(lake.read("absent")) == []


def test_a_session_is_named_as_in_a_store(ledger: Ledger) -> None:
    with auditing(ledger.home, Engine.DUCKDB, None) as there:
        lake = LakeRecords(there.ask)
        for name in ("28f49215", "6e3b6a4f-50ce-47df-88d8-5c620c3fccf9"):
            assert lake.resolve(name) == ledger.store.resolve(name)
        with pytest.raises(SessionNotFoundError):
            lake.resolve("absent")
        with pytest.raises(AmbiguousSessionError):
            lake.resolve("6")


def test_a_content_comes_whole_or_it_is_missing_and_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    long = "word " * 300_000
    with History(tmp_path) as history:
        history.add(
            {"type": "input.message_received", "origin": "human", "message": text}
            for text in ("short", long, "erased")
        )
        store, recorder = history.ledger.store, history.ledger.recorder
        short, cut, erased = [
            record.event.message for record in store.read("main") if isinstance(record.event, MessageReceived)
        ]
        recorder.append(
            "main", [Draft(Erased(digests=(erased.digest,), reason="asked for"))], recorder.keeper()
        )
        Lake(tmp_path / "lake").export(lake_feed(store))
    monkeypatch.setattr(records, "_CONTENTS_HELD", 1)
    with auditing(tmp_path, Engine.DUCKDB, None) as there:
        lake = LakeRecords(there.ask)
        lake.asking = "somebody", "main"
        reader = reader_of(lake)
        assert reader.text(short) == "short" and lake.missing == {}
        assert reader.value(erased) is None and lake.missing == {}  # a store has it no longer, either
        assert reader.value(cut) is None and lake.missing == {("somebody", "main"): 1}
        assert reader.value(cut) is None and lake.missing == {("somebody", "main"): 2}
        assert reader.context("ab" * 32) == [] and lake.missing == {("somebody", "main"): 3}
        with pytest.raises(ContentMissingError):
            lake.content("cd" * 32)


def test_a_damaged_record_stops_an_audit_as_in_the_store(tmp_path: Path) -> None:
    rows = golden_rows(20)
    rows[4] = rows[4]._replace(state=b"{")
    Lake(tmp_path).export(feed_of(rows))
    with auditing(tmp_path, Engine.DUCKDB, None) as there:
        lake = LakeRecords(there.ask)
        with pytest.raises(RecordDamagedError, match="session-0#5 cannot be read"):
            list(lake.read("session-0"))


# -- the command ---------------------------------------------------------------------------------------------


def test_parquet_files_alone_are_audited(ledger: Ledger, tmp_path: Path) -> None:
    in_store = answer(ledger.home, "audit", "--no-keep", "--all")
    copy = tmp_path / "elsewhere"
    shutil.copytree(ledger.home / "lake", copy)
    in_lake = answer(tmp_path / "nothing", "audit", "--lake", copy, "--all")
    gone = {(one["detector"], session) for one in in_lake.pop("missing_input") for session in one["sessions"]}
    assert gone and in_lake["metrics"]["sessions"] == in_store["metrics"]["sessions"]
    there, here = ([one for one in told["findings"] if not is_in(one, gone)] for told in (in_store, in_lake))
    assert here == there != []
    assert not (tmp_path / "nothing").exists()
    shown = run(tmp_path / "nothing", "audit", "--lake", copy)
    assert "missing input: governance_decay asked" in shown.stderr


def is_in(finding: dict[str, Any], pairs: set[tuple[str, str]]) -> bool:
    """Whether a finding is one of these detectors about these sessions."""
    return (finding["detector"].partition(".")[0], finding["session"]) in pairs


def test_one_session_and_one_detector_of_a_lake_on_object_storage(
    ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = ("audit", "28f49215-b231-41f4-92f9-45c1ffc91638", "--detector", "control_tampering")
    sarif = tmp_path / "found.sarif"
    with object_storage() as address:
        for name, value in {**SETTINGS, "AWS_ENDPOINT_URL": address}.items():
            monkeypatch.setenv(name, value)
        mirror = f"s3://{BUCKET}/audited"
        push(Lake(ledger.home / "lake"), mirror)
        in_lake = answer(tmp_path, *asked, "--lake", mirror, "--sarif", sarif)
    assert in_lake.pop("missing_input") == []
    assert in_lake == answer(ledger.home, *asked, "--no-keep", "--sarif", tmp_path / "store.sarif")
    assert sarif.read_bytes() == (tmp_path / "store.sarif").read_bytes()


def test_what_cannot_be_is_said(ledger: Ledger, tmp_path: Path) -> None:
    for options, said in (
        (("--lake", tmp_path / "none"), "there is no lake in"),
        (("--lake", ledger.home, "--follow"), "leave out --lake"),
        (("--engine", "spark"), "needs --spark"),
    ):
        wrong = run(ledger.home, "audit", *options)
        assert (wrong.exit_code, said in wrong.stderr) == (2, True), wrong.output
