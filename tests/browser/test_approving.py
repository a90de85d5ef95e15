"""A person answers calls that really wait: of a loop in a process of its own, and of one behind the proxy."""

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from ledger.effects.loop_policy import ApprovalRule, LoopPolicy
from tests.browser.conftest import Watched, open_tab
from tests.ledger.capture.gates.waiting_loop import SESSION
from tests.scripted_model import ScriptedModel, Step, Text, ToolCall
from tests.webui.asking import OPEN
from tests.webui.proxied import RUN, encoded, messages, proxying, script, send, waited
from tests.webui.site import Site, served_site, site

POLICY = LoopPolicy(approvals=(ApprovalRule(tool="send_*", scopes=("once", "session", "rule")),))
STEP = Step([Text("I will write."), ToolCall("send_mail", {"to": "a@example.org"})])


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[tuple[Site, str, Path]]:
    """A site of its own, where it is served, and its folder."""
    with site(tmp_path) as made, served_site(made) as url:
        yield made, url, tmp_path


def waiting_loop(home: Path, to: str) -> "subprocess.Popen[str]":
    """A recorded loop in a process of its own, that asks before it sends."""
    command = [sys.executable, "-m", "tests.ledger.capture.gates.waiting_loop", str(home), "", to]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def open_question(tab: Watched, url: str, session: str) -> None:
    """From the queue to the question of a session, as soon as it comes up by itself."""
    row = tab.page.get_by_role("row").filter(has=tab.page.locator(f'a[href="/sessions/{session}"]'))
    expect(row).to_be_visible()
    row.get_by_role("rowheader").get_by_role("link").click()
    expect(tab.page.get_by_role("heading", level=1)).to_contain_text("May send_mail run?")


@pytest.mark.parametrize("verdict", ["Approve", "Deny"])
def test_a_call_of_a_running_loop(real_browser: Browser, desk: tuple[Site, str, Path], verdict: str) -> None:
    made, url, home = desk
    context, tab = open_tab(real_browser, made, url)
    tab.page.goto(f"{url}/approvals")
    with waiting_loop(home, "bob@example.org") as loop:
        open_question(tab, url, SESSION)
        expect(tab.page.get_by_role("region", name="Arguments")).to_contain_text("bob@example.org")
        tab.page.get_by_label("Why").fill("the address is known")
        tab.page.get_by_role("button", name=verdict).click()
        expect(tab.page.get_by_role("heading", name="The answer", exact=True)).to_be_visible()
        output, _ = loop.communicate(timeout=120)
    told = json.loads(output)
    assert told["sent"] == ([{"to": "bob@example.org"}] if verdict == "Approve" else [])
    assert ("refused" in told) == (verdict == "Deny")
    tab.page.reload()
    expect(tab.page.get_by_text("the address is known")).to_be_visible()
    expect(tab.page.get_by_text(f"used {1 if verdict == 'Approve' else 0} time")).to_be_visible()
    context.close()
    assert tab.errors == []


@pytest.mark.parametrize("verdict", ["Approve", "Deny"])
def test_a_call_behind_the_proxy(real_browser: Browser, desk: tuple[Site, str, Path], verdict: str) -> None:
    made, url, home = desk
    context, tab = open_tab(real_browser, made, url)
    with (
        ScriptedModel(script(STEP)) as model,
        proxying(home, model.url, policy=POLICY) as base,
        ThreadPoolExecutor() as pool,
    ):
        sent = pool.submit(send, base, "/v1/messages", encoded(messages("hi", stream=True)))
        tab.page.goto(f"{url}/approvals")
        open_question(tab, url, RUN)
        assert not sent.done()
        tab.page.get_by_label("Why").fill("asked for by the customer")
        tab.page.get_by_role("button", name=verdict).click()
        expect(tab.page.get_by_role("heading", name="The answer", exact=True)).to_be_visible()
        status, _, body = sent.result(120)
    assert status == 200
    assert (b"was not allowed" in body) == (verdict == "Deny")
    assert b"I will write." in body
    context.close()
    assert tab.errors == []


