"""Runs real packages against the scripted model and keeps what they write, for those who remake fixtures.

`python -m tests.ledger.importers.plain_runs [NAME…]` in an environment that has the packages that a run imports:
`pip install anthropic inspect_ai openai requests vcrpy`. No test imports it.
"""

import base64
import importlib
import json
import shutil
import sys
import tempfile
from collections.abc import Callable, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.scripted_model import Error, Lane, Script, ScriptedModel, Step, Text, ToolCall

FIXTURES = Path(__file__).parents[3] / "fixtures" / "importers"
TOOL = {
    "type": "function",
    "function": {
        "name": "weather",
        "description": "Weather of a town.",
        "parameters": {"type": "object", "properties": {"town": {"type": "string"}}},
    },
}


def package(name: str) -> Any:
    """A package that only the environment of these runs has."""
    return importlib.import_module(name)


def case_folder(*names: str) -> Path:
    """The folder of a case, made if it is not there."""
    folder = FIXTURES.joinpath(*names)
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@contextmanager
def scripted(*steps: Step) -> Any:
    """A model that says these steps one after the other."""
    with ScriptedModel(Script([Lane("main", steps=list(steps))])) as model:
        yield model


TURNS: Sequence[Step] = (
    Step([Text("I look."), ToolCall("weather", {"town": "Bonn"})]),
    Step([ToolCall("weather", {"town": "Ulm"}), ToolCall("weather", {"town": "Jena"})]),
    Step([Text("Rain in all three.")]),
)


def loop() -> None:
    """A loop of a few lines with OpenAI's package."""
    openai = package("openai")

    with scripted(*TURNS) as model:
        client = openai.OpenAI(base_url=f"{model.url}/v1", api_key="none")
        messages: list[Any] = [
            {"role": "system", "content": "You are brief."},
            {"role": "user", "content": "How is the weather in Bonn, Ulm and Jena?"},
        ]
        while True:
            answer = client.chat.completions.create(model="scripted", messages=messages, tools=[TOOL])
            message = answer.choices[0].message
            messages.append(message.model_dump(exclude_none=True))
            if not message.tool_calls:
                break
            for call in message.tool_calls:
                messages.append({"role": "tool", "tool_call_id": call.id, "content": "rain"})
    (case_folder("chat-messages", "loop") / "messages.json").write_text(json.dumps(messages, indent=1) + "\n")


def inspect() -> None:
    """An evaluation with an approver that refuses, and an agent that another one calls."""
    inspect_ai = package("inspect_ai")
    AgentPrompt = package("inspect_ai.agent").AgentPrompt
    as_tool = package("inspect_ai.agent").as_tool
    react = package("inspect_ai.agent").react
    ApprovalPolicy = package("inspect_ai.approval").ApprovalPolicy
    auto_approver = package("inspect_ai.approval").auto_approver
    Sample = package("inspect_ai.dataset").Sample
    get_model = package("inspect_ai.model").get_model
    includes = package("inspect_ai.scorer").includes
    generate = package("inspect_ai.solver").generate
    tool = package("inspect_ai.tool").tool

    def weather() -> Any:
        async def execute(town: str) -> str:
            """Weather of a town.

            Args:
              town: Its name.
            """
            return f"rain in {town}"

        return execute

    def delete() -> Any:
        async def execute(file: str) -> str:
            """Delete a file.

            Args:
              file: Its name.
            """
            return "deleted"

        return execute

    weather, delete = tool(weather), tool(delete)

    def ours(text: str) -> Any:
        return AgentPrompt(
            instructions=text,
            handoff_prompt=None,
            assistant_prompt=None,
            submit_prompt="Call {submit} at the end.",
        )

    steps = (
        Step([ToolCall("weather", {"town": "Bonn"}), ToolCall("delete", {"file": "all"})]),
        Step([ToolCall("clerk", {"input": "Look at Ulm."})]),
        Step([ToolCall("weather", {"town": "Ulm"})]),
        Step([ToolCall("submit", {"answer": "It rains in Ulm."})]),
        Step([ToolCall("submit", {"answer": "Rain."})]),
    )
    clerk = react(
        name="clerk", description="Looks things up.", prompt=ours("You are the clerk."), tools=[weather()]
    )
    chief = react(prompt=ours("You are the chief."), tools=[weather(), delete(), as_tool(clerk)])
    policy = [
        ApprovalPolicy(auto_approver(decision="reject"), ["delete*"]),
        ApprovalPolicy(auto_approver(), ["*"]),
    ]
    for form, case, solver in (("eval", "agents", chief), ("json", "one_answer", generate())):
        task = inspect_ai.Task(
            dataset=[Sample(id="towns", input="How is the weather?", target="Rain")],
            solver=solver,
            scorer=includes(),
            approval=policy,
            name="weather",
        )
        with (
            scripted(*(steps if form == "eval" else TURNS[2:])) as model,
            tempfile.TemporaryDirectory() as folder,
        ):
            served = get_model(
                "openai/scripted", base_url=f"{model.url}/v1", api_key="none", responses_api=False
            )
            (log,) = inspect_ai.eval(task, model=served, log_dir=folder, log_format=form, display="none")
            print("inspect", form, log.status, log.error)
            shutil.copy(
                Path(log.location.removeprefix("file://")), case_folder("inspect", case) / f"weather.{form}"
            )


