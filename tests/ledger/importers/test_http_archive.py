"""Model traffic as it went over the wire: rebuilt to the value of every byte, and hostile archives."""

import base64
import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from ledger.events.compaction import CompactionDone
from ledger.events.model_call import ModelCallAnswered, ModelCallFailed, ModelCallRequested
from ledger.events.tool_call import ToolCallRequested, ToolCallSettled
from ledger.home import Ledger
from ledger.store import verify
from replay.context import rebuild_request
from tests.ledger.importers.fixtures import FIXTURES
from tests.ledger.importers.plain_traces import content, events, imported, records, shared

HAR = FIXTURES / "http-archive" / "har" / "everybody.har"
YAML = FIXTURES / "http-archive" / "vcrpy-yaml" / "everybody.yaml"
JSON = FIXTURES / "http-archive" / "vcrpy-json" / "everybody.json"
PROXY = FIXTURES / "proxy-recording" / "everybody" / "proxy.jsonl"


def _requests(ledger: Ledger) -> list[Any]:
    """Every request of the ledger, rebuilt."""
    asked = [record for record in records(ledger) if isinstance(record.event, ModelCallRequested)]
    return [rebuild_request(ledger.store, record.session, record.seq) for record in asked]


@pytest.mark.parametrize("path", [HAR, YAML, JSON, PROXY], ids=["har", "yaml", "json", "proxy"])
def test_every_form_of_the_same_traffic_gives_the_same_calls(path: Path, ledger: Ledger) -> None:
    report = imported(ledger, path)
    assert report["grade"] == "wire"
    assert (report["model_calls"], report["failed_calls"], report["unanswered_calls"]) == (4, 1, 0)
    assert report["tokens"] == {"input": 400, "output": 80, "cache_read": 0, "cache_write": 0}
    protocols = [event.protocol for event in events(ledger, ModelCallRequested)]
    assert protocols == [
        "openai.chat",
        "openai.chat",
        "openai.responses",
        "anthropic.messages",
        "anthropic.messages",
    ]
    (asked,), (settled,) = events(ledger, ToolCallRequested), events(ledger, ToolCallSettled)
    assert (asked.tool, settled.call_id, content(ledger, settled.result)) == (
        "weather",
        asked.call_id,
        "rain",
    )
    assert [event.status for event in events(ledger, ModelCallFailed)] == [529]


def test_a_request_is_rebuilt_to_the_value_that_was_sent(ledger: Ledger) -> None:
    imported(ledger, PROXY)
    sent = [json.loads(json.loads(line)["req_body"]) for line in PROXY.read_text().splitlines()]
    rebuilt = _requests(ledger)
    assert [request.body for request in rebuilt] == sent
    assert all(request.body_matches and request.completeness == "body" for request in rebuilt)


def test_real_recordings_are_rebuilt_to_the_value_that_was_sent(ledger: Ledger) -> None:
    (folder,) = shared("frameworks")
    for path in sorted(folder.glob("*/proxy-*.jsonl")):
        imported(ledger, path)
    rebuilt = _requests(ledger)
    assert len(rebuilt) == 134
    assert all(request.body_matches for request in rebuilt)


def test_the_context_was_cut_where_messages_vanish_between_two_requests(ledger: Ledger) -> None:
    imported(ledger, *shared("frameworks/langgraph/proxy-langgraph-plain.jsonl"))
    found = events(ledger, CompactionDone)
    assert found
    assert {event.evidence for event in found} == {"inferred"}
    assert all("are gone from this one" in event.evidence_detail for event in found)


def test_a_stream_keeps_its_pieces_with_their_times(ledger: Ledger) -> None:
    imported(ledger, PROXY)
    streamed = [event for event in events(ledger, ModelCallAnswered) if event.stream is not None]
    assert len(streamed) == 4  # whole answers too: their bytes
    pieces = content(ledger, streamed[1].stream)
    source = json.loads(PROXY.read_text().splitlines()[1])["chunks"]
    assert [piece for _, piece in pieces] == [piece for _, piece in source]
    assert {event.completeness for event in streamed} == {"complete"}


