"""The scripted model itself: every protocol, streamed and whole, and the log of the wire."""

import json
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Callable
from http.client import IncompleteRead
from pathlib import Path
from typing import Any

import pytest

from . import (
    Error,
    Lane,
    Match,
    Script,
    ScriptedModel,
    Step,
    Text,
    Thinking,
    ToolCall,
    Usage,
    load_script,
)

MODEL = "model-1"
ANSWER = Step(
    blocks=(
        Thinking("Look at the file first."),
        Text("I read the file now, then I say what is in it."),
        ToolCall("Read", {"file_path": "/a/b", "limit": 3}),
    ),
    usage=Usage(input_tokens=10, output_tokens=7, cache_read_tokens=5, reasoning_tokens=2),
)

Body = dict[str, Any]


def post(url: str, body: Body) -> str:
    """Send a JSON body with a secret in the headers; return the body of the answer."""
    headers = {"content-type": "application/json", "x-api-key": "hidden", "x-lane": "left"}
    request = urllib.request.Request(url, json.dumps(body).encode(), headers)
    with urllib.request.urlopen(request, timeout=120) as answer:
        return str(answer.read().decode())


def events(text: str) -> list[Any]:
    """The data of each server-sent event that is JSON."""
    lines = [line for line in text.splitlines() if line.startswith("data: {")]
    return [json.loads(line.removeprefix("data: ")) for line in lines]


def anthropic(user: str, stream: bool) -> tuple[str, Body]:
    """A Messages request."""
    tools = [{"name": "Read", "input_schema": {}}]
    message = {"role": "user", "content": [{"type": "text", "text": user}]}
    return "/v1/messages?beta=true", {
        "model": MODEL,
        "stream": stream,
        "system": "You help.",
        "tools": tools,
        "messages": [message],
    }


def responses(user: str, stream: bool) -> tuple[str, Body]:
    """A Responses request."""
    content = [{"type": "input_text", "text": user}]
    return "/v1/responses", {
        "model": MODEL,
        "stream": stream,
        "instructions": "You help.",
        "tools": [{"type": "function", "name": "Read"}],
        "input": [{"type": "message", "role": "user", "content": content}],
    }


def chat(user: str, stream: bool) -> tuple[str, Body]:
    """A Chat Completions request."""
    return "/v1/chat/completions", {
        "model": MODEL,
        "stream": stream,
        "stream_options": {"include_usage": True},
        "tools": [{"type": "function", "function": {"name": "Read"}}],
        "messages": [
            {"role": "system", "content": "You help."},
            {"role": "user", "content": user},
        ],
    }


def gemini(user: str, stream: bool) -> tuple[str, Body]:
    """A Gemini request."""
    verb = "streamGenerateContent?alt=sse&key=hidden" if stream else "generateContent?key=hidden"
    return f"/v1beta/models/{MODEL}:{verb}", {
        "systemInstruction": {"parts": [{"text": "You help."}]},
        "tools": [{"functionDeclarations": [{"name": "Read"}]}],
        "contents": [{"role": "user", "parts": [{"text": user}]}],
    }


Request = Callable[[str, bool], tuple[str, Body]]
ALL: list[Request] = [anthropic, responses, chat, gemini]


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("request_of", ALL)
def test_every_protocol_gives_the_step_of_its_lane(request_of: Request, stream: bool) -> None:
    """A lane is found by system prompt, user text, tool, model and header in each protocol."""
    match = Match(
        model=MODEL,
        system="You help",
        first_user="hello",
        any_user="hello",
        last_user="hello",
        tool="Read",
        has_tools=True,
        headers={"x-lane": "left"},
        when=lambda ask: ask.stream == stream,
    )
    script = Script([Lane("other", [Step()], Match(first_user="else")), Lane("it", [ANSWER], match)])
    with ScriptedModel(script) as model:
        path, body = request_of("hello", stream)
        text = post(model.url + path, body)
        (exchange,) = model.exchanges
        assert model.unused == {"other": 1}
    assert (exchange.protocol, exchange.lane, exchange.step) == (request_of.__name__, "it", 0)
    assert "".join(exchange.chunks) == text
    assert len(exchange.chunks) == len(exchange.chunk_times_ns)
    assert (len(exchange.chunks) > 1) == stream
    assert exchange.body == body
    assert json.loads(exchange.raw_body) == body
    assert "hidden" not in f"{exchange.headers}{exchange.query}"
    assert exchange.headers["x-lane"] == "left"


