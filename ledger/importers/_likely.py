"""What a file seems to be that no importer reads: a named reason for the report. A guess by its beginning, no more."""

import re

from ledger.importers import Sniff

_UNREAD: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("an ATIF trajectory", (r'"schema_version"\s*:\s*"ATIF',)),
    (
        "a Letta agent file (.af)",
        (
            r'"agents"\s*:\s*\[',
            r'"(?:tool_rules|block_ids|in_context_message_ids|memory_blocks|tool_ids|agent_type)"\s*:',
        ),
    ),
    ("a Langfuse export", (r'"trace"\s*:\s*\{', r'"projectId"\s*:')),
    (
        "chat messages that Langfuse derived from a trace",
        (r'"success"\s*:\s*true', r'"data"\s*:', r'"input"\s*:'),
    ),
    (
        "spans of the JavaScript SDK of OpenTelemetry in a grouping of somebody's own",
        (r'"spanContext"\s*:\s*\{',),
    ),
    ("a trajectory of SWE-agent", (r'"trajectory"\s*:\s*\[', r'"observation"\s*:')),
    (
        "an event list of OpenHands",
        (r'"source"\s*:', r'"(?:action|observation)"\s*:', r'"timestamp"\s*:', r"\A\["),
    ),
    (
        "a session file of Cline",
        (r'"(?:session_id|sessionId)"\s*:', r'"(?:team_name|updated_at)"\s*:', r'"version"\s*:'),
    ),
    ("telemetry of OpenClaw", (r'\A\{"type":"(?:message|agent|tool)\.(?:in|out|start|end)"',)),
    ("a conversation exported by ChatGPT", (r'"conversation_id"\s*:', r'"current_node"\s*:')),
    ("a capture of Polylogue", (r'"(?:polylogue_capture_kind|provider_family)"\s*:',)),
    ("a session exported from Claude Code on the web", (r'"loglines"\s*:\s*\[',)),
    (
        "callbacks of LangChain that a program wrote down",
        (r'"event"\s*:\s*"on_(?:chain|llm|tool|chat_model)_',),
    ),
    ("a debug stream of LangGraph", (r'\A\[\s*\[\s*"(?:debug|updates|values)"',)),
    ("the state history of a LangGraph thread", (r"\A\[", r'"checkpoint_id"\s*:', r'"next"\s*:')),
    (
        "messages of LangChain as it serialises them",
        (r'\A\[\s*\{\s*"type"\s*:\s*"(?:human|ai|system)"', r'"data"\s*:'),
    ),
    (
        "run hooks of the OpenAI Agents SDK that a program wrote down",
        (r'\A\[\s*\[\s*"on_(?:agent|llm|tool)_',),
    ),
    ("callbacks of a Google ADK plugin that a program wrote down", (r'"cb"\s*:\s*"(?:before|after)_',)),
    ("a debug file of Google ADK", (r"\A---\s", r"\ninvocation_id:", r"\napp_name:")),
    ("criteria of a Google ADK evaluation, no run", (r'\A\{\s*"criteria"\s*:',)),
    ("labels of failures, no run", (r'"failures"\s*:\s*\[', r'"failure_id"\s*:')),
    ("labels of rules and summaries, no run", (r'"compacted_summary"\s*:', r'"label"\s*:')),
    ("results of a benchmark, no run", (r'"model_name_or_path"\s*:', r'"(?:model_patch|instance_id)"\s*:')),
    ("a Markdown text", (r"\A#\s",)),
)
"""What a file seems to be, and what its beginning must show for that."""

_MARKS = tuple((name, tuple(re.compile(mark.encode()) for mark in marks)) for name, marks in _UNREAD)


def reason_for(sniff: Sniff) -> str:
    """Why a file gave no session, with what it seems to be."""
    listed = "`loopledger formats` lists those that are read"
    if sniff.size == 0:
        return "empty file"
    if not sniff.start:
        return "damaged archive: nothing could be unpacked"
    opening = sniff.opening
    for name, marks in _MARKS:
        if all(mark.search(opening) for mark in marks):
            return f"seems to be {name}, which no importer reads; {listed}"
    if b"\0" in opening[:4096]:
        return f"seems to be a binary file of a kind that no importer knows; {listed}"
    if opening[:1] in (b"{", b"["):
        return f"seems to be JSON without a run in it: no importer knows its fields; {listed}"
    return f"seems to be text without a run in it; {listed}"
