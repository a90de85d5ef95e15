"""The first program of a sandbox: makes namespaces, then becomes the command. Run by file name, by `webui.sandbox`.

Stands on the standard library only. What it was asked for comes over the socket whose number is its argument; it sends
back the sockets that only this namespace can make: one that listens on the new loopback, one that sees what goes there.
"""

import contextlib
import ctypes
import fcntl
import json
import os
import signal
import socket
import struct
import sys
from pathlib import Path
from typing import Any

_CLONE_NEWNS = 0x00020000
_CLONE_NEWUSER = 0x10000000
_CLONE_NEWNET = 0x40000000
_MS_BIND = 4096
_MS_REC = 16384
_MS_PRIVATE = 1 << 18
_MS_NOSUID = 2
_MS_NODEV = 4
_SYS_MOUNT_SETATTR = 442
_AT_FDCWD = -100
_AT_RECURSIVE = 0x8000
_READ_ONLY = 1
_SIOCGIFFLAGS = 0x8913
_SIOCSIFFLAGS = 0x8914
_IFF_UP = 1
_EVERY_PROTOCOL = 3
_SO_ATTACH_FILTER = 26
_NETLINK_ROUTE = 0
_NEW_ROUTE = 24
_REQUEST, _ACKNOWLEDGE, _CREATE = 1, 4, 0x400
_LOCAL_TABLE, _BY_BOOT, _HOST_SCOPE, _LOCAL_KIND, _OUT_INTERFACE = 255, 3, 254, 2, 4
_LOOPBACK = "lo"
_DIES_WITH_PARENT = 1

_libc = ctypes.CDLL(None, use_errno=True)


class SandboxError(Exception):
    """A step that the system refuses."""


def main() -> None:
    """Make the sandbox that is asked for, and run the command in it."""
    control = socket.socket(fileno=int(sys.argv[1]))
    with control.makefile("rb") as lines:
        asked = json.loads(lines.readline())
        try:
            sockets = _prepare(asked)
        except (SandboxError, OSError) as error:
            _tell(control, {"error": str(error)}, [])
            sys.exit(126)
        _tell(control, {"port": sockets[0].getsockname()[1]}, [one.fileno() for one in sockets])
        run = json.loads(lines.readline())
    for one in sockets:
        one.close()
    os.set_inheritable(control.fileno(), False)
    _libc.prctl(_DIES_WITH_PARENT, signal.SIGTERM)
    try:
        os.chdir(asked["cwd"])
        os.execvpe(run["command"][0], run["command"], run["environment"])  # noqa: S606 - as the user gave it
    except OSError as error:
        _tell(control, {"error": f"{run['command'][0]!r} in {asked['cwd']}: {error.strerror}"}, [])
        sys.exit(127)


def _prepare(asked: dict[str, Any]) -> list[socket.socket]:
    """Namespaces, mounts and network; gives the sockets for the one who asked."""
    _unshare(_CLONE_NEWUSER | _CLONE_NEWNS | (_CLONE_NEWNET if asked["network"] else 0))
    _mount_all(asked)
    listening = []
    if asked["network"]:
        _loopback_up()
        for family in (socket.AF_INET, socket.AF_INET6):
            _everything_is_here(family)
    listening.append(socket.create_server(("127.0.0.1", 0), backlog=512))
    listening[0].setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    if asked["network"]:
        listening.append(_watching())
    _unshare(_CLONE_NEWUSER | _CLONE_NEWNS)  # once more: what is read-only stays so, even for root
    return listening


def _unshare(kinds: int) -> None:
    """Move into new namespaces, as the same user and group."""
    user, group = os.geteuid(), os.getegid()
    _call("unshare", _libc.unshare(kinds))
    with contextlib.suppress(FileNotFoundError):
        _write("/proc/self/setgroups", "deny")
    _write("/proc/self/uid_map", f"{user} {user} 1")
    _write("/proc/self/gid_map", f"{group} {group} 1")


# -- files -----------------------------------------------------------------------------------------------------------


def _mount_all(asked: dict[str, Any]) -> None:
    """All files for reading only, but for the given folders; fresh ones where programs leave things for each other."""
    _mount(None, "/", None, _MS_REC | _MS_PRIVATE)
    shown = [(os.open(place, os.O_PATH), place) for place in asked["shown"]]
    held = [(os.open(source, os.O_PATH), target) for source, target in asked["binds"]]
    _set_read_only("/", is_so=True, everywhere=True)
    for place in ("/proc", "/dev/pts"):
        with contextlib.suppress(OSError):
            _set_read_only(place, is_so=False)
    for place in asked["fresh"]:
        _mount("tmpfs", place, "tmpfs", _MS_NOSUID | _MS_NODEV, "mode=1777")
    for descriptor, target in shown:
        Path(target).mkdir(parents=True, exist_ok=True)
        _mount(f"/proc/self/fd/{descriptor}", target, None, _MS_BIND)
        _set_read_only(target, is_so=True)
        os.close(descriptor)
    for descriptor, target in held:
        Path(target).mkdir(parents=True, exist_ok=True)
        _mount(f"/proc/self/fd/{descriptor}", target, None, _MS_BIND)
        _set_read_only(target, is_so=False)
        os.close(descriptor)


