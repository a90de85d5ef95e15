"""Which OTLP records belong together: files, traces, senders, and reports of one call; nothing comes twice."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ledger.events.keeping import SourceKept
from ledger.events.model_call import ModelCallAnswered, ModelCallRequested
from ledger.events.tool_call import ToolCallRequested, ToolCallSettled
from ledger.home import Ledger, open_ledger
from ledger.store import verify
from tests.ledger.importers.otlp_requests import log, one_request, span, trace_of, write_json
from tests.ledger.importers.otlp_traces import FOLDER, content, events, report_of, sessions


@pytest.fixture
def ledger(tmp_path: Path, clock: Callable[[], str]) -> Iterator[Ledger]:
    with open_ledger(tmp_path / "home", clock=clock) as opened:
        yield opened


@pytest.mark.parametrize("names", [("logs", "traces"), ("traces", "logs")])
def test_traces_and_logs_of_a_run_are_one_session_in_whatever_order(
    names: tuple[str, str], ledger: Ledger
) -> None:
    files = [FOLDER / "openai-v2" / f"buyer.{name}.pb" for name in names]
    reports = report_of(ledger, *files)
    assert len(sessions(ledger)) == 1
    assert sum(report["model_calls"] for report in reports) == 2
    assert sum(report["tool_calls"] for report in reports) == 2
    assert len(events(ledger, ModelCallRequested)) == len(events(ledger, ModelCallAnswered)) == 2
    assert [event.outcome for event in events(ledger, ToolCallSettled)] == ["returned", "returned"]
    notes = [note for report in reports for note in report["notes"]]
    assert any("recorded when that file is imported" in note for note in notes)


@pytest.mark.parametrize("names", [("logs", "traces"), ("traces", "logs")])
def test_halves_that_do_not_lie_side_by_side_make_no_call_twice(
    names: tuple[str, str], tmp_path: Path, ledger: Ledger
) -> None:
    files = []
    for name in names:
        (tmp_path / name).mkdir()
        files.append(tmp_path / name / f"buyer.{name}.pb")
        files[-1].write_bytes((FOLDER / "openai-v2" / f"buyer.{name}.pb").read_bytes())
    report_of(ledger, *files)
    answers = [event for event in events(ledger, ModelCallAnswered) if not event.revision]
    assert len(answers) == len(events(ledger, ToolCallRequested)) == 2
    assert sum(report["records"] for report in report_of(ledger, *files)) == 0
    assert verify(ledger.store).problems == []


def test_the_same_conversation_name_of_another_sender_is_another_session(
    tmp_path: Path, ledger: Ledger
) -> None:
    files = []
    for number, resource in enumerate(
        (
            {"service.name": "a"},
            {"service.name": "b"},
            {"service.name": "a", "service.instance.id": "2"},
            {},
            {},
        )
    ):
        call = span(number + 1, "chat", {"gen_ai.conversation.id": "thread-1"}, trace=number + 1)
        files.append(write_json(tmp_path / f"file{number}.json", one_request([call], resource=resource)))
    report_of(ledger, *files)
    assert len(sessions(ledger)) == 5


def test_a_unique_conversation_id_joins_senders(tmp_path: Path, ledger: Ledger) -> None:
    unique = {"gen_ai.conversation.id": "9d3d2ac4-1c65-4f6e-9a55-0f8f6f1a7c11"}
    for number, service in enumerate("ab"):
        call = span(number + 1, "chat", unique, trace=number + 1)
        path = write_json(
            tmp_path / f"{service}.json", one_request([call], resource={"service.name": service})
        )
        report_of(ledger, path)
    assert sessions(ledger) == ["otlp-9d3d2ac4-1c65-4f6e-9a55-0f8f6f1a7c11"]


def test_a_trace_stays_in_its_session_when_its_root_comes_late(tmp_path: Path, ledger: Ledger) -> None:
    path = tmp_path / "growing.jsonl"
    child = one_request([span(2, "chat", {}, parent=1)])
    root = one_request([span(1, "invoke_agent", {"gen_ai.conversation.id": "thread-1"})])
    path.write_text(json.dumps(child) + "\n", encoding="utf-8")
    first = report_of(ledger, path)[0]
    path.write_text(json.dumps(child) + "\n" + json.dumps(root) + "\n", encoding="utf-8")
    second = report_of(ledger, path)[0]
    assert first["dangling_parents"] == 1 and second["dangling_parents"] == 0
    assert first["sessions"] == second["sessions"] == sessions(ledger)
    assert len(events(ledger, ModelCallAnswered)) == 1


def test_one_call_reported_by_two_instrumentations_is_one_call(tmp_path: Path, ledger: Ledger) -> None:
    told_twice = {"gen_ai.response.id": "answer-1", "gen_ai.usage.output_tokens": 7}
    outer = span(1, "chat", {"gen_ai.response.id": "answer-1", "gen_ai.provider.name": "outer"})
    inner = span(2, "chat", told_twice, parent=1)
    beside = span(3, "chat", told_twice)
    nameless = span(4, "chat", {"gen_ai.request.model": "m"}, parent=1)
    report = report_of(
        ledger, write_json(tmp_path / "t.json", one_request([outer, inner, beside, nameless]))
    )[0]
    assert report["model_calls"] == 1 and report["tokens"]["output"] == 7
    assert len([event for event in events(ledger, SourceKept) if event.native_type == "chat"]) == 3


def test_a_retry_inside_a_call_is_an_attempt_of_its_own(tmp_path: Path, ledger: Ledger) -> None:
    outer = span(1, "chat", {"gen_ai.response.id": "answer-1"})
    failed = span(2, "chat", {"error.type": "Overloaded"}, parent=1, status=2)
    good = span(3, "chat", {"gen_ai.response.id": "answer-1"}, parent=1)
    report = report_of(ledger, write_json(tmp_path / "t.json", one_request([outer, failed, good])))[0]
    assert (report["model_calls"], report["failed_calls"]) == (1, 1)


def test_ids_in_base64_are_the_same_ids(tmp_path: Path, ledger: Ledger) -> None:
    call = span(1, "chat", {}) | {"traceId": "AAAAAAAAAAAAAAAAAAAAAQ==", "spanId": "AAAAAAAAAAE="}
    reports = report_of(
        ledger,
        write_json(tmp_path / "a.json", one_request([call])),
        write_json(tmp_path / "b.json", one_request([span(1, "chat", {})])),
    )
    assert reports[1]["records"] == 0 and reports[1]["model_calls"] == 1


def test_a_log_record_of_an_unrecorded_span_belongs_to_its_trace(tmp_path: Path, ledger: Ledger) -> None:
    noted = log(7, "app.note", "hello")
    request = one_request([span(1, "chat", {})]) | one_request(logs=[noted])
    report_of(ledger, write_json(tmp_path / "t.json", request))
    assert sessions(ledger) == [f"otlp-{trace_of(1)}"]
    kept = [event for event in events(ledger, SourceKept) if event.native_type == "app.note"]
    assert content(ledger, kept[0].body)["body"] == "hello"
