"""A wire between a client and a server on this machine, which a test cuts at a chosen message."""

import contextlib
import socket
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Self


class CutWire:
    """Listens on a port of its own and passes everything on, but for what it is told to lose."""

    def __init__(self, host: str, port: int, path: str | None = None) -> None:
        self._server = (host, port)
        self._marker: bytes | None = None
        self._keeps_question = False
        self._lock = threading.Lock()
        self._is_stopped = False
        self._silenced: socket.socket | None = None
        self._answered = threading.Event()
        self._sockets: set[socket.socket] = set()
        self._threads: list[threading.Thread] = []
        self.cuts = 0
        """How often it was cut."""
        self.port = 0
        """Where a client connects; 0 on a Unix socket, which `path` names."""
        if path is None:
            self._listener = socket.create_server(("127.0.0.1", 0))
            self.port = self._listener.getsockname()[1]
        else:
            self._listener = socket.socket(socket.AF_UNIX)
            self._listener.bind(path)
            self._listener.listen()
        self._start(self._accept, self._listener)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop_listening()
        for thread in self._threads:
            thread.join()

    def lose_answer(self, marker: bytes) -> None:
        """Pass the next message with these bytes on, wait for the server's answer, drop it, hang up."""
        with self._lock:
            self._marker, self._keeps_question = marker, True

    def lose_question(self, marker: bytes) -> None:
        """Drop the next message with these bytes, and hang up."""
        with self._lock:
            self._marker, self._keeps_question = marker, False

    def stop_listening(self) -> None:
        """Hang up on everybody, and take no new calls."""
        with self._lock:
            self._is_stopped = True
            sockets, self._sockets = [*self._sockets, self._listener], set()
        for each in sockets:
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()

    def listen_again(self) -> None:
        """Take calls again, at the same port."""
        with self._lock:
            self._listener = socket.create_server(("127.0.0.1", self.port))
            self._is_stopped = False
        self._start(self._accept, self._listener)

    def _start(self, work: Callable[..., None], *arguments: socket.socket) -> None:
        thread = threading.Thread(target=work, args=arguments, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self, listener: socket.socket) -> None:
        while True:
            try:
                client, _ = listener.accept()
            except OSError:
                return
            server = socket.create_connection(self._server)
            with self._lock:
                is_stopped = self._listener is not listener or self._is_stopped
                self._sockets |= set() if is_stopped else {client, server}
            if is_stopped:  # between the call and here
                self._hang_up(client, server)
                return
            self._start(self._questions, client, server)
            self._start(self._answers, server, client)

    def _questions(self, client: socket.socket, server: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := client.recv(1 << 20):
                with self._lock:
                    marker = self._marker
                    is_cut = marker is not None and marker in data
                    if is_cut:
                        self._marker = None
                        self.cuts += 1
                        self._answered.clear()
                        self._silenced = server if self._keeps_question else None
                if not is_cut or self._silenced is server:
                    server.sendall(data)
                if is_cut:
                    if self._silenced is server:
                        self._answered.wait()
                    break
        self._hang_up(client, server)

    def _answers(self, server: socket.socket, client: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := server.recv(1 << 20):
                if self._silenced is server:
                    self._answered.set()
                    break
                client.sendall(data)
        self._hang_up(client, server)

    def _hang_up(self, *sockets: socket.socket) -> None:
        for each in sockets:
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()