def _mount(source: str | None, target: str, kind: str | None, flags: int, options: str | None = None) -> None:
    words = [None if word is None else os.fsencode(word) for word in (source, target, kind)]
    given = None if options is None else options.encode()
    _call(f"mount {target}", _libc.mount(*words, ctypes.c_ulong(flags), given))


def _set_read_only(place: str, *, is_so: bool, everywhere: bool = False) -> None:
    attributes = struct.pack("=QQQQ", _READ_ONLY if is_so else 0, 0 if is_so else _READ_ONLY, 0, 0)
    flags = _AT_RECURSIVE if everywhere else 0
    done = _libc.syscall(
        ctypes.c_long(_SYS_MOUNT_SETATTR),
        ctypes.c_int(_AT_FDCWD),
        os.fsencode(place),
        ctypes.c_uint(flags),
        attributes,
        ctypes.c_size_t(len(attributes)),
    )
    _call(f"mount_setattr {place}", done)


# -- network ---------------------------------------------------------------------------------------------------------


def _loopback_up() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        asked = struct.pack("16sh14x", _LOOPBACK.encode(), 0)
        (flags,) = struct.unpack("16xh14x", fcntl.ioctl(any_socket, _SIOCGIFFLAGS, asked))
        fcntl.ioctl(any_socket, _SIOCSIFFLAGS, struct.pack("16sh14x", _LOOPBACK.encode(), flags | _IFF_UP))


def _everything_is_here(family: socket.AddressFamily) -> None:
    """Make every address one of this machine's own: who connects outside is refused at once, and is seen."""
    index = socket.if_nametoindex(_LOOPBACK)
    route = struct.pack(
        "=BBBBBBBBI", family, 0, 0, 0, _LOCAL_TABLE, _BY_BOOT, _HOST_SCOPE, _LOCAL_KIND, 0
    ) + struct.pack("=HHI", 8, _OUT_INTERFACE, index)
    head = struct.pack("=IHHII", 16 + len(route), _NEW_ROUTE, _REQUEST | _ACKNOWLEDGE | _CREATE, 1, 0)
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, _NETLINK_ROUTE) as netlink:
        netlink.sendto(head + route, (0, 0))
        answer = netlink.recv(4096)
    (code,) = struct.unpack_from("=i", answer, 16)
    if code and family == socket.AF_INET:  # a system without IPv6 has nothing to refuse there
        raise SandboxError(f"route to loopback: {os.strerror(-code)}")


def _watching() -> socket.socket:
    """A socket that sees what goes over loopback to other addresses than 127.0.0.0/8, and questions for names."""
    seen = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(_EVERY_PROTOCOL))
    program = [
        (0x28, 0, 0, 12),  # 0: kind of packet
        (0x15, 8, 0, 0x86DD),  # 1: IPv6: take
        (0x15, 0, 8, 0x0800),  # 2: not IPv4: leave
        (0x30, 0, 0, 30),  # 3: first byte of the destination
        (0x15, 0, 5, 127),  # 4: not loopback: take
        (0x30, 0, 0, 23),  # 5: protocol
        (0x15, 0, 4, 17),  # 6: not UDP: leave
        (0xB1, 0, 0, 14),  # 7: length of the header
        (0x48, 0, 0, 16),  # 8: port of the destination
        (0x15, 0, 1, 53),  # 9: no question for a name: leave
        (0x06, 0, 0, 2048),  # 10: take
        (0x06, 0, 0, 0),  # 11: leave
    ]
    code = b"".join(struct.pack("=HBBI", *step) for step in program)
    buffer = ctypes.create_string_buffer(code)
    seen.setsockopt(
        socket.SOL_SOCKET, _SO_ATTACH_FILTER, struct.pack("@HP", len(program), ctypes.addressof(buffer))
    )
    seen.bind((_LOOPBACK, 0))
    return seen


# -- talking ---------------------------------------------------------------------------------------------------------


def _tell(control: socket.socket, said: dict[str, Any], descriptors: list[int]) -> None:
    line = json.dumps(said).encode() + b"\n"
    if descriptors:
        socket.send_fds(control, [line], descriptors)
    else:
        control.sendall(line)


def _write(path: str, text: str) -> None:
    Path(path).write_text(text, encoding="ascii")


def _call(what: str, status: int) -> None:
    if status != 0:
        raise SandboxError(f"{what}: {os.strerror(ctypes.get_errno())}")


if __name__ == "__main__":
    main()
