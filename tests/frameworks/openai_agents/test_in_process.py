"""A loop that calls its model through the real SDK runs again on the record, and is given the SDK's own objects."""

import json
from pathlib import Path
from typing import Any

import openai
from openai.types.chat import ChatCompletion

from ledger.capture import RecordedLoop, record_loop
from ledger.home import open_ledger
from replay.inprocess import replay_loop
from tests.scripted_model import Error, Lane, Script, ScriptedModel, Step, Text, ToolCall


def agent(run: RecordedLoop, url: str) -> tuple[Any, ...]:
    """Asks twice, the second time streamed, and is refused once."""
    client = openai.OpenAI(base_url=f"{url}/v1", api_key="k", max_retries=0)
    messages: list[Any] = [{"role": "user", "content": "What is 1 + 2?"}]
    try:
        run.model(client.chat.completions.create, model="m", messages=messages)
    except openai.RateLimitError as error:
        refused: Any = (type(error), error.status_code)
    answer = run.model(client.chat.completions.create, model="m", messages=messages)
    message = answer.choices[0].message
    messages.append(message.model_dump(exclude_none=True))
    for call in message.tool_calls:
        result = run.tool(lambda a, b: a + b, json.loads(call.function.arguments), name=call.function.name)
        messages.append({"role": "tool", "tool_call_id": call.id, "content": str(result)})
    chunks = run.model(client.chat.completions.create, model="m", messages=messages, stream=True)
    said = "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
    return refused, type(answer), said


def test_a_loop_over_the_sdk_is_replayed_without_its_server(tmp_path: Path) -> None:
    steps = [
        Step(error=Error(429)),
        Step([Text("one moment"), ToolCall("add", {"a": 1, "b": 2})]),
        Step([Text("it is three")]),
    ]
    with open_ledger(tmp_path) as ledger:
        script = Script([Lane("main", steps=steps)])
        with ScriptedModel(script) as model, record_loop(ledger, harness="mine") as run:
            first = agent(run, model.url)
        assert first == ((openai.RateLimitError, 429), ChatCompletion, "it is three")
        with replay_loop(ledger, run.session) as again:
            assert agent(again, model.url) == first
        assert (again.report.verdict, again.report.divergence) == ("equal", None)
        assert [request["match"] for request in again.report.requests] == ["raw"] * 3
