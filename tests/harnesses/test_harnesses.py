"""Real harnesses are recorded against a scripted model, and replayed without it: other day, fresh home."""

from pathlib import Path

import pytest

from tests.harnesses.measured import Measured, recorded, replayed
from tests.harnesses.programs import PROGRAMS, Program
from tests.harnesses.sub_agents import SUB_AGENTS

REPLAYS = 10
"""Replays of a session whose sub-agents work at the same time."""


def _named(program: Program) -> str:
    return program.name.rpartition(" ")[0].replace(" ", "-").lower()


@pytest.mark.parametrize("program", PROGRAMS, ids=_named)
def test_a_session_is_recorded_joined_to_its_log_and_replayed(
    program: Program, tmp_path: Path, measured: list[Measured]
) -> None:
    row = Measured(program.name, "one loop")
    measured.append(row)
    lab = recorded(program, tmp_path, row)
    replayed(lab, program, row)
    assert row.grades.total() == row.calls


@pytest.mark.parametrize("program", SUB_AGENTS, ids=_named)
def test_two_parallel_sub_agents_replay_ten_times_of_ten(
    program: Program, tmp_path: Path, measured: list[Measured]
) -> None:
    row = Measured(program.name, "two parallel sub-agents")
    measured.append(row)
    lab = recorded(program, tmp_path, row)
    for _ in range(REPLAYS):
        replayed(lab, program, row)
    assert row.grades.total() == REPLAYS * row.calls