def test_a_stream_that_was_cut_is_partial(ledger: Ledger, tmp_path: Path) -> None:
    lines = PROXY.read_text().splitlines()
    cut = json.loads(lines[3])
    cut["chunks"] = cut["chunks"][:3]
    path = tmp_path / "cut.jsonl"
    path.write_text(json.dumps(cut) + "\n")
    imported(ledger, path)
    assert [event.completeness for event in events(ledger, ModelCallAnswered)] == ["partial"]


def test_the_same_bytes_again_after_a_failure_are_another_attempt(ledger: Ledger) -> None:
    imported(ledger, *shared("frameworks/openai-agents/proxy-openai-agents-flakytest-responses.jsonl"))
    assert {event.attempt for event in events(ledger, ModelCallRequested)} == {1, 2}
    assert [event.status for event in events(ledger, ModelCallFailed)] == [503] * 10


def test_a_packed_body_is_unpacked(ledger: Ledger, tmp_path: Path) -> None:
    archive = json.loads(HAR.read_text())
    entry = archive["log"]["entries"][1]
    entry["response"]["headers"].append({"name": "Content-Encoding", "value": "gzip"})
    packed = gzip.compress(entry["response"]["content"]["text"].encode())
    entry["response"]["content"] |= {"text": base64.b64encode(packed).decode(), "encoding": "base64"}
    path = tmp_path / "packed.har"
    path.write_text(json.dumps(archive))
    assert imported(ledger, path)["tokens"]["input"] == 400


def test_keys_in_headers_addresses_and_bodies_are_nowhere_in_the_store(
    ledger: Ledger, tmp_path: Path
) -> None:
    secret = "AIzaSy" + "D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8s9T"
    body = {"contents": [{"role": "user", "parts": [{"text": f"my key is {secret}"}]}]}
    line = {
        "ts": 1.0,
        "path": f"/v1beta/models/gemini-2.5-flash:generateContent?key={secret}",
        "req_headers": {"x-goog-api-key": secret, "authorization": f"Bearer {secret}"},
        "req_body": json.dumps(body),
        "status": 200,
        "resp_headers": {"set-cookie": f"session={secret}"},
        "chunks": [
            [0.1, json.dumps({"candidates": [{"content": {"role": "model", "parts": [{"text": secret}]}}]})]
        ],
    }
    path = tmp_path / "keys.jsonl"
    path.write_text(json.dumps(line) + "\n")
    report = imported(ledger, path)
    assert report["model_calls"] == 1
    (request,) = _requests(ledger)
    assert (request.model, request.protocol, request.body_matches) == ("gemini-2.5-flash", "gemini", True)
    ledger.close()
    files = [file for file in (tmp_path / "home").rglob("*") if file.is_file()]
    assert not [file for file in files if secret.encode() in file.read_bytes()]


def test_a_tag_of_yaml_makes_no_object_and_runs_nothing(ledger: Ledger, tmp_path: Path) -> None:
    canary = tmp_path / "canary"
    path = tmp_path / "evil.yaml"
    path.write_text(
        "interactions:\n- request:\n    body: !!python/object/apply:os.system ['touch "
        f"{canary}']\n    method: POST\n    uri: !!python/name:os.system http://x/v1/messages\n"
        "  response:\n    status: {code: 200}\nversion: 1\n"
    )
    report = imported(ledger, path)
    assert report["format"] == "http-archive"
    assert not canary.exists()
    assert verify(ledger.store).problems == []


def test_aliases_do_not_swell(ledger: Ledger, tmp_path: Path) -> None:
    nested = "".join(f"- &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 12))
    path = tmp_path / "laughs.yaml"
    path.write_text(f"interactions:\n- request: {{uri: x}}\n- &a0 [ha, ha]\n{nested}")
    report = imported(ledger, path, format_name="http-archive")
    assert [entry["reason"] for entry in report["quarantined"]]
    assert verify(ledger.store).problems == []


def test_traffic_that_is_no_model_call_is_kept(ledger: Ledger) -> None:
    report = imported(ledger, HAR)
    assert report["native"]["other traffic"] == 1
    assert report["native"]["openai.chat"] == 2
