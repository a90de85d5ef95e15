"""A broken detector at the command line: the others' findings, what is told of it, and the exit status."""

import json
import queue
import threading
from collections import deque
from pathlib import Path

import pytest
from sarif_kit import validation_errors

from tests.commands import answer, process, record_session, run
from tests.ledger.audit.test_broken import GOOD, fold
from tests.ledger.audit.test_running import HEAD, own
from tests.test_audit_commands import conversation


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A ledger in which a hook goes, and whose home holds two detectors that are broken."""
    home = tmp_path / "home"
    run(home, "import", conversation(tmp_path / "tampered.json", "ls", "rm .claude/hooks/pre_tool_use.py"))
    own(home, "bad_head.sql", GOOD)
    own(home, "bad_query.sql", HEAD + "select nothing from tool_calls")
    return home


def test_an_audit_tells_of_broken_detectors_and_ends_with_2_or_with_bad_news(home: Path) -> None:
    told = run(home, "audit", "--json", "--no-keep")
    findings = json.loads(told.stdout)["findings"]
    assert told.exit_code == 2 and "control_tampering.control" in {one["detector"] for one in findings}
    first, second = json.loads(told.stdout)["failed"]
    assert (first["detector"], second["detector"]) == ("bad_head", "bad_query")
    assert "bad_query.sql:7: the query cannot be run" in second["error"] and second["times"] == 1
    assert "bad_head failed: " in told.stderr and "the head lacks a line" in told.stderr
    assert "Traceback" not in told.output
    assert run(home, "audit", "--fail-on", "critical").exit_code == 1
    only = ("--detector", "control_tampering")
    assert run(home, "audit", *only).exit_code == 0
    assert answer(home, "audit", *only)["failed"] == []
    assert run(home, "audit", "--detector", "bad_head").exit_code == 2


def test_sarif_says_that_the_run_was_no_success(home: Path, tmp_path: Path) -> None:
    run(home, "audit", "--sarif", tmp_path / "out.sarif")
    told = json.loads((tmp_path / "out.sarif").read_bytes())
    assert validation_errors(told) == []
    (invocation,) = told["runs"][0]["invocations"]
    assert invocation["executionSuccessful"] is False
    assert [one["message"]["text"].partition(":")[0] for one in invocation["toolExecutionNotifications"]] == [
        "bad_head",
        "bad_query",
    ]


def test_detectors_lists_the_broken_ones_with_what_is_wrong(home: Path) -> None:
    listed = {one["name"]: one for one in answer(home, "detectors")}
    assert listed["bad_head"]["state"] == "broken" and "the head lacks" in listed["bad_head"]["error"]
    assert listed["bad_query"]["state"] == "on" and listed["bad_query"]["error"] is None
    assert "the head lacks" in " ".join(run(home, "detectors").stdout.split())


def test_a_live_audit_tells_of_them_and_of_what_the_others_find(tmp_path: Path) -> None:
    home = tmp_path / "home"
    record_session(home)
    folder = own(home, "bad_head.sql", GOOD)
    own(home, "raises.py", fold(take="raise ValueError('no')"))
    with process(home, "audit", "--follow", "--fail-on", "high", "--detectors", folder) as follower:
        assert follower.stdout is not None and follower.stderr is not None
        lines: queue.Queue[bytes] = queue.Queue()
        errors: list[bytes] = []
        outputs = (follower.stdout, lines.put), (follower.stderr, errors.append)
        readers = [
            threading.Thread(target=lambda stream=stream, take=take: deque(map(take, stream), maxlen=0))
            for stream, take in outputs
        ]
        for reader in readers:
            reader.start()
        assert b"looking at what comes" in lines.get(timeout=120)
        run(home, "import", conversation(tmp_path / "tampered.json", "rm .claude/hooks/pre_tool_use.py"))
        assert b"control_tampering.control" in lines.get(timeout=120)
        assert follower.wait(timeout=120) == 1
        for reader in readers:
            reader.join(timeout=120)
    assert b"bad_head failed: " in b"".join(errors) and b"Traceback" not in b"".join(errors)
