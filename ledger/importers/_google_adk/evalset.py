"""Evalsets: conversations that an agent is expected to have. They show what should happen, not what did."""

from collections.abc import Iterator
from typing import Any

from ledger.events import Draft
from ledger.events.canonical import canonical_json
from ledger.events.session import SessionStarted
from ledger.importers import Desk, Item
from ledger.importers._google_adk.fields import FORMAT, calls_of, get, parts_of, responses_of
from ledger.importers._harness.story import Place, Story
from ledger.importers._harness.values import items, record, rest, words
from ledger.importers._plain.scribe import utc_time

_CASE = ("conversation", "eval_id", "evalId")
_TURN = (
    "user_content",
    "userContent",
    "final_response",
    "finalResponse",
    "intermediate_data",
    "intermediateData",
)
_NOTE = "an evalset holds expected conversations: nothing shows that they took place"


def is_old_turn(value: Any) -> bool:
    """Whether a value is a turn of the older form: a question with what is expected of the answer."""
    return isinstance(value, dict) and isinstance(value.get("query"), str) and "expected_tool_use" in value


def case_items(case: Any, number: int, desk: Desk, set_name: str | None) -> Iterator[Item]:
    """One case: a session of its own."""
    _expect(desk)
    fields = record(case)
    name = words(get(fields, "eval_id")) or f"case {number}"
    turns = items(fields.get("conversation"))
    base = set_name or desk.fallback_session(FORMAT)
    story = Story(desk, FORMAT, desk.session_name(f"{base}:{name}"), "gemini", "skeleton")
    yield _begin(story, name, rest(fields, *_CASE), number)
    for count, turn in enumerate(turns, 1):
        desk.tally.lines += 1
        desk.tally.native["invocation"] += 1
        story.place = Place(
            f"turn:{count}", count, utc_time(get(turn, "creation_timestamp")), canonical_json(turn)
        )
        yield story.item(list(_turn(story, turn)))


def old_items(turns: list[Any], desk: Desk) -> Iterator[Item]:
    """A file of turns of the older form: one session."""
    _expect(desk)
    story = Story(desk, FORMAT, desk.fallback_session(FORMAT), "gemini", "skeleton")
    yield _begin(story, None, {}, 1)
    for count, turn in enumerate(turns, 1):
        desk.tally.lines += 1
        desk.tally.native["turn"] += 1
        story.place = Place(f"turn:{count}", count, None, canonical_json(turn))
        yield story.item(list(_old_turn(story, turn)))


def _expect(desk: Desk) -> None:
    desk.tally.grade = "skeleton"
    if _NOTE not in desk.tally.notes:
        desk.tally.notes.append(_NOTE)


def _begin(story: Story, name: str | None, beside: Any, number: int) -> Item:
    story.place = Place("case", number, None, canonical_json(beside))
    return story.item([story.draft(SessionStarted(harness=FORMAT, name=name), rest=beside)])


def _turn(story: Story, turn: Any) -> Iterator[Draft]:
    story.turn = words(get(turn, "invocation_id"))
    user, final = get(turn, "user_content"), get(turn, "final_response")
    between = record(get(turn, "intermediate_data"))
    if parts_of(user):
        yield story.received(story.keep.json(user, "content"), rest=rest(record(turn), *_TURN))
    else:
        yield story.kept("invocation", turn)
    count = 0
    contents = [{"parts": [{"function_call": call} for call in items(get(between, "tool_uses"))]}]
    contents += [{"parts": [{"function_response": one}]} for one in items(get(between, "tool_responses"))]
    contents += [record(get(event, "content")) for event in items(get(between, "invocation_events"))]
    for content in contents:
        for call in calls_of(content):
            count += 1
            yield _call(story, count, words(get(call, "id")), words(get(call, "name")), get(call, "args"))
        for response in responses_of(content):
            call_id = words(get(response, "id")) or f"{story.place.key}.response"
            body = story.keep.json(get(response, "response"), "response")
            yield story.settled(call_id, "returned", body)
    if left := {name: one for name, one in between.items() if one and name not in ("tool_uses", "toolUses")}:
        yield story.kept("intermediate_data", left)
    if parts_of(final):
        yield story.heard(story.keep.json(final, "content"), None)


def _old_turn(story: Story, turn: Any) -> Iterator[Draft]:
    if not is_old_turn(turn):
        yield story.kept("turn", turn, recognized=False)
        return
    content = {"role": "user", "parts": [{"text": turn["query"]}]}
    yield story.received(story.keep.json(content, "content"), rest=rest(turn, "query", "expected_tool_use"))
    for count, use in enumerate(items(turn["expected_tool_use"]), 1):
        fields = record(use)
        yield _call(story, count, None, words(fields.get("tool_name")), fields.get("tool_input"))
    if isinstance(turn.get("reference"), str):
        expected = {"role": "model", "parts": [{"text": turn["reference"]}]}
        yield story.heard(story.keep.json(expected, "content"), None)


def _call(story: Story, count: int, call_id: str | None, tool: str | None, arguments: Any) -> Draft:
    return story.call(call_id or f"{story.place.key}.{count}", tool, arguments)
