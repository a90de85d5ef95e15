"""Requests rebuilt: whole bodies with their digest, all protocols, and what is not there named."""

from typing import Any

import pytest

from ledger.errors import ContentMissingError, InputError, LedgerError, RecordNotFoundError
from ledger.events import ContentRef
from ledger.events.canonical import canonical_json
from ledger.events.model_call import ModelCallAnswered, ModelCallRequested
from ledger.events.session import SessionStarted
from ledger.home import Ledger
from replay.cli import request_json
from replay.context import rebuild_request

from .histories import SESSION, Writer

MESSAGES = [
    {"role": "user", "content": [{"type": "text", "text": "read a/b"}]},
    {"role": "assistant", "content": [{"type": "text", "text": "I do"}]},
    {"role": "user", "content": [{"type": "text", "text": "thanks"}]},
]
MARK = {"type": "ephemeral"}


def record_body(writer: Writer, protocol: str, body: dict[str, Any], **fields: Any) -> ModelCallRequested:
    """A request with all its parts and the digest of `body`, as a recorder on the wire writes it."""
    writer.chain.replace([writer.keep.json(message) for message in MESSAGES])
    event = writer.request(
        "m1",
        protocol=protocol,
        body_digest=writer.keep.digest(canonical_json(body)),
        completeness="body",
        **fields,
    )
    writer.add(event)
    writer.flush()
    return event


SYSTEM = [{"type": "text", "text": "You are careful."}]
TOOLS = [{"name": "Bash", "input_schema": {"type": "object"}}]
SHAPES: dict[str, dict[str, Any]] = {
    "anthropic.messages": {
        "model": "m",
        "messages": MESSAGES,
        "system": SYSTEM,
        "tools": TOOLS,
        "max_tokens": 9,
    },
    "openai.responses": {
        "model": "m",
        "input": MESSAGES,
        "instructions": SYSTEM,
        "tools": TOOLS,
        "max_tokens": 9,
    },
    "openai.chat": {
        "model": "m",
        "messages": [{"role": "system", "content": SYSTEM}, *MESSAGES],
        "tools": TOOLS,
        "max_tokens": 9,
    },
    "gemini": {"contents": MESSAGES, "systemInstruction": SYSTEM, "tools": TOOLS, "max_tokens": 9},
    "genai": {
        "model": "m",
        "messages": MESSAGES,
        "system_instructions": SYSTEM,
        "tools": TOOLS,
        "max_tokens": 9,
    },
}


@pytest.mark.parametrize("protocol", SHAPES)
def test_a_whole_request_is_rebuilt_to_its_digest(ledger: Ledger, writer: Writer, protocol: str) -> None:
    body = SHAPES[protocol]
    keep = writer.keep
    record_body(
        writer,
        protocol,
        body,
        model="m",
        system=keep.json(SYSTEM),
        tools=keep.json(TOOLS),
        parameters=keep.json({"max_tokens": 9}),
    )
    rebuilt = rebuild_request(ledger.store, SESSION, 1)
    assert rebuilt.body == body
    assert rebuilt.body_matches is True
    assert rebuilt.messages == MESSAGES
    assert request_json(ledger, SESSION, 1)["not_seen"] == []


def test_cache_marks_and_key_order_come_from_the_layout(ledger: Ledger, writer: Writer) -> None:
    marked = [
        *MESSAGES[:2],
        {"role": "user", "content": [{"type": "text", "text": "thanks", "cache_control": MARK}]},
    ]
    body = {"stream": True, "messages": marked, "model": "m"}
    layout = {
        "set": [["/messages/2/content/0/cache_control", MARK]],
        "key_order": ["stream", "messages", "absent"],
    }
    parameters = writer.keep.json({"stream": True})
    record_body(
        writer, "anthropic.messages", body, model="m", parameters=parameters, layout=writer.keep.json(layout)
    )
    rebuilt = rebuild_request(ledger.store, SESSION, 1)
    assert rebuilt.body_matches is True
    assert list(rebuilt.body or ()) == ["stream", "messages", "model"]


def test_neighbours_of_one_role_are_merged_where_the_layout_says_so(ledger: Ledger, writer: Writer) -> None:
    for content in ("one", [{"type": "text", "text": "two"}]):
        writer.chain.append(writer.keep.json({"role": "user", "content": content}))
    writer.chain.append(writer.keep.json({"role": "assistant", "content": "three"}))
    writer.add(writer.request("m1", layout=writer.keep.json({"merge": "same-role"})))
    writer.flush()
    one, two = ({"type": "text", "text": text} for text in ("one", "two"))
    assert rebuild_request(ledger.store, SESSION, 1).messages == [
        {"role": "user", "content": [one, two]},
        {"role": "assistant", "content": "three"},
    ]