def _ask_everybody(url: str) -> None:
    """One conversation over each protocol, streamed and not, with the providers' own packages."""
    anthropic = package("anthropic")
    openai = package("openai")

    chat = openai.OpenAI(base_url=f"{url}/v1", api_key="sk-none-of-yours", max_retries=0)
    messages: list[Any] = [{"role": "user", "content": "How is the weather in Bonn?"}]
    answer = chat.chat.completions.create(model="scripted", messages=messages, tools=[TOOL])
    message = answer.choices[0].message
    messages.append(message.model_dump(exclude_none=True))
    messages += [
        {"role": "tool", "tool_call_id": call.id, "content": "rain"} for call in message.tool_calls or ()
    ]
    for _ in chat.chat.completions.create(
        model="scripted", messages=messages, tools=[TOOL], stream=True, stream_options={"include_usage": True}
    ):
        pass
    for _ in chat.responses.create(model="scripted", input="How is the weather?", stream=True):
        pass
    claude = anthropic.Anthropic(base_url=url, api_key="none", max_retries=0)
    asked: list[Any] = [{"role": "user", "content": "How is the weather?"}]
    with claude.messages.stream(
        model="scripted", max_tokens=99, system="Be brief.", messages=asked
    ) as stream:
        stream.until_done()
    try:
        claude.messages.create(model="scripted", max_tokens=99, messages=asked)
    except anthropic.APIStatusError as error:
        print("refused as scripted", error.status_code)


_EVERYBODY: Sequence[Step] = (
    TURNS[0],
    TURNS[2],
    Step([Text("Rain everywhere.")]),
    Step([Text("Rain.")]),
    Step(error=Error(529, "overloaded", "overloaded_error")),
)


def cassettes() -> None:
    """Cassettes of vcrpy, as YAML and as JSON."""
    vcr = package("vcr")

    for form in ("yaml", "json"):
        path = case_folder("http-archive", f"vcrpy-{form}") / f"everybody.{form}"
        path.unlink(missing_ok=True)
        recorder = vcr.VCR(serializer=form, record_mode="all", filter_headers=["x-stainless-os"])
        with scripted(*_EVERYBODY) as model, recorder.use_cassette(str(path)):
            _ask_everybody(model.url)


def wire() -> None:
    """The same calls as a proxy and as a browser would write them down, from the server's own record of the wire."""
    with scripted(*_EVERYBODY) as model:
        _ask_everybody(model.url)
        exchanges = model.exchanges
        port = model.port
    lines, entries = [], []
    for number, one in enumerate(exchanges):
        body = one.raw_body.encode("latin-1").decode()
        started = f"2026-11-29T12:00:{number:02d}.000Z"
        text = "".join(one.chunks)
        lines.append(
            {
                "ts": 1795953600.0 + number,
                "method": "POST",
                "path": one.path,
                "req_headers": one.headers,
                "req_body": body,
                "status": one.status,
                "resp_headers": one.response_headers,
                "chunks": [[0.001 * place, chunk] for place, chunk in enumerate(one.chunks, start=1)],
            }
        )
        kind = dict(one.response_headers).get("content-type", "application/json")
        packed = base64.b64encode(text.encode()).decode() if number == 0 else text
        content = {"size": len(text), "mimeType": kind, "text": packed}
        entries.append(
            {
                "startedDateTime": started,
                "time": 12.5,
                "request": {
                    "method": "POST",
                    "url": f"http://127.0.0.1:{port}{one.path}",
                    "headers": [{"name": name, "value": value} for name, value in dict(one.headers).items()],
                    "postData": {"mimeType": "application/json", "text": body},
                },
                "response": {
                    "status": one.status,
                    "headers": [
                        {"name": name, "value": value} for name, value in dict(one.response_headers).items()
                    ],
                    "content": {**content, "encoding": "base64"} if number == 0 else content,
                },
            }
        )
    page = {
        "startedDateTime": "2026-11-29T12:00:30.000Z",
        "time": 3,
        "request": {"method": "GET", "url": "http://x/"},
    }
    entries.append({**page, "response": {"status": 200, "content": {"text": "<p>no model</p>"}}})
    text = "".join(json.dumps(line) + "\n" for line in lines)
    (case_folder("proxy-recording", "everybody") / "proxy.jsonl").write_text(text)
    log = {"log": {"version": "1.2", "creator": {"name": "ours", "version": "1"}, "entries": entries}}
    (case_folder("http-archive", "har") / "everybody.har").write_text(json.dumps(log, indent=1) + "\n")


RUNS: dict[str, Callable[[], None]] = {
    "cassettes": cassettes,
    "inspect": inspect,
    "loop": loop,
    "wire": wire,
}


if __name__ == "__main__":
    for name in sys.argv[1:] or RUNS:
        RUNS[name]()
