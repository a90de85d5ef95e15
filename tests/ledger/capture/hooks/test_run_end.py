"""How runs told by callbacks end: once, with silence and loss said loudly, failing closed."""

import gc
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

from ledger.capture.hooks._run import HookRun
from ledger.errors import InputError, NotRecordedError
from ledger.events.model_call import (
    ModelCallRequested,
)
from ledger.events.review import NoteWritten
from ledger.home import Ledger, open_ledger
from tests.ledger.capture.hooks.told import ASKED, break_store, events, sessions
from tests.ledger.capture.loops import chat_answer, only, records, types, value


def test_two_runs_in_one_conversation_end_it_once(ledger: Ledger) -> None:
    with HookRun(ledger, harness="frame") as run:
        run.session("a", conversation="one")
        run.session("b", conversation="one")
        run.ended("a")
        assert "session.ended" not in types(ledger, "frame-one")
        run.ended("b")
    assert types(ledger, "frame-one") == ["session.started", "session.ended"]


@pytest.mark.parametrize(("reported", "calls", "is_loud"), [(500, 0, True), (500, 1, True), (13, 1, False)])
def test_more_usage_than_was_counted_is_said_loudly(
    ledger: Ledger, reported: int, calls: int, is_loud: bool
) -> None:
    with HookRun(ledger, harness="frame") as run:
        session = run.session("run")
        for number in range(calls):
            session.model_begun(number, "openai.chat", ASKED)
            run.model_answered(number, chat_answer("yes"))
        session.report_usage(reported)
        with warnings.catch_warnings(record=True) as heard:
            warnings.simplefilter("always")
            run.ended("run")
    notes = [value(ledger, event.text) for event in events(ledger, session.session, NoteWritten)]
    assert [str(one.message) for one in heard] == [f"session {session.session}: {note}" for note in notes]
    assert len(notes) == is_loud
    if is_loud:
        assert f"500 tokens of usage were reported and the {calls} model calls" in notes[0]


def test_a_hook_that_was_never_told_anything_says_so(ledger: Ledger) -> None:
    run = HookRun(ledger, harness="frame")
    with pytest.warns(RuntimeWarning, match="the hook of frame captured nothing"):
        run.close()
    run.close()
    (session,) = sessions(ledger)
    assert types(ledger, session) == ["session.started", "review.note_written", "session.ended"]


def test_a_hook_that_is_let_go_of_in_silence_warns(ledger: Ledger) -> None:
    run = HookRun(ledger, harness="frame")
    held = [run]
    del run
    with pytest.warns(RuntimeWarning, match="captured nothing"):
        held.clear()
    gc.collect()
    assert sessions(ledger) == []


def test_a_program_that_exits_leaves_no_session_open(tmp_path: Path) -> None:
    program = (
        "import sys\n"
        "from ledger.capture.hooks._run import HookRun\n"
        "from ledger.home import open_ledger\n"
        "ledger = open_ledger(sys.argv[1])\n"
        "told, silent = HookRun(ledger, harness='told'), HookRun(ledger, harness='silent')\n"
        "told.session('run', conversation='one').tool_begun('t', 'send', {})\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path)], capture_output=True, text=True, check=True, timeout=60
    )
    assert "the hook of silent captured nothing" in done.stderr
    with open_ledger(tmp_path) as ledger:
        told, silent = sorted(sessions(ledger), key=lambda name: not name.startswith("told"))
        assert types(ledger, told)[-2:] == ["tool_call.settled", "session.ended"]
        assert "review.note_written" in types(ledger, silent)


def test_a_store_that_cannot_write_stops_the_call_before_it_acts(ledger: Ledger) -> None:
    run = HookRun(ledger, harness="frame")
    session = run.session("run")
    break_store(ledger)
    with pytest.raises(NotRecordedError):
        session.model_begun("m", "openai.chat", ASKED)
    with pytest.raises(NotRecordedError):
        session.tool_begun("t", "send", {})
    with pytest.raises(NotRecordedError):
        session.asked("q", tool="send")


def test_a_failure_is_never_hidden_by_a_store_that_cannot_write(ledger: Ledger) -> None:
    run = HookRun(ledger, harness="frame")
    session = run.session("run")
    session.tool_begun("t", "send", {})
    break_store(ledger)
    error = ValueError("the loop's own")
    run.tool_failed("t", error)
    assert "could not record this failure" in error.__notes__[0]


def test_a_hook_that_fails_open_counts_what_it_lost(ledger: Ledger) -> None:
    run = HookRun(ledger, harness="frame", fail_open=True)
    session = run.session("run")
    break_store(ledger)
    with pytest.warns(RuntimeWarning, match="could not record the request of a model call"):
        session.model_begun("m", "openai.chat", ASKED)
    run.model_answered("m", chat_answer("yes"))
    with pytest.warns(RuntimeWarning, match="could not record the end of a session"):
        run.ended("run")
    assert (run.counts.lost, run.counts.model_calls) == (2, 0)


def test_what_was_not_seen_of_a_request_is_said(ledger: Ledger) -> None:
    with HookRun(ledger, harness="frame") as run:
        session = run.session("run")
        session.model_begun("m", "openai.chat", ASKED, grade="near-wire", not_seen=["tools"])
        run.model_answered("m", chat_answer("yes"))
        run.ended("run")
    requested = only(ledger, session.session, ModelCallRequested)
    assert (requested.completeness, requested.not_seen, requested.body_digest) == (
        "messages",
        ("tools",),
        None,
    )
    grades = [record.grade for record in records(ledger, session.session)]
    assert grades == ["semantic", "near-wire", "near-wire", "semantic"]


def test_ends_without_a_beginning_are_counted(ledger: Ledger) -> None:
    with HookRun(ledger, harness="frame") as run:
        run.model_answered("m", chat_answer("yes"))
        run.tool_failed("t", "no")
        run.ended("run")
    assert run.counts.unmatched == 2


def test_a_harness_needs_a_plain_name(ledger: Ledger) -> None:
    with pytest.raises(InputError, match="cannot name a harness"):
        HookRun(ledger, harness="my harness")