@pytest.mark.parametrize(
    "layout",
    [
        {"set": [["/messages/7/content", 1]]},
        {"set": [["no pointer", 1]]},
        {"set": [["/model/name", 1]]},
        {"merge": "everything"},
        {"reverse": True},
        ["not", "an", "object"],
    ],
)
def test_a_layout_that_does_not_fit_is_an_error_not_a_guess(
    ledger: Ledger, writer: Writer, layout: Any
) -> None:
    record_body(writer, "anthropic.messages", {}, model="m", layout=writer.keep.json(layout))
    with pytest.raises(LedgerError, match=f"{SESSION}#1"):
        rebuild_request(ledger.store, SESSION, 1)


def test_a_body_that_differs_from_its_digest_says_so(ledger: Ledger, writer: Writer) -> None:
    record_body(writer, "anthropic.messages", {"another": "body"}, model="m")
    assert rebuild_request(ledger.store, SESSION, 1).body_matches is False


def test_what_was_not_seen_is_said(ledger: Ledger, writer: Writer) -> None:
    writer.add(writer.request("m1", context=None, completeness="none", not_seen=("messages", "tools")))
    writer.add(writer.request("m2", protocol="a-new-one"))
    writer.flush()
    rebuilt = rebuild_request(ledger.store, SESSION, 1)
    assert (rebuilt.body, rebuilt.body_matches, rebuilt.not_seen) == (None, None, ("messages", "tools"))
    assert rebuild_request(ledger.store, SESSION, 2).body is None, "no body in a protocol that we do not know"


def test_any_record_of_the_call_leads_to_its_request(ledger: Ledger, writer: Writer) -> None:
    writer.add(SessionStarted(harness="loop"))
    writer.add(writer.request("m1"), writer.request("m2"))
    writer.add(*(SessionStarted(harness="loop") for _ in range(900)))
    answer = ModelCallAnswered(call_id="m1", message=writer.keep.json({"role": "assistant"}))
    writer.add(answer, SessionStarted(harness="loop"))
    writer.add(answer.model_copy(update={"call_id": "never asked"}))
    writer.flush()
    of_answer = rebuild_request(ledger.store, SESSION, 904)
    assert (of_answer.call_id, of_answer.seq, of_answer.asked_seq) == ("m1", 2, 904)
    assert rebuild_request(ledger.store, SESSION, 905).call_id == "m2", "the last one before"
    with pytest.raises(InputError, match="no model request at or before seq 1"):
        rebuild_request(ledger.store, SESSION, 1)
    with pytest.raises(InputError, match="'never asked'"):
        rebuild_request(ledger.store, SESSION, 906)
    with pytest.raises(RecordNotFoundError):
        rebuild_request(ledger.store, SESSION, 907)


def test_missing_content_is_named(ledger: Ledger, writer: Writer) -> None:
    gone = ContentRef(digest=f"{3:064x}", size=1, kind="json")
    writer.add(writer.request("m1", system=gone), writer.request("m2", context=f"{4:064x}"))
    writer.flush()
    with pytest.raises(ContentMissingError, match=f"system prompt of {SESSION}#1.*{gone.digest}"):
        rebuild_request(ledger.store, SESSION, 1)
    with pytest.raises(ContentMissingError, match="context node"):
        rebuild_request(ledger.store, SESSION, 2)


def test_input_that_is_a_text_stays_with_the_parameters(ledger: Ledger, writer: Writer) -> None:
    parameters = writer.keep.json({"input": "only a text", "previous_response_id": "r1"})
    writer.add(writer.request("m1", protocol="openai.responses", parameters=parameters, completeness="body"))
    writer.flush()
    assert rebuild_request(ledger.store, SESSION, 1).body == {
        "input": "only a text",
        "previous_response_id": "r1",
    }


def test_lone_texts_become_plain_texts_unless_they_are_marked(ledger: Ledger, writer: Writer) -> None:
    blocks = [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]
    messages = [
        {"role": "user", "content": "marked"},
        {"role": "assistant", "content": [{"type": "text", "text": "I do"}]},
        {"role": "user", "content": [{"type": "text", "text": "plain"}]},
        {"role": "user", "content": blocks},
    ]
    writer.chain.replace([writer.keep.json(message) for message in messages])
    layout = {"set": [["/messages/0/content/0/cache_control", MARK]], "texts": "lone-string"}
    seq = writer.add(writer.request("m1", layout=writer.keep.json(layout), completeness="body"))
    writer.flush()
    body = rebuild_request(ledger.store, SESSION, seq).body
    assert body is not None
    assert body["messages"] == [
        {"role": "user", "content": [{"type": "text", "text": "marked", "cache_control": MARK}]},
        {"role": "assistant", "content": [{"type": "text", "text": "I do"}]},
        {"role": "user", "content": "plain"},
        {"role": "user", "content": blocks},
    ]
