"""What a page may ask for: the ledger, its lists, the session of the address, and who asks. Renders nothing."""

from dataclasses import dataclass
from typing import Annotated
from urllib.parse import quote

from fastapi import Depends, Path, Request

from ledger.events import Actor
from ledger.home import Ledger
from webui.answers import Answers
from webui.console import Queries
from webui.jobs import Jobs
from webui.logins import Login, Logins
from webui.reading import Lists
from webui.settings import WebSettings
from webui.states import States


@dataclass(frozen=True)
class Web:
    """What one server of pages stands on."""

    ledger: Ledger
    """The open ledger."""

    lists: Lists
    """What pages list."""

    logins: Logins
    """Who may look."""

    settings: WebSettings
    """How it is served."""

    parts: "Parts"
    """What runs beside the pages."""

    @property
    def queries(self) -> Queries:
        """The sandbox for SQL."""
        return self.parts.queries

    @property
    def states(self) -> States:
        """States that somebody looked at."""
        return self.parts.states

    @property
    def answers(self) -> Answers:
        """Answers that cost much."""
        return self.parts.answers

    @property
    def jobs(self) -> Jobs:
        """Work that takes long."""
        return self.parts.jobs


class Parts:
    """What a server runs beside its pages: the sandbox for SQL, work that takes long, states."""

    def __init__(self, ledger: Ledger, settings: WebSettings) -> None:
        self.queries = Queries(ledger.home, settings.queries)
        """The sandbox for SQL."""
        self.jobs = Jobs(ledger.home, settings.store)
        """Work that takes long."""
        self.states = States(ledger)
        """States that somebody looked at."""
        self.answers = Answers()
        """Answers that cost much."""

    def close(self) -> None:
        """End all of it."""
        self.jobs.close()
        self.queries.close()


def web_of(request: Request) -> Web:
    """What the server of a request stands on."""
    web = request.app.state.web
    assert isinstance(web, Web)
    return web


WebDep = Annotated[Web, Depends(web_of)]
"""All that the server stands on."""


def _ledger(request: Request) -> Ledger:
    return web_of(request).ledger


def _lists(request: Request) -> Lists:
    return web_of(request).lists


def login_of(request: Request) -> Login | None:
    """Who asks; None before a login."""
    login = getattr(request.state, "login", None)
    return login if isinstance(login, Login) else None


def _actor(request: Request) -> Actor:
    login = login_of(request)
    return Actor("human", None if login is None else login.name)


LedgerDep = Annotated[Ledger, Depends(_ledger)]
ListsDep = Annotated[Lists, Depends(_lists)]
WhoDep = Annotated[Actor, Depends(_actor)]
"""Who acts: what an event of an action names as its actor."""


_ESCAPES = (("~", "~0"), ("/", "~1"), ("%", "~2"))
_STEPS = (".", "..")  # as segments they would lead up the path, escaped by % or not
_DOT = "~3"


def segment(session: str) -> str:
    """A session id as one segment of an address; ids of sources may hold anything, slashes too."""
    for char, escape in _ESCAPES:
        session = session.replace(char, escape)
    if session in _STEPS:
        session = session.replace(".", _DOT)
    return quote(session, safe="~", errors="replace")


def from_segment(text: str) -> str:
    """The session id of a segment, as the server has decoded it."""
    text = text.replace(_DOT, ".")
    for char, escape in reversed(_ESCAPES):
        text = text.replace(escape, char)
    return text


def _session(
    request: Request,
    session: Annotated[
        str, Path(description="Id of a session, or the unambiguous start of one.", max_length=400)
    ],
) -> str:
    found = web_of(request).ledger.store.resolve(from_segment(session))
    request.state.session = found
    return found


SessionDep = Annotated[str, Depends(_session)]
"""The session that an address with `{session}` names."""

SeqPath = Annotated[int, Path(ge=0, le=2**53, description="Seq of a record; 0 is before the first.")]
"""A seq in an address."""
