"""What OTLP traces and logs become: calls once, in their order, whoever reports them and in whatever encoding."""

import json
import random
import string
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from ledger.events import Event
from ledger.events.approval import ApprovalAsked, ApprovalDecided
from ledger.events.compaction import CompactionDone
from ledger.events.delegation import DelegationReturned, DelegationStarted
from ledger.events.keeping import SourceKept
from ledger.events.model_call import ModelCallAnswered, ModelCallFailed, ModelCallRequested
from ledger.events.session import SessionEnded, SessionStarted
from ledger.events.tool_call import ToolCallRequested, ToolCallSettled, ToolCallStarted
from ledger.home import Ledger, open_ledger
from tests.ledger.importers.otlp_requests import one_request, span, write_json
from tests.ledger.importers.otlp_traces import (
    FOLDER,
    content,
    events,
    records,
    report_of,
    rests,
    sessions,
    told,
)

AGENTS = FOLDER / "agents"


@pytest.fixture
def ledger(tmp_path: Path, clock: Callable[[], str]) -> Iterator[Ledger]:
    with open_ledger(tmp_path / "home", clock=clock) as opened:
        yield opened


def test_protobuf_and_json_lines_of_one_run_tell_the_same(tmp_path: Path) -> None:
    stories = []
    for name in ("quote.traces.pb", "quote.otlp.jsonl"):
        with open_ledger(tmp_path / name) as ledger:
            report_of(ledger, AGENTS / name)
            stories.append(told(ledger))
    assert stories[0] == stories[1]


def test_the_other_encoding_adds_nothing(ledger: Ledger) -> None:
    first, second = report_of(ledger, AGENTS / "quote.otlp.jsonl", AGENTS / "quote.traces.pb")
    assert first["duplicates"] == 4
    assert second["records"] == 0
    assert second["model_calls"] == first["model_calls"] == 6


def test_children_follow_their_parent_though_they_came_first(ledger: Ledger) -> None:
    report_of(ledger, AGENTS / "quote.otlp.jsonl")
    seen: dict[str, int] = {}
    for record in records(ledger):
        if record.source is not None and record.source.item is not None:
            seen.setdefault(record.source.item, record.position)
        if isinstance(record.cause, int):
            assert record.cause < record.seq
    kept = [event for event in events(ledger, SourceKept) if event.native_type == "invoke_agent"]
    agents = [content(ledger, event.body)["name"] for event in kept]
    assert agents == [
        "invoke_agent triage",
        "invoke_agent buyer",
        "invoke_agent buyer",
        "invoke_agent expert",
    ]


def test_a_second_trace_of_a_conversation_goes_on_with_the_session(ledger: Ledger) -> None:
    report_of(ledger, AGENTS / "quote.traces.pb")
    main = next(iter(sessions(ledger)))
    traces = {record.correlation for record in ledger.store.read(main) if record.correlation}
    assert len(traces) == 2
    booked = [
        record
        for record in ledger.store.read(main)
        if getattr(record.event, "call_id", "") == "call_10000004"
    ]
    assert [type(record.event) for record in booked] == [ToolCallRequested, ToolCallStarted, ToolCallSettled]
    assert booked[0].correlation != booked[1].correlation


def test_an_agent_inside_a_tool_call_is_a_session_of_its_own(ledger: Ledger) -> None:
    report_of(ledger, AGENTS / "quote.traces.pb")
    main, child = sessions(ledger)
    started = next(
        record.event for record in ledger.store.read(child) if isinstance(record.event, SessionStarted)
    )
    assert (started.parent, started.parent_call, started.agent) == (main, "call_10000002", "expert")
    assert [event.outcome for event in events(ledger, SessionEnded)] == ["completed"]
    crossed = [event for event in events(ledger, DelegationStarted) if event.how == "tool"]
    assert [(event.to_session, event.call_id) for event in crossed] == [(child, "call_10000002")]
    assert [event.from_session for event in events(ledger, DelegationReturned)] == [child]
    calls = [event for event in ledger.store.read(child) if isinstance(event.event, ModelCallRequested)]
    assert [(record.depth, record.agent) for record in calls] == [(1, "expert")]


