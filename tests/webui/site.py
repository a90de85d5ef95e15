"""A ledger with something to see, the application over it, and the addresses of all pages. Stands on no page."""

import contextlib
import re
import socket
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import urlencode

import uvicorn
from fastapi.routing import APIRoute
from pydantic_core import PydanticUndefined
from starlette.testclient import TestClient

from ledger.events import Draft, Event
from ledger.events.compaction import CompactionDone
from ledger.events.governance import ConstraintDeclared, ConstraintWithdrawn
from ledger.events.input import MessageReceived
from ledger.events.model_call import ModelCallAnswered, ModelCallRequested, Usage
from ledger.events.recovery import CheckpointTaken
from ledger.events.review import FindingRaised
from ledger.events.session import SessionEnded, SessionStarted
from ledger.events.tool_call import ToolCallRequested, ToolCallSettled, ToolCallStarted
from ledger.home import Ledger, open_ledger
from ledger.lake import Lake
from ledger.lake.connection import FOLDER
from ledger.lake.sandbox import Limits
from ledger.views.lake import lake_feed
from tests.webui.asking import fill_asking
from tests.webui.hostile.texts import SESSION as HOSTILE
from tests.webui.hostile.texts import plant
from tests.webui.values import QUERY, VALUES
from webui.app import create_app
from webui.dependencies import Parts, segment
from webui.guard import Guard
from webui.logins import Logins
from webui.page import API_PREFIX, all_pages
from webui.settings import WebSettings

PLAIN = "plain-0001"
"""A session of forty turns, with a compaction, rules, findings, a checkpoint."""

TURNS = 40
TOKEN = "token-" + "t" * 40
UNHURRIED = Limits(seconds=600, wait_seconds=600)
"""Time enough for a query on a machine that is busy with other things."""

NAME = "localtest.localhost"
"""A name of the server whose cookies no other server of this machine gets."""


@dataclass(frozen=True)
class Site:
    """A ledger and its application."""

    ledger: Ledger
    """The ledger."""
    app: Guard
    """The application."""
    logins: Logins
    """Its logins."""
    parts: Parts
    """What it runs beside."""

    def client(self, *, logged_in: bool = True, raises: bool = True) -> TestClient:
        """A browser without JavaScript."""
        client = TestClient(
            self.app,
            base_url="http://127.0.0.1:4318",
            headers={"sec-fetch-site": "same-origin"},
            raise_server_exceptions=raises,
        )
        if logged_in:
            assert client.get("/login", params={"code": self.logins.new_code()}).status_code == 200
        return client


@contextlib.contextmanager
def site(
    home: Path,
    *,
    fill: Callable[[Ledger], object] | None = None,
    catches_up: bool = False,
    lake: bool = True,
    settings: WebSettings | None = None,
) -> Iterator[Site]:
    """A site over a ledger with a plain and a hostile session, and what `fill` adds."""
    settings = settings or WebSettings(catches_up=catches_up, queries=UNHURRIED)
    with open_ledger(home) as ledger:
        fill_plain(ledger)
        plant(ledger)
        fill_asking(ledger)
        if fill is not None:
            fill(ledger)
        if lake:
            Lake(ledger.home / FOLDER).export(lake_feed(ledger.store))
        with _over(ledger, settings) as made:
            yield made


@contextlib.contextmanager
def empty_site(home: Path) -> Iterator[Site]:
    """A site over a ledger in which nothing is."""
    with open_ledger(home) as ledger, _over(ledger, WebSettings(catches_up=False, queries=UNHURRIED)) as made:
        yield made


@contextlib.contextmanager
def _over(ledger: Ledger, settings: WebSettings) -> Iterator[Site]:
    logins = Logins("ana", TOKEN)
    told = replace(settings, hosts=frozenset({"127.0.0.1", NAME}))
    with contextlib.closing(Parts(ledger, told)) as parts:
        yield Site(ledger, create_app(ledger, logins=logins, settings=told, parts=parts), logins, parts)


