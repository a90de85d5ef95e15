"""Secrets in a draft's own words go, wherever they stand: many drafts are looked at in one pass."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ledger.events import Actor, Draft, Source
from ledger.events.approval import ApprovalAsked
from ledger.events.credential import SecretRedacted
from ledger.events.tool_call import ToolCallStarted
from ledger.home import Ledger, open_ledger
from ledger.redaction import Redactor

SECRET = "gh" + "p_" + "a1B2c3D4e5F6" * 3


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with open_ledger(tmp_path) as opened:
        yield opened


def started(call_id: str = "1", **fields: Any) -> Draft:
    return Draft(ToolCallStarted(call_id=call_id), **fields)


PLACES: dict[str, Callable[[str], Draft]] = {
    "a field": started,
    "an item of a field": lambda text: Draft(ApprovalAsked(approval_id="1", scopes=("once", text))),
    "the agent": lambda text: started(agent=text),
    "the correlation": lambda text: started(correlation=text),
    "the actor": lambda text: started(actor=Actor("human", text)),
    "the file": lambda text: started(source=Source("pi", file=text)),
    "the item": lambda text: started(source=Source("pi", item=text)),
}


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("text", [SECRET, f"https://user:{SECRET}@host/x", f"--password={SECRET}"])
def test_a_secret_in_a_drafts_words_is_nowhere_in_the_store(ledger: Ledger, place: str, text: str) -> None:
    drafts = [started(str(number)) for number in range(3)]
    drafts.insert(1, PLACES[place](text))
    records = ledger.recorder.append_many({"a": drafts, "b": [started()]}, ledger.recorder.keeper())
    assert SECRET not in repr(list(ledger.store.read_all()))
    assert "[redacted:" in repr(records[1])
    (found,) = [record.event for record in records if isinstance(record.event, SecretRedacted)]
    assert found.kind == "github_token"
    assert list(ledger.store.read_all()) == records
    assert not any(SECRET.encode() in file.read_bytes() for file in ledger.home.glob("ledger.sqlite*"))


def test_words_without_a_secret_stay_as_they_are(ledger: Ledger) -> None:
    drafts = [make("a token count of 5") for make in PLACES.values()]
    records = ledger.recorder.append("a", drafts, ledger.recorder.keeper())
    assert [record.event for record in records] == [draft.event for draft in drafts]
    assert [record.actor for record in records] == [draft.actor for draft in drafts]
    assert [record.source for record in records] == [draft.source for draft in drafts]


def test_what_looks_like_a_secret_only_beside_other_words_is_none(ledger: Ledger) -> None:
    """Each text is judged by itself, though all are looked at in one pass."""
    drafts = [started("password:"), started("hunter2X9"), started('password = "hunter2X9 and')]
    drafts.append(started('no quote is open here"'))
    records = ledger.recorder.append("a", drafts, ledger.recorder.keeper())
    kept = [record.event.call_id for record in records if isinstance(record.event, ToolCallStarted)]
    assert (kept[0], kept[1], kept[3]) == ("password:", "hunter2X9", 'no quote is open here"')


_words = st.lists(
    st.sampled_from(
        ["password", "=", ": ", '"', "'", "hunter2X9", SECRET, "\n", " ", "token", "é", "[redacted:"]
    ),
    max_size=8,
).map("".join)


@settings(max_examples=200, deadline=None)
@given(st.lists(_words, max_size=6))
def test_many_texts_are_clean_where_each_of_them_is(texts: list[str]) -> None:
    redactor = Redactor(bytes(range(32)))
    assert redactor.are_clean(texts) == all(redactor.is_clean(text) for text in texts)
