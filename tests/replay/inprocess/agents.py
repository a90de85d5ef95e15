"""A loop with something of everything, and the world that it can reach."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from ledger.capture import RecordedLoop, record_loop
from ledger.home import Ledger
from replay.inprocess import Report, replay_function
from tests.ledger.capture.loops import chat_answer

Agent = Callable[[RecordedLoop], Any]


class World:
    """What a loop can reach: a model and tools, which count how often they are really called."""

    def __init__(self, folder: Path) -> None:
        self.counter = folder / "counter"
        self.counter.touch()
        self.asked = 0

    def model(self, **request: Any) -> dict[str, Any]:
        """Says how much it saw."""
        self.asked += 1
        return chat_answer(f"answer {len(request['messages'])}")

    def stream(self, **request: Any) -> Iterator[dict[str, Any]]:
        """The same in pieces."""
        self.asked += 1
        for text in ("in ", "pieces ", "."):
            delta = {"role": "assistant", "content": text}
            yield {"id": "r", "choices": [{"index": 0, "delta": delta, "finish_reason": None}]}

    def send(self, to: str, text: str = "") -> dict[str, Any]:
        """An effect outside."""
        with self.counter.open("a") as file:
            file.write(f"{to}\n")
        return {"sent": to, "ids": [1, 2]}

    def fail(self, **_: Any) -> Any:
        """A tool that raises."""
        raise ValueError("no such thing")

    @property
    def effects(self) -> int:
        """How many effects there were."""
        return len(self.counter.read_text().splitlines())


def an_agent(
    world: World,
    *,
    system: str = "You are careful.",
    tools: Any = ({"type": "function", "function": {"name": "send"}},),
    to: str = "a@example.org",
    swapped: bool = False,
    extra_draw: bool = False,
    question: str = "Send it.",
) -> Agent:
    """A loop with something of everything; its arguments are what a test changes."""

    def agent(run: RecordedLoop) -> str:
        run.message(question)
        if extra_draw:
            run.draw.random("another")
        number = run.draw.random("temperature")
        messages: list[Any] = [
            {"role": "system", "content": system},
            {"role": "user", "content": f"{question} {number}"},
        ]
        answer = run.model(world.model, model="m", messages=messages, tools=list(tools))
        messages.append(answer["choices"][0]["message"])
        calls = [("send", {"to": to}), ("send", {"to": "b@example.org"})]
        for _, arguments in reversed(calls) if swapped else calls:
            allowed = run.approve(lambda: True, tool="send", arguments=arguments)
            result = run.tool(world.send, arguments, effect_class="external", approval=allowed)
            messages.append({"role": "tool", "content": f"{result['sent']} {result['ids'][1]}"})
        try:
            run.tool(world.fail, {})
        except ValueError as error:
            messages.append({"role": "tool", "content": str(error)})
        with run.delegate(agent="reader", payload={"read": "this"}) as child:
            inner = child.model(world.model, model="m", messages=messages)
            child.returns(inner["choices"][0]["message"]["content"])
        run.checkpoint("before the end")
        pieces = run.model(world.stream, model="m", messages=messages, stream=True)
        text = "".join(chunk["choices"][0]["delta"]["content"] for chunk in pieces)
        messages.append({"role": "user", "content": f"{text} {run.draw.uuid()} {run.draw.clock()}"})
        return str(run.model(world.model, model="m", messages=messages)["choices"][0]["message"]["content"])

    return agent


def recorded(ledger: Ledger, agent: Agent) -> tuple[str, Any]:
    """Record a run: its session and its result."""
    with record_loop(ledger, harness="test") as run:
        result = agent(run)
    return run.session, result


def again(ledger: Ledger, session: str, agent: Agent, **options: Any) -> tuple[Report, list[Any]]:
    """Run it again: the report and the results that it got to."""
    results: list[Any] = []
    report = replay_function(ledger, session, lambda run: results.append(agent(run)), **options)
    return report, results
