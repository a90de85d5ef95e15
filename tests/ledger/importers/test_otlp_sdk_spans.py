"""Spans as an SDK holds them, written as JSON, tell what the same spans tell as OTLP."""

import json
from pathlib import Path
from typing import Any

import pytest

from ledger.home import Ledger, open_ledger
from ledger.importers import Sniff, otlp
from ledger.importers._intake import import_paths
from ledger.importers._otlp.sdk_spans import as_request
from ledger.store import verify
from tests.ledger.importers.fixtures import FIXTURES

OTLP = FIXTURES / "otlp" / "vercel" / "chat.otlp.json"
COUNTS = (
    "format",
    "lines",
    "model_calls",
    "tool_calls",
    "tool_results",
    "tokens",
    "native",
    "unknown",
    "quarantined",
)


def _plain(value: dict[str, Any]) -> Any:
    if "arrayValue" in value:
        return [_plain(one) for one in value["arrayValue"].get("values", ())]
    (kind, inner), *_ = value.items()
    return int(inner) if kind == "intValue" else inner


def _attributes(holder: dict[str, Any]) -> dict[str, Any]:
    return {pair["key"]: _plain(pair["value"]) for pair in holder.get("attributes", ())}


def _time(nanoseconds: Any) -> list[int]:
    return list(divmod(int(nanoseconds), 10**9))


def _sdk_spans(request: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        {
            "name": span["name"],
            "kind": max(0, span.get("kind", 1) - 1),
            "spanContext": {"traceId": span["traceId"], "spanId": span["spanId"], "traceFlags": 1},
            "parentSpanContext": {"spanId": span["parentSpanId"]} if span.get("parentSpanId") else None,
            "startTime": _time(span["startTimeUnixNano"]),
            "endTime": _time(span["endTimeUnixNano"]),
            "status": span.get("status", {"code": 0}),
            "attributes": _attributes(span),
            "events": [
                {
                    "name": event["name"],
                    "time": _time(event["timeUnixNano"]),
                    "attributes": _attributes(event),
                }
                for event in span.get("events", ())
            ],
            "resource": {"attributes": _attributes(group["resource"])},
            "instrumentationScope": scope["scope"],
        }
        for group in request["resourceSpans"]
        for scope in group["scopeSpans"]
        for span in scope["spans"]
    ]


@pytest.mark.parametrize("form", ["list", "indented", "lines"])
def test_spans_of_the_sdk_are_the_records_that_otlp_gives(form: str, ledger: Ledger, tmp_path: Path) -> None:
    spans = _sdk_spans(json.loads(OTLP.read_bytes()))
    text = {
        "list": json.dumps(spans),
        "indented": json.dumps(spans, indent=2),
        "lines": "\n".join(map(json.dumps, spans)),
    }[form]
    path = tmp_path / "spans.json"
    path.write_text(text, encoding="utf-8")
    (first,) = import_paths(ledger.recorder, [OTLP]).files
    with open_ledger(tmp_path / "other") as other:
        (second,) = import_paths(other.recorder, [path]).files
        told = [(record.session, record.type) for record in other.store.read_all()]
        assert verify(other.store).problems == []
    assert told == [(record.session, record.type) for record in ledger.store.read_all()]
    assert {name: second[name] for name in COUNTS} == {name: first[name] for name in COUNTS}


def test_a_span_out_of_shape_becomes_a_request_all_the_same() -> None:
    spans = [
        {
            "name": 7,
            "spanContext": {},
            "attributes": {"a": {"b": [1]}, "c": None, "d": [True, {}]},
            "events": 1,
        }
    ]
    (group,) = as_request(spans)["resourceSpans"]
    (made,) = group["scopeSpans"][0]["spans"]
    assert made["attributes"][0] == {"key": "a", "value": {"stringValue": '{"b":[1]}'}}
    assert made["startTimeUnixNano"] == "0"


def test_other_files_with_such_a_name_in_them_are_not_taken() -> None:
    for start in (
        b'{"text": "\\"spanContext\\": {"}',
        b'{"a": {"spanContext": {}}}',
        b'[[{"spanContext": {}}]]',
    ):
        assert not otlp.recognizes(Sniff(Path("x"), start, len(start)))
