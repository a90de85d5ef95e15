"""What a runtime is given and gives back to go on from a point, and which runtimes there are.

A runtime is one module in `replay/resume/runtimes/`, found by its file; helper modules there begin with `_`.
It offers `NAME`, `TITLE`, `suits` and `resumption`. It writes nothing itself: it says what is to be written.
"""

import importlib
import pkgutil
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, cast

from ledger.errors import InputError
from ledger.events.session import SessionStarted
from replay.resume import runtimes
from replay.resume.point import Point


@dataclass(frozen=True)
class Resumption:
    """What is written below a folder, and how the runtime goes on from it."""

    files: Mapping[str, bytes]
    """Path below the folder, with `/` -> content."""

    command: tuple[str, ...] = ()
    """The command to run; empty where there is none (a request body for one's own loop)."""

    first: tuple[str, ...] = ()
    """A command to be run before it, once; empty where there is none."""

    environment: Mapping[str, str] = field(default_factory=dict)
    """Variables that the command needs, besides those of the recorded run (keys, addresses)."""

    cwd: str | None = None
    """Folder in which the command is to be run; None: anywhere."""

    not_carried: tuple[str, ...] = ()
    """What the runtime will not know of the session, one sentence each."""

    notes: tuple[str, ...] = ()
    """What else to know before running it, one sentence each."""

    native_id: str | None = None
    """The id by which the runtime knows what was written."""

    @property
    def line(self) -> str:
        """The command as a line for a shell; empty where there is none."""
        if not self.command:
            return ""
        assigned = [f"{name}={shlex.quote(value)}" for name, value in self.environment.items()]
        lines = [" ".join([*assigned, shlex.join(words)]) for words in (self.first, self.command) if words]
        line = " && ".join(lines)
        return f"cd {shlex.quote(self.cwd)} && {line}" if self.cwd else line

    def as_json(self) -> dict[str, Any]:
        """For programs."""
        return {
            "files": sorted(self.files),
            "first": list(self.first),
            "command": list(self.command),
            "environment": dict(self.environment),
            "cwd": self.cwd,
            "line": self.line,
            "native_id": self.native_id,
            "not_carried": list(self.not_carried),
            "notes": list(self.notes),
        }


class Runtime(Protocol):
    """What a module in `replay/resume/runtimes/` offers."""

    NAME: str
    """Name for `--as`, such as `claude-code`."""

    TITLE: str
    """Name for people, with the versions that were tested."""

    def suits(self, started: SessionStarted) -> bool:
        """Whether a session with this start ran here: chosen without `--as` when exactly one runtime says so."""

    def resumption(self, point: Point, into: Path) -> Resumption:
        """What goes on from the point, once its files lie below `into` (absolute, does not exist yet).

        Reads only. Raises InputError where the runtime cannot go on from there.
        """


def reads_records(runtime: Runtime) -> bool:
    """Whether it makes what it writes from the records, by `READS_RECORDS = True`, and needs no whole conversation."""
    return bool(getattr(runtime, "READS_RECORDS", False))


def discover_runtimes() -> dict[str, Runtime]:
    """All runtimes by name."""
    found: dict[str, Runtime] = {}
    for module in pkgutil.iter_modules(runtimes.__path__):
        if not module.name.startswith("_"):
            runtime = cast(Runtime, importlib.import_module(f"{runtimes.__name__}.{module.name}"))
            found[runtime.NAME] = runtime
    return dict(sorted(found.items()))


def choose_runtime(started: SessionStarted, name: str | None) -> Runtime:
    """The runtime of a name, or the one that a session ran in. Raises InputError that lists those there are."""
    runtimes_known = discover_runtimes()
    names = ", ".join(runtimes_known)
    if name is not None:
        if name not in runtimes_known:
            raise InputError(f"--as {name!r} is not a runtime: expected one of {names}")
        return runtimes_known[name]
    suitable = [runtime for runtime in runtimes_known.values() if runtime.suits(started)]
    if len(suitable) != 1:
        raise InputError(
            f"no runtime is known that runs a session of {started.harness!r}: name one with --as, of {names}"
            if not suitable
            else f"several runtimes run a session of {started.harness!r}: name one with --as, of "
            + ", ".join(runtime.NAME for runtime in suitable)
        )
    return suitable[0]
