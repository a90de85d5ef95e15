"""A throwaway home and repository for a harness, and the program `loopledger` around it."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent.parent
INSTALLED = ROOT / "build" / "harnesses"
"""Where `make test-harnesses` installs."""

_GREETING = "Hello, wrold!\n"
_NOTES = "# Notes\n\n- one\n- two\n"
_TIMEOUT_S = 240


@dataclass
class Ran:
    """What came of a command."""

    status: int
    """Exit status."""
    output: str
    """Standard output."""
    errors: str
    """Standard error."""

    @property
    def report(self) -> dict[str, Any]:
        """The JSON report that `record --json` leaves at the end of standard error."""
        found = json.loads(self.errors.strip().rpartition("\n")[2])
        assert isinstance(found, dict), self.errors
        return found

    @property
    def json(self) -> dict[str, Any]:
        """Standard output as JSON."""
        found = json.loads(self.output)
        assert isinstance(found, dict), self.output
        return found


class Lab:
    """Folders of one recording: home, repository, the repository as it was before, ledger."""

    def __init__(self, folder: Path, environment: dict[str, str]) -> None:
        self.home, self.repo, self.before, self.ledger = (
            folder / name for name in ("home", "repo", "before", "ledger")
        )
        self._environment = environment
        self.home.mkdir(parents=True)
        self.repo.mkdir()
        (self.repo / "greeting.txt").write_text(_GREETING)
        (self.repo / "notes.md").write_text(_NOTES)

    def commit(self) -> None:
        """Put all files of the repository under version control, and keep a copy of it as it is now."""
        time = {"GIT_AUTHOR_DATE": "2026-01-02T03:04:05Z", "GIT_COMMITTER_DATE": "2026-01-02T03:04:05Z"}
        for words in (
            "init -q -b main",
            "config user.email lab@example.com",
            "config user.name Lab",
            "add -A",
            "commit -qm first",
        ):
            subprocess.run(
                ["git", *words.split()], cwd=self.repo, env=self.environ() | time, check=True, timeout=60
            )
        shutil.copytree(self.repo, self.before, symlinks=True)

    def record(
        self, upstream: str, *command: str, name: str = "run-1", variables: Mapping[str, str] | None = None
    ) -> Ran:
        """Record a command in the repository."""
        words = ["record", "--json", "--name", name, "--upstream", upstream, "--", *command]
        return self._run(words, self.repo, {"TZ": "UTC", **(variables or {})})

    def replay(self, *command: str, name: str = "run-1") -> Ran:
        """Run it again on what was recorded, on another day, in a fresh home, without the model."""
        words = ["replay", name, "--level", "rerun", "--json", "--workspace", str(self.before)]
        return self._run([*words, "--at-recorded-path", "--", *command], self.before, {"TZ": _other_day()})

    def ask(self, *words: str) -> Any:
        """The JSON answer of a command."""
        ran = self._run([*words, "--json"], self.repo, {})
        assert ran.status == 0, ran.errors
        return json.loads(ran.output)

    def rollback(self, *words: str) -> Any:
        """The JSON answer of a rollback, whether everything was undone or not."""
        ran = self._run(["rollback", *words, "--reason", "test", "--json"], self.repo, {})
        assert ran.status in (0, 1), ran.errors
        return json.loads(ran.output)

    def environ(self) -> dict[str, str]:
        """Environment of a program in the lab."""
        plain = {name: os.environ[name] for name in ("PATH",) if name in os.environ}
        plain["PYTHONPATH"] = str(ROOT)
        return {**plain, "HOME": str(self.home), "LANG": "C.UTF-8", "TERM": "dumb", **self._environment}

    def _run(self, words: list[str], cwd: Path, more: dict[str, str]) -> Ran:
        program = [sys.executable, "-m", "webui", "--home", str(self.ledger), *words]
        environ = self.environ() | more
        done = subprocess.run(
            program,
            check=False,
            cwd=cwd,
            env=environ,
            capture_output=True,
            text=True,
            timeout=_TIMEOUT_S,
            stdin=subprocess.DEVNULL,
        )
        return Ran(done.returncode, done.stdout, done.stderr)


def _other_day() -> str:
    """A time zone where it is another day than in UTC."""
    return "Pacific/Kiritimati" if datetime.now(UTC).hour >= 10 else "Pacific/Niue"
