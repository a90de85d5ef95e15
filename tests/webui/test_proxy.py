"""The recording proxy, over real HTTP against the scripted model: what goes by is recorded to the byte."""

import gzip
import http.client
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from ledger.events.credential import SecretRedacted
from ledger.events.model_call import (
    ModelCallAnswered,
    ModelCallChunk,
    ModelCallFailed,
    ModelCallRequested,
    ModelCallRetried,
)
from ledger.home import open_ledger
from replay.context import rebuild_request
from replay.raw import http_of, raw_pieces
from tests.scripted_model import Error, Script, ScriptedModel, Step, Text, ToolCall
from tests.webui.proxied import (
    PATIENCE_S,
    RUN,
    answered_raw,
    asked_raw,
    encoded,
    everything,
    messages,
    proxying,
    recorded,
    script,
    send,
    waited,
)

KEY = "sk-ant-api03-" + "Zx9Kd7Qm2Vb4Nw8Rt6Yp3Lc5Hf1Jg0Ks" * 2 + "-AbCdEfGhAA"


PROTOCOLS: dict[str, tuple[str, dict[str, Any]]] = {
    "anthropic": ("/v1/messages?beta=true", messages("Grüße", stream=True, system="Be brief. " * 90)),
    "responses": (
        "/v1/responses",
        {"model": "m", "input": [{"role": "user", "content": "hi"}], "stream": True},
    ),
    "chat": ("/v1/chat/completions", messages("hi", "yes", "go", stream=True)),
    "gemini": (
        "/v1beta/models/m:streamGenerateContent?alt=sse",
        {"contents": [{"role": "user", "parts": [{"text": "hi"}]}]},
    ),
    "gemini whole": (
        "/v1beta/models/m:generateContent",
        {"contents": [{"role": "user", "parts": [{"text": "hi"}]}]},
    ),
    "chat whole": ("/v1/chat/completions", messages("hi")),
    "previous": ("/v1/responses", {"model": "m", "input": "more", "previous_response_id": "resp_1"}),
}


@pytest.mark.parametrize("name", PROTOCOLS)
def test_bytes_go_through_and_are_rebuilt_from_the_ledger(name: str, tmp_path: Path) -> None:
    path, body = PROTOCOLS[name]
    raw = encoded(body, indent=2 if name == "chat" else None)
    with ScriptedModel(script(Step([Text("one two"), ToolCall("read", {"path": "a"})]))) as model:
        with proxying(tmp_path, model.url) as base:
            status, headers, answer = send(f"{base}/run/{RUN}", path, raw)
        (seen,) = model.exchanges
    assert status == 200 and headers["request-id"] == "req_0001"
    assert seen.raw_body.encode("latin-1") == raw
    assert "".join(seen.chunks).encode() == answer
    assert asked_raw(tmp_path) == [raw]
    assert answered_raw(tmp_path) == [answer]
    (asked,) = recorded(tmp_path, ModelCallRequested)
    (told,) = recorded(tmp_path, ModelCallAnswered)
    assert told.completeness == "complete"
    assert asked.at_us is not None and told.first_byte_at_us is not None and told.ended_at_us is not None
    assert asked.at_us <= told.first_byte_at_us <= told.ended_at_us
    with open_ledger(tmp_path) as ledger:
        assert asked.http is not None
        assert http_of(ledger.store, asked.http)["target"] == path
        record = next(
            record for record in ledger.store.read(RUN) if isinstance(record.event, ModelCallRequested)
        )
        rebuilt = rebuild_request(ledger.store, RUN, record.seq)
        assert rebuilt.body_matches and rebuilt.body == body


