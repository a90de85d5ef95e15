"""Every act that the pages offer leaves an event with the name of who acted, and with the reason that was asked for."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi.routing import APIRoute
from starlette.testclient import TestClient

from ledger.events import Record
from ledger.events.recovery import CheckpointTaken
from tests.webui.asking import OPEN
from tests.webui.going_back import LABEL, SHOP, act, fill_workspace
from tests.webui.pages.test_importing import done
from tests.webui.replayed import ORIGIN, fill_replayed
from tests.webui.site import PLAIN, TOKEN, Site, site
from webui.page import API_PREFIX, all_pages

WHY = "because the auditor asked"
RULES = "rules:\n- name: any\n  title: Any call\n  severity: low\n  steps:\n  - call: '*'\n"

ACTS: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
    "/approvals/{approval}/decision": lambda _: {"outcome": "denied", "reason": WHY},
    "/backtest": lambda _: {"name": "mine", "rules": RULES},
    "/cases": lambda _: {"title": WHY, "findings": "finding-1"},
    "/cases/{case}/sign-off": lambda _: {"outcome": WHY},
    "/findings": lambda _: {"session": PLAIN},
    "/findings/{finding}/notes": lambda _: {"text": WHY},
    "/findings/{finding}/verdict": lambda _: {"verdict": "confirmed", "reason": WHY},
    "/import": lambda _: {},
    "/integrity": lambda _: {},
    "/sessions/{session}/checkpoints": lambda _: {"label": WHY},
    "/sessions/{session}/constraints": lambda _: {},
    "/sessions/{session}/divergence": lambda _: {"verdict": "drift", "reason": WHY},
    "/sessions/{session}/events/{seq}/notes": lambda _: {"text": WHY},
    "/sessions/{session}/fork": lambda _: {"at": 20, "message": "Stop.", "reason": WHY},
    "/sessions/{session}/hold": lambda _: {"reason": WHY},
    "/sessions/{session}/integrity": lambda _: {},
    "/sessions/{session}/release": lambda _: {"reason": WHY},
    "/sessions/{session}/replays": lambda _: {"level": "state", "reason": WHY},
    "/sessions/{session}/rollback": lambda told: {"to": told["to"], "head": told["head"], "reason": WHY},
    "/sessions/{session}/scorecard": lambda _: {},
    "/sql/lake": lambda _: {},
}
"""What each act is given. A new act needs its line here."""

SESSIONS = {
    "/sessions/{session}/rollback": SHOP,
    "/sessions/{session}/replays": ORIGIN,
    "/sessions/{session}/hold": "asks-0001",
    "/sessions/{session}/release": "asks-0001",
}
"""The session of an act, where it is not the plain one."""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A site in which something can be decided, rolled back, judged."""
    home: Path = tmp_path_factory.mktemp("acts")
    fill_workspace(home / "work")

    def fill(ledger: Any) -> None:
        act(ledger, home / "work")
        fill_replayed(ledger)

    with site(home / "home", fill=fill) as one:
        yield one


def offered() -> list[str]:
    """The address of every act."""
    routes = [route for page in all_pages() for route in page.api.routes if isinstance(route, APIRoute)]
    return sorted(route.path.removeprefix(API_PREFIX) for route in routes if "POST" in (route.methods or ()))


def test_every_act_has_its_line_here() -> None:
    assert offered() == sorted(ACTS)


@pytest.mark.parametrize("path", ACTS)
def test_an_act_is_an_event_with_who_and_why(made: Site, path: str) -> None:
    client = TestClient(
        made.app, base_url="http://127.0.0.1:4318", headers={"Authorization": f"Bearer {TOKEN}"}
    )
    if path == "/cases/{case}/sign-off":
        client.post(f"{API_PREFIX}/cases", json=ACTS["/cases"]({}))
    if path.endswith("/release"):
        client.post(f"{API_PREFIX}/sessions/asks-0001/hold", json={"reason": "first"})
    before = made.ledger.store.last_position()
    body = ACTS[path](_facts(made))
    files = {"files": ("a.json", b'[{"role": "user", "content": "hi"}]')} if path == "/import" else None
    answer = client.post(
        f"{API_PREFIX}{_address(client, path)}", **({"files": files} if files else {"json": body})
    )
    assert answer.status_code == 200, answer.text
    to = answer.json()["to"]
    if to.startswith("/jobs/"):
        assert done(client, to)["state"] == "done"
    told = [record for record in made.ledger.store.read_all(after=before) if _by_person(record)]
    assert told, f"{path} leaves no event with who acted"
    assert WHY not in body.values() or any(WHY in text for record in told for text in _texts(made, record))
    for place in answer.json()["recorded"]:
        session, _, seq = place.rpartition("#")
        assert made.ledger.store.record(session, int(seq)).position > before


def _facts(made: Site) -> dict[str, Any]:
    taken = made.ledger.store.read(SHOP, names=(CheckpointTaken.TYPE,))
    to = next(
        record.seq
        for record in taken
        if isinstance(record.event, CheckpointTaken) and record.event.label == LABEL
    )
    return {"to": to, "head": made.ledger.store.head(SHOP).seq}


def _address(client: TestClient, path: str) -> str:
    session = SESSIONS.get(path, PLAIN)
    if path.endswith("/divergence"):
        session = client.get(f"{API_PREFIX}/sessions/{ORIGIN}/replays").json()["rows"][0]["session"]
    case = ""
    if "{case}" in path:
        case = client.get(f"{API_PREFIX}/cases").json()["cases"][0]["id"]
    given = {"approval": OPEN, "case": case, "finding": "finding-1", "seq": "20", "session": session}
    return path.format(**given)


def _by_person(record: Record) -> bool:
    actor = record.actor
    return actor is not None and actor.kind == "human" and bool(actor.id)


def _texts(made: Site, record: Record) -> Iterator[str]:
    """All that a record says, its contents too."""
    event = record.event
    for value in event.__dict__.values():
        digest = getattr(value, "digest", None)
        yield made.ledger.store.content(digest).decode("utf-8", "replace") if digest else str(value)
