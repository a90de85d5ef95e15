"""Recorded exchanges made by hand: imported as a proxy's recording, and sent again to a player."""

import json
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ledger.home import Ledger
from ledger.importers._intake import import_paths
from replay.player import Answer, Player

TOOLS = [
    {
        "name": name,
        "description": f"{name} a thing.",
        "input_schema": {"type": "object", "properties": {"path": {"type": "string"}}},
    }
    for name in ("Read", "Bash")
]
SYSTEM = "You are a careful clerk. " + "Obey the rules of the house. " * 40


@dataclass
class Exchange:
    """A request and its answer."""

    body: Any
    """Body of the request."""
    answer: Any = None
    """Body of the answer: a value, or the pieces of a stream."""
    status: int | None = 200
    """HTTP status."""
    path: str = "/v1/messages"
    """Path."""
    method: str = "POST"
    """Method."""
    headers: dict[str, str] = field(default_factory=dict)
    """Headers of the request."""
    started: float = 0.0
    """Seconds since the beginning."""
    took: float = 0.5
    """Seconds until its end."""

    def line(self) -> dict[str, Any]:
        """As a proxy records it."""
        streamed = isinstance(self.answer, list)
        pieces = self.answer if streamed else [json.dumps(self.answer)]
        return {
            "ts": 1_795_953_600 + self.started,
            "method": self.method,
            "path": self.path,
            "req_headers": self.headers,
            "req_body": json.dumps(self.body) if self.body is not None else "",
            "status": self.status,
            "resp_headers": {"content-type": "text/event-stream" if streamed else "application/json"},
            "chunks": [[self.took, piece] for piece in pieces] if self.status is not None else [],
        }

    def sent(self, **changes: Any) -> "Exchange":
        """The same with other fields of the body."""
        return replace(self, body={**self.body, **changes})


def text(words: str, number: int = 1) -> dict[str, Any]:
    """An answer of Anthropic's that says something."""
    return {
        "id": f"msg_{number:04d}",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": [{"type": "text", "text": words}],
        "stop_reason": "end_turn",
        "usage": {"input_tokens": 10, "output_tokens": 2},
    }


def messages(*listed: Any, system: Any = SYSTEM, tools: Any = TOOLS, **rest: Any) -> dict[str, Any]:
    """A body of Anthropic's."""
    return {
        "model": "m",
        "max_tokens": 2048,
        "system": system,
        "tools": tools,
        "messages": list(listed),
        **rest,
    }


def user(content: Any) -> dict[str, Any]:
    """A message of the user."""
    return {"role": "user", "content": content}


def calls(*ids: str) -> dict[str, Any]:
    """An answer that calls tools, as it is sent back."""
    blocks = [{"type": "tool_use", "id": one, "name": "Read", "input": {"path": one}} for one in ids]
    return {"role": "assistant", "content": blocks}


def results(**said: str) -> dict[str, Any]:
    """Results of tools, in the order given."""
    blocks = [{"type": "tool_result", "tool_use_id": one, "content": words} for one, words in said.items()]
    return user(blocks)


def conversation() -> list[Exchange]:
    """Three turns with two parallel tools."""
    ask = user("What do the files say?")
    called = calls("call_1", "call_2")
    answered = results(call_1="one", call_2="two")
    said = {"role": "assistant", "content": [{"type": "text", "text": "They say one and two."}]}
    return [
        Exchange(messages(ask), text("") | called, started=0, took=0.4),
        Exchange(messages(ask, called, answered), text("They say one and two."), started=1, took=0.4),
        Exchange(messages(ask, called, answered, said, user("Thanks.")), text("Bye."), started=2, took=0.4),
    ]


def record(ledger: Ledger, folder: Path, exchanges: list[Exchange]) -> str:
    """Import the exchanges; give the session."""
    path = folder / "proxy.jsonl"
    path.write_text("".join(json.dumps(one.line()) + "\n" for one in exchanges), encoding="utf-8")
    report = import_paths(ledger.recorder, [path])
    found: set[str] = {name for file in report.files for name in file["sessions"]}
    [session] = found
    return session


def send(player: Player, exchange: Exchange) -> Answer:
    """Send a request again; its answer is taken."""
    body = json.dumps(exchange.body).encode() if exchange.body is not None else b""
    answer = player.answer(exchange.method, exchange.path, list(exchange.headers.items()), body)
    player.delivered(answer)
    return answer


def play(player: Player, exchanges: list[Exchange]) -> list[Answer]:
    """Send requests one after the other."""
    return [send(player, one) for one in exchanges]
