"""Codex: a rollout of its own below a folder that `CODEX_HOME` names, for `codex resume`."""

import json
from pathlib import Path
from typing import Any

from ledger.events.session import SessionStarted
from replay.resume.closing import closed
from replay.resume.point import Point, stamp
from replay.resume.runtime import Resumption
from replay.resume.runtimes._openai import items
from replay.resume.turns import Text, Turn

__all__ = ["NAME", "TITLE", "resumption", "suits"]

NAME = "codex"
TITLE = "Codex (0.171.0)"

_VERSION = "0.171.0"
_OWN = ("<environment_context>", "<user_instructions>", "# AGENTS.md instructions", "<skills_instructions>")
_OWN_WORDS = "Instructions, skills, permissions, environment and AGENTS.md: Codex writes them anew."
_LOG_IN = (
    "Log-in and settings of ~/.codex are not in this folder: give a key, or copy its `sessions` into ~/.codex"
    " and leave CODEX_HOME out."
)


def suits(started: SessionStarted) -> bool:
    """Whether Codex ran it."""
    return started.harness == NAME


def resumption(point: Point, into: Path) -> Resumption:
    """The rollout, cut at the point, under a new thread id."""
    cwd = point.cwd_for("which Codex wants to be told")
    thread = point.new_id()
    lost = {_OWN_WORDS}
    history = items(_own_turns(closed(point.turns)), lost)
    if not history:
        raise point.nothing_said("Codex could resume")
    time = stamp(point.began)
    meta = {
        "id": thread,
        "session_id": thread,
        "timestamp": time,
        "cwd": cwd,
        "originator": "loopledger",
        "cli_version": point.started.harness_version or _VERSION,
        "source": "cli",
    }
    rows: list[tuple[str, Any]] = [("session_meta", meta), *(("response_item", item) for item in history)]
    lines = [
        json.dumps(
            {"timestamp": time, "ordinal": ordinal, "type": kind, "payload": payload}, ensure_ascii=False
        )
        for ordinal, (kind, payload) in enumerate(rows)
    ]
    day, clock = time[:10], time[:19].replace(":", "-")
    name = f"sessions/{day.replace('-', '/')}/rollout-{clock}-{thread}.jsonl"
    return Resumption(
        {name: "".join(f"{line}\n" for line in lines).encode("utf-8", "surrogatepass")},
        command=("codex", "resume", thread),
        environment={"CODEX_HOME": str(into)},
        cwd=cwd,
        not_carried=tuple(sorted(lost)),
        notes=(_LOG_IN,),
        native_id=thread,
    )


def _own_turns(turns: list[Turn]) -> list[Turn]:
    """Without what Codex puts in itself."""
    kept = []
    for turn in turns:
        pieces = tuple(
            piece for piece in turn.pieces if not (isinstance(piece, Text) and piece.text.startswith(_OWN))
        )
        if turn.role != "system" and pieces:
            kept.append(Turn(turn.role, pieces))
    return kept
