"""The seam of pages: what one function gives as page and as JSON, and how an act is recorded by form or by program."""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import pytest
from pydantic import BaseModel, Field
from starlette.testclient import TestClient

import webui.app
import webui.rendering
from ledger.events import Draft
from ledger.events.review import NoteWritten
from tests.webui.site import PLAIN, TOKEN, Site, form_token, site
from webui.dependencies import LedgerDep, SessionDep, WhoDep, segment
from webui.page import Done, Page, all_pages
from webui.pages.help import HelpContext

page = Page("Notes", link="/sessions/{session}/test-notes", order=99)


class NoteForm(BaseModel):
    """A note."""

    text: Annotated[str, Field(min_length=1, max_length=40)]
    """Its words."""


@page.action("/sessions/{session}/test-notes")
def write(ledger: LedgerDep, session: SessionDep, who: WhoDep, form: NoteForm) -> Done:
    """Write a note."""
    keeper = ledger.recorder.keeper()
    event = NoteWritten(about=session, text=keeper.text(form.text))
    records = ledger.recorder.append(session, [Draft(event, actor=who)], keeper, durable=True)
    return Done(to=f"/sessions/{segment(session)}", recorded=[one.place for one in records])


@page.view("/sessions/{session}/test-notes", template="help.html")
def show(session: SessionDep) -> HelpContext:
    """Some page."""
    return HelpContext(keys=[], words=[])


PATH = f"/sessions/{PLAIN}/test-notes"


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    """A site with one more page."""
    monkeypatch.setattr(webui.app, "all_pages", lambda: (*all_pages(), page))
    with site(tmp_path) as made:
        yield made


def notes(shop: Site) -> list[tuple[str | None, str]]:
    """Who wrote which note."""
    return [
        (
            record.actor.id if record.actor else None,
            shop.ledger.store.content(record.event.text.digest).decode(),
        )
        for record in shop.ledger.store.read(PLAIN)
        if isinstance(record.event, NoteWritten)
    ]


def test_a_form_is_an_event_of_who_sent_it(shop: Site) -> None:
    browser = shop.client()
    token = next(
        login.form_token
        for login in [shop.logins.by_cookie(browser.cookies["loopledger"])]
        if login is not None
    )
    answer = browser.post(PATH, data={"text": "looked", "form_token": token}, follow_redirects=False)
    assert answer.status_code == 303
    assert answer.headers["location"] == f"/sessions/{PLAIN}"
    assert notes(shop) == [("ana", "looked")]


@pytest.mark.parametrize("token", ["", "0" * 64, "é"])
def test_a_form_without_the_token_of_the_login_does_nothing(shop: Site, token: str) -> None:
    answer = shop.client().post(PATH, data={"text": "looked", "form_token": token})
    assert answer.status_code == 403
    assert notes(shop) == []


def test_a_program_sends_json_and_learns_what_was_recorded(shop: Site) -> None:
    program = TestClient(
        shop.app, base_url="http://127.0.0.1:4318", headers={"authorization": f"Bearer {TOKEN}"}
    )
    answer = program.post(f"/api/v1{PATH}", json={"text": "looked"})
    assert answer.status_code == 200
    assert answer.json()["recorded"] == [f"{PLAIN}#{shop.ledger.store.head(PLAIN).seq}"]
    wrong = program.post(f"/api/v1{PATH}", json={"text": ""})
    assert wrong.status_code == 400
    assert "'text'" in wrong.json()["sentence"]
    assert (
        program.post(f"/api/v1{PATH}", content=b"{", headers={"content-type": "text/plain"}).status_code
        == 400
    )


def test_its_link_is_in_the_navigation_of_a_session(shop: Site) -> None:
    answer = shop.client().get(PATH)
    assert f'href="{PATH}" aria-current="page"' in answer.text
    assert f'href="{PATH}"' not in shop.client().get("/help").text


def test_a_form_that_lacks_the_token_is_found() -> None:
    with pytest.raises(AssertionError, match="the form has no token"):
        form_token("<form></form>")


def test_without_htmx_a_page_is_links_and_forms(
    shop: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    browser = shop.client()
    assert "/static/vendor/htmx.js" in browser.get("/help").text
    monkeypatch.setattr(webui.rendering, "VENDOR", tmp_path / "nothing")
    answer = browser.get(f"/sessions/{PLAIN}/events")
    assert answer.status_code == 200
    assert "/static/vendor/" not in answer.text and "htmx-config" not in answer.text
