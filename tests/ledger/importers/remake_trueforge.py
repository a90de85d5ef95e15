"""Write the TrueForge fixtures: events and tables in our own words, after the types of `trueforge_sdk` 0.180.

Usage: python -m tests.ledger.importers.remake_trueforge FOLDER_FOR_THE_LEDGER
"""

import contextlib
import json
import sqlite3
import sys
from pathlib import Path
from typing import Any

from tests.ledger.importers.harness_runs import case_folder, jsonl, write_promise

SCHEMA = (
    "create table session (session_id text primary key, title text, created_at text)",
    "create table turn (session_id text, turn_id text, previous_turn_id text, created_at text)",
    "create table session_event (session_id text, turn_id text, event_id text, event blob, created_at text)",
    (
        "create table thread_context_log (append_id integer primary key, session_id text, thread_id text, "
        "turn_id text, body blob, created_at text)"
    ),
    "create table turn_thread_context (session_id text, turn_id text, thread_id text, pos integer, append_id integer)",
)


def _event(number: int, turn: str, kind: str, thread: str | None = "main", **more: Any) -> dict[str, Any]:
    time = f"2026-11-29T10:00:{number:02d}.000Z"
    event = {"id": f"01E{number:03d}", "type": kind, "created_at": time, "thread_id": thread, **more}
    return {"turn_id": turn, "event": event}


def _usage(whole: int, messages: int) -> dict[str, Any]:
    breakdown = {"harness": 10, "skills": 0, "instructions": 20, "tool_definitions": 30, "messages": messages}
    return {
        "input_tokens": whole,
        "output_tokens": 20,
        "cache_read_tokens": 100,
        "input_tokens_breakdown": breakdown,
    }


def _call(name: str, tool: str, **arguments: Any) -> dict[str, Any]:
    function = {"name": tool, "arguments": json.dumps(arguments)}
    return {
        "id": name,
        "type": "function",
        "function": function,
        "tool_info": {"type": "mcp", "mcp_server_name": "files"},
    }


def events() -> list[dict[str, Any]]:
    """Two turns: one call allowed, one refused, a sub-agent; fewer tokens in the second turn."""
    model = {"name": "lab/model"}
    say = {"type": "user.message", "content": "Tidy up. RULE: never delete files."}
    allow = {
        "type": "user.tool_approval",
        "thread_id": "main",
        "tool_call_id": "c1",
        "approval": {"status": "allow"},
    }
    deny = {**allow, "tool_call_id": "c2", "approval": {"status": "deny", "reason": "keep it"}}
    parent = {"thread_id": "main", "tool_call_id": "c3"}
    calls = [
        _call("c1", "write_file", path="a"),
        _call("c2", "delete_file", path="b"),
        _call("c3", "ask", task="look"),
    ]
    info = {"type": "dynamic", "name": "looker", "input": "look"}
    refs = [{"id": one, "source_event_id": "01E002"} for one in ("c1", "c2")]
    return [
        _event(
            1, "t1", "turn.created", None, input=[say], previous_turn_id=None, state={"status": "running"}
        ),
        _event(
            2,
            "t1",
            "model.message",
            content="I write.",
            tool_calls=calls,
            model=model,
            usage=_usage(1000, 800),
        ),
        _event(3, "t1", "tool.approval_required", tool_calls=refs),
        _event(4, "t1", "thread.created", "th2", parent=parent, agent_info=info, title="look"),
        _event(5, "t1", "model.message", "th2", content="All well.", model=model, usage=_usage(200, 50)),
        _event(6, "t1", "thread.done", "th2", parent=parent, title="look", state={"status": "done"}),
        _event(7, "t1", "turn.done", None, state={"status": "done"}),
        _event(
            8,
            "t2",
            "turn.created",
            None,
            input=[allow, deny],
            previous_turn_id="t1",
            state={"status": "running"},
        ),
        _event(9, "t2", "tool.response", tool_call_id="c1", content="written"),
        _event(10, "t2", "tool.response", tool_call_id="c2", content="denied: keep it"),
        _event(11, "t2", "tool.response", tool_call_id="c3", content="All well."),
        _event(12, "t2", "model.message", content="Done.", model=model, usage=_usage(400, 200)),
        _event(13, "t2", "turn.done", None, state={"status": "done"}),
        _event(14, "t2", "brand.new", x=1),
    ]


def write_database(path: Path) -> None:
    """The same session as tables: the second turn's context has none of the first one's rows."""
    bodies = [{"role": "user", "content": "Tidy up."}, {"role": "assistant", "content": "I write."}]
    bodies.append({"role": "assistant", "content": "SUMMARY: a was written."})
    with contextlib.closing(sqlite3.connect(path)) as database:
        for statement in SCHEMA:
            database.execute(statement)
        database.execute("insert into session values ('ses1', 'Tidy', '2026-11-29T10:00:00Z')")
        for turn, before in (("t1", None), ("t2", "t1")):
            database.execute(
                "insert into turn values ('ses1', ?, ?, ?)", (turn, before, f"2026-11-29T10:0{turn[1]}:00Z")
            )
        for row in events():
            event = row["event"]
            values = (row["turn_id"], event["id"], json.dumps(event).encode(), event["created_at"])
            database.execute("insert into session_event values ('ses1', ?, ?, ?, ?)", values)
        for number, body in enumerate(bodies, 1):
            values = (number, "t1" if number < 3 else "t2", json.dumps(body).encode(), "")
            database.execute("insert into thread_context_log values (?, 'ses1', 'main', ?, ?, ?)", values)
        for turn, place, append_id in (("t1", 0, 1), ("t1", 1, 2), ("t2", 0, 3)):
            database.execute(
                "insert into turn_thread_context values ('ses1', ?, 'main', ?, ?)", (turn, place, append_id)
            )
        database.commit()


def main() -> None:
    """Write both fixtures."""
    home = Path(sys.argv[1])
    target = case_folder("trueforge", "events")
    (target / "events.ndjson").write_bytes(jsonl(events()))
    write_promise(target, home)
    target = case_folder("trueforge", "tables")
    write_database(target / "trueforge.db")
    write_promise(target, home)


if __name__ == "__main__":
    main()
