"""Claude Code: a session file of its own below a folder that `CLAUDE_CONFIG_DIR` names, for `claude --resume`."""

import json
import re
from pathlib import Path
from typing import Any

from ledger.errors import LedgerError
from ledger.events.delegation import DelegationReturned
from ledger.events.session import SessionStarted
from replay.resume.closing import closed
from replay.resume.point import Point, load_point, stamp
from replay.resume.runtime import Resumption
from replay.resume.runtimes._anthropic import blocks
from replay.resume.runtimes._claude_origin import ClaudeOrigin
from replay.resume.turns import Text, Turn

__all__ = ["NAME", "TITLE", "resumption", "suits"]

NAME = "claude-code"
TITLE = "Claude Code (2.1.332)"

_VERSION = "2.1.332"
_REMINDER = "<system-reminder>"
_NO_USAGE = {"input_tokens": 0, "output_tokens": 0}
_OWN_WORDS = "System prompt, tools and reminders (date, git status, CLAUDE.md): Claude Code writes them anew."
_LOG_IN = (
    "Log-in and settings of ~/.claude are not in this folder: give a key, or copy its `projects` into ~/.claude"
    " and leave CLAUDE_CONFIG_DIR out."
)
_AGENT = re.compile(r"\.agent-([0-9A-Za-z_-]{1,80})$")
_FILE_STATE = "Which files had been read: Claude Code may read a file again before it changes it."
_NOT_SLUG = re.compile(r"[^A-Za-z0-9]")
_LONGEST_SLUG = 200
_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"


def suits(started: SessionStarted) -> bool:
    """Whether Claude Code ran it."""
    return started.harness in (NAME, "claude-agent-sdk")


def resumption(point: Point, into: Path) -> Resumption:
    """The session file, cut at the point, under a new session id; and those of sub-agents that had returned."""
    cwd = point.cwd_for("under which Claude Code looks for it")
    session_id = point.new_id()
    folder = f"projects/{project_folder(cwd)}"
    lost = {_OWN_WORDS}
    rows = _Rows(point, session_id, lost)
    rows.take(closed(point.turns))
    if not rows.rows:
        raise point.nothing_said("Claude Code could resume")
    files = {f"{folder}/{session_id}.jsonl": rows.file()}
    for agent, child in _returned(point):
        inner = _Rows(child, session_id, lost, agent)
        inner.take(closed(child.turns))
        stem = f"{folder}/{session_id}/subagents/agent-{agent}"
        files[f"{stem}.jsonl"] = inner.file()
        meta = {"agentType": child.started.agent, "toolUseId": child.started.parent_call, "finished": True}
        files[f"{stem}.meta.json"] = _line(meta)
    return Resumption(
        files,
        command=("claude", "--resume", session_id),
        environment={"CLAUDE_CONFIG_DIR": str(into)},
        cwd=cwd,
        not_carried=tuple(sorted(lost)),
        notes=(_LOG_IN,),
        native_id=session_id,
    )


def project_folder(cwd: str) -> str:
    """The folder that Claude Code keeps a working directory's sessions in; it counts in UTF-16."""
    packed = cwd.encode("utf-16-be", "surrogatepass")
    units = [int.from_bytes(packed[at : at + 2], "big") for at in range(0, len(packed), 2)]
    slug = _NOT_SLUG.sub("-", "".join(map(chr, units)))
    if len(slug) <= _LONGEST_SLUG:
        return slug
    number = 0
    for unit in units:
        number = (number * 31 + unit) & 0xFFFFFFFF
    number = abs(number - (number >> 31 << 32))
    digits = ""
    while number:
        number, digit = divmod(number, len(_DIGITS))
        digits = _DIGITS[digit] + digits
    return f"{slug[:_LONGEST_SLUG]}-{digits or '0'}"


class _Rows:
    """The rows of one file, one after the other."""

    def __init__(self, point: Point, session_id: str, lost: set[str], agent: str | None = None) -> None:
        self.rows: list[dict[str, Any]] = []
        self._origin = ClaudeOrigin(point)
        self._point = point
        self._lost = lost
        self._agent = agent
        self._time = stamp(point.began)
        self._steady: dict[str, Any] = {
            "isSidechain": agent is not None,
            "userType": "external",
            "cwd": point.cwd,
            "sessionId": session_id,
            "version": point.started.harness_version or _VERSION,
            **({} if agent is None else {"agentId": agent}),
        }

    def take(self, turns: list[Turn]) -> None:
        """The rows of a conversation."""
        for index, turn in enumerate(turns):
            if turn.role == "assistant":
                begins = index == 0 or turns[index - 1].role != "assistant"
                self._answer(turn, begins=begins)
            elif turn.role == "user":
                self._said(turn)

    def file(self) -> bytes:
        """The rows as lines, behind one that tells when the copy was made: older rows are then known as copied."""
        now = f"{self._point.ledger.recorder.clock()[:23]}Z"
        first = {"type": "queue-operation", "operation": "dequeue", "timestamp": now}
        first |= {"sessionId": self._steady["sessionId"]}
        return b"".join(_line(row) for row in (first, *self.rows))

    def _said(self, turn: Turn) -> None:
        """A row for each result, and one for everything else."""
        words = []
        for piece in turn.pieces:
            if isinstance(piece, Text) and piece.text.startswith(_REMINDER):
                continue
            for block in blocks(piece, self._lost):
                if block["type"] != "tool_result":
                    words.append(block)
                    continue
                uuid, time, details = self._origin.settled(block["tool_use_id"])
                more = {} if details is None else {"toolUseResult": details}
                if details is None:
                    self._lost.add(_FILE_STATE)
                self._add("user", {"role": "user", "content": [block]}, uuid, time, **more)
        if words:
            lone = words[0].get("text") if len(words) == 1 else None
            uuid, time = self._origin.said(words[0].get("text"))
            self._add("user", {"role": "user", "content": words if lone is None else lone}, uuid, time)

    def _answer(self, turn: Turn, *, begins: bool) -> None:
        """One row for each block; rows of one answer share its id."""
        content = [block for piece in turn.pieces for block in blocks(piece, self._lost)]
        answer = self._origin.answer(content, len(self.rows) if begins else None)
        for block, (uuid, time) in zip(content, answer.rows, strict=False):
            message = {
                "id": answer.message_id,
                "type": "message",
                "role": "assistant",
                "model": answer.model or self._point.model or "unknown",
                "content": [block],
                "stop_reason": answer.stop_reason,
                "stop_sequence": None,
                "usage": _NO_USAGE,
            }
            self._add("assistant", message, uuid, time)

    def _add(
        self, kind: str, message: dict[str, Any], uuid: str | None, time: str | None, **more: Any
    ) -> None:
        parent = self.rows[-1]["uuid"] if self.rows else None
        self._time = time or self._time
        own = {"uuid": uuid or self._point.new_id(), "timestamp": self._time}
        self.rows.append(
            {"parentUuid": parent, "type": kind, "message": message, **own, **more, **self._steady}
        )


def _returned(point: Point) -> list[tuple[str, Point]]:
    """Sub-agents that had come back by then, with the end of their own sessions."""
    found = []
    store = point.ledger.store
    for event in point.events():
        if not isinstance(event, DelegationReturned) or event.from_session is None:
            continue
        agent = _AGENT.search(event.from_session)
        head = store.head(event.from_session).seq
        if agent is None or not head:
            continue
        try:
            found.append((agent[1], load_point(point.ledger, event.from_session, head)))
        except LedgerError:
            continue  # its rows are nice to look at; the conversation holds what it gave back
    return found


def _line(value: dict[str, Any]) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass") + b"\n"
