"""What every test stands on: a clock and ids that count, seeded chance, no way out of this machine."""

import contextlib
import importlib
import ipaddress
import itertools
import pkgutil
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import hypothesis
import pytest

import ledger
import replay
import webui
from tests.postgres import postgres_database, postgres_url

__all__ = ["postgres_database", "postgres_url"]

_UNTIMED = hypothesis.settings(deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow])
"""On a machine that is busy with other things, an example may take any time."""

# The same examples each time, so that a change fails by what it does, never by what was drawn today. Another
# search, now and then: pytest --hypothesis-profile=search
hypothesis.settings.register_profile("same", _UNTIMED, derandomize=True, print_blob=True)
hypothesis.settings.register_profile("search", _UNTIMED, print_blob=True)
hypothesis.settings.load_profile("same")


def pytest_collection_finish(session: pytest.Session) -> None:
    """Load all modules first: hypothesis draws from the constants of those that are loaded, and which these are would
    depend on the tests that a worker happened to run before.
    """
    if hasattr(session.config, "workerinput"):
        for package in (ledger, replay, webui):
            for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
                if not module.name.endswith("__main__"):
                    with contextlib.suppress(ImportError):
                        importlib.import_module(module.name)


_SOCKET_EVENTS = {"socket.connect": 1, "socket.sendto": 1, "socket.sendmsg": 1, "socket.getaddrinfo": 0}
"""Audit events of the interpreter that lead out, and which of their arguments holds the address."""


class OutsideCallError(RuntimeError):
    """A test tried to reach another machine."""


def _is_local(address: object) -> bool:
    host = address[0] if isinstance(address, tuple) else address
    if host is None or isinstance(host, bytes) or not isinstance(address, tuple | str):
        return True  # a socket that is connected already, a Unix socket with a name in bytes, the wildcard
    if host in ("", "localhost") or str(host).startswith(("/", "\0")):
        return True
    try:
        return ipaddress.ip_address(str(host)).is_loopback
    except ValueError:
        return False


def _refuse_outside_calls(event: str, arguments: tuple[Any, ...]) -> None:
    place = _SOCKET_EVENTS.get(event)
    if place is not None and not _is_local(arguments[place]):
        raise OutsideCallError(
            f"{event} to {arguments[place]!r}: a test may only reach this machine; serve it here"
        )


sys.addaudithook(_refuse_outside_calls)


@pytest.fixture
def clock() -> Callable[[], str]:
    """A clock that counts: 2026-01-01T00:00:00.000000Z, then one second later at each look."""
    seconds = itertools.count()
    start = datetime(2026, 1, 1, tzinfo=UTC)
    return lambda: (start + timedelta(seconds=next(seconds))).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


@pytest.fixture
def ids() -> Callable[[], str]:
    """Ids that count, of the form that the recorder draws: 32 hexadecimal digits, from 1."""
    numbers = itertools.count(1)
    return lambda: f"{next(numbers):032x}"
