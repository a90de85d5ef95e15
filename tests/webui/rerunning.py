"""Records a small agent by the real proxy, and runs it again."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ledger.home import open_ledger
from replay.report import Report
from tests.commands import process
from tests.scripted_model import Lane, Match, Script, ScriptedModel, Step, Text, ToolCall
from tests.webui.proxied import RUN, proxying
from webui.rerun import Rerun, rerun

LOOPS = Path(__file__).parent / "loops"


class Case:
    """A folder with a ledger and a workspace."""

    def __init__(self, folder: Path) -> None:
        self.home = folder / "ledger"
        self.workspace = folder / "desk"
        self.workspace.mkdir()
        for loop in LOOPS.glob("*.py"):
            shutil.copy(loop, self.workspace)

    @property
    def counter(self) -> Path:
        """The file that the tool adds a line to."""
        return self.workspace / "counter.txt"

    def counted(self) -> int:
        """Its lines."""
        return len(self.counter.read_text().splitlines()) if self.counter.exists() else 0

    def record(
        self, script: Script, *arguments: str, loop: str = "clerk.py", keeps_counter: bool = False
    ) -> str:
        """Run the agent behind the proxy, in the workspace itself; gives what it printed."""
        with ScriptedModel(script) as model, proxying(self.home, model.url) as base:
            environment = {**os.environ, "ANTHROPIC_BASE_URL": f"{base}/run/{RUN}"}
            done = subprocess.run(
                command(*arguments, loop=loop),
                cwd=self.workspace,
                env=environment,
                stdout=subprocess.PIPE,
                timeout=120,
                check=True,
            )
        if not keeps_counter:
            self.counter.unlink(missing_ok=True)  # a replay starts where the run started
        return done.stdout.decode()

    def rerun(self, *arguments: str, loop: str = "clerk.py", **how: Any) -> tuple[Report, str]:
        """Run it again: the report, and what it printed."""
        printed = self.home.parent / "printed.txt"
        with open_ledger(self.home) as ledger, printed.open("wb") as output:
            asked = Rerun(command(*arguments, loop=loop), self.workspace, output=output.fileno(), **how)
            report = rerun(ledger, RUN, asked)
        return report, printed.read_text()

    def replay(
        self, *arguments: str, options: Sequence[str] = (), loop: str = "clerk.py", word: str = "replay"
    ) -> tuple[int, Any, str]:
        """The same by the program: status, JSON, and what stood on standard error."""
        words = [word, RUN, "--workspace", str(self.workspace), "--json", *options]
        with process(self.home, *words, "--", *command(*arguments, loop=loop)) as running:
            output, errors = running.communicate(timeout=120)
        return running.returncode, json.loads(output) if output else None, errors.decode()


def command(*arguments: str, loop: str = "clerk.py") -> list[str]:
    """The command that runs a loop of the workspace."""
    return [sys.executable, loop, *arguments]


def counting(times: int = 2, *, pause_s: float = 0.0, last: Sequence[Step] = ()) -> Script:
    """A model that has the tool called, then says so."""
    calls = [Step([Text("One more."), ToolCall("count", {"by": 1})]) for _ in range(times)]
    return Script(lanes=[Lane("main", [*calls, *last, Step([Text("All is counted.")])])])


def two_lanes() -> Script:
    """Two conversations at the same time, whose answers end in an order of their own."""
    return Script(
        lanes=[
            Lane(
                name,
                [
                    Step([ToolCall("count", {"by": number})], delay_s=delay),
                    Step([ToolCall("count", {"by": number + 1})], delay_s=0.2 - delay),
                    Step([Text(f"{name} is done.")]),
                ],
                Match(first_user=name),
            )
            for number, (name, delay) in enumerate((("apples", 0.15), ("pears", 0.0)))
        ]
    )