def test_a_rule_for_the_calls_to_come(real_browser: Browser, desk: tuple[Site, str, Path]) -> None:
    made, url, home = desk
    context, tab = open_tab(real_browser, made, url)
    page = tab.page
    other = Step([ToolCall("send_mail", {"to": "a@example.org", "again": True})])
    with (
        ScriptedModel(script(STEP, other)) as model,
        proxying(home, model.url, policy=POLICY) as base,
        ThreadPoolExecutor() as pool,
    ):
        sent = pool.submit(send, base, "/v1/messages", encoded(messages("hi")))
        page.goto(f"{url}/approvals")
        open_question(tab, url, RUN)
        page.get_by_role("link", name="Approve by a rule").click()
        page.get_by_label("As JSON").fill('{"tool": "send_mail", "when": {"/to": "a@example.org"}}')
        page.get_by_role("button", name="Look at it").click()
        expect(page.get_by_role("row").filter(has_text="when")).to_contain_text("a@example.org")
        expect(page.get_by_text(re.compile("^digest [0-9a-f]{64}$"))).to_be_visible()
        page.get_by_label("Why").fill("this address is ours")
        page.get_by_role("button", name="Approve by this rule").click()
        expect(page.get_by_role("heading", name="The answer", exact=True)).to_be_visible()
        assert b"send_mail" in sent.result(120)[2]
        again = send(base, "/v1/messages", encoded(messages("hi", "I will write.", "again")))[2]
        assert b"again" in again
    context.close()
    assert tab.errors == []


def test_who_comes_second_is_told(real_browser: Browser, desk: tuple[Site, str, Path]) -> None:
    made, url, _ = desk
    context, ana = open_tab(real_browser, made, url)
    other, bo = open_tab(real_browser, made, url, java_script_enabled=False)
    for tab in (ana, bo):
        tab.page.goto(f"{url}/approvals/{OPEN}")
        tab.page.get_by_label("Why").fill("my reason")
    ana.page.get_by_role("button", name="Deny").click()
    expect(ana.page.get_by_role("heading", name="The answer", exact=True)).to_be_visible()
    expect(ana.page.get_by_text("Your answer does not count")).to_have_count(0)
    bo.page.get_by_role("button", name="Approve").click()
    expect(bo.page.get_by_role("alert")).to_contain_text("Your answer does not count")
    expect(bo.page.get_by_role("heading", name="Came second")).to_be_visible()
    context.close()
    other.close()


def test_the_hand_brake_stops_a_run_and_lets_it_go(
    real_browser: Browser, desk: tuple[Site, str, Path]
) -> None:
    made, url, home = desk
    context, tab = open_tab(real_browser, made, url)
    page = tab.page
    with (
        ScriptedModel(script(Step([Text("one")]), Step([Text("two")]))) as model,
        proxying(home, model.url) as base,
        ThreadPoolExecutor() as pool,
    ):
        send(base, "/v1/messages", encoded(messages("hi")))
        page.goto(f"{url}/sessions/{RUN}")
        brake = page.get_by_role("region", name="Hand brake")
        brake.get_by_label("why").fill("look first")
        brake.get_by_role("button", name="Hold").click()
        expect(brake.get_by_text("HELD.")).to_be_visible()
        sent = pool.submit(send, base, "/v1/messages", encoded(messages("hi", "one", "go")))
        waited(lambda: made.ledger.store.head(RUN).seq > 4)
        assert len(model.exchanges) == 1 and not sent.done()
        brake.get_by_label("why").fill("it is fine")
        brake.get_by_role("button", name="Release").click()
        expect(brake.get_by_text("HELD.")).to_have_count(0)
        assert b"two" in sent.result(120)[2]
    context.close()
    assert tab.errors == []


def test_a_question_is_answered_by_keys_alone(real_browser: Browser, desk: tuple[Site, str, Path]) -> None:
    made, url, _ = desk
    context, tab = open_tab(real_browser, made, url, viewport={"width": 320, "height": 640})
    page = tab.page
    page.goto(f"{url}/approvals")
    page.get_by_role("link", name="transfer", exact=True).press("Enter")
    page.get_by_label("Why").focus()
    page.keyboard.type("not without the invoice")
    for _ in ("the scope", "how long", "Approve", "Deny"):
        page.keyboard.press("Tab")
    expect(page.get_by_role("button", name="Deny")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="The answer", exact=True)).to_be_visible()
    expect(page.get_by_text("denied by ana")).to_be_visible()
    context.close()
    assert tab.errors == []
