"""A cable between a browser and a server that can be cut."""

import contextlib
import socket
import threading
from collections.abc import Iterator

_PIECE = 65536


class Cable:
    """Passes on what goes between a port of its own and another, until it is cut. New connections work again."""

    def __init__(self, to_port: int) -> None:
        self._to_port = to_port
        self._listening = socket.create_server(("127.0.0.1", 0))
        self._lock = threading.Lock()
        self._ends: list[socket.socket] = []
        self._left: int | None = None
        """Bytes that still go to the browser before it breaks; none: it does not break by itself."""
        self._accepting = threading.Thread(target=self._accept, name="cable", daemon=True)
        self._accepting.start()

    @property
    def port(self) -> int:
        """Where the browser calls."""
        return int(self._listening.getsockname()[1])

    def cut(self) -> int:
        """Break every connection; give how many there were."""
        with self._lock:
            ends, self._ends = self._ends, []
        for end in ends:
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()
        return len(ends) // 2

    def cut_after(self, count: int) -> None:
        """Break every connection when so many more bytes have gone to the browser, wherever that is."""
        with self._lock:
            self._left = count

    @property
    def is_whole(self) -> bool:
        """Whether nothing is left to be cut."""
        with self._lock:
            return self._left is None

    def close(self) -> None:
        """Take no more."""
        with contextlib.suppress(OSError):
            self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()
        self._accepting.join()
        self.cut()

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._listening.accept()
            except OSError:
                return
            far = socket.create_connection(("127.0.0.1", self._to_port))
            with self._lock:
                self._ends += [near, far]
            threading.Thread(target=_pass_on, args=(near, far), daemon=True).start()
            threading.Thread(target=self._pass_back, args=(far, near), daemon=True).start()

    def _pass_back(self, server: socket.socket, browser: socket.socket) -> None:
        """What the server says, up to the byte after which it is to be cut."""
        with contextlib.suppress(OSError):
            while piece := server.recv(_PIECE):
                with self._lock:
                    left = self._left
                    is_last = left is not None and len(piece) >= left
                    self._left = None if left is None or is_last else left - len(piece)
                browser.sendall(piece[:left] if is_last else piece)
                if is_last:
                    self.cut()
                    return
        with contextlib.suppress(OSError):
            browser.shutdown(socket.SHUT_WR)


def _pass_on(source: socket.socket, target: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while piece := source.recv(_PIECE):
            target.sendall(piece)
    with contextlib.suppress(OSError):
        target.shutdown(socket.SHUT_WR)


@contextlib.contextmanager
def cable(to_port: int) -> Iterator[Cable]:
    """A cable for as long as the block."""
    laid = Cable(to_port)
    try:
        yield laid
    finally:
        laid.close()
