"""OTLP files as they lie about: framed, packed, cut, broken, hostile, real; nothing is lost and nothing comes twice."""

import gzip
import json
import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ledger.events.keeping import SourceKept
from ledger.events.model_call import ModelCallAnswered
from ledger.events.recovery import DamageFound
from ledger.home import Ledger, open_ledger
from ledger.importers import Sniff, otlp
from ledger.importers._files import sniff
from ledger.importers._intake import import_paths
from ledger.otlp.protobuf_form import framing
from ledger.store import verify
from replay.timeline import session_timeline
from tests.ledger.importers.otlp_requests import one_request, span, write_json
from tests.ledger.importers.otlp_traces import FOLDER, content, events, records, report_of, told

TRACES = Path(os.environ.get("LOOPLEDGER_TRACES", Path(__file__).parents[4] / "shared" / "traces"))
RUN = FOLDER / "agents" / "quote.traces.pb"
LINES = FOLDER / "agents" / "quote.otlp.jsonl"

CALLS = {
    "agent-framework/otlp/default-responses.traces": 25,
    "agent-framework/otlp/sensitive-responses.traces": 25,
    "autogen/otlp/autogen.traces": 0,
    "crewai/otlp/openinference.traces": 0,
    "crewai/otlp/openllmetry.traces": 0,
    "google-adk/otlp/gemini-content.traces": 24,
    "google-adk/otlp/gemini-latest.traces": 12,
    "google-adk/otlp/gemini-plain.traces": 24,
    "langgraph/otlp/openinference.traces": 16,
    "langgraph/otlp/openllmetry.traces": 16,
    "openai-agents/otlp/openinference-responses.traces": 9,
    "openai-agents/otlp/openllmetry-responses.traces": 10,
    "openai-agents/otlp/otelv2-chat.traces": 20,
    "pydantic-ai/otlp/anthropic.traces": 20,
    "pydantic-ai/otlp/responses.traces": 10,
}
"""Model calls that each export shows: counted from its spans, and on the wire where the run was recorded there."""


@pytest.fixture
def ledger(tmp_path: Path, clock: Callable[[], str]) -> Iterator[Ledger]:
    with open_ledger(tmp_path / "home", clock=clock) as opened:
        yield opened


def _varint(number: int) -> bytes:
    made = b""
    while number > 0x7F:
        made += bytes([number & 0x7F | 0x80])
        number >>= 7
    return made + bytes([number])


@pytest.mark.parametrize("frame", ["raw", "raw twice", "varint", "four bytes"])
def test_requests_one_after_another(frame: str, tmp_path: Path, ledger: Ledger) -> None:
    raw = RUN.read_bytes()
    framed = {
        "raw": raw,
        "raw twice": raw + raw,
        "varint": 2 * (_varint(len(raw)) + raw),
        "four bytes": 2 * (len(raw).to_bytes(4, "big") + raw),
    }[frame]
    path = tmp_path / "spans.bin"
    path.write_bytes(framed)
    report = report_of(ledger, path)[0]
    assert report["quarantined"] == []
    assert (report["model_calls"], report["duplicates"]) == (6, 0 if frame == "raw" else 17)


@pytest.mark.parametrize("pack", [gzip.compress, bytes])
@pytest.mark.parametrize("form", ["lines", "list", "document", "indented", "mark"])
def test_forms_of_json(form: str, pack: Callable[[bytes], bytes], tmp_path: Path, ledger: Ledger) -> None:
    requests = [json.loads(line) for line in LINES.read_text(encoding="utf-8").splitlines()]
    groups = [group for request in requests for group in request["resourceSpans"]]
    text = {
        "lines": LINES.read_text(encoding="utf-8"),
        "list": json.dumps(requests),
        "document": json.dumps({"resourceSpans": groups}),
        "indented": json.dumps({"resourceSpans": groups}, indent=2),
        "mark": "\ufeff" + json.dumps(requests, indent="\t"),
    }[form]
    path = tmp_path / "spans.json"
    path.write_bytes(pack(text.encode()))
    report = report_of(ledger, path)[0]
    assert (report["format"], report["lines"], report["model_calls"]) == ("otlp", 21, 6)
    assert report["quarantined"] == [] and report["unknown"] == {"span of fixture.agents": 1}


