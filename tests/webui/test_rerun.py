"""Replay by wire: a command runs again on what the proxy recorded, with nothing but loopback to reach."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ledger.errors import InputError
from ledger.events import Actor, Draft, Record
from ledger.events.model_call import ModelCallRequested
from ledger.events.replaying import ReplayAnswered, ReplayDiverged, ReplayEnded, ReplayStarted
from ledger.events.session import SessionLinked, SessionStarted
from ledger.home import open_ledger
from ledger.store import verify
from tests.commands import run
from tests.scripted_model import Error, Step, Text
from tests.webui.proxied import RUN, recorded
from tests.webui.rerunning import Case, command, counting, two_lanes
from webui.outside import attempts_in
from webui.rerun import Rerun, rerun
from webui.sandbox import SandboxUnavailableError, copy_workspace, open_room

SYSTEM = "You are a careful clerk who counts."


def records(home: Path) -> list[Record]:
    """All records of the recorded run."""
    with open_ledger(home) as ledger:
        return list(ledger.store.read(RUN))


@pytest.fixture(scope="session")
def can_hold_back(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Skips where the system lets nobody make a sandbox, with what it says."""
    try:
        with open_room(tmp_path_factory.mktemp("empty")):
            pass
    except SandboxUnavailableError as error:
        pytest.skip(str(error))


@pytest.fixture
def case(tmp_path: Path, can_hold_back: None) -> Case:
    """A ledger and a workspace."""
    return Case(tmp_path)


def test_a_command_runs_again_without_a_model_and_without_effect(case: Case) -> None:
    said = case.record(counting(), "count the apples")
    assert said == "All is counted.\n"
    status, report, errors = case.replay("count the apples")
    assert (status, report["verdict"], errors) == (0, "equal", said)
    assert [one["match"] for one in report["requests"]] == ["raw"] * 3
    assert report["tools"] == {"count": 2}
    assert report["sandbox"] == {
        "held_back": True,
        "reason": None,
        "network": "loopback",
        "cwd": str(case.workspace),
        "attempts": {},
    }
    assert report["command"]["status"] == 0
    assert case.counted() == 0 and sorted(path.name for path in case.workspace.iterdir()) == [
        "__init__.py",
        "boss.py",
        "clerk.py",
        "talker.py",
    ]


def test_a_replay_is_a_session_with_its_origin_and_can_be_looked_at(case: Case) -> None:
    case.record(counting(), "count the apples")
    report, _ = case.rerun("count the apples", tools={"weigh": "blocked"})
    (started,) = recorded(case.home, ReplayStarted)
    assert (started.origin, started.level, started.mode, started.frozen) == (RUN, "rerun", "wire", True)
    assert {one.tool: one.treatment for one in started.tools} == {"*": "live", "weigh": "blocked"}
    assert [one.source for one in recorded(case.home, ReplayAnswered)] == ["recorded"] * 3
    (ended,) = recorded(case.home, ReplayEnded)
    assert (ended.verdict, ended.checked, ended.live, ended.effects) == ("equal", 3, 0, 0)
    with open_ledger(case.home) as ledger:
        session = report.facts["replay_session"]
        assert session in ledger.store.sessions()
        assert verify(ledger.store).problems == []
        assert any(isinstance(record.event, ModelCallRequested) for record in ledger.store.read(session))


def test_two_conversations_at_once_are_replayed_ten_times_of_ten(case: Case) -> None:
    said = case.record(two_lanes(), "apples", "pears", "--fake", "counted")
    for _ in range(10):
        report, printed = case.rerun("apples", "pears", "--fake", "counted")
        assert (report.verdict, printed) == ("equal", said)
        assert len(report.requests) == 6


