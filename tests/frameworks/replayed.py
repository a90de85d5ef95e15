"""A program of a framework, recorded through the proxy and run again on the recording: shared by all frameworks.

`python -m tests.frameworks.replayed` prints the table of all that was replayed last.
"""

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any, Literal

from ledger.home import open_ledger
from replay.player import open_player
from replay.proving import prove_requests
from tests.scripted_model import Script, ScriptedModel
from tests.webui.proxied import RUN, proxying
from webui.listening import bound_socket, served
from webui.playing import PlayerApp

ROOT = Path(__file__).parents[2]
"""Of the project."""

TABLE = ROOT / "build" / "frameworks" / "replays"
"""A line of the table for each replay."""

GRADES: tuple[Literal["raw"], Literal["canonical"]] = ("raw", "canonical")
"""How a request must match at least."""


def check_replay(program: str, folder: Path, script: Script, *how: str) -> None:
    """Record the module `program`, which is given the model's address and `how`; then replay it without a model."""
    name = program.split(".")[-2].replace("_", "-")
    row = TABLE / f"{name}-{'-'.join(how)}.json"
    row.unlink(missing_ok=True)
    home = folder / "ledger"
    with ScriptedModel(script) as model, proxying(home, model.url) as base:
        first = _run(program, folder / "first", base, how)
        assert model.unused == {}
        asked = len(model.exchanges)
    with open_ledger(home) as ledger:
        assert prove_requests(ledger.store, RUN).verdict == "equal"
        player = open_player(ledger, RUN)
        with bound_socket("127.0.0.1", 0) as listening, served(PlayerApp(player), listening):
            second = _run(program, folder / "second", f"http://127.0.0.1:{listening.getsockname()[1]}", how)
        report = player.finish()
    assert report.divergence is None, report.divergence
    grades = Counter(one.match for one in report.requests)
    assert grades.total() == asked
    assert set(grades) <= set(GRADES)
    assert (report.blocked, report.outside_calls, report.unused) == (0, 0, [])
    assert second == first
    rules = sorted({rule for one in report.requests for rule in one.rules})
    line = [name, " ".join(how), asked, *(grades[grade] for grade in GRADES), ", ".join(rules), str(first)]
    TABLE.mkdir(parents=True, exist_ok=True)
    row.write_text(json.dumps(line), encoding="utf-8")


def _run(program: str, place: Path, url: str, how: tuple[str, ...]) -> Any:
    """The final answer of a process of its own, with a home of its own."""
    place.mkdir()
    environment = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": str(ROOT),
        "HOME": str(place),
        "TMPDIR": str(place),
        "GOOGLE_API_KEY": "none",
    }
    command = [sys.executable, "-W", "ignore", "-m", program, url, *how]
    done = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=240, check=False
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return json.loads(done.stdout.splitlines()[-1])


def show_table() -> None:
    """Print it."""
    widths = "{:<16} {:<22} {:>8} {:>5} {:>10}  {:<32} {}"
    print(widths.format("framework", "how", "requests", *GRADES, "rules", "final answer, both times"))
    for path in sorted(TABLE.glob("*.json")):
        print(widths.format(*json.loads(path.read_text(encoding="utf-8"))))


if __name__ == "__main__":
    show_table()
