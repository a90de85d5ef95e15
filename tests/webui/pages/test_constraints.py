"""The page Constraints: what `decay` tells, in windows; long, empty and hostile sessions; the words that show it."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

import webui.pages.constraints
from ledger.audit import chosen, discover
from ledger.audit.decay import decay_report
from ledger.capture import record_loop
from ledger.cli.auditing import run
from ledger.events import Draft
from ledger.events.keeping import Erased
from ledger.home import Ledger
from ledger.views.decay import decays
from ledger.views.findings import keep
from tests.webui.hostile.texts import CORPUS
from tests.webui.lost_rules import LOST, RULES, fill_lost_rules
from tests.webui.pages.test_every_page import MOST_BYTES
from tests.webui.pages.test_hostile import Reader, hidden_in
from tests.webui.pages.test_importing import done
from tests.webui.site import Site, form_token, site
from webui.dependencies import segment

MANY = "many-rules-0001"
PLACE = f"/sessions/{LOST}/constraints"
FEW = "few-rules-0001"
NONE = "no-rules-0001"
WORDS = (
    "amber",
    "birch",
    "cedar",
    "dune",
    "ember",
    "fjord",
    "grove",
    "heath",
    "inlet",
    "juniper",
    "kelp",
    "lagoon",
)
WILD = ("<b>&\"'wild/" + "%ff{{7*7}}<script>" * 20)[:380]


def fill(ledger: Ledger) -> None:
    """Sessions with some rules, with many, and with none."""
    fill_lost_rules(ledger)
    rules = {
        f"rule-{number}": f"Never open the {one} {two} valve of pump {number}."
        for number, (one, two) in enumerate((one, two) for one in WORDS[:6] for two in WORDS[6:])
    }
    fill_lost_rules(
        ledger, MANY, rules=rules, summaries=tuple(f"Summary {number}: pumps." for number in range(30))
    )
    fill_lost_rules(ledger, FEW, summaries=())
    with record_loop(ledger, harness="test-harness", session=NONE) as run_:
        run_.message({"role": "user", "content": "Count the boxes."})


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A site with these."""
    with site(tmp_path_factory.mktemp("constraints"), fill=fill, lake=False) as one:
        yield one