def test_credentials_reach_the_provider_and_no_disk(tmp_path: Path) -> None:
    raw = encoded(messages(f"my key is {KEY} , keep it", stream=True))
    with ScriptedModel(script(Step([Text("fine")]))) as model, proxying(tmp_path, model.url) as base:
        headers = {
            "x-api-key": "plainpassword",
            "authorization": f"Bearer {KEY}",
            "cookie": "a=plainpassword",
        }
        assert send(base, "/v1/messages?key=plainpassword", raw, headers=headers)[0] == 200
        assert model.exchanges[0].raw_body.encode() == raw
    stored = everything(tmp_path)
    assert b"scripted" in stored
    assert b"plainpassword" not in stored and KEY.encode() not in stored
    assert recorded(tmp_path, SecretRedacted)
    (rebuilt,) = asked_raw(tmp_path)
    assert rebuilt is not None and rebuilt != raw
    assert rebuilt.startswith(raw[: raw.index(KEY.encode())]) and rebuilt.endswith(
        b' , keep it"}], "stream": true}'
    )


def test_a_secret_that_came_in_pieces_is_in_no_chunk(tmp_path: Path) -> None:
    said = f"here it is: {KEY} and more words"
    with (
        ScriptedModel(script(Step([Text(said)], pace_s=0.01))) as model,
        proxying(tmp_path, model.url) as base,
    ):
        answer = send(base, "/v1/messages", encoded(messages("tell", stream=True)))[2]
        assert answer
    stored = everything(tmp_path)
    assert KEY.encode() not in stored
    with open_ledger(tmp_path) as ledger:
        for record in ledger.store.read_all():
            if isinstance(record.event, ModelCallAnswered | ModelCallChunk):
                ref = (
                    record.event.stream
                    if isinstance(record.event, ModelCallAnswered)
                    else record.event.chunks
                )
                pieces = raw_pieces(ledger.store, ref) if ref is not None else []
                assert KEY[20:60].encode() not in b"".join(piece for _, piece in pieces)


def test_a_cut_stream_is_cut_for_the_client_and_recorded_as_partial(tmp_path: Path) -> None:
    step = Step([Text("one two three four five six")], cut_after=3)
    with ScriptedModel(script(step)) as model, proxying(tmp_path, model.url) as base:
        status, _, answer = send(base, "/v1/messages", encoded(messages("hi", stream=True)))
        (seen,) = model.exchanges
    assert status == 200 and answer == "".join(seen.chunks).encode()
    (told,) = recorded(tmp_path, ModelCallAnswered)
    assert told.completeness == "partial" and told.http is not None
    assert answered_raw(tmp_path) == [answer]
    with open_ledger(tmp_path) as ledger:
        assert http_of(ledger.store, told.http)["ended"] == "cut"


def test_a_refused_call_that_is_tried_twice_again_is_three_calls(tmp_path: Path) -> None:
    busy = Step(error=Error(503, "overloaded", headers={"retry-after": "1"}))
    raw = encoded(messages("hi"))
    with (
        ScriptedModel(script(busy, busy, Step([Text("yes")]))) as model,
        proxying(tmp_path, model.url) as base,
    ):
        answers = [send(base, "/v1/messages", raw) for _ in range(3)]
    assert [answer[0] for answer in answers] == [503, 503, 200]
    assert answers[0][1]["retry-after"] == "1"
    requests = recorded(tmp_path, ModelCallRequested)
    assert [request.attempt for request in requests] == [1, 2, 3]
    assert asked_raw(tmp_path) == [raw, raw, raw]
    failed = recorded(tmp_path, ModelCallFailed)
    assert [failure.status for failure in failed] == [503, 503]
    assert all(failure.stream and failure.http and failure.detail for failure in failed)
    retried = recorded(tmp_path, ModelCallRetried)
    assert [(one.failed_call_id, one.call_id) for one in retried] == [
        (requests[0].call_id, requests[1].call_id),
        (requests[1].call_id, requests[2].call_id),
    ]


def test_a_client_that_hangs_up_is_recorded_with_what_it_got(tmp_path: Path) -> None:
    step = Step([Text("word " * 20_000)], pace_s=0.03)
    with ScriptedModel(script(step)) as model, proxying(tmp_path, model.url) as base:
        place = urlsplit(base)
        connection = http.client.HTTPConnection(str(place.hostname), place.port, timeout=PATIENCE_S)
        connection.request("POST", "/v1/messages", encoded(messages("hi", stream=True)))
        response = connection.getresponse()
        assert response.read1(10)
        response.close()
        connection.close()
        waited(lambda: recorded(tmp_path, ModelCallAnswered))
        (seen,) = model.exchanges
    assert seen.aborted
    (told,) = recorded(tmp_path, ModelCallAnswered)
    assert told.completeness == "aborted" and told.stream is not None