def test_snake_case_and_names_of_enums(tmp_path: Path, ledger: Ledger) -> None:
    call = span(1, "chat", {}, status=2)
    snake = {
        "trace_id": call["traceId"],
        "span_id": call["spanId"],
        "name": call["name"],
        "kind": "SPAN_KIND_CLIENT",
        "start_time_unix_nano": call["startTimeUnixNano"],
        "end_time_unix_nano": int(call["endTimeUnixNano"]),
        "attributes": [{"key": "gen_ai.operation.name", "value": {"string_value": "chat"}}],
        "status": {"code": "STATUS_CODE_ERROR"},
    }
    other = {"resource_spans": [{"instrumentation_library_spans": [{"spans": [snake]}]}]}
    plain = one_request([call | {"kind": 3}], resource={})
    del plain["resourceSpans"][0]["scopeSpans"][0]["scope"]
    reports = report_of(
        ledger, write_json(tmp_path / "a.json", plain), write_json(tmp_path / "b.json", other)
    )
    assert [(report["failed_calls"], report["records"] > 0) for report in reports] == [(1, True), (1, False)]


def test_only_otlp_is_recognised() -> None:
    def recognised(start: bytes) -> bool:
        return otlp.recognizes(Sniff(Path("file"), start, len(start)))

    assert recognised(b'{"resourceSpans":[]}')
    assert recognised(b'\xef\xbb\xbf [\n {"resourceLogs" : [')
    assert recognised(b'{"resourceMetrics":[]}\n{"resourceLogs":[]}\n')
    assert not recognised(b'{"resourceMetrics":[]}')
    assert not recognised(b'{"type":"user","text":"{\\"resourceSpans\\":[]}"}')
    assert not recognised(b'{"observations":[{"resourceSpans":[]}]}')
    for start in (
        b"",
        b"\n",
        b"\n\x00",
        b"\n\x02\n\x00",
        b"SQLite format 3\0",
        b"\x00" * 100,
        b"# title\n\ntext",
    ):
        assert not recognised(start)
    assert framing(RUN.read_bytes()[:300]) == 0


@settings(max_examples=200, suppress_health_check=[HealthCheck.too_slow])
@given(st.binary(max_size=300))
def test_recognising_never_fails(start: bytes) -> None:
    otlp.recognizes(Sniff(Path("file"), start, len(start)))


def test_a_cut_file_gives_what_is_whole_and_says_where_it_ends(ledger: Ledger) -> None:
    report = report_of(ledger, FOLDER / "damaged" / "cut.traces.pb")[0]
    assert report["lines"] == 11 and report["model_calls"] == 4
    assert report["quarantined"] == [
        {"line": None, "reason": "expected a whole span or log record at byte 8946, found it cut"}
    ]
    raw = (FOLDER / "damaged" / "cut.traces.pb").read_bytes()
    kept = events(ledger, DamageFound)[0].content
    assert kept is not None and ledger.store.content(kept.digest) == raw[8946:]


def test_damage_costs_only_its_own_place(ledger: Ledger) -> None:
    report = report_of(ledger, FOLDER / "damaged" / "lines.otlp.jsonl")[0]
    assert [entry["line"] for entry in report["quarantined"]] == [5, 7, 9]
    assert (report["lines"], report["model_calls"], report["duplicates"]) == (7, 5, 1)
    assert report["dangling_parents"] == 2 and report["unknown"] == {"resourceMetrics": 1}
    names = [
        content(ledger, event.message)["parts"][0]["content"] for event in events(ledger, ModelCallAnswered)
    ]
    assert names == [
        "child before its parent",
        "in a broken line",
        "before the cut",
        "of a parent that never comes",
        "its own parent",
    ]


@pytest.mark.parametrize("source", [RUN, LINES, FOLDER / "openinference" / "buyer.otlp.json"])
@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(data=st.data())
def test_a_file_cut_or_changed_anywhere_never_stops_an_import(
    source: Path, data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    raw = bytearray(source.read_bytes())
    at = data.draw(st.integers(0, len(raw) - 1))
    if data.draw(st.booleans()):
        del raw[at:]
    else:
        raw[at : at + 1] = data.draw(st.binary(max_size=6))
    if data.draw(st.booleans()):
        packed = gzip.compress(bytes(raw))
        raw = bytearray(packed[: data.draw(st.integers(0, len(packed)))])
    folder = tmp_path_factory.mktemp("cut")
    path = folder / source.name
    path.write_bytes(bytes(raw))
    with open_ledger(folder / "home") as ledger:
        first = import_paths(ledger.recorder, [path], format_name="otlp").files[0]
        assert "reason" not in first
        assert import_paths(ledger.recorder, [path], format_name="otlp").records_added == 0
        assert verify(ledger.store).problems == []


_SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8)
_ANYTHING = st.recursive(
    _SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)
