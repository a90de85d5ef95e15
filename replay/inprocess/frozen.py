"""Stops a loop that goes past its recorder: a connection, a process, a written file, a clock, randomness.

Connections, processes and files are seen by an audit hook (PEP 578), clocks and randomness by a profile function, which
sees every call of a C function however it was imported. Both see this process only, and Python code only: what a C
extension does by itself (numpy's generators, say), reads of files and of `os.environ` go unseen.
"""

import datetime
import os
import random
import sys
import sysconfig
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

from ledger.errors import LedgerError

_OWN = tuple(str(Path(__file__).resolve().parents[2] / name) + os.sep for name in ("ledger", "replay"))
_STANDARD = tuple(dict.fromkeys(sysconfig.get_path(name) + os.sep for name in ("stdlib", "platstdlib")))
_SITE = tuple(dict.fromkeys(sysconfig.get_path(name) + os.sep for name in ("purelib", "platlib")))

_WRITES = os.O_WRONLY | os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_TRUNC
_NETWORK = (
    "socket.connect", "socket.bind", "socket.sendto", "socket.sendmsg", "socket.getaddrinfo",
    "socket.gethostbyname", "socket.gethostbyaddr", "socket.getnameinfo",
)  # fmt: skip
_PROCESS = ("subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "os.spawn", "os.fork", "os.forkpty")
_FILE = (
    "os.remove", "os.rename", "os.rmdir", "os.mkdir", "os.truncate", "os.link", "os.symlink", "os.chmod",
    "os.chown", "sqlite3.connect",
)  # fmt: skip
_EVENTS = {name: kind for kind, names in
           (("network", _NETWORK), ("process", _PROCESS), ("file", _FILE)) for name in names}  # fmt: skip

_CLOCKS = frozenset({"time", "time_ns", "monotonic", "monotonic_ns", "perf_counter", "perf_counter_ns",
                     "clock_gettime", "clock_gettime_ns"})  # fmt: skip
_CLOCKS_WITHOUT_ARGUMENT = {"localtime": 0, "gmtime": 0, "ctime": 0, "asctime": 0, "strftime": 1}
_NOW = frozenset({"now", "utcnow", "today"})
_UUID1 = "generate_time_safe"
_RANDOM = frozenset({"random", "getrandbits"})
_CLOCK_MODULES = ("uuid.py", "_pydatetime.py", "datetime.py", os.path.join("email", "utils.py"))  # noqa: PTH118

_exempt: ContextVar[bool] = ContextVar("loopledger_outside_the_freeze", default=False)


class FrozenError(LedgerError):
    """The loop went past its recorder. `what` was tried, `where` is `file:line` of who tried it."""

    def __init__(self, kind: str, what: str, where: str) -> None:
        super().__init__(
            f"the replay is frozen, and {where} tried {what}: the recording holds nothing to answer it with;"
            " pass it through the recorder (run.tool, run.draw), or allow it by name"
        )
        self.kind = kind
        self.what = what
        self.where = where


@contextmanager
def thawed() -> Iterator[None]:
    """Around what the ledger itself does, and around tools that run live."""
    token = _exempt.set(True)
    try:
        yield
    finally:
        _exempt.reset(token)


class Frozen:
    """While it is entered, nothing in this process goes past the recorder without being stopped and named.

    `allow` holds what may pass all the same: names of functions as they are reported (`time.monotonic`) and of modules
    of the caller (`my_package.logs`). `tell` is told of the first attempt, from within it: it must only take note.
    """

    def __init__(self, tell: Callable[[FrozenError], None], allow: Sequence[str] = ()) -> None:
        self._tell = tell
        self._allow = frozenset(allow)
        self._profile_before: Any = None
        self._writes_bytecode = False

    def __enter__(self) -> "Frozen":
        if _guard.active is not None:
            raise LedgerError("a frozen replay is running in this process already: one at a time")
        _guard.install()
        # An import during the replay must not count as a file that the loop writes.
        self._writes_bytecode, sys.dont_write_bytecode = not sys.dont_write_bytecode, True
        _guard.active = self
        self._profile_before = sys.getprofile()
        threading.setprofile(self._profile)
        sys.setprofile(self._profile)
        return self

    def __exit__(self, *exc_info: object) -> None:
        sys.setprofile(self._profile_before)
        threading.setprofile(None)
        _guard.active = None
        sys.dont_write_bytecode = not self._writes_bytecode

    def audit(self, event: str, arguments: tuple[Any, ...]) -> None:
        """An audited event of any thread. Raises FrozenError for one that leaves the process."""
        kind = _EVENTS.get(event)
        if kind is None:
            if event != "open" or not _writes(arguments):
                return
            kind = "file"
        if not _exempt.get():
            shown = ", ".join(repr(argument)[:120] for argument in arguments[:2])
            self._stop(kind, f"{event}({shown})", event, sys._getframe(2))

    def _profile(self, frame: FrameType, event: str, called: Any) -> None:
        if event == "c_call":
            name = called.__name__
            if name in _WATCHED and not _exempt.get():
                self._look(frame, name, called)
        elif (
            event == "call"
            and frame.f_code is _SEED
            and not _exempt.get()
            and frame.f_locals.get("a") is None
        ):
            self._stop("random", "random.Random() without a seed", "random.Random", frame)

    def _look(self, frame: FrameType, name: str, called: Any) -> None:
        if (found := _clock(frame, name, called)) is not None:
            self._stop("clock", f"{found}()", found, frame)
        elif (found := _randomness(name, called)) is not None:
            self._stop("random", f"{found}()", found, frame)

    def _stop(self, kind: str, what: str, name: str, frame: FrameType) -> None:
        caller = _caller(frame)
        if name in self._allow or caller is None:
            return
        module = str(caller.f_globals.get("__name__"))
        if any(module == allowed or module.startswith(f"{allowed}.") for allowed in self._allow):
            return
        error = FrozenError(kind, what, f"{caller.f_code.co_filename}:{caller.f_lineno}")
        self._tell(error)
        raise error


class _Guard:
    """The audit hook of the process: Python has no way to take one away, so there is one that can be idle."""

    def __init__(self) -> None:
        self.active: Frozen | None = None
        self._is_installed = False

    def install(self) -> None:
        """Add the hook, once."""
        if not self._is_installed:
            self._is_installed = True
            sys.addaudithook(self._hook)

    def _hook(self, event: str, arguments: tuple[Any, ...]) -> None:
        if self.active is not None:
            self.active.audit(event, arguments)


_guard = _Guard()
_SEED: CodeType = random.Random.seed.__code__
_WATCHED = _CLOCKS | _CLOCKS_WITHOUT_ARGUMENT.keys() | _NOW | _RANDOM | {"urandom", "getrandom", _UUID1}


def _writes(arguments: tuple[Any, ...]) -> bool:
    """Whether an audited `open` is for writing. What goes to no file on a disk is let pass."""
    path, mode, flags = (*arguments, None, None, None)[:3]
    if isinstance(path, int) or str(path).startswith("/dev/"):
        return False
    if isinstance(flags, int) and flags & _WRITES:
        return True
    return isinstance(mode, str) and any(letter in mode for letter in "wax+")


def _clock(frame: FrameType, name: str, called: Any) -> str | None:
    """Name of a clock that is about to be read; None for anything else."""
    owner = getattr(called, "__self__", None)
    if owner is time:
        if name in _CLOCKS_WITHOUT_ARGUMENT and _argument_count(frame) != _CLOCKS_WITHOUT_ARGUMENT[name]:
            return None
        found = f"time.{name}" if name in _CLOCKS or name in _CLOCKS_WITHOUT_ARGUMENT else None
    elif name in _NOW and isinstance(owner, type) and issubclass(owner, datetime.date):
        found = f"datetime.{owner.__name__}.{name}"
    elif name == _UUID1:
        found = "uuid.uuid1"
    else:
        return None
    # The standard library reads clocks for its own ends (logging, locks, event loops), but not in these modules.
    file = frame.f_code.co_filename
    return found if not _is_standard(file) or file.endswith(_CLOCK_MODULES) else None


def _randomness(name: str, called: Any) -> str | None:
    """Name of a source of randomness that is about to be read; a generator that was seeded is none."""
    owner = getattr(called, "__self__", None)
    if name in ("urandom", "getrandom"):
        return f"os.{name}" if getattr(called, "__module__", None) in ("posix", "nt") else None
    if owner is getattr(random, "_inst", None):
        return f"random.{name}"
    return None


def _argument_count(frame: FrameType) -> int | None:
    """How many arguments the call that is being made has, by its instruction."""
    code, at = frame.f_code.co_code, frame.f_lasti
    return code[at + 1] if 0 <= at < len(code) - 1 else None


def _caller(frame: FrameType | None) -> FrameType | None:
    """The frame that is to blame: the nearest that is of no library; None where the ledger's own code asks."""
    nearest = None
    while frame is not None:
        file = frame.f_code.co_filename
        if file.startswith(_OWN):
            return None
        if not _is_standard(file) and not file.startswith("<frozen"):
            if not file.startswith(_SITE):
                return frame
            nearest = nearest or frame
        frame = frame.f_back
    return nearest


def _is_standard(file: str) -> bool:
    return file.startswith(_STANDARD) and not file.startswith(_SITE)