@pytest.fixture(autouse=True)
def _has_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy machine is no reason to leave a short session for later."""
    monkeypatch.setattr(webui.pages.constraints, "SECONDS", 300.0)


def told(client: TestClient, path: str) -> dict[str, Any]:
    """What a page tells a program."""
    answer = client.get(f"/api/v1{path}")
    assert answer.status_code == 200, answer.text
    found = answer.json()
    assert isinstance(found, dict)
    return found


def hows(line: dict[str, Any]) -> list[str]:
    """The verdicts of a row."""
    return [line["start"]["how"], *(one["how"] for one in line["cells"]), line["now"]["how"]]


def test_each_rule_is_a_row_and_each_compaction_a_column_as_decay_tells(made: Site) -> None:
    client = made.client()
    found = told(client, PLACE)
    assert {line["rule"]["text"]: hows(line) for line in found["lines"]} == {
        RULES["tables"]: ["verbatim", "paraphrase", "paraphrase", "paraphrase"],
        RULES["fridays"]: ["verbatim", "verbatim", "inverted", "inverted"],
        RULES["refunds"]: ["verbatim", "weakened", "absent", "absent"],
        RULES["mail"]: ["verbatim", "absent", "absent", "absent"],
    }
    report = decay_report(decays(made.ledger.store, [LOST])).as_json()
    (session,) = report["sessions"]
    assert [(one["seq"], one["lost"]) for one in found["columns"]] == [
        (one["seq"], len(one["lost"])) for one in session["compactions"]
    ]
    assert [(one["kept"], one["shown"]) for one in found["steps"]] == [
        (one["hits"], one["of"]) for one in report["retention"]
    ]
    figures, violations = found["figures"], report["violations"]
    assert (figures["decay"], figures["wilful"]) == (1, 1)
    assert (figures["broken"], figures["chances"]) == (violations["rate"]["hits"], violations["rate"]["of"])
    assert [(one["seq"], one["why"], one["lost_by"]) for one in found["breaches"]] == [
        (one["seq"], one["why"], one["lost_by"]) for one in session["violations"]
    ]
    advice = {one["constraint"]: one["tokens"] for one in report["pinning"]["advice"]}
    names = {line["rule"]["number"]: line["rule"]["name"] for line in found["lines"]}
    assert {names[one["rule"]]: one["tokens"] for one in found["exposed"]} == advice


def test_every_word_and_record_is_a_link_and_the_words_are_words(made: Site) -> None:
    client = made.client()
    html = client.get(PLACE).text
    first, second = (one["seq"] for one in told(client, PLACE)["columns"])
    for number, how, seq in ((1, "paraphrase", first), (2, "inverted", second), (4, "absent", first)):
        link = f'<a href="{PLACE}/{number}?at={seq}">{how}</a>'
        assert link in html
        assert client.get(f"{PLACE}/{number}?at={seq}").status_code == 200
    for link in set(re.findall(r'href="(/sessions/[^"#]*)', html)):
        assert client.get(link.replace("&amp;", "&")).status_code == 200, link
    assert f'<a href="/sessions/{LOST}/events/{first}">Compaction 1</a>' in html
    assert "decay" in html and "wilful" in html and "the shop" in html


def test_what_shows_a_verdict_is_the_message_that_says_so(made: Site) -> None:
    client = made.client()
    first = told(client, PLACE)["columns"][0]["seq"]
    kept, lost = (told(client, f"{PLACE}/{number}?at={first}") for number in (1, 4))
    assert kept["evidence"]["source"] == "message"
    assert kept["evidence"]["said"] == "dropping or truncating tables of orders is forbidden."
    assert lost["evidence"]["source"] == "summary" and "## Constraints" in lost["evidence"]["text"]
    start = told(client, f"{PLACE}/4?at={lost['history'][0]['seq']}")["evidence"]
    assert (start["is_cut"], start["how"]["how"]) == (False, "verbatim")
    assert RULES["mail"] in start["text"]
    now = told(client, f"{PLACE}/4?at={lost['history'][2]['seq']}")["evidence"]
    assert (now["how"]["how"], now["lost_by"], now["source"]) == ("absent", first, "summary")
    for path, parameter in ((f"{PLACE}/99", "constraint"), (f"{PLACE}/1?at=2", "at")):
        answer = client.get(path)
        assert answer.status_code == 404 and parameter in answer.text


def test_long_evidence_begins_near_what_it_says(tmp_path: Path) -> None:
    def long(ledger: Ledger) -> None:
        around = "The gauge stood at two metres and the clerk wrote it down. " * 400
        fill_lost_rules(ledger, summaries=(f"{around}{RULES['mail']} {around}",))

    with site(tmp_path, fill=long, lake=False) as one:
        client = one.client()
        seq = told(client, PLACE)["columns"][0]["seq"]
        evidence = told(client, f"{PLACE}/4?at={seq}")["evidence"]
        assert (evidence["how"]["how"], evidence["is_begun"], evidence["is_cut_off"]) == (
            "verbatim",
            True,
            True,
        )
        assert RULES["mail"] in evidence["text"][:1000]
        assert len(client.get(f"{PLACE}/4?at={seq}").content) <= MOST_BYTES


def test_windows_over_many_rules_and_compactions_leave_none_out(made: Site) -> None:
    client = made.client()
    place = f"/sessions/{MANY}/constraints"
    rules: list[int] = []
    first: int | None = 1
    while first is not None:
        assert len(client.get(f"{place}?from={first}").content) <= MOST_BYTES
        window = told(client, f"{place}?from={first}")
        rules += [line["rule"]["number"] for line in window["lines"]]
        first = window["later_rules"]
    assert rules == list(range(1, 37))
    cuts: list[int] = []
    at: int | None = 0
    found: dict[str, Any] = {}
    while at is not None:
        found = told(client, f"{place}?at={at}")
        cuts += [one["number"] for one in found["columns"]]
        at = found["later_cuts"]
    assert cuts == list(range(1, 31))
    last = told(client, f"{place}?at={found['columns'][0]['seq']}&from=30")
    assert told(client, f"{place}?at={last['earlier_cuts']}")["later_cuts"] == last["columns"][0]["seq"]
    assert last["earlier_rules"] < 30
    steps: list[int] = []
    step: int | None = 1
    while step is not None:
        window = told(client, f"{place}?step={step}")
        steps += [one["number"] for one in window["steps"]]
        step = window["later_steps"]
    assert steps == list(range(1, 31))


def test_only_those_that_were_lost(made: Site) -> None:
    found = told(made.client(), f"{PLACE}?only=lost")
    assert [line["rule"]["text"] for line in found["lines"]] == [
        RULES[name] for name in ("fridays", "refunds", "mail")
    ]
    assert found["lost"] == 3


def test_a_session_without_compactions_or_rules_says_so_in_a_sentence(made: Site) -> None:
    client = made.client()
    html = client.get(f"/sessions/{FEW}/constraints").text
    assert "The context of this session was never shortened: no compaction could lose a constraint." in html
    assert RULES["mail"] in html and "Retention by compaction" not in html
    html = client.get(f"/sessions/{NONE}/constraints").text
    assert "No constraint was declared in this session" in html


def test_a_page_loads_no_content_once_it_is_worked_out(made: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    client = made.client()
    before = client.get(PLACE).text

    def refuse(*_: object) -> bytes:
        raise AssertionError("a content was loaded")

    for name in ("content", "contents", "context"):
        monkeypatch.setattr(made.ledger.store, name, refuse)
    after = client.get(PLACE).text
    hide = re.compile(r'nonce="[^"]*"|value="[0-9a-f]{64}"')
    assert hide.sub("", after) == hide.sub("", before)


@pytest.mark.parametrize(("limit", "value"), [("MOST_RECORDS", 5), ("SECONDS", -1.0)])
def test_what_takes_long_is_work_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: str, value: float
) -> None:
    with site(tmp_path, fill=fill_lost_rules, lake=False) as one:
        client = one.client()
        monkeypatch.setattr(webui.pages.constraints, limit, value)
        found = told(client, PLACE)
        assert (found["records"], found["lines"], found["has_compaction"]) == (0, [], True)
        html = client.get(PLACE).text
        assert "Nobody has looked yet" in html
        assert "Have it done" in client.get(f"{PLACE}/1").text
        answer = client.post(PLACE, data={"form_token": form_token(html)}, follow_redirects=False)
        assert answer.status_code == 303
        work = done(client, answer.headers["location"])
        assert (work["state"], work["to"]) == ("done", PLACE)
        found = told(client, PLACE)
        assert len(found["lines"]) == 4 and found["records"] <= found["head"]
        with record_loop(one.ledger, harness="test-harness", session=LOST) as run_:
            run_.message({"role": "user", "content": "And again."})
        assert "they are not in this" in client.get(PLACE).text


def test_a_short_session_that_goes_on_is_looked_at_again(tmp_path: Path) -> None:
    with site(tmp_path, fill=fill_lost_rules, lake=False) as one:
        client = one.client()
        assert told(client, PLACE)["cuts"] == 2
        fill_lost_rules(one.ledger, summaries=("Nothing of it.",))
        found = told(client, PLACE)
        assert (found["cuts"], found["records"]) == (3 + 1, found["head"])


def test_hostile_rules_in_a_session_of_a_hostile_name_stay_words(tmp_path: Path) -> None:
    texts = [text[:3000].encode("utf-8", "replace").decode() for text in CORPUS.values()]

    def wild(ledger: Ledger) -> None:
        rules = {f"{text[:150]} {number}": f"Never show {text}" for number, text in enumerate(texts)}
        summaries = tuple(f"{text} Never show {text}" for text in texts)
        fill_lost_rules(ledger, WILD, rules=rules, summaries=summaries)

    with site(tmp_path, fill=wild, lake=False) as one:
        client = one.client(raises=False)
        place = f"/sessions/{segment(WILD)}/constraints"
        found = told(client, place)
        assert found["rules"] >= len(texts) and found["columns"]
        seq = found["columns"][0]["seq"]
        paths = [place, f"{place}?at={found['later_cuts']}&from=9&only=lost"]
        paths += [f"{place}/{number}?at={seq}" for number in range(1, len(texts) + 1)]
        shown = 0
        for path in paths:
            answer = client.get(path)
            if answer.status_code == 404:
                continue  # a rule that nobody ever saw is not looked at there
            shown += 1
            assert answer.status_code == 200
            assert len(answer.content) <= MOST_BYTES, path
            reader = Reader()
            reader.feed(answer.text)
            assert reader.wrong == []
            assert hidden_in(answer.text) == set()
        assert shown > len(texts) // 2


def test_erased_words_are_gone_from_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with site(tmp_path, fill=fill_lost_rules, lake=False) as one:
        client = one.client()
        assert RULES["mail"] in client.get(PLACE).text
        ledger = one.ledger
        erased = Draft(Erased(digests=("ab" * 32,), reason="asked for"))
        ledger.recorder.append("acts", [erased], ledger.recorder.keeper())
        with monkeypatch.context() as patched:
            patched.setattr(webui.pages.constraints, "MOST_RECORDS", 5)
            assert RULES["mail"] not in client.get(PLACE).text
        assert RULES["mail"] in client.get(PLACE).text  # its words are still in the store


def test_findings_compactions_and_states_lead_here(tmp_path: Path) -> None:
    with site(tmp_path, fill=fill_lost_rules, lake=False) as one:
        detectors = [
            detector
            for detector in chosen(discover(one.ledger.home), (), everything=False)
            if detector.name == "governance_decay"
        ]
        raised = keep(one.ledger.recorder, run(one.ledger, detectors, [LOST]).findings)
        client = one.client()
        first = told(client, PLACE)["columns"][0]["seq"]
        assert raised
        findings = client.get("/api/v1/findings", params={"session": LOST}).json()["lines"]
        links = [client.get(f"/findings/{segment(line['id'])}").text for line in findings]
        assert any(f'href="{PLACE}?at={first}">Constraints by compaction' in html for html in links)
        assert f'href="{PLACE}?at={first}"' in client.get(f"/sessions/{LOST}/events/{first}").text
        assert f'href="{PLACE}?at={first}"' in client.get(f"/sessions/{LOST}/state/{first}").text
        other = client.get("/findings/finding-1").text
        assert "Constraints by compaction" not in other
