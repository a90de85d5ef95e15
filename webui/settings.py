"""What a server of pages is told when it starts. Reads no environment."""

import getpass
from dataclasses import dataclass, field

from ledger.lake.sandbox import Limits

LOOPBACK = ("127.0.0.1", "localhost", "::1")
"""Names of this machine that need no token file."""


@dataclass(frozen=True)
class WebSettings:
    """How the pages are served."""

    hosts: frozenset[str] = frozenset(LOOPBACK)
    """Names by which the server may be called; a request with another `Host` is refused."""

    no_store: bool = False
    """Whether a browser must keep nothing, not even what never changes."""

    catches_up: bool = True
    """Whether the lists are kept up by a process of the server; otherwise by whoever asks for them."""

    store: str | None = None
    """URL of the store, as given; for the processes that the server starts."""

    lake: bool = False
    """Whether the lake is kept up where there is none yet; one that is there is kept up in any case."""

    queries: Limits = field(default_factory=Limits)
    """What a query of the page SQL may take."""

    most_upload: int = 512 << 20
    """Most bytes of files that are given to be imported at a time."""


def login_name() -> str:
    """The name under which the user of this machine acts."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "unknown"
