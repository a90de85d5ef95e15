"""A socket that listens, and a server on it that says nothing of its own: what proxies and players share."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn

from ledger.errors import InputError
from webui.asgi import Application

_KEEP_ALIVE_S = 75
"""An agent's tool may take a while; a connection that is closed meanwhile may be the one that it uses next."""


def bound_socket(host: str, port: int) -> socket.socket:
    """A socket that listens. Raises InputError when it cannot."""
    try:
        listening = socket.create_server((host, port), backlog=512)
        # What it accepts inherits this: else a small piece of an answer waits for the client's acknowledgement.
        listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return listening
    except OSError as error:
        raise InputError(f"cannot listen at {host}:{port}: {error.strerror}") from error


def quiet_server(application: Application, *, grace_s: int) -> uvicorn.Server:
    """A server. When it is stopped, what is under way gets so many seconds."""
    config = uvicorn.Config(
        application,
        log_level="critical",
        access_log=False,
        server_header=False,
        date_header=False,
        timeout_keep_alive=_KEEP_ALIVE_S,
        timeout_graceful_shutdown=grace_s,
        ws="none",
    )
    return uvicorn.Server(config)


@contextmanager
def served(application: Application, listening: socket.socket, *, grace_s: int = 2) -> Iterator[None]:
    """Serve in a thread until the block ends."""
    server = quiet_server(application, grace_s=grace_s)
    thread = threading.Thread(target=server.run, args=([listening],), name="server")
    thread.start()
    try:
        yield
    finally:
        server.should_exit = True
        thread.join()
