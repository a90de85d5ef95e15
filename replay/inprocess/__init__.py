"""Runs a user's own loop again on what was recorded: the same function, given another recorder.

def agent(run):
    answer = run.model(client.messages.create, model=..., messages=...)
    ...

with record_loop(ledger, harness="my-loop") as run:
    agent(run)

with replay_loop(ledger, run.session) as again:
    agent(again)
assert again.report.verdict == "equal"
"""

from replay.inprocess.answers import RecordedError, View
from replay.inprocess.course import BlockedError, Report
from replay.inprocess.frozen import FrozenError
from replay.inprocess.journal import ReplayDivergedError
from replay.inprocess.loop import ReplayedLoop
from replay.inprocess.start import branch_loop, replay_function, replay_loop

__all__ = [
    "BlockedError",
    "FrozenError",
    "RecordedError",
    "ReplayDivergedError",
    "ReplayedLoop",
    "Report",
    "View",
    "branch_loop",
    "replay_function",
    "replay_loop",
]