def test_a_handoff_is_a_delegation_in_the_same_session(ledger: Ledger) -> None:
    report_of(ledger, AGENTS / "quote.traces.pb")
    handed = [event for event in events(ledger, DelegationStarted) if event.how == "handoff"]
    assert [(event.to_agent, event.to_session) for event in handed] == [("buyer", None)]


def test_failures_are_failures(ledger: Ledger) -> None:
    report_of(ledger, AGENTS / "quote.traces.pb")
    failed = events(ledger, ModelCallFailed)
    assert [(event.error, event.status) for event in failed] == [("OverloadedError", 529)]
    assert content(ledger, failed[0].detail) == "Overloaded, try again later"
    tools = [event for event in events(ledger, ToolCallSettled) if event.outcome == "failed"]
    assert [(event.error, content(ledger, event.details)) for event in tools] == [
        ("PolicyError", "never more than 15 %")
    ]


def test_each_token_is_counted_once(ledger: Ledger) -> None:
    report = report_of(ledger, AGENTS / "quote.traces.pb")[0]
    # 100, 200, 300, 500, 600 and 700 were reported, each with 40 read from and 20 written to a cache among them.
    assert report["tokens"] == {"input": 2400 - 6 * 60, "output": 60, "cache_read": 240, "cache_write": 120}
    assert all(
        event.usage and event.usage.reasoning_tokens == 3 for event in events(ledger, ModelCallAnswered)
    )
    assert {str(event.cost_usd) for event in events(ledger, ModelCallAnswered)} == {"0.0025"}


def test_what_nobody_knows_is_kept(ledger: Ledger) -> None:
    report = report_of(ledger, AGENTS / "quote.traces.pb")[0]
    assert report["unknown"] == {"span of fixture.agents": 1}
    requested = next(record for record in records(ledger) if isinstance(record.event, ModelCallRequested))
    assert requested.source is not None and requested.source.rest is not None
    rest = json.loads(ledger.store.content(requested.source.rest))
    assert rest["attributes"]["fixture.unknown"] == "kept as it is"
    assert "gen_ai.input.messages" not in rest["attributes"]


def test_a_request_holds_the_messages_and_says_what_was_not_seen(ledger: Ledger) -> None:
    report_of(ledger, AGENTS / "quote.traces.pb")
    last = events(ledger, ModelCallRequested)[-2]
    assert last.completeness == "messages" and last.not_seen == ()
    assert last.context is not None and last.context_length == 9
    messages = [json.loads(ledger.store.content(digest)) for digest in ledger.store.context(last.context)]
    assert messages[0] == {"role": "user", "parts": [{"type": "text", "content": "Quote 5000 bolts."}]}
    assert content(ledger, last.system)[0]["content"].startswith("You buy parts.")
    assert content(ledger, last.parameters) == {"temperature": 0.5}


@pytest.mark.parametrize("case", ["openai-v2", "openinference", "openllmetry"])
def test_requests_are_those_of_the_wire(case: str, ledger: Ledger) -> None:
    folder = FOLDER / case
    wire = json.loads((folder / "wire.json").read_text(encoding="utf-8"))
    report_of(ledger, *sorted(path for path in folder.iterdir() if ".json" not in path.suffixes[-1:]))
    report_of(ledger, *folder.glob("*.otlp.json"))
    requested, answered = events(ledger, ModelCallRequested), events(ledger, ModelCallAnswered)
    assert [event.response_id for event in answered] == [one["response"] for one in wire]
    for event, answer, sent in zip(requested, answered, wire, strict=True):
        assert event.context is not None and event.completeness == "messages"
        digests = ledger.store.context(event.context)
        kept = [json.loads(ledger.store.content(digest)) for digest in digests]
        assert [_words(message) for message in kept] == [_words(message) for message in sent["messages"]]
        assert answer.usage is not None
        total = (answer.usage.input_tokens or 0) + (answer.usage.cache_read_tokens or 0)
        assert total == sent["usage"]["prompt_tokens"]
        assert answer.usage.output_tokens == sent["usage"]["completion_tokens"]


