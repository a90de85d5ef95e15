"""Diff: one change for one thing that changed, with the record that did it."""

from typing import Any

import pytest

from ledger.errors import RecordNotFoundError
from ledger.events.governance import ArtifactChanged
from ledger.events.input import MessageReceived
from ledger.events.recovery import CheckpointTaken, RolledBack
from ledger.events.session import SessionStarted
from ledger.events.tool_call import ToolCallRequested
from ledger.home import Ledger
from replay.cli import diff_json

from .histories import SESSION, Writer


def user(text: str) -> dict[str, Any]:
    """A message of a person."""
    return {"role": "user", "content": text}


def say(writer: Writer, text: str) -> None:
    """A person says something."""
    message = writer.keep.json(user(text))
    writer.chain.append(message)
    writer.add(MessageReceived(origin="human", message=message))


def about(changes: list[dict[str, Any]], path: str) -> list[dict[str, Any]]:
    """The changes under a path."""
    return [change for change in changes if change["path"].startswith(path)]


def test_one_more_message_is_one_change_however_long_the_context(ledger: Ledger, writer: Writer) -> None:
    for number in range(300):
        say(writer, str(number))
    writer.add(writer.request("m1"))
    say(writer, "one more")
    writer.add(writer.request("m2"))
    writer.flush()
    added = {"op": "add", "path": "/context/300", "old": None, "new": user("one more"), "seq": 302}
    assert about(diff_json(ledger, SESSION, 301, 303), "/context") == [added]
    assert about(diff_json(ledger, SESSION, 303, 301), "/context") == [
        {"op": "remove", "path": "/context/300", "old": user("one more"), "new": None, "seq": 302}
    ]


def test_the_change_names_the_record_that_made_it(ledger: Ledger, writer: Writer) -> None:
    contents = [writer.keep.text(f"version {number}") for number in range(4)]
    for content in contents[:3]:
        writer.add(ArtifactChanged(artifact="file:A/B~.md", kind="rule_file", content=content, cause="human"))
    writer.add(SessionStarted(harness="loop"))
    writer.flush()
    digest = next(change for change in diff_json(ledger, SESSION, 1, 4) if change["path"].endswith("/digest"))
    assert digest == {
        "op": "replace",
        "path": "/artifacts/file:A~1B~0.md/digest",
        "old": contents[0].digest,
        "new": contents[2].digest,
        "seq": 3,
    }


def test_what_was_changed_and_changed_back_is_no_difference(ledger: Ledger, writer: Writer) -> None:
    say(writer, "one")
    writer.add(CheckpointTaken(checkpoint_id="c"))
    say(writer, "two")
    writer.add(ToolCallRequested(call_id="t", tool="Bash", arguments=writer.keep.json({})))
    writer.add(RolledBack(checkpoint_id="c"))
    writer.flush()
    paths = {change["path"] for change in diff_json(ledger, SESSION, 2, 5)}
    assert paths == {"/abandoned_calls/tool:t", "/rollbacks/5", "/usage/tool_calls"}


def test_an_edit_in_the_middle_of_the_context_is_one_change(ledger: Ledger, writer: Writer) -> None:
    texts = [str(number) for number in range(20)]
    writer.chain.replace([writer.keep.json(user(text)) for text in texts])
    writer.add(writer.request("m1"))
    texts[7] = "edited"
    writer.chain.replace([writer.keep.json(user(text)) for text in texts])
    writer.add(writer.request("m2"))
    writer.flush()
    edit = {"op": "replace", "path": "/context/7", "old": user("7"), "new": user("edited"), "seq": 2}
    assert about(diff_json(ledger, SESSION, 1, 2), "/context") == [edit]


def test_contexts_that_share_nothing_are_exchanged_whole(ledger: Ledger, writer: Writer) -> None:
    for start in (0, 5000):
        writer.chain.replace([writer.keep.json(user(str(number))) for number in range(start, start + 2100)])
        writer.add(writer.request(f"m{start}"))
    writer.flush()
    changes = about(diff_json(ledger, SESSION, 1, 2), "/context")
    assert {change["op"] for change in changes} == {"replace"}
    assert len(changes) == 2100


def test_same_seq_no_difference_and_wrong_seq_refused(ledger: Ledger, writer: Writer) -> None:
    say(writer, "one")
    writer.flush()
    assert diff_json(ledger, SESSION, 1, 1) == []
    assert diff_json(ledger, SESSION, 0, 1)[-1]["new"] == user("one")
    with pytest.raises(RecordNotFoundError):
        diff_json(ledger, SESSION, 1, 9)
    with pytest.raises(RecordNotFoundError):
        diff_json(ledger, SESSION, -1, 1)


def test_messages_that_nobody_said_are_those_of_the_first_request_that_had_them(
    ledger: Ledger, writer: Writer
) -> None:
    """The log holds no message of its own, only requests; the last one adds nothing."""
    for texts in (["one"], ["other", "two"], ["other", "two", "three"], ["other", "two", "three"]):
        writer.chain.replace([writer.keep.json(user(text)) for text in texts])
        writer.add(writer.request(f"m{writer.seq}"))
    writer.add(SessionStarted(harness="loop"))
    writer.flush()
    changes = about(diff_json(ledger, SESSION, 1, 5), "/context")
    assert [(change["op"], change["seq"]) for change in changes] == [("replace", 2), ("add", 2), ("add", 3)]
    assert [change["seq"] for change in about(diff_json(ledger, SESSION, 5, 1), "/context")] == [3, 2, 2]
