"""Rules held against the past: what they match and would block, what was covered, what cannot be seen."""

from pathlib import Path
from typing import Any

import pytest

from ledger.audit.rules import RuleSet, read_rules
from ledger.events.review import EvidenceExported
from ledger.views.backtesting import SESSION, backtest, save
from tests.ledger.audit.histories import History
from tests.ledger.audit.rules.sessions import calls

PAY = """
rules:
- name: big
  title: Much money
  action: deny
  steps: [{call: pay, if: args.amount > LIMIT}]
- name: unasked
  title: Paid without a yes
  action: ask
  steps: [{call: look}, {without: {event: approval.decided}}, {result: pay}]
"""


def rules(limit: int) -> RuleSet:
    """Two rules."""
    return read_rules("money", PAY.replace("LIMIT", str(limit)), "money.yaml")


@pytest.fixture
def history(tmp_path: Path) -> Any:
    """Three sessions: two from a file, one recorded."""
    with History(tmp_path) as history:
        history.add(calls("look", ("pay", {"amount": 50}), ("pay", {"amount": 500})), prefix="a-")
        imported = calls("look", ("pay", {"amount": 900}, "!denied"), ("pay", {"amount": 20}))
        history.add([{**event, "@file": "x.json:1"} for event in imported], prefix="b-")
        history.add(calls("other"), prefix="c-")
        yield history


def test_counts_by_rule(history: History) -> None:
    told = backtest(history.ledger.store, rules(100)).as_json()
    assert told["sessions"] == 3
    big, unasked = told["by_rule"]["big"], told["by_rule"]["unasked"]
    assert (big["matched"], big["sessions"], big["would_block"], big["covered"]) == (2, 2, 1, 1)
    assert [one["fate"] for one in big["examples"]] == ["would_block", "covered"]
    assert big["examples"][0]["place"] == "a-main#5" and big["missing"] == {}
    assert (unasked["matched"], unasked["would_block"], unasked["too_late"]) == (3, 0, 3)
    assert unasked["touched"] == 2
    assert unasked["missing"] == {"wire: approval.* events": 1}  # a file that shows none may have had some


def test_content_that_was_erased_is_input_that_is_missing(history: History, monkeypatch: Any) -> None:
    def erased(digest: str) -> bytes:
        raise KeyError(digest)

    monkeypatch.setattr(history.ledger.store, "content", erased)
    big = backtest(history.ledger.store, rules(100)).as_json()["by_rule"]["big"]
    assert big["matched"] == 0 and big["missing"] == {"wire: arguments": 2}


def test_the_difference_of_two_versions(history: History) -> None:
    told = backtest(history.ledger.store, rules(30), rules(600)).as_json()["difference"]
    assert (told["newly_matched"], told["no_longer_matched"]) == (2, 0)
    assert [one["place"] for one in told["examples"]["newly"]] == ["a-main#3", "a-main#5"]
    back = backtest(history.ledger.store, rules(600), rules(30)).as_json()["difference"]
    assert (back["newly_matched"], back["no_longer_matched"]) == (0, 2)


def test_an_answer_is_the_same_twice_and_is_kept_as_evidence(history: History, tmp_path: Path) -> None:
    store = history.ledger.store
    first = backtest(store, rules(100))
    assert first.as_json() == backtest(store, rules(100)).as_json()
    path = save(history.ledger.recorder, tmp_path, first)
    (record,) = store.read(SESSION)
    event = record.event
    assert isinstance(event, EvidenceExported) and event.digest is not None
    assert event.to == f"backtests/{path.name}" and event.digest[:16] in path.name
    assert backtest(store, rules(100)).sessions == 3  # what tells of backtests is none of what they look at