def _words(message: dict[str, Any]) -> tuple[str, str]:
    """Role and text of a message, in whatever shape it is."""
    parts = message.get("parts")
    if parts is None:
        return message["role"], message.get("content") or ""
    texts = [part.get("content") or part.get("response") or "" for part in parts]
    return message["role"], "".join(text for text in texts if isinstance(text, str))


def test_a_question_is_no_failure_and_its_answer_is_unknown(ledger: Ledger) -> None:
    report_of(ledger, FOLDER / "interrupt" / "payer.traces.otlp.jsonl")
    asked, decided = events(ledger, ApprovalAsked), events(ledger, ApprovalDecided)
    assert [(event.approval_id, event.call_id) for event in asked] == [
        ("8728575d4b3b6e22bdf691c74ebf3bfe", "call_pay00001")
    ]
    assert [(event.outcome, event.evidence) for event in decided] == [("unknown", "inferred")]
    assert all(event.outcome == "returned" for event in events(ledger, ToolCallSettled))


def test_a_tool_that_asks_for_confirmation_has_not_ended(tmp_path: Path, ledger: Ledger) -> None:
    wait = '{"error": "This tool call requires confirmation, please approve or reject."}'
    tool = {"gen_ai.tool.name": "book", "gen_ai.tool.call.id": "adk-1"}
    spans = [
        span(1, "execute_tool", tool | {"gen_ai.tool.call.result": wait}),
        span(2, "execute_tool", tool | {"gen_ai.tool.call.result": '{"done": true}'}),
    ]
    report = report_of(ledger, write_json(tmp_path / "t.json", one_request(spans)))[0]
    assert (report["tool_calls"], report["tool_results"], report["unanswered_calls"]) == (1, 1, 0)
    story = [type(record.event) for record in records(ledger) if hasattr(record.event, "call_id")]
    assert story[:6] == [
        ToolCallRequested,
        ToolCallStarted,
        ApprovalAsked,
        ApprovalDecided,
        ToolCallStarted,
        ToolCallSettled,
    ]


def test_a_compaction_is_inferred_from_the_next_request(ledger: Ledger) -> None:
    report_of(ledger, FOLDER / "interrupt" / "payer.traces.otlp.jsonl")
    done = events(ledger, CompactionDone)
    assert [(event.evidence, event.messages_before, event.messages_after) for event in done] == [
        ("inferred", 3, 3)
    ]
    assert "Summary: bill 7 was paid." in json.dumps(content(ledger, done[0].summary))
    requested = events(ledger, ModelCallRequested)
    assert [event.purpose for event in requested] == ["main", "main", "compaction", "main"]
    assert requested[-1].context == done[0].context_after


def test_log_events_alone_make_calls(ledger: Ledger) -> None:
    report = report_of(ledger, FOLDER / "details" / "desk.logs.otlp.jsonl")[0]
    assert (report["model_calls"], report["failed_calls"], report["lines"]) == (1, 1, 4)
    assert [event.context_length for event in events(ledger, ModelCallRequested)] == [1, 3]
    assert report["unknown"] == {"log of gcp.vertex.agent": 1}


def test_a_call_that_waits_stays_open(tmp_path: Path, ledger: Ledger) -> None:
    parts = [{"type": "tool_call", "id": "call_00000001", "name": "book", "arguments": {}}]
    answer = json.dumps([{"role": "assistant", "parts": parts}])
    call = span(1, "chat", {"gen_ai.output.messages": answer})
    report = report_of(ledger, write_json(tmp_path / "t.json", one_request([call])))[0]
    assert (report["tool_calls"], report["unanswered_calls"]) == (1, 1)


def test_an_unfinished_span_is_no_answer(tmp_path: Path, ledger: Ledger) -> None:
    call = span(1, "chat", {}) | {"endTimeUnixNano": "0"}
    tool = span(2, "execute_tool", {"gen_ai.tool.name": "t"}) | {"endTimeUnixNano": "0"}
    report = report_of(ledger, write_json(tmp_path / "t.json", one_request([call, tool])))[0]
    assert (report["model_calls"], report["tool_calls"], report["tool_results"]) == (0, 1, 0)


