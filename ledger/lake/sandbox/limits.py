"""How much one query of a stranger may take, and how many of them run at a time."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    """Limits of safe queries; each is held by the operating system, not by the engine's good will."""

    seconds: float = 10.0
    """A query that takes longer is stopped; its worker is killed half a second later at most."""

    memory_bytes: int = 1 << 30
    """Address space of a worker; the engine stops a query at a quarter of it, with a message."""

    rows: int = 1000
    """Most rows of an answer."""

    result_bytes: int = 4 << 20
    """Most bytes of an answer, as Arrow has it."""

    text_bytes: int = 64 << 10
    """Longest text of a query."""

    workers: int = 2
    """Queries that run at a time."""

    waiting: int = 8
    """Queries that wait for a worker; one more is told that it is busy."""

    wait_seconds: float = 10.0
    """A query that waits longer is told that it is busy."""

    idle_seconds: float = 300.0
    """A worker that has nothing to do for so long ends."""
