"""Where a command runs again: in a copy of its workspace, in a fresh home, with nothing but loopback to reach.

    with open_room(workspace, at=..., sandboxed=True, keeps_network=False, leave_out=...) as room:
        with served(application, room.listening):
            status = room.run(command, environment)

The command's files are read-only but for the copy, the fresh home and an empty /tmp. Where the system lets nobody make
such a room, SandboxUnavailableError says which step it refused.
"""

import contextlib
import json
import os
import shutil
import signal
import socket
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ledger.errors import InputError
from webui.listening import bound_socket
from webui.outside import Outside

_LAUNCHER = Path(__file__).with_name("sandboxed.py")
_LARGEST_WORKSPACE = 4 << 30
_ENDS_WITHIN_S = 10
_PROXIES = ("http_proxy", "https_proxy", "all_proxy", "no_proxy", "ftp_proxy")
_DOORS = ("SSH_AUTH_SOCK", "DBUS_SESSION_BUS_ADDRESS", "DOCKER_HOST", "XDG_RUNTIME_DIR", "TMPDIR")


class SandboxUnavailableError(InputError):
    """The system does not let this user make namespaces or mounts."""


@dataclass
class Room:
    """A place to run one command."""

    listening: socket.socket
    """Where the command will find the front."""
    home: Path
    """Its fresh home."""
    settings: Path
    """An empty folder for files that it is to be given."""
    cwd: Path
    """Its working directory, as it will see it."""
    has_network: bool
    """Whether it may reach more than loopback."""
    sandboxed: bool
    """Whether the system holds it back."""
    reason: str | None = None
    """Why it is not held back."""
    attempts: dict[str, int] = field(default_factory=dict)
    """What it tried to reach outside, and how often; known when it has ended."""
    output: int | None = None
    """File descriptor that takes the place of its standard output."""
    _control: socket.socket | None = None
    _process: "subprocess.Popen[bytes] | None" = None
    _seen: socket.socket | None = None

    @property
    def url(self) -> str:
        """Base URL of the front."""
        return f"http://127.0.0.1:{self.listening.getsockname()[1]}"

    def environment(self) -> dict[str, str]:
        """Our environment with the fresh home, and without proxies and doors to other programs."""
        kept = {
            name: value
            for name, value in os.environ.items()
            if name.lower() not in _PROXIES and not (self.sandboxed and name in _DOORS)
        }
        kept.pop("LOOPLEDGER_STORE", None)
        own = str(
            self.home / ".loopledger"
        )  # hooks that the command brings along do not write into our ledger
        return kept | {"HOME": str(self.home), "PWD": str(self.cwd), "LOOPLEDGER_HOME": own}

    def run(self, command: Sequence[str], environment: Mapping[str, str]) -> int:
        """Run a command to its end; gives its exit status. Raises InputError when it cannot be started."""
        process = self._started(command, environment)
        outside = Outside(self._seen) if self._seen is not None else None
        try:
            status = process.wait()
        except KeyboardInterrupt:
            status = _ended(process)
        finally:
            if outside is not None:
                self.attempts = outside.close()
        return 128 - status if status < 0 else status

    def as_json(self) -> dict[str, Any]:
        """For `--json`: how the command was held back."""
        return {
            "held_back": self.sandboxed,
            "reason": self.reason,
            "network": "all" if self.has_network else "loopback",
            "cwd": str(self.cwd),
            "attempts": self.attempts,
        }

    def _started(self, command: Sequence[str], environment: Mapping[str, str]) -> "subprocess.Popen[bytes]":
        if self._control is None or self._process is None:
            try:
                return subprocess.Popen(command, cwd=self.cwd, env=dict(environment), stdout=self.output)
            except OSError as error:
                raise InputError(f"{command[0]!r} cannot be started: {error.strerror}") from error
        run = {"command": list(command), "environment": dict(environment)}
        self._control.sendall(json.dumps(run).encode() + b"\n")
        if answer := self._control.recv(1 << 16):  # silence: it became the command
            raise InputError(f"the command cannot be started: {json.loads(answer)['error']}")
        return self._process


@contextlib.contextmanager
def open_room(
    workspace: Path,
    *,
    at: Path | None = None,
    sandboxed: bool = True,
    keeps_network: bool = False,
    leave_out: Path | None = None,
    output: int | None = None,
    command: Sequence[str] = (),
) -> Iterator[Room]:
    """A room with a copy of the workspace, seen where the workspace is, or at the path `at`.

    `leave_out` is not copied. What `command` is started from can be read, wherever it lies. Raises
    SandboxUnavailableError; InputError for a workspace that cannot be copied.
    """
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="loopledger-replay-")))
        home, settings, copy = folder / "home", folder / "settings", folder / "workspace"
        home.mkdir()
        settings.mkdir()
        copy_workspace(workspace, copy, leave_out)
        if not sandboxed:
            listening = stack.enter_context(bound_socket("127.0.0.1", 0))
            reason = "asked to run so"
            yield Room(listening, home, settings, copy, True, False, reason, output=output)
            return
        seen_at = (at or workspace).absolute()
        stack.callback(_remove, _mount_point(seen_at))
        asked = {
            "cwd": str(seen_at),
            "network": not keeps_network,
            "binds": [[str(one), str(one)] for one in (home, settings)] + [[str(copy), str(seen_at)]],
            "fresh": (fresh := _fresh_places(seen_at)),
            "shown": _needed_in(fresh, command),
        }
        yield stack.enter_context(_sandbox(asked, home, settings, seen_at, output))


