"""Requests of Claude Code sessions rebuilt: equal to the wire where they are journaled, else message for message."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ledger.events import Record
from ledger.events.model_call import ModelCallAnswered, ModelCallRequested
from ledger.home import Ledger
from replay.context import rebuild_request
from tests.ledger.importers.fixtures import case_folders, import_case
from tests.ledger.importers.remake_claude import digested

CASES = case_folders("claude-code")
JOURNALED = [case for case in CASES if case.name.endswith("2.1.332")]
SEAMLESS = [case for case in CASES if case.name.endswith(("2.1.197", "1.0.100"))]
NOT_JOURNALED_IN_FULL = {"permissions-2.1.332": 1}
"""Requests made in plan mode carry `safeguards`, which the journal leaves out."""


def names(cases: list[Path]) -> list[str]:
    return [case.name for case in cases]


def calls(ledger: Ledger) -> Iterator[tuple[Record, str | None]]:
    """Requests that a file holds, each with the provider's id of its answer."""
    for session in ledger.store.sessions():
        records = list(ledger.store.read(session))
        answers = {
            record.event.call_id: record.event.response_id
            for record in records
            if isinstance(record.event, ModelCallAnswered)
        }
        for record in records:
            if isinstance(record.event, ModelCallRequested):
                yield record, answers.get(record.event.call_id)


def wire(case: Path) -> dict[str, dict[str, Any]]:
    """Bodies on the wire by the id of their answer."""
    told = json.loads((case / "wire.json").read_text(encoding="utf-8"))
    bodies = {}
    for request in told["requests"]:
        body = dict(request["rest"])
        for name in ("system", "tools", "messages"):
            if request[name]:
                body[name] = [told["parts"][index] for index in request[name]]
        bodies[request["answer"]] = body
    return bodies


@pytest.mark.parametrize("case", JOURNALED, ids=names(JOURNALED))
def test_every_journaled_request_has_the_body_that_went_over_the_wire(case: Path, ledger: Ledger) -> None:
    import_case(ledger, case)
    bodies = wire(case)
    equal: list[str] = []
    other: list[str] = []
    for record, answer in calls(ledger):
        assert isinstance(record.event, ModelCallRequested)
        if record.grade == "near-wire" and answer is not None:
            rebuilt = rebuild_request(ledger.store, record.session, record.seq)
            (equal if rebuilt.body == bodies[answer] else other).append(answer)
            assert record.event.completeness == "body"
    assert len(other) == 0
    assert len(equal) == len(bodies) - len(other)


@pytest.mark.parametrize("case", JOURNALED, ids=names(JOURNALED))
def test_every_rebuilt_request_has_the_digest_that_the_journal_gives_it(case: Path, ledger: Ledger) -> None:
    import_case(ledger, case)
    checked = 0
    for record, _ in calls(ledger):
        if record.grade != "near-wire":
            continue
        assert record.source is not None
        assert record.source.rest is not None
        told = json.loads(ledger.store.content(record.source.rest))
        rebuilt = rebuild_request(ledger.store, record.session, record.seq)
        shape = {"system": rebuilt.system} | ({"tools": rebuilt.tools} if rebuilt.tools is not None else {})
        assert digested(told, shape, rebuilt.messages) == told["requestDigest"]
        checked += 1
    assert checked == sum(
        text.count('{"type":"api-request",') for text in (path.read_text() for path in case.rglob("*.jsonl"))
    )


@pytest.mark.parametrize("case", SEAMLESS, ids=names(SEAMLESS))
def test_without_a_journal_the_messages_are_those_of_the_wire_but_for_reminders(
    case: Path, ledger: Ledger
) -> None:
    import_case(ledger, case)
    bodies = wire(case)
    compared = 0
    for record, answer in calls(ledger):
        if answer in bodies:
            assert isinstance(record.event, ModelCallRequested)
            rebuilt = rebuild_request(ledger.store, record.session, record.seq)
            assert spoken(rebuilt.messages) == spoken(bodies[answer]["messages"]), record.place
            assert "reminders" in record.event.not_seen
            compared += 1
    assert compared >= len(bodies)


def spoken(messages: list[dict[str, Any]]) -> list[tuple[str, list[Any]]]:
    """What people, models and tools said, without marks and without the harness's reminders."""
    said: list[tuple[str, list[Any]]] = []
    for message in messages:
        content = message["content"]
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
        kept = [plain(block) for block in blocks if not is_reminder(block)]
        if kept and message["role"] != "system":
            said.append((message["role"], kept))
    return said


def plain(block: dict[str, Any]) -> dict[str, Any]:
    """A block without its cache mark, and without the flag that means nothing."""
    kept = {name: value for name, value in block.items() if name != "cache_control"}
    return kept if kept.get("is_error", True) else {name: kept[name] for name in kept if name != "is_error"}


def is_reminder(block: dict[str, Any]) -> bool:
    return bool(block["type"] == "text" and block["text"].startswith("<system-reminder>"))


def test_a_subagent_whose_prompt_was_not_logged_says_so(ledger: Ledger) -> None:
    (case,) = (case for case in CASES if case.name == "subagents-2.0.60")
    import_case(ledger, case)
    first = [
        record.event
        for record, _ in calls(ledger)
        if isinstance(record.event, ModelCallRequested) and record.event.purpose == "sub-agent"
    ]
    assert first
    assert all(
        "messages[0]" in event.not_seen and event.completeness in ("partial", "none") for event in first
    )
