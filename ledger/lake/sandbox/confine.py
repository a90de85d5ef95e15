"""What a worker takes from itself before it reads the first query."""

import contextlib
import ctypes
import os
import resource
import sys
from pathlib import Path

from ledger.lake.sandbox import landlock

_OPEN_FILES = 512
_NICE = 15
_NOT_DUMPABLE = 4
_ENGINE_LOOKS_AT = ("/proc/self/cgroup", "/sys/fs/cgroup")  # for limits of memory; it does not start without


def give_way() -> None:
    """Let all others go first: at the processor, and when memory runs out."""
    with contextlib.suppress(OSError):
        os.nice(_NICE)
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000", encoding="ascii")


def limit(memory_bytes: int) -> None:
    """Limit memory and open files; no file grows, no core is written, no other process of the user looks in."""
    _set(resource.RLIMIT_AS, memory_bytes)
    _set(resource.RLIMIT_FSIZE, 0)
    _set(resource.RLIMIT_CORE, 0)
    _set(resource.RLIMIT_NOFILE, _OPEN_FILES)
    if sys.platform.startswith("linux"):
        ctypes.CDLL(None).prctl(ctypes.c_int(_NOT_DUMPABLE), ctypes.c_long(0))


def limit_processor(seconds: float) -> None:
    """End this process when it has used so many more processor seconds, whoever is still there to stop it."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    _, hard = resource.getrlimit(resource.RLIMIT_CPU)
    soft = int(used.ru_utime + used.ru_stime + seconds) + 1
    resource.setrlimit(resource.RLIMIT_CPU, (soft, hard))


def shut_in(folder: str) -> str:
    """Leave this process nothing but reading a folder; gives the name of what holds it. Empty where nothing does."""
    try:
        known = landlock.confine([folder, *(place for place in _ENGINE_LOOKS_AT if Path(place).exists())])
    except OSError:
        return ""
    return f"landlock {known}" if known else ""


def _set(which: int, most: int) -> None:
    _, hard = resource.getrlimit(which)
    most = most if hard == resource.RLIM_INFINITY else min(most, hard)
    with contextlib.suppress(ValueError, OSError):  # a system that does not know this limit
        resource.setrlimit(which, (most, most))