_FIELDS = (
    *("traceId", "spanId", "parentSpanId", "name", "kind", "startTimeUnixNano", "endTimeUnixNano"),
    *("attributes", "events", "links", "status", "droppedAttributesCount", "flags", "traceState"),
)
_NAMES = (
    *("gen_ai.operation.name", "gen_ai.input.messages", "gen_ai.output.messages", "gen_ai.conversation.id"),
    *("gen_ai.usage.input_tokens", "gen_ai.response.finish_reasons", "gen_ai.tool.definitions", "metadata"),
    *(
        "gen_ai.system_instructions",
        "llm.input_messages.0.message.tool_calls.0.tool_call.id",
        "operation.cost",
    ),
    *("openinference.span.kind", "output.value", "gen_ai.tool.call.arguments", "gen_ai.tool.call.result"),
    *(
        "gen_ai.prompt.0.content",
        "ai.operationId",
        "ai.response.toolCalls",
        "gen_ai.agent.name",
        "session.id",
    ),
    *("gen_ai.response.time_to_first_chunk", "gen_ai.compaction.event_count", "gen_ai.compaction.trigger"),
)


@settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow])
@given(
    operation=st.sampled_from(["chat", "execute_tool", "invoke_agent", "handoff", "compact_events", "x"]),
    changed=st.dictionaries(st.sampled_from(_FIELDS), _ANYTHING, max_size=3),
    given_attributes=st.dictionaries(
        st.sampled_from(_NAMES), _SCALARS | _ANYTHING.map(json.dumps), max_size=5
    ),
    wrapped=st.dictionaries(st.sampled_from(_NAMES), _ANYTHING, max_size=2),
)
def test_any_type_in_any_field_is_taken(
    operation: str,
    changed: dict[str, Any],
    given_attributes: dict[str, Any],
    wrapped: dict[str, Any],
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    made = span(2, operation, {}, parent=1)
    made["attributes"] += [
        {"key": name, "value": {"stringValue": one}} for name, one in given_attributes.items()
    ]
    made["attributes"] += [{"key": name, "value": one} for name, one in wrapped.items()]
    request = one_request([span(1, "execute_tool", {}), made | changed, span(3, "chat", {}, parent=2)])
    folder = tmp_path_factory.mktemp("types")
    with open_ledger(folder / "home") as ledger:
        path = write_json(folder / "t.json", request)
        report = report_of(ledger, path)[0]
        assert "reason" not in report
        assert report["lines"] == 3 or report["quarantined"]
        assert report_of(ledger, path)[0]["records"] == 0
        assert verify(ledger.store).problems == []


def test_deep_values_and_long_chains(tmp_path: Path, ledger: Ledger) -> None:
    text = json.dumps(one_request([span(1, "chat", {})])).replace(
        '"attributes": [{"key": "gen_ai', '"attributes": [{"key": "deep", "value": DEEP}, {"key": "gen_ai'
    )
    opening, closing = '{"arrayValue":{"values":[', "]}}"
    path = tmp_path / "deep.json"
    path.write_text(
        text.replace("DEEP", opening * 3000 + '{"stringValue":"x"}' + closing * 3000), encoding="utf-8"
    )
    chain = [span(number, "invoke_agent", {}, trace=2, parent=number - 1) for number in range(1, 3001)]
    long = write_json(tmp_path / "chain.json", one_request(chain[::-1]))
    reports = report_of(ledger, path, long)
    assert [report["quarantined"] for report in reports] == [[], []]
    assert reports[0]["model_calls"] == 1
    assert reports[1]["lines"] == 3000 and reports[1]["dangling_parents"] == 0
    kept = [content(ledger, event.body)["name"] for event in events(ledger, SourceKept)]
    assert kept == [f"invoke_agent {number}" for number in range(1, 3001)]


def test_many_traces_are_not_held_at_once(
    tmp_path: Path, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(otlp, "_HELD_RECORDS", 10)
    lines = [
        json.dumps(one_request([span(number, "chat", {}, trace=number // 3 + 1, parent=number - number % 3)]))
        for number in range(3, 90)
        if number % 3
    ]
    roots = [
        json.dumps(one_request([span(number, "invoke_agent", {}, trace=number // 3 + 1)]))
        for number in range(3, 90, 3)
    ]
    path = tmp_path / "many.jsonl"
    path.write_text("\n".join([*lines, *roots]) + "\n", encoding="utf-8")
    report = report_of(ledger, path)[0]
    assert report["lines"] == 87 and report["model_calls"] == 58
    assert len(report["sessions"]) == 29
    assert report_of(ledger, path)[0]["records"] == 0


def test_a_batch_that_comes_again_long_after_is_a_duplicate(
    tmp_path: Path, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(otlp, "_HELD_RECORDS", 1)
    path = tmp_path / "twice.otlp.jsonl"
    path.write_text(LINES.read_text(encoding="utf-8") * 2, encoding="utf-8")
    report = report_of(ledger, path)[0]
    answers = [event for event in events(ledger, ModelCallAnswered) if not event.revision]
    assert len(answered := {event.call_id for event in answers}) == len(answers) == 6, answered
    assert report["duplicates"] >= 21
    assert report_of(ledger, path)[0]["records"] == 0


def test_the_state_holds_the_conversation(ledger: Ledger) -> None:
    report = report_of(ledger, RUN)[0]
    state = session_timeline(ledger.store, report["sessions"][0]).at()
    assert state.get("usage", "model_calls") == 5
    assert state.sections["open_calls"] == {} and state.sections["open_model_calls"] == {}


def _shared(*patterns: str) -> list[Path]:
    found = sorted(path for pattern in patterns for path in TRACES.glob(pattern))
    if not found:
        pytest.skip(f"no traces at {TRACES}; LOOPLEDGER_TRACES names another folder")
    return found


def test_shared_exports_give_their_calls_in_every_encoding(tmp_path: Path) -> None:
    stories: dict[str, list[Any]] = {}
    for path in _shared("frameworks/*/otlp/*traces*"):
        name = path.relative_to(TRACES / "frameworks").as_posix().split(".traces")[0] + ".traces"
        with open_ledger(tmp_path / path.relative_to(TRACES)) as ledger:
            report = report_of(ledger, path)[0]
            assert report["model_calls"] == CALLS[name], path
            assert report["quarantined"] == [] and report["dangling_parents"] == 0, path
            assert report["lines"] == sum(report["native"].values()), path
            assert report_of(ledger, path)[0]["records"] == 0
            assert verify(ledger.store).problems == []
            story = [[event[0], *event[2:]] for event in told(ledger)]
        assert stories.setdefault(name, story) == story, path
    assert stories.keys() == CALLS.keys()


def test_shared_calls_are_those_of_the_wire(ledger: Ledger) -> None:
    wire = _shared("frameworks/agent-framework/proxy-*.jsonl")[0]
    sent = [json.loads(line) for line in wire.read_text(encoding="utf-8").splitlines()]
    bodies = ["".join(text for _, text in exchange["chunks"]) for exchange in sent]
    ids = [found[1] for body in bodies if (found := re.search(r'"id":\s*"(resp_\w+)"', body))]
    folder = TRACES / "frameworks" / "agent-framework" / "otlp"
    report_of(ledger, folder / "sensitive-responses.traces.pb", folder / "sensitive-responses.logs.pb")
    answered = events(ledger, ModelCallAnswered)
    assert len(answered) == len(sent) == 25
    assert sorted(str(event.response_id) for event in answered) == sorted(ids)


def test_the_shared_folders_as_a_whole(ledger: Ledger) -> None:
    paths = _shared("frameworks/*/otlp", "wild/otlp-and-langgraph-generated/*.json")
    first = import_paths(ledger.recorder, paths, format_name="otlp")
    assert all(file["format"] == "otlp" and file["quarantined"] == [] for file in first.files)
    assert import_paths(ledger.recorder, paths, format_name="otlp").records_added == 0
    once = [event for event in events(ledger, ModelCallAnswered) if not event.revision]
    assert len(once) == sum(CALLS.values()) + 2 * 4
    assert verify(ledger.store).problems == []


def test_no_shared_file_of_another_format_is_taken() -> None:
    for path in _shared("**/*"):
        if path.is_file() and "otlp" not in path.as_posix() and "v6-spans" not in path.parts:
            assert not otlp.recognizes(sniff(path)), path


def test_records_point_to_their_place(ledger: Ledger) -> None:
    report = report_of(ledger, RUN)[0]
    lines = [record.source.line for record in records(ledger) if record.source is not None]
    assert {line for line in lines if line is not None} <= set(range(1, report["lines"] + 1))