def test_anthropic_answer() -> None:
    """Streamed and whole answers say the same."""
    with ScriptedModel(Script([Lane("it", [ANSWER, ANSWER])])) as model:
        path, body = anthropic("hello", False)
        whole = json.loads(post(model.url + path, body))
        path, body = anthropic("hello", True)
        streamed = events(post(model.url + path, body))
    assert [block["type"] for block in whole["content"]] == ["thinking", "text", "tool_use"]
    assert whole["stop_reason"] == "tool_use"
    assert whole["usage"]["cache_read_input_tokens"] == 5
    deltas = [event["delta"] for event in streamed if event["type"] == "content_block_delta"]
    assert "".join(d.get("text", "") for d in deltas) == whole["content"][1]["text"]
    assert json.loads("".join(d.get("partial_json", "") for d in deltas)) == {
        "file_path": "/a/b",
        "limit": 3,
    }
    assert deltas[1] == {"type": "signature_delta", "signature": "c2NyaXB0ZWQ="}
    assert streamed[0]["message"]["usage"]["output_tokens"] == 1
    assert streamed[-2]["usage"]["output_tokens"] == 7
    assert streamed[0]["message"]["id"] != whole["id"]


def test_responses_answer() -> None:
    """The last event carries all items; a free-form call has an input instead of arguments."""
    custom = Step(blocks=(ToolCall("apply_patch", "*** Begin Patch"),), stop="max_tokens")
    with ScriptedModel(Script([Lane("it", [ANSWER, custom])])) as model:
        path, body = responses("hello", True)
        first = events(post(model.url + path, body))
        second = events(post(model.url + path, body))
    assert [event["sequence_number"] for event in first] == list(range(len(first)))
    done = [event["item"] for event in first if event["type"] == "response.output_item.done"]
    final = first[-1]["response"]
    assert final["output"] == done
    assert [item["type"] for item in done] == ["reasoning", "message", "function_call"]
    assert final["usage"]["input_tokens"] == 15
    assert second[-1]["type"] == "response.incomplete"
    assert second[-1]["response"]["output"][0]["input"] == "*** Begin Patch"


def test_responses_compaction() -> None:
    """A compaction keeps what the user said and adds one opaque item."""
    script = Script([Lane("it", [Step((Text("In short."),))], Match(path="/compact"))])
    with ScriptedModel(script) as model:
        _, body = responses("hello", False)
        output = json.loads(post(model.url + "/v1/responses/compact", body))["output"]
    assert output[:-1] == body["input"]
    assert output[-1]["encrypted_content"] == "In short."


def test_chat_answer() -> None:
    """Pieces of the arguments join to the whole; usage is in the last chunk."""
    with ScriptedModel(Script([Lane("it", [ANSWER, ANSWER])])) as model:
        path, body = chat("hello", False)
        whole = json.loads(post(model.url + path, body))["choices"][0]
        path, body = chat("hello", True)
        text = post(model.url + path, body)
    assert text.endswith("data: [DONE]\n\n")
    *chunks, last = events(text)
    deltas = [chunk["choices"][0]["delta"] for chunk in chunks]
    calls = [call for delta in deltas for call in delta.get("tool_calls", [])]
    arguments = "".join(call["function"]["arguments"] for call in calls)
    assert arguments == whole["message"]["tool_calls"][0]["function"]["arguments"]
    assert whole["finish_reason"] == chunks[-1]["choices"][0]["finish_reason"] == "tool_calls"
    assert last["usage"]["completion_tokens"] == 7


def test_gemini_answer() -> None:
    """A function call comes in one piece; only the last response has a finish reason."""
    with ScriptedModel(Script([Lane("it", [ANSWER])])) as model:
        path, body = gemini("hello", True)
        candidates = [event["candidates"][0] for event in events(post(model.url + path, body))]
    parts = [part for candidate in candidates for part in candidate["content"]["parts"]]
    assert [part["functionCall"]["name"] for part in parts if "functionCall" in part] == ["Read"]
    assert [candidate.get("finishReason") for candidate in candidates][-2:] == [None, "STOP"]


def test_the_default_answers_when_the_script_ends() -> None:
    """A lane that is used up, and a request that no lane takes, can be told apart in the log."""
    lanes = [Lane("it", [Step((Text("one"),))], Match(first_user="hello"))]
    with ScriptedModel(Script(lanes, Step((Text("no more"),)))) as model:
        said = []
        for user in ("hello", "hello", "other"):
            path, body = anthropic(user, False)
            said.append(json.loads(post(model.url + path, body))["content"][0]["text"])
        places = [(exchange.lane, exchange.step) for exchange in model.exchanges]
    assert said == ["one", "no more", "no more"]
    assert places == [("it", 0), ("it", None), (None, None)]