def test_messages_that_the_provider_holds_are_not_claimed(tmp_path: Path, ledger: Ledger) -> None:
    said = json.dumps([{"role": "user", "parts": [{"type": "text", "content": "go on"}]}])
    call = span(1, "chat", {"gen_ai.conversation.id": "resp_1", "gen_ai.input.messages": said})
    report_of(ledger, write_json(tmp_path / "t.json", one_request([call])))
    requested = events(ledger, ModelCallRequested)[0]
    assert requested.completeness == "partial"
    assert requested.not_seen[0] == "messages up to resp_1, which the provider holds"


def test_a_request_cut_at_a_limit_is_partial(tmp_path: Path, ledger: Ledger) -> None:
    cut = span(1, "chat", {"gen_ai.input.messages": '[{"role": "user", "parts": [{"type": "te'})
    dropped = span(2, "chat", {"llm.input_messages.3.message.role": "user"}) | {"droppedAttributesCount": 9}
    report = report_of(ledger, write_json(tmp_path / "t.json", one_request([cut, dropped])))[0]
    requested = events(ledger, ModelCallRequested)
    assert [event.completeness for event in requested] == ["partial", "partial"]
    assert "the end of gen_ai.input.messages, which was cut" in requested[0].not_seen
    assert requested[1].not_seen[:2] == ("messages", "9 attributes that the SDK dropped")
    assert "SDKs dropped 9 attributes of 1 spans" in report["notes"][0]


def test_times_are_kept_and_do_not_reorder_parents(tmp_path: Path, ledger: Ledger) -> None:
    week = 7 * 86400 * 10**9
    parent = span(1, "invoke_agent", {"gen_ai.agent.name": "a"})
    early = span(2, "chat", {}, parent=1)
    early["startTimeUnixNano"] = str(int(early["startTimeUnixNano"]) - week)
    report_of(ledger, write_json(tmp_path / "t.json", one_request([early, parent])))
    kept = [record for record in records(ledger) if isinstance(record.event, SourceKept | ModelCallRequested)]
    assert [type(record.event) for record in kept] == [SourceKept, ModelCallRequested]
    assert kept[1].occurred_at is not None and kept[0].occurred_at is not None
    assert kept[1].occurred_at < kept[0].occurred_at


def test_an_attribute_of_twelve_megabytes(tmp_path: Path, ledger: Ledger) -> None:
    said = json.dumps([{"role": "user", "parts": [{"type": "text", "content": "x" * 12_000_000}]}])
    report = report_of(
        ledger,
        write_json(tmp_path / "t.json", one_request([span(1, "chat", {"gen_ai.input.messages": said})])),
    )[0]
    assert report["model_calls"] == 1 and report["quarantined"] == []
    assert events(ledger, ModelCallRequested)[0].completeness == "messages"


def test_secrets_are_not_kept(tmp_path: Path, ledger: Ledger) -> None:
    letters = random.Random(7).choices(string.ascii_letters + string.digits, k=93)
    secret = f"sk-ant-api03-{''.join(letters)}AA"
    said = json.dumps([{"role": "user", "parts": [{"type": "text", "content": f"my key is {secret}"}]}])
    call = span(1, "chat", {"gen_ai.input.messages": said, "http.request.header.x-api-key": secret})
    report = report_of(ledger, write_json(tmp_path / "t.json", one_request([call])))[0]
    assert report["redacted"] >= 2
    kept = [json.dumps(told(ledger))]
    kept += [str(ledger.store.content(digest)) for digest in rests(ledger)]
    assert all(secret not in text for text in kept)
    assert "redacted" in kept[0]


def test_every_event_is_of_the_format(ledger: Ledger) -> None:
    report_of(ledger, AGENTS / "quote.traces.pb")
    made: list[Event] = [record.event for record in records(ledger) if record.source is not None]
    assert len(made) > 30
    assert {record.grade for record in records(ledger) if record.source is not None} == {"semantic"}