CHANGES: dict[str, tuple[tuple[str, ...], str, int, str]] = {
    "system prompt": (("--system", "You are a careless clerk who counts."), "request", 0, "/system"),
    "tool schema": (("--description", "Count two more."), "schema", 0, "/tools/0/description"),
    "tool result": (("--fake", "7 so far"), "request", 1, "/messages/2/content/0/content"),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_change_stops_the_replay_at_its_place_and_nothing_is_served_after_it(case: Case, name: str) -> None:
    changed, kind, index, pointer = CHANGES[name]
    case.record(counting(), "count the apples")
    with open_ledger(case.home) as ledger:
        seqs = [
            record.seq for record in ledger.store.read(RUN) if isinstance(record.event, ModelCallRequested)
        ]
    status, report, errors = case.replay("count the apples", *changed)
    assert (status, report["verdict"]) == (1, "diverged")
    divergence = report["divergence"]
    assert (divergence["kind"], divergence["seq"], divergence["pointer"]) == (kind, seqs[index], pointer)
    assert f"replay stopped: {kind} at {RUN}#{seqs[index]}, {pointer}" in errors
    assert [one["source"] for one in report["requests"]] == ["recorded"] * index + ["blocked"]
    (kept,) = recorded(case.home, ReplayDiverged)
    assert (kept.kind, kept.origin_seq, kept.pointer) == (kind, seqs[index], pointer)


def test_the_log_of_a_run_is_replayed_by_what_the_proxy_saw_of_it(case: Case) -> None:
    case.record(counting(1), "count the apples")
    link = SessionLinked(other=RUN, how=("run_id",), matched=2, only_here=0, only_there=0)
    with open_ledger(case.home) as ledger:
        drafts = [
            Draft(SessionStarted(harness="my-harness"), actor=Actor("system")),
            Draft(link, actor=Actor("system")),
        ]
        ledger.recorder.append("its-log", drafts, ledger.recorder.keeper())
        asked = Rerun(command("count the apples"), case.workspace)
        report = rerun(ledger, "its-log", asked)
    assert (report.session, report.verdict) == (RUN, "equal")


def test_two_calls_in_another_order_stop_the_replay(case: Case) -> None:
    case.record(counting(0, last=[Step([Text("the same")])] * 2), "apples, pears", loop="talker.py")
    report, printed = case.rerun("pears, apples", loop="talker.py", gate_timeout_s=0.5)
    first, _ = [one for one in records(case.home) if one.type == "model_call.requested"]
    assert report.divergence is not None
    assert (report.divergence.kind, report.divergence.seq) == ("order", first.seq)
    assert [status for status, *_ in json.loads(printed)] == [400, 400]


def test_an_identifier_that_nobody_recorded_is_named_as_the_cause(case: Case) -> None:
    first, second = "0b5f2a54-3f0c-4f0e-9a55-1d1f2c3b4a59", "7c1e9d02-88aa-4c2b-b7e4-90ab12cd34ef"
    case.record(counting(), "count the apples", "--fake", first)
    report, _ = case.rerun("count the apples", "--fake", second)
    assert report.divergence is not None and report.divergence.cause is not None
    assert report.divergence.pointer == "/messages/2/content/0/content"
    assert "an identifier" in report.divergence.cause


def test_a_command_that_ends_early_leaves_requests_that_are_missing(case: Case) -> None:
    case.record(counting(), "count the apples")
    code = f"import clerk; clerk.ask({SYSTEM!r}, [{{'role': 'user', 'content': 'count the apples'}}])"
    with open_ledger(case.home) as ledger:
        report = rerun(ledger, RUN, Rerun([sys.executable, "-c", code], case.workspace))
    assert report.divergence is not None and report.divergence.kind == "missing"
    assert report.divergence.cause == "the replay ended before 2 recorded requests came"


def test_who_tries_to_connect_outside_is_stopped_and_named(case: Case) -> None:
    case.record(counting(0), "say something")
    report, printed = case.rerun("say something", "--outside", "192.0.2.7")
    assert "not reached: [Errno 111] Connection refused" in printed and "reached outside" not in printed
    assert report.facts["sandbox"]["attempts"] == {"tcp 192.0.2.7:443": 1}
    assert report.outside_calls == 1
    report, _ = case.rerun("say something", "--outside", "telemetry.example.com")
    assert "name telemetry.example.com" in report.facts["sandbox"]["attempts"]
    (first, second) = recorded(case.home, ReplayEnded)
    assert (first.outside_calls, second.outside_calls > 0) == (1, True)


def test_files_outside_the_copy_stay_as_they_are(case: Case) -> None:
    case.record(counting(1), "count", "--counter", "counter.txt", "--fake", "counted")
    outside = Path(sys.prefix) / "never-written.txt"
    report, _ = case.rerun("count", "--counter", str(outside), "--fake", "counted")
    assert (report.verdict, outside.exists()) == ("diverged", False)
    assert report.divergence is not None and report.divergence.kind == "missing"


def test_a_system_that_cannot_hold_back_refuses_unless_told_otherwise(case: Case) -> None:
    said = case.record(counting(1), "count the apples")
    if shutil.which("unshare") is None:
        pytest.skip("there is no program `unshare` to make a system without namespaces with")
    poor = ["unshare", "-Ur", "sh", "-c", 'echo 0 > /proc/sys/user/max_user_namespaces && exec "$@"', "sh"]
    words = ["--home", str(case.home), "replay", RUN, "--workspace", str(case.workspace), "--json"]
    rest = ["--", *command("count the apples")]
    program = [*poor, sys.executable, "-m", "webui", *words]
    refused = subprocess.run([*program, *rest], capture_output=True, check=False)
    told = json.loads(refused.stdout)
    assert (refused.returncode, told["verdict"], told["sandbox"]["held_back"]) == (2, None, False)
    assert b"does not let the command be held back (unshare: No space left on device)" in refused.stderr
    free = subprocess.run([*program, "--no-sandbox", *rest], capture_output=True, check=False)
    report = json.loads(free.stdout)
    assert (free.returncode, report["verdict"], free.stderr.decode()) == (0, "equal", said)
    assert (report["sandbox"]["held_back"], report["sandbox"]["network"]) == (False, "all")
    assert (report["effects"], case.counted()) == (1, 0)


def test_a_copy_leaves_out_the_ledger_and_what_is_no_file(tmp_path: Path) -> None:
    desk = tmp_path / "desk"
    (desk / "sub").mkdir(parents=True)
    (desk / "sub" / "letter").write_text("dear Ada")
    (desk / "link").symlink_to("sub/letter")
    os.mkfifo(desk / "pipe")
    (desk / ".loopledger").mkdir()
    copy_workspace(desk, tmp_path / "copy", desk / ".loopledger")
    assert sorted(path.name for path in (tmp_path / "copy").iterdir()) == ["link", "sub"]
    assert (tmp_path / "copy" / "link").readlink() == Path("sub/letter")
    with pytest.raises(InputError, match="is no folder to run in"):
        copy_workspace(tmp_path / "nothing", tmp_path / "other", None)
    with pytest.raises(InputError, match="is too much to copy"):
        copy_workspace(Path("/"), tmp_path / "other", None)


@pytest.mark.parametrize(
    ("packet", "attempts"),
    [
        (b"", []),
        (b"\0" * 12 + b"\x08\x00", []),
        (b"\0" * 12 + b"\x08\x00" + b"\xff" * 40, []),
        (b"\0" * 12 + b"\x86\xdd" + b"\x11" * 60, ["udp [1111:1111:1111:1111:1111:1111:1111:1111]:4369"]),
    ],
)
def test_a_packet_of_any_bytes_is_read(packet: bytes, attempts: list[str]) -> None:
    assert list(attempts_in(packet)) == attempts


def test_the_copy_is_seen_at_the_recorded_path(case: Case, tmp_path: Path) -> None:
    place, printed = tmp_path / "where it was", tmp_path / "printed"
    code = "import os; print(os.getcwd(), sorted(os.listdir('.'))[-1]); open('new', 'w').close()"
    with printed.open("wb") as output, open_room(case.workspace, at=place, output=output.fileno()) as room:
        assert room.run([sys.executable, "-c", code], room.environment()) == 0
    assert printed.read_text() == f"{place} talker.py\n"
    assert not place.exists() and not (case.workspace / "new").exists()


def test_a_blocked_tool_stops_the_replay_before_it_runs(case: Case) -> None:
    case.record(counting(), "count the apples")
    status, report, _ = case.replay("count the apples", options=["--tool", "count=blocked"])
    assert (status, report["divergence"]["kind"], report["tools"]) == (1, "effect_type", {})
    assert "tool 'count', which this replay blocks" in report["divergence"]["cause"]


def test_a_command_that_fails_otherwise_is_incomplete(case: Case) -> None:
    case.record(counting(0), "say something")
    code = f"import clerk, sys; clerk.ask({SYSTEM!r}, [{{'role': 'user', 'content': 'say something'}}]); sys.exit(3)"
    with open_ledger(case.home) as ledger:
        report = rerun(ledger, RUN, Rerun([sys.executable, "-c", code], case.workspace))
    assert (report.verdict, report.divergence) == ("incomplete", None)
    assert report.reason == "the command ended with status 3, when it was recorded with 0"


def test_a_cut_stream_a_busy_server_and_its_retries_are_replayed(case: Case) -> None:
    busy = Step(error=Error(503, "overloaded"))
    said = case.record(counting(1, last=[busy, busy]), "count the apples")
    report, printed = case.rerun("count the apples")
    assert (report.verdict, printed, len(report.requests)) == ("equal", said, 4)


@pytest.mark.parametrize("name", ["cut", "abort", "early abort", "large", "gzip", "alike", "many", "others"])
def test_what_http_does_is_replayed_equal(case: Case, name: str) -> None:
    words = Step([Text("word " * 20_000)], pace_s=0.01)
    script: dict[str, Any] = {
        "cut": counting(0, last=[Step([Text("one two three four five six")], cut_after=3)]),
        "abort": counting(0, last=[words]),
        "early abort": counting(0, last=[Step([Text("late")], delay_s=600)]),
    }
    said = case.record(
        script.get(name) or counting(0, last=[Step([Text("the same")])] * 200), name, loop="talker.py"
    )
    report, printed = case.rerun(name, loop="talker.py")
    assert (report.verdict, report.divergence) == ("equal", None)
    assert json.loads(printed) == json.loads(said)
    assert {one.match for one in report.requests} == {"raw"}
    assert len(report.requests) == {"alike": 2, "many": 200}.get(name, 1)


def test_a_key_in_the_prompt_is_redacted_on_both_sides_and_still_matches(case: Case) -> None:
    key = "sk-ant-api03-" + "Zx9Kd7Qm2Vb4Nw8Rt6Yp3Lc5Hf1Jg0Ks" * 2 + "-AbCdEfGhAA"
    said = case.record(counting(), f"count with {key} in hand")
    report, printed = case.rerun(f"count with {key} in hand")
    assert (report.verdict, printed) == ("equal", said)
    other = key.replace("Zx9", "Yx9")
    report, _ = case.rerun(f"count with {other} in hand")
    assert report.verdict == "diverged"


def test_mistakes_are_said(case: Case) -> None:
    case.record(counting(0), "say something")
    for options, words in (
        (["--tool", "count=recorded"], "by wire the agent runs its tools itself"),
        (["--level", "state"], "a command or a function runs at level rerun only"),
        (["--at-recorded-path"], "does not tell its working directory"),
    ):
        status, _, errors = case.replay("say something", options=options)
        assert (status, words in errors, errors.count("\n")) == (2, True, 1)
    with open_ledger(case.home) as ledger:
        with pytest.raises(InputError, match="'no-such-program' in "):
            rerun(ledger, RUN, Rerun(["no-such-program"], case.workspace))
        with pytest.raises(InputError, match="expected one after --"):
            rerun(ledger, RUN, Rerun((), case.workspace))


def test_text_shows_what_happened(case: Case) -> None:
    case.record(counting(1), "count the apples")
    result = run(
        case.home,
        "replay",
        RUN,
        "--workspace",
        case.workspace,
        "--",
        sys.executable,
        "clerk.py",
        "count the apples",
    )
    assert result.exit_code == 0
    assert "equal" in result.stdout and "raw       2 main requests" in result.stdout
    assert "count: called 1 times; the agent ran it itself (live)" in result.stdout
    assert "loopback only" in result.stdout