def test_a_client_that_hangs_up_before_any_answer_is_a_failed_call(tmp_path: Path) -> None:
    step = Step([Text("late")], delay_s=600)
    with ScriptedModel(script(step)) as model, proxying(tmp_path, model.url) as base:
        place = urlsplit(base)
        connection = http.client.HTTPConnection(str(place.hostname), place.port, timeout=PATIENCE_S)
        connection.request("POST", "/v1/messages", encoded(messages("hi")))
        waited(lambda: recorded(tmp_path, ModelCallRequested))
        connection.close()
        (failed,) = waited(lambda: recorded(tmp_path, ModelCallFailed))
    assert (failed.status, failed.error) == (None, "client went away")


def test_fifty_connections_at_once_that_stay_open_lose_nothing(tmp_path: Path) -> None:
    def talk(base: str, number: int) -> list[bytes]:
        place = urlsplit(base)
        connection = http.client.HTTPConnection(str(place.hostname), place.port, timeout=PATIENCE_S)
        answers = []
        for turn in range(4):
            body = encoded(messages(f"{number} of many", "yes", f"turn {turn}", stream=turn % 2 == 0))
            connection.request("POST", "/v1/messages", body)
            answers.append(connection.getresponse().read())
        connection.close()
        return answers

    default = Script(default=Step([Text("the same for all")]))
    with ScriptedModel(default) as model, proxying(tmp_path, model.url) as base:
        with ThreadPoolExecutor(50) as pool:
            got = [answer for answers in pool.map(lambda at: talk(base, at), range(50)) for answer in answers]
        assert len(model.exchanges) == 200
    assert sorted(answered_raw(tmp_path)) == sorted(got)
    assert len(asked_raw(tmp_path)) == 200


def test_two_equal_requests_at_once_are_two_calls_and_no_retry(tmp_path: Path) -> None:
    step = Step([Text("slow")], delay_s=0.3)
    raw = encoded(messages("the same"))
    with (
        ScriptedModel(script(step, step)) as model,
        proxying(tmp_path, model.url) as base,
        ThreadPoolExecutor(2) as pool,
    ):
        list(pool.map(lambda _: send(base, "/v1/messages", raw), range(2)))
    first, second = recorded(tmp_path, ModelCallRequested)
    assert first.raw_digest == second.raw_digest and first.call_id != second.call_id
    assert (first.attempt, second.attempt) == (1, 1)
    assert len(recorded(tmp_path, ModelCallAnswered)) == 2


def test_twenty_megabytes_are_sent_and_rebuilt(tmp_path: Path) -> None:
    raw = encoded(messages("picture " + "Ab1+" * 5_000_000))
    with ScriptedModel(script(Step([Text("seen")]))) as model, proxying(tmp_path, model.url) as base:
        assert send(base, "/v1/messages", raw)[0] == 200
        assert model.exchanges[0].raw_body.encode() == raw
    assert asked_raw(tmp_path) == [raw]


def test_packed_requests_and_answers_are_kept_unpacked(tmp_path: Path) -> None:
    raw = encoded(messages("hi"))
    with (
        ScriptedModel(script(Step([Text("packed")], gzip=True))) as model,
        proxying(tmp_path, model.url) as base,
    ):
        headers = {"content-encoding": "gzip", "accept-encoding": "gzip, br, zstd"}
        _, told, answer = send(base, "/v1/messages", gzip.compress(raw), headers=headers)
        assert model.exchanges[0].headers["accept-encoding"] == "identity"
    assert told["content-encoding"] == "gzip"
    assert asked_raw(tmp_path) == [raw]
    assert answered_raw(tmp_path) == [gzip.decompress(answer)]