@pytest.mark.parametrize("request_of", ALL)
def test_an_error_step(request_of: Request) -> None:
    """Status and headers of the script; the envelope of the protocol."""
    error = Error(529, "overloaded", "overloaded_error", {"retry-after": "1"})
    with ScriptedModel(Script([Lane("it", [Step(error=error)])])) as model:
        path, body = request_of("hello", True)
        with pytest.raises(urllib.error.HTTPError) as caught:
            post(model.url + path, body)
        (exchange,) = model.exchanges
    with caught.value as answer:
        assert (answer.code, answer.headers["retry-after"]) == (529, "1")
        assert json.load(answer)["error"]["message"] == "overloaded"
    assert exchange.status == 529


def test_a_connection_cut_in_the_middle() -> None:
    """The client sees a broken body; the log keeps what had been sent."""
    step = Step((Text("a long answer " * 9),), cut_after=3, delay_s=0.001, pace_s=0.001)
    with ScriptedModel(Script([Lane("it", [step])])) as model:
        path, body = anthropic("hello", True)
        with pytest.raises(IncompleteRead):
            post(model.url + path, body)
        (exchange,) = model.exchanges
    assert exchange.aborted
    assert len(exchange.chunks) == 3


def test_captures_carry_text_of_the_request_into_the_answer() -> None:
    """The last match of the expression stands in every text and argument."""
    step = Step(
        (Text("It is ${id}."), ToolCall("wait", {"ids": ["${id}"]}, id="call_x")),
        captures={"id": r"agent (\w+)"},
    )
    with ScriptedModel(Script([Lane("it", [step])])) as model:
        path, body = anthropic("agent one, agent two", False)
        content = json.loads(post(model.url + path, body))["content"]
    assert content[0]["text"] == "It is two."
    assert content[1] == {
        "type": "tool_use",
        "id": "call_x",
        "name": "wait",
        "input": {"ids": ["two"]},
    }


def test_what_is_no_question_for_a_model() -> None:
    """Token counts, model lists, probes and unknown paths are answered and logged too."""
    with ScriptedModel(Script([Lane("it", [ANSWER])])) as model:
        assert json.loads(post(model.url + "/v1/messages/count_tokens", {"a": "b" * 400}))
        assert json.loads(post(model.url + f"/v1beta/models/{MODEL}:countTokens", {}))
        with urllib.request.urlopen(model.url + "/v1/models", timeout=120) as answer:
            assert json.load(answer)["data"] == []
        probe = urllib.request.Request(model.url + "/api/hello", method="HEAD")
        with urllib.request.urlopen(probe, timeout=120) as answer:
            assert answer.status == 200
        with pytest.raises(urllib.error.HTTPError, match="404") as caught:
            post(model.url + "/v1/elsewhere", {})
        caught.value.close()
        assert model.unused == {"it": 1}
        assert [exchange.lane for exchange in model.exchanges] == [None] * 5


def test_the_command_line(tmp_path: Path) -> None:
    """A script in JSON, a log in JSON lines, and the URL on standard output."""
    script = {
        "prefix": "x",
        "lanes": [
            {
                "name": "it",
                "match": {"first_user": "hello"},
                "steps": [
                    {
                        "blocks": [
                            {"thinking": "Hm."},
                            {"text": "Yes."},
                            {"tool": "Read", "arguments": {"file_path": "/a"}},
                        ],
                        "usage": {"input_tokens": 1},
                    },
                    {"error": {"status": 500}},
                ],
            }
        ],
        "default": {"blocks": [{"text": "no more"}]},
    }
    path, log = tmp_path / "script.json", tmp_path / "wire.jsonl"
    path.write_text(json.dumps(script))
    assert load_script(path).default.blocks == [Text("no more")]
    package = __package__ or "scripted_model"
    root = Path(__file__).parents[len(package.split("."))]
    command = [sys.executable, "-m", package, "--script", str(path), "--log", str(log)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=root) as process:
        assert process.stdout is not None
        url = process.stdout.readline().strip()
        where, body = anthropic("hello", False)
        answer = json.loads(post(url + where, body))
        process.terminate()
    assert process.returncode == 0
    assert answer["id"] == "msg_x0001"
    (line,) = log.read_text().splitlines()
    assert json.loads(line)["lane"] == "it"


def test_a_block_of_no_known_kind_is_refused(tmp_path: Path) -> None:
    """A slip in a script is named."""
    path = tmp_path / "script.json"
    path.write_text(json.dumps({"lanes": [{"name": "it", "steps": [{"blocks": [{"txt": ""}]}]}]}))
    with pytest.raises(ValueError, match="txt"):
        load_script(path)