@contextlib.contextmanager
def served_site(made: Site) -> Iterator[str]:
    """The site on a port, in a thread; gives its address."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        config = uvicorn.Config(
            made.app, log_level="critical", access_log=False, timeout_graceful_shutdown=1, ws="none"
        )
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, args=([listening],), name="site")
        thread.start()
        try:
            yield f"http://{NAME}:{listening.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join()


def fill_plain(ledger: Ledger, session: str = PLAIN, turns: int = TURNS) -> None:
    """The plain session: harmless texts, every kind of thing that pages show."""
    keeper = ledger.recorder.keeper()

    def text(words: str) -> object:
        return keeper.json({"role": "user", "content": words})

    first: list[Event] = [
        SessionStarted(harness="test-harness", name="Tidy the shop", agent="shopkeeper", model="model-1"),
        MessageReceived(origin="human", message=keeper.json("Tidy the shop. Never delete orders.")),
        ConstraintDeclared(constraint="keep-orders", text=keeper.text("Never delete orders."), origin="user"),
        CheckpointTaken(checkpoint_id="start", taken_by="human", label="before the work"),
    ]
    ledger.recorder.append(session, [Draft(event, agent="shopkeeper") for event in first], keeper)
    for turn in range(turns):
        call, answer = f"call_{turn}", f"answer_{turn}"
        effect = "irreversible" if turn % 10 == 9 else "read"
        events: list[Event] = [
            ModelCallRequested(call_id=answer, protocol="anthropic.messages", completeness="none"),
            ModelCallAnswered(
                call_id=answer,
                message=keeper.json({"role": "assistant", "content": f"Turn {turn}: I look at the shelf."}),
                usage=Usage(input_tokens=100 + turn, output_tokens=20),
            ),
            ToolCallRequested(
                call_id=call,
                tool="shelf",
                arguments=keeper.json({"row": turn}),
                effect_class=effect,  # type: ignore[arg-type]
            ),
            ToolCallStarted(call_id=call),
            ToolCallSettled(
                call_id=call,
                outcome="failed" if turn % 7 == 3 else "returned",
                result=keeper.text(f"row {turn}\n\x1b[31m{turn} boxes\x1b[0m\nfull"),
                duration_ms=12,
            ),
        ]
        if turn == turns // 2:
            events.append(
                CompactionDone(
                    compaction_id="c1",
                    trigger="auto",
                    evidence="logged",
                    summary=keeper.text("The shop is half tidy."),
                    messages_before=60,
                    messages_after=2,
                    tokens_before=9000,
                    tokens_after=400,
                )
            )
            events.append(ConstraintWithdrawn(constraint="keep-orders", reason="not in the summary"))
        ledger.recorder.append(session, [Draft(event, agent="shopkeeper") for event in events], keeper)
    last: list[Event] = [
        FindingRaised(
            finding_id="finding-1",
            detector="rule_lost",
            severity="high",
            witnesses=(f"{session}#3", f"{session}#50"),
            message=keeper.text("A rule was lost in a compaction."),
        ),
        SessionEnded(outcome="completed"),
    ]
    ledger.recorder.append(session, [Draft(event) for event in last], keeper)


def form_token(html: str) -> str:
    """The token that the forms of a page carry."""
    found = re.search(r'name="form_token" value="([0-9a-f]{64})"', html)
    assert found is not None, 'the form has no token: {% include "_token.html" %}'
    return found[1]


# -- addresses -------------------------------------------------------------------------------------------------------


def addresses(session: str, *, api: bool = False) -> list[str]:
    """The address of every page, about a session where it is about one; of its JSON twin with `api`."""
    found = []
    for page in all_pages():
        for route in (page.api if api else page.html).routes:
            assert isinstance(route, APIRoute)
            if "GET" in (route.methods or ()) and route.path not in ("/login", "/logout"):
                found.append(_filled(route, session))
    return found


def _filled(route: APIRoute, session: str) -> str:
    path = route.path
    for name in re.findall(r"{(\w+)(?::\w+)?}", path):
        value = segment(session) if name == "session" else VALUES.get(name)
        assert value is not None, (
            f"{route.path}: add a value for {name!r} to VALUES in tests/webui/values.py, so that tests can ask for it"
        )
        path = re.sub(rf"{{{name}(:\w+)?}}", value.replace("\\", r"\\"), path)
    needed = {
        one.alias: QUERY.get(one.alias)
        for one in route.dependant.query_params
        if one.field_info.default is PydanticUndefined
    }
    for name, value in needed.items():
        assert value is not None, f"{route.path}: add a value for {name!r} to QUERY in tests/webui/values.py"
    return f"{path}?{urlencode(needed)}" if needed else path


__all__ = [
    "API_PREFIX",
    "HOSTILE",
    "NAME",
    "PLAIN",
    "Site",
    "addresses",
    "empty_site",
    "fill_plain",
    "form_token",
    "served_site",
    "site",
]
