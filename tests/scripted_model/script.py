"""What the model will say: lanes of steps, written in Python or read from JSON.

A script says nothing about a wire protocol; the same script serves all of them.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

JsonObject = dict[str, Any]


@dataclass(frozen=True)
class Text:
    """Words that the user sees."""

    text: str


@dataclass(frozen=True)
class Thinking:
    """Reasoning, with the opaque signature that a client must send back unchanged."""

    text: str
    signature: str = "c2NyaXB0ZWQ="


@dataclass(frozen=True)
class ToolCall:
    """A call of one tool; arguments given as a string make it a free-form (custom) call."""

    name: str
    arguments: Mapping[str, Any] | str = field(default_factory=dict)
    id: str | None = None
    """Given by the server when left out."""
    namespace: str | None = None
    """Only the Responses protocol knows it."""


Block = Text | Thinking | ToolCall


@dataclass(frozen=True)
class Usage:
    """Token numbers reported with an answer; `input_tokens` leaves out the cached ones."""

    input_tokens: int = 100
    output_tokens: int = 20
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    reasoning_tokens: int = 0


@dataclass(frozen=True)
class Error:
    """A refusal instead of an answer."""

    status: int
    message: str = "scripted error"
    type: str = "api_error"
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Step:
    """One answer of the model."""

    blocks: Sequence[Block] = ()
    usage: Usage = Usage()
    stop: str | None = None
    """`end_turn`, `tool_use`, `max_tokens` or `refusal`; told by the blocks when left out."""
    captures: Mapping[str, str] = field(default_factory=dict)
    """Regular expressions over the request body; `${name}` in a block stands for the last match."""
    error: Error | None = None
    cut_after: int | None = None
    """Drop the connection after so many streamed chunks."""
    delay_s: float = 0.0
    """Wait before the answer starts, to fix the order in which parallel calls end."""
    pace_s: float = 0.0
    """Wait before each streamed chunk."""
    gzip: bool = False
    """Pack an answer that does not stream, whatever the client accepts."""


@dataclass(frozen=True)
class Ask:
    """What a request asks, whatever its protocol."""

    protocol: str
    path: str
    model: str
    system: str
    """System prompt, instructions or developer messages, joined by newlines."""
    tools: Sequence[str]
    users: Sequence[str]
    """Text of each user message, in order."""
    stream: bool
    headers: Mapping[str, str] = field(default_factory=dict)
    """Names in lower case."""


@dataclass(frozen=True)
class Match:
    """Which requests belong to a lane: every field given must be found in the request."""

    model: str | None = None
    path: str | None = None
    system: str | None = None
    first_user: str | None = None
    any_user: str | None = None
    last_user: str | None = None
    tool: str | None = None
    """Exact name of a tool on offer."""
    has_tools: bool | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    """Header name in lower case, and a text in its value."""
    when: Callable[[Ask], bool] | None = None
    """Anything else; not available in a JSON script."""

    def fits(self, ask: Ask) -> bool:
        """True when the request has all that this match names."""
        users = ask.users or [""]
        found = [
            (self.model, ask.model),
            (self.path, ask.path),
            (self.system, ask.system),
            (self.first_user, users[0]),
            (self.any_user, "\n".join(users)),
            (self.last_user, users[-1]),
            *((text, ask.headers.get(name, "")) for name, text in self.headers.items()),
        ]
        return (
            all(wanted is None or wanted in given for wanted, given in found)
            and (self.tool is None or self.tool in ask.tools)
            and (self.has_tools is None or self.has_tools == bool(ask.tools))
            and (self.when is None or self.when(ask))
        )


@dataclass(frozen=True)
class Lane:
    """One conversation with the model: which requests it takes, and its answers in order."""

    name: str
    steps: Sequence[Step]
    match: Match = Match()


@dataclass(frozen=True)
class Script:
    """Lanes, tried in order, and the answer for whatever they leave open."""

    lanes: Sequence[Lane] = ()
    default: Step = Step(blocks=(Text("Nothing more in the script."),))
    prefix: str = ""
    """Put into every id that the server makes; two servers in one run need two prefixes."""


def load_script(path: Path) -> Script:
    """Read a script from a JSON file with the field names of the classes above."""
    return script_of(json.loads(path.read_text(encoding="utf-8")))


def script_of(data: JsonObject) -> Script:
    """Build a script from its JSON form; an unknown field is a TypeError."""
    given = dict(data)
    lanes = [
        Lane(lane["name"], [_step(step) for step in lane["steps"]], Match(**lane.get("match", {})))
        for lane in given.pop("lanes", [])
    ]
    if "default" in given:
        given["default"] = _step(given["default"])
    return Script(lanes=lanes, **given)


def _step(data: JsonObject) -> Step:
    given = dict(data)
    given["blocks"] = [_block(block) for block in given.get("blocks", [])]
    if "usage" in given:
        given["usage"] = Usage(**given["usage"])
    if "error" in given:
        given["error"] = Error(**given["error"])
    return Step(**given)


def _block(data: JsonObject) -> Block:
    match data:
        case {"text": str(text), **rest} if not rest:
            return Text(text)
        case {"thinking": str(text), **rest}:
            return Thinking(text, **rest)
        case {"tool": str(name), **rest}:
            return ToolCall(name, **rest)
    raise ValueError(f"a block has a text, a thinking or a tool; found {sorted(data)}")
