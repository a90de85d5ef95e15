"""The page Search: words in contents, marked where they stand, a page at a time."""

from starlette.testclient import TestClient

from tests.webui.site import PLAIN


def test_it_finds_words_and_leads_to_the_record(browser: TestClient) -> None:
    answer = browser.get("/search", params={"q": "delete orders"})
    assert answer.status_code == 200
    assert "<b>" in answer.text
    assert f'href="/sessions/{PLAIN}/events/2"' in answer.text


def test_pages_follow_each_other_without_gap_or_double(browser: TestClient) -> None:
    places: list[int] = []
    before: int | None = None
    while True:
        query = {"q": "turn look", "session": PLAIN} | ({} if before is None else {"before": str(before)})
        told = browser.get("/api/v1/search", params=query).json()
        places += [line["seq"] for line in told["lines"]]
        before = told["before"]
        if before is None:
            break
    assert len(places) == len(set(places)) == 40
    assert places == sorted(places, reverse=True)


def test_it_can_be_narrowed_down(browser: TestClient) -> None:
    told = browser.get("/api/v1/search", params={"q": "3", "kind": "tool_call.requested", "session": "plain"})
    assert {line["type"] for line in told.json()["lines"]} == {"tool_call.requested"}


def test_nothing_found_and_wrong_words_are_told_apart(browser: TestClient) -> None:
    nothing = browser.get("/search", params={"q": "xyzzyxyzzy", "kind": "tool_call"})
    assert "No record has" in nothing.text and "search everywhere" in nothing.text
    wrong = browser.get("/search", params={"q": '"'})
    assert wrong.status_code == 200
    assert browser.get("/search", params={"q": "a", "session": "no-such"}).status_code == 404


def test_what_is_found_is_only_shown(browser: TestClient) -> None:
    answer = browser.get("/search", params={"q": "script"})
    assert answer.status_code == 200
    assert "<script>" not in answer.text.replace("<script nonce", "")
    assert len(answer.content) < 40_000
