"""What a command in a sandbox tried to reach outside, read from the packets that its loopback saw.

Every address there is loopback's own, so that each attempt is refused at once, and leaves a packet that names it.
"""

import ipaddress
import select
import socket
import struct
import threading
from collections import Counter
from collections.abc import Iterator

_OUTGOING = 4
_LONGEST = 2048
_IPV4, _IPV6 = 0x0800, 0x86DD
_TCP, _UDP = 6, 17
_SYN_ACK, _SYN = 0x12, 0x02
_NAMES_PORT = 53
_LISTED = 1000
_WAIT_S = 0.05


class Outside:
    """Reads a socket that sees all packets, in a thread, until it is closed."""

    def __init__(self, seen: socket.socket) -> None:
        self._seen = seen
        self._attempts: Counter[str] = Counter()
        self._is_over = False
        self._thread = threading.Thread(target=self._run, name="outside", daemon=True)
        self._thread.start()

    def close(self) -> dict[str, int]:
        """Read what is left. Gives place -> number of attempts, such as `tcp 192.0.2.7:443` or `name example.com`."""
        self._is_over = True
        self._thread.join()
        self._seen.close()
        return dict(self._attempts)

    def _run(self) -> None:
        while select.select([self._seen], [], [], 0 if self._is_over else _WAIT_S)[0] or not self._is_over:
            try:
                packet, (_, _, direction, *_) = self._seen.recvfrom(_LONGEST, socket.MSG_DONTWAIT)
            except (BlockingIOError, InterruptedError):
                continue
            if direction == _OUTGOING:
                continue  # loopback shows each packet twice
            for attempt in attempts_in(packet):
                if attempt in self._attempts or len(self._attempts) < _LISTED:
                    self._attempts[attempt] += 1


def attempts_in(packet: bytes) -> Iterator[str]:
    """What an Ethernet frame tries to reach; nothing for what stays on this machine, or is no first packet."""
    try:
        kind, data = struct.unpack_from("!H", packet, 12)[0], packet[14:]
        if kind == _IPV4:
            protocol, address, start = data[9], ipaddress.ip_address(data[16:20]), (data[0] & 15) * 4
        elif kind == _IPV6:
            protocol, address, start = data[6], ipaddress.ip_address(data[24:40]), 40
        else:
            return
        port = struct.unpack_from("!H", data, start + 2)[0]
        if protocol == _UDP and port == _NAMES_PORT:
            yield f"name {_name(data[start + 8 :])}"
        elif address.is_loopback:
            return
        elif protocol == _UDP:
            yield f"udp {_place(address, port)}"
        elif protocol == _TCP:
            if data[start + 13] & _SYN_ACK == _SYN:
                yield f"tcp {_place(address, port)}"
        elif protocol not in (1, 58):  # what loopback itself answers
            yield f"protocol {protocol} {address}"
    except (struct.error, IndexError, ValueError):
        return


def _place(address: "ipaddress.IPv4Address | ipaddress.IPv6Address", port: int) -> str:
    return f"[{address}]:{port}" if address.version == 6 else f"{address}:{port}"


def _name(question: bytes) -> str:
    """The name that is asked for."""
    labels: list[str] = []
    at = 12
    while (length := question[at]) and length < 64:
        labels.append(question[at + 1 : at + 1 + length].decode("ascii", "replace"))
        at += 1 + length
    return ".".join(labels)[:253] or "."