@contextlib.contextmanager
def _sandbox(
    asked: dict[str, Any], home: Path, settings: Path, cwd: Path, output: int | None
) -> Iterator[Room]:
    if not sys.platform.startswith("linux"):
        raise SandboxUnavailableError(
            "this system has no namespaces to hold a command back: they are Linux's"
        )
    ours, theirs = socket.socketpair()
    with ours:
        with theirs:
            process = subprocess.Popen(
                [sys.executable, "-I", str(_LAUNCHER), str(theirs.fileno())],
                pass_fds=[theirs.fileno()],
                stdout=output,
            )
        with contextlib.ExitStack() as stack:
            stack.callback(_end, process)
            ours.sendall(json.dumps(asked).encode() + b"\n")
            line, descriptors, _, _ = socket.recv_fds(ours, 1 << 16, 2)
            said = json.loads(line) if line else {"error": "it ended before it was ready"}
            if "error" in said:
                raise SandboxUnavailableError(
                    f"this system does not let the command be held back ({said['error']}): it is not run"
                )
            sockets = [stack.enter_context(socket.socket(fileno=one)) for one in descriptors]
            yield Room(
                sockets[0],
                home,
                settings,
                cwd,
                not asked["network"],
                True,
                output=output,
                _control=ours,
                _process=process,
                _seen=sockets[1] if len(sockets) > 1 else None,
            )


def copy_workspace(workspace: Path, copy: Path, leave_out: Path | None) -> None:
    """Copy a folder, so that what a command does to it can be thrown away."""
    if not workspace.is_dir():
        raise InputError(f"{workspace} is no folder to run in")
    if workspace.resolve() in (Path("/"), Path.home().resolve()):
        raise InputError(f"{workspace} is too much to copy: name the folder of the run with --workspace")
    apart = leave_out.resolve() if leave_out is not None else None
    size = 0

    def ignored(folder: str, names: list[str]) -> list[str]:
        nonlocal size
        found = []
        here = Path(folder).resolve()
        for name in names:
            path = Path(folder, name)
            about = path.lstat()
            is_copied = (
                stat.S_ISREG(about.st_mode) or stat.S_ISDIR(about.st_mode) or stat.S_ISLNK(about.st_mode)
            )
            if not is_copied or here / name == apart:
                found.append(name)
            elif stat.S_ISREG(about.st_mode):
                size += about.st_size
        if size > _LARGEST_WORKSPACE:
            raise InputError(
                f"{workspace} holds more than {_LARGEST_WORKSPACE >> 30} GB: name a smaller folder with --workspace"
            )
        return found

    try:
        shutil.copytree(workspace, copy, symlinks=True, ignore=ignored)
    except (OSError, shutil.Error) as error:
        raise InputError(f"{workspace} cannot be copied: {str(error)[:500]}") from error


def _fresh_places(cwd: Path) -> list[str]:
    """Folders that are empty in the sandbox: programs meet there, by sockets that no network namespace closes."""
    places = ["/tmp", "/dev/shm"]  # noqa: S108 - not used, but covered
    needed = [cwd, *(Path(one) for one in os.environ.get("PATH", "").split(os.pathsep) if one)]
    if not any(one.is_relative_to("/run") for one in needed):
        places.append("/run")
    return [place for place in places if Path(place).is_dir() and not Path(place).is_symlink()]


def _needed_in(fresh: Sequence[str], command: Sequence[str]) -> list[str]:
    """Folders in fresh places that the command is started from: they are shown there again, to be read only."""
    listed = f"{os.environ.get('PATH', '')}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"
    environment = {sys.prefix, sys.base_prefix, *listed.split(os.pathsep)}
    programs = [shutil.which(word) or word for word in command[:1]] + [*command[1:]]
    found = {Path(one) for one in environment if one}
    for word in programs:
        path = Path(word)
        if path.is_absolute() and len(word) < 4096 and path.exists():
            found |= {path.parent, path.resolve().parent} if path.is_file() else {path}
    inside = sorted(
        path for path in found if path.is_dir() and any(Path(one) in path.parents for one in fresh)
    )
    return [str(path) for path in inside if not any(other in path.parents for other in inside)]


def _mount_point(path: Path) -> list[Path]:
    """Make a folder to mount on, where there is none; gives what was made, deepest first."""
    missing = [one for one in (path, *path.parents) if not one.exists()]
    if path.is_relative_to("/tmp"):  # noqa: S108 - the sandbox has a /tmp of its own
        return []
    made: list[Path] = []
    try:
        for one in reversed(missing):
            one.mkdir()
            made.insert(0, one)
    except OSError as error:
        _remove(made)
        raise SandboxUnavailableError(
            f"there is no folder {path} and none can be made to show the workspace at: {error.strerror}"
        ) from error
    return made


def _remove(folders: list[Path]) -> None:
    for one in folders:
        with contextlib.suppress(OSError):
            one.rmdir()


def _ended(process: "subprocess.Popen[bytes]") -> int:
    """The status of a command that was interrupted, as it was told too."""
    with contextlib.suppress(subprocess.TimeoutExpired, KeyboardInterrupt):
        return process.wait(_ENDS_WITHIN_S)
    _end(process)
    return process.wait()


def _end(process: "subprocess.Popen[bytes]") -> None:
    if process.poll() is None:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(_ENDS_WITHIN_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
