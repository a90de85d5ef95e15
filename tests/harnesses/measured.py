"""What recording a harness and replaying it has shown, as a row of the table."""

import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.harnesses.lab import Lab
from tests.harnesses.programs import FINAL, Program, said
from tests.scripted_model import Script, ScriptedModel

COLUMNS = (
    "harness",
    "session",
    "model calls",
    "tool calls",
    "also in its log",
    "replays equal",
    "requests",
    "s",
)
"""Titles of the table."""


@dataclass
class Measured:
    """One row."""

    harness: str
    """Harness and version."""
    session: str
    """What the session was."""
    calls: int = 0
    """Model calls recorded."""
    tools: int = 0
    """Tool calls recorded."""
    logged: int = 0
    """Of them, those that its own log tells of too."""
    replays: int = 0
    """Replays."""
    equal: int = 0
    """Of them, those that were equal."""
    grades: Counter[str] = field(default_factory=Counter)
    """How the requests of all replays were matched."""
    seconds: float = 0.0
    """Time of a replay."""

    def cells(self) -> tuple[str, ...]:
        """The row, as text."""
        return (
            self.harness,
            self.session,
            str(self.calls),
            str(self.tools),
            f"{self.logged} of {self.tools}",
            f"{self.equal} of {self.replays}",
            ", ".join(f"{count} {grade}" for grade, count in sorted(self.grades.items())),
            f"{self.seconds:.1f}",
        )


def recorded(program: Program, folder: Path, row: Measured) -> Lab:
    """A lab in which a program was recorded; skips where it could not be installed."""
    if not program.executable.exists():
        pytest.skip(f"{program.name} is not installed: build/harnesses/install.log tells why")
    lab = Lab(folder, program.environ(folder / "home"))
    with ScriptedModel(Script(program.lanes(lab.repo))) as model:
        program.prepare(lab, model.url)
        lab.commit()
        ran = lab.record(model.url, *program.command)
        asked = len([one for one in model.exchanges if one.protocol is not None])
    assert ran.status == 0, ran.errors
    assert FINAL in said(ran.output)
    for name, text in program.files.items():
        assert (lab.repo / name).read_text() == text
    report = ran.report
    assert (report["calls"], report["verdict"], report["notes"]) == (asked, "equal", [])
    assert report["tools"] == report["settled"] > 0
    row.calls, row.tools, row.logged = report["calls"], report["tools"], report["tools_in_log"]
    assert report["matched"] >= row.tools == row.logged, report
    return lab


def replayed(lab: Lab, program: Program, row: Measured) -> None:
    """Replay it once: every request matched, the same last words, the same files."""
    began = time.monotonic()
    ran = lab.replay(*program.command)
    row.replays += 1
    row.seconds = time.monotonic() - began
    assert ran.status == 0, ran.output or ran.errors
    report = ran.json
    row.grades.update(one["match"] for one in report["requests"])
    assert (report["verdict"], report["divergence"], report["blocked"]) == ("equal", None, 0), report
    assert {one["match"] for one in report["requests"]} <= {"raw", "canonical"}
    assert FINAL in said(ran.errors)
    row.equal += 1
