"""Landlock: from here on this process reads the given files and folders, no others; it writes and connects nowhere.

Linux 5.13 or later, by three system calls; no privilege is needed, and no process can take it back. Covers the calling
thread and those that it starts afterwards.
"""

import ctypes
import os
import stat
import struct
import sys
from collections.abc import Iterable

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446  # the same on every architecture
_ASK_VERSION = 1
_PATH_BENEATH = 1
_NO_NEW_PRIVILEGES = 38

_READ_FILE, _READ_FOLDER = 1 << 2, 1 << 3
_FILE_RIGHTS = {1: 13, 2: 14, 3: 15, 5: 16}
"""How many rights over files a version knows, from the version that it is."""
_NETWORK_RIGHTS = 0b11  # bind and connect by TCP; from version 4
_SCOPES = 0b11  # abstract Unix sockets and signals stay inside; from version 6


def version() -> int:
    """Version of Landlock that this kernel has; 0 for none."""
    if not sys.platform.startswith("linux"):
        return 0
    found = _libc().syscall(_long(_CREATE_RULESET), None, ctypes.c_size_t(0), ctypes.c_uint(_ASK_VERSION))
    return max(0, int(found))


def confine(readable: Iterable[str]) -> int:
    """Confine this thread; gives the version that holds it, 0 where the kernel has none. Raises OSError."""
    known = version()
    if known == 0:
        return 0
    libc = _libc()
    rights = (1 << max(count for since, count in _FILE_RIGHTS.items() if since <= known)) - 1
    rules = struct.pack("=Q", rights)
    if known >= 4:
        rules += struct.pack("=Q", _NETWORK_RIGHTS)
    if known >= 6:
        rules += struct.pack("=Q", _SCOPES)
    ruleset = libc.syscall(_long(_CREATE_RULESET), rules, ctypes.c_size_t(len(rules)), ctypes.c_uint(0))
    _check(ruleset)
    try:
        for path in readable:
            _allow(libc, ruleset, path)
        _check(libc.prctl(_NO_NEW_PRIVILEGES, _long(1), _long(0), _long(0), _long(0)))
        _check(libc.syscall(_long(_RESTRICT_SELF), ctypes.c_int(ruleset), ctypes.c_uint(0)))
    finally:
        os.close(ruleset)
    return known


def _allow(libc: ctypes.CDLL, ruleset: int, path: str) -> None:
    opened = os.open(path, os.O_PATH | os.O_CLOEXEC)
    try:
        is_folder = stat.S_ISDIR(os.fstat(opened).st_mode)
        rule = struct.pack("=Qi", _READ_FILE | (_READ_FOLDER if is_folder else 0), opened)
        _check(
            libc.syscall(
                _long(_ADD_RULE), ctypes.c_int(ruleset), ctypes.c_int(_PATH_BENEATH), rule, ctypes.c_uint(0)
            )
        )
    finally:
        os.close(opened)


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _long(number: int) -> ctypes.c_long:
    return ctypes.c_long(number)


def _check(answer: int) -> None:
    if answer < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
