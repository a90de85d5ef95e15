"""A process that dies inside a tool or a stream leaves what it was doing on record, and never a good result."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from ledger.events.model_call import ModelCallChunk
from ledger.home import open_ledger
from replay.cli import state_json
from tests.ledger.capture.loops import records, types, value

_PROGRAM = """
import itertools, os, signal, sys
from ledger.capture import record_loop
from ledger.home import open_ledger

def die():
    os.kill(os.getpid(), signal.SIGKILL)

def words():
    for number in range(100):
        yield f"word{number} "
    die()

with open_ledger(sys.argv[1]) as ledger, record_loop(ledger, harness="my-loop", session="crashed") as run:
    if sys.argv[2] == "tool":
        run.tool(die, {}, name="send_mail", effect_class="irreversible", idempotency_key="k1")
    elif sys.argv[2] == "model":
        run.model(lambda **request: die(), messages=[])
    else:
        for word in run.model(lambda **request: words(), protocol="my.own", messages=[]):
            pass
"""


def _crash(home: Path, where: str) -> None:
    died = subprocess.run(  # our own program
        [sys.executable, "-c", _PROGRAM, str(home), where], check=False, capture_output=True, timeout=60
    )
    assert died.returncode == -signal.SIGKILL, died.stderr.decode()


@pytest.mark.parametrize(
    ("where", "kept"),
    [
        ("tool", ["session.started", "tool_call.requested", "tool_call.started"]),
        ("model", ["session.started", "model_call.requested"]),
        ("stream", ["session.started", "model_call.requested", "model_call.chunk"]),
    ],
)
def test_a_crash_leaves_the_intent_and_no_end(tmp_path: Path, where: str, kept: list[str]) -> None:
    _crash(tmp_path, where)
    with open_ledger(tmp_path) as ledger:
        assert types(ledger, "crashed") == kept
        if where == "tool":
            (call,) = state_json(ledger, "crashed")["open_calls"].values()
            assert (call["status"], call["idempotency_key"]) == ("unknown", "k1")
        if where == "stream":
            chunk = records(ledger, "crashed")[-1].event
            assert isinstance(chunk, ModelCallChunk)
            assert len(value(ledger, chunk.chunks)) == 64
