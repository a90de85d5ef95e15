"""opencode: a session in the form of its export, for `opencode import`."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ledger.events.model_call import ModelCallRequested
from ledger.events.session import SessionStarted
from replay.resume.closing import closed
from replay.resume.point import Point
from replay.resume.runtime import Resumption
from replay.resume.runtimes._anthropic import REASONING_LOST
from replay.resume.runtimes._openai import as_text
from replay.resume.turns import Call, Other, Piece, Result, Text, Thought, Turn, with_whole_answers

__all__ = ["NAME", "TITLE", "resumption", "suits"]

NAME = "opencode"
TITLE = "opencode (1.18.33)"

_VERSION = "1.18.33"
_AGENT = "build"
_OWN_WORDS = "System prompt and tools: opencode writes them anew."
_SNAPSHOTS = "Snapshots of files: opencode cannot undo what was done before the point."
_PROVIDER_NOT_KNOWN = (
    "The name that opencode has for the provider was not recorded: choose one with --model PROVIDER/MODEL."
)
_TOKENS = {"total": 0, "input": 0, "output": 0, "reasoning": 0, "cache": {"write": 0, "read": 0}}
_MOST = 2**48
_PER_MILLISECOND = 4096


def suits(started: SessionStarted) -> bool:
    """Whether opencode ran it."""
    return started.harness == NAME


def resumption(point: Point, into: Path) -> Resumption:
    """The session, cut at the point, under a new id."""
    cwd = point.cwd_for("which opencode wants to be told")
    lost = {_OWN_WORDS, _SNAPSHOTS}
    provider = _provider(point)
    export = _Export(point, provider or "unknown", lost)
    export.take(closed(point.turns))
    if not export.messages:
        raise point.nothing_said("opencode could resume")
    return Resumption(
        {"session.json": json.dumps(export.value(), ensure_ascii=False).encode("utf-8", "surrogatepass")},
        first=("opencode", "import", str(into / "session.json")),
        command=("opencode", "--session", export.session),
        cwd=cwd,
        not_carried=tuple(sorted(lost)),
        notes=() if provider else (_PROVIDER_NOT_KNOWN,),
        native_id=export.session,
    )


class _Export:
    """Messages and their parts, one after the other. opencode orders them by ids that hold times."""

    def __init__(self, point: Point, provider: str, lost: set[str]) -> None:
        self.messages: list[dict[str, Any]] = []
        self._point = point
        self._lost = lost
        self._time = int(point.began.timestamp() * 1000)
        self._count = 0
        # The newest session has the lowest id.
        number = _MOST - 1 - self._time * _PER_MILLISECOND % _MOST
        self.session = f"ses_{number:012x}{point.ledger.recorder.ids()[:14]}"
        self._model = {"providerID": provider, "modelID": point.model or "unknown"}
        self._asked = ""

    def take(self, turns: Sequence[Turn]) -> None:
        """The messages of a conversation. A call and its result are one part of the answer that asked for it."""
        results = {
            piece.call_id: piece for turn in turns for piece in turn.pieces if isinstance(piece, Result)
        }
        for turn in with_whole_answers(turns):
            if turn.role == "assistant":
                self._answer(turn.pieces, results)
            elif turn.role == "user":
                self._said(turn)

    def value(self) -> dict[str, Any]:
        """The export."""
        name = self._point.state.sections["about"]["name"] or f"{self._point.session} at {self._point.seq}"
        info = {
            "id": self.session,
            "slug": "loopledger",
            "projectID": "global",
            "directory": self._point.cwd,
            "title": name,
            "version": self._point.started.harness_version or _VERSION,
            "time": {"created": self._time, "updated": self._time + self._count},
        }
        return {"info": info, "messages": self.messages}

    def _said(self, turn: Turn) -> None:
        parts = [
            {"type": "text", "text": as_text([piece.block]) if isinstance(piece, Other) else piece.text}
            for piece in turn.pieces
            if isinstance(piece, Text | Other)
        ]
        if parts:
            self._asked = self._add({"role": "user", "agent": _AGENT, "model": self._model}, parts)

    def _answer(self, pieces: Sequence[Piece], results: dict[str | None, Result]) -> None:
        parts = [part for piece in pieces if (part := self._part(piece, results)) is not None]
        if not parts:
            return
        if not self._asked:
            self._asked = self._add({"role": "user", "agent": _AGENT, "model": self._model}, [])
        asks = any(part["type"] == "tool" for part in parts)
        reason = "tool-calls" if asks else "stop"
        info = {
            "role": "assistant",
            "parentID": self._asked,
            "mode": _AGENT,
            "agent": _AGENT,
            "path": {"cwd": self._point.cwd, "root": self._point.cwd},
            "cost": 0,
            "tokens": _TOKENS,
            **self._model,
            "finish": reason,
        }
        finish = {"type": "step-finish", "reason": reason, "tokens": _TOKENS, "cost": 0}
        self._add(info, [{"type": "step-start"}, *parts, finish])

    def _part(self, piece: Piece, results: dict[str | None, Result]) -> dict[str, Any] | None:
        time = {"start": self._time + self._count, "end": self._time + self._count}
        match piece:
            case Text(words):
                return {"type": "text", "text": words, "time": time}
            case Thought():
                self._lost.add(REASONING_LOST)
                return None
            case Call(call_id, tool, arguments, _):
                result = results.get(call_id)
                assert result is not None, "calls are closed"
                given = arguments if isinstance(arguments, dict) else {"input": arguments}
                state: dict[str, Any] = {"input": given, "time": time, "metadata": {}}
                if result.failed:
                    state |= {"status": "error", "error": as_text(result.content)}
                else:
                    state |= {"status": "completed", "output": as_text(result.content), "title": tool}
                return {"type": "tool", "tool": tool, "callID": call_id or tool, "state": state}
            case Other(block):
                return {"type": "text", "text": as_text([block]), "time": time}
            case Result():
                return None  # it is in the part of its call

    def _add(self, info: dict[str, Any], parts: list[dict[str, Any]]) -> str:
        name = self._id("msg")
        time = {"created": self._time + self._count}
        if info["role"] == "assistant":
            time["completed"] = time["created"]
        own = {"id": name, "sessionID": self.session}
        placed = [
            {**part, "id": self._id("prt"), "sessionID": self.session, "messageID": name} for part in parts
        ]
        self.messages.append({"info": {**info, "time": time, **own}, "parts": placed})
        return name

    def _id(self, kind: str) -> str:
        self._count += 1
        number = (self._time + self._count) * _PER_MILLISECOND % _MOST
        return f"{kind}_{number:012x}{self._point.ledger.recorder.ids()[:14]}"


def _provider(point: Point) -> str | None:
    """The provider, by opencode's name for it."""
    if point.protocol == "anthropic.messages":
        return "anthropic"
    if point.protocol != NAME:
        return None
    named = [
        event.provider for event in point.events() if isinstance(event, ModelCallRequested) and event.provider
    ]
    return named[-1] if named else None
