"""Codex's own events (`event_msg`): what they add to the response items; what repeats those is only kept."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any

from ledger.events import ContentRef, Draft
from ledger.events.canonical import spelled
from ledger.events.keeping import SourceKept
from ledger.events.recovery import RolledBack
from ledger.events.session import SessionEnded
from ledger.importers._codex.calls import Calls, milliseconds
from ledger.importers._codex.row import Row, Scribe, count_or_none, text_or_none

_KNOWN = frozenset(
    """
    task_started task_complete turn_started turn_complete turn_aborted token_count user_message
    agent_message agent_message_delta agent_reasoning agent_reasoning_delta
    agent_reasoning_raw_content agent_reasoning_section_break agent_reasoning_raw_content_delta
    item_started item_completed session_configured thread_settings_applied thread_name_updated
    exec_command_begin exec_command_end exec_command_output_delta terminal_interaction
    patch_apply_begin patch_apply_end mcp_tool_call_begin mcp_tool_call_end web_search_begin
    web_search_end view_image_tool_call image_generation_begin image_generation_end background_event
    plan_update plan_delta turn_diff undo_started undo_completed thread_rolled_back
    context_compacted entered_review_mode exited_review_mode collab_agent_spawn_begin
    collab_agent_spawn_end collab_agent_interaction_begin collab_agent_interaction_end
    collab_waiting_begin collab_waiting_end collab_close_begin collab_close_end
    exec_approval_request apply_patch_approval_request request_user_input request_permissions
    dynamic_tool_call_request dynamic_tool_call_response elicitation_request guardian_assessment
    mcp_startup_update mcp_startup_complete mcp_list_tools_response list_custom_prompts_response
    list_skills_response get_history_entry_response skills_update_available deprecation_notice
    model_reroute hook_started hook_completed warning error stream_error shutdown_complete
    raw_response_item thread_goal_updated conversation_path sub_agent_activity
    """.split()
)
_REPEATING_ITEMS = frozenset(
    {
        "UserMessage",
        "AgentMessage",
        "Reasoning",
        "ContextCompaction",
        "Plan",
        "WebSearch",
        "ImageView",
        "HookPrompt",
    }
)
_ENDS = frozenset({"exec_command_end", "patch_apply_end", "mcp_tool_call_end", "web_search_end"})


def is_known_event(sub: str) -> bool:
    """Whether an event of this type is one that Codex is known to write."""
    return sub in _KNOWN


class Events:
    """Turns `event_msg` rows into drafts; the last one always keeps the row itself."""

    def __init__(
        self, scribe: Scribe, calls: Calls, roll_back: Callable[[Row, int], Iterator[Draft]]
    ) -> None:
        self._scribe = scribe
        self._calls = calls
        self._roll_back = roll_back

    def drafts(self, row: Row) -> Iterator[Draft]:
        """What an event shows."""
        payload, call_id = row.payload, row.payload.get("call_id")
        known = row.sub in _KNOWN
        body = self._scribe.keep.json(payload, row.native_type)
        if row.sub == "item_completed" or row.sub == "item_started":
            item = payload.get("item")
            item = item if isinstance(item, dict) else {}
            known = text_or_none(item.get("type")) is not None
            yield from self._item(row, item, body)
            if spelled(item.get("type")) not in _ITEMS and known:
                known = False
        elif row.sub.endswith("_begin") and self._calls.knows(call_id):
            yield from self._calls.started(row, str(call_id))
        elif row.sub in _ENDS and self._calls.knows(call_id):
            self._calls.details(str(call_id), body, milliseconds(payload))
            if row.sub == "patch_apply_end" and payload.get("success") is True:
                yield from self._calls.changes(row, str(call_id), payload.get("changes"))
        elif row.sub in ("exec_approval_request", "apply_patch_approval_request"):
            yield from self._calls.asked(row)
        elif row.sub == "thread_rolled_back":
            yield from self._roll_back(row, count_or_none(payload.get("num_turns")) or 0)
        elif row.sub == "undo_completed" and payload.get("success") is True:
            yield self._scribe.draft(row, RolledBack(reason="undo"), "human")
        elif row.sub == "shutdown_complete":
            yield self._scribe.draft(row, SessionEnded(outcome="completed", reason="shutdown_complete"))
        yield self._kept(row, body, recognized=known)

    def _kept(self, row: Row, body: ContentRef, *, recognized: bool) -> Draft:
        """The row itself, whole."""
        name = row.native_type
        if row.sub in ("item_completed", "item_started") and isinstance(row.payload.get("item"), dict):
            name = f"{name}:{text_or_none(row.payload['item'].get('type')) or 'none'}"
        if not recognized:
            self._scribe.desk.tally.unknown[name] += 1
        return self._scribe.draft(row, SourceKept(native_type=name, recognized=recognized, body=body))

    def _item(self, row: Row, item: dict[str, Any], body: ContentRef) -> Iterator[Draft]:
        """A finished item of the newer event stream."""
        call_id, kind = text_or_none(item.get("id")), item.get("type")
        handler = _ITEMS.get(kind) if isinstance(kind, str) else None
        if handler is not None and call_id is not None and row.sub == "item_completed":
            if kind not in _REPEATING_ITEMS and kind != "SubAgentActivity":
                began = count_or_none(row.payload.get("started_at_ms"))
                yield from self._calls.started(row, call_id, _time(began))
                self._calls.details(call_id, body, milliseconds(row.payload) or milliseconds(item))
            yield from handler(self, row, item, call_id)

    def _changed(self, row: Row, item: dict[str, Any], call_id: str) -> Iterator[Draft]:
        """A patch: the files it changed."""
        if item.get("status") == "completed":
            yield from self._calls.changes(row, call_id, item.get("changes"))

    def _collaborated(self, row: Row, item: dict[str, Any], call_id: str) -> Iterator[Draft]:
        """A call to another agent: spawned, or waited for."""
        threads = item.get("receiver_thread_ids")
        threads = (
            [thread for thread in threads if isinstance(thread, str)] if isinstance(threads, list) else []
        )
        named = item.get("receiver_agents")
        names = {
            agent.get("thread_id"): text_or_none(agent.get("agent_nickname"))
            for agent in (named if isinstance(named, list) else [])
            if isinstance(agent, dict) and isinstance(agent.get("thread_id"), str)
        }
        if item.get("tool") in ("spawn_agent", "spawnAgent"):
            for thread in threads:
                yield from self._calls.spawned(row, call_id, thread, names.get(thread), item.get("prompt"))
        states = item.get("agents_states")
        for thread, state in states.items() if isinstance(states, dict) else ():
            yield from self._calls.came_back(row, thread, state)

    def _sub_agent(self, row: Row, item: dict[str, Any], call_id: str) -> Iterator[Draft]:
        """A sub-agent started, or came to an end."""
        thread = text_or_none(item.get("agent_thread_id"))
        if thread is None:
            return
        if item.get("kind") == "started":
            known = call_id if self._calls.knows(call_id) else None
            yield from self._calls.spawned(row, known, thread, text_or_none(item.get("agent_path")), None)
        else:
            yield from self._calls.came_back(row, thread, item.get("kind"))

    def _nothing(self, row: Row, item: dict[str, Any], call_id: str) -> Iterator[Draft]:
        """No more than what is said for every item."""
        yield from ()


_Handler = Callable[[Events, Row, dict[str, Any], str], Iterator[Draft]]
_ITEMS: dict[str, _Handler] = {
    "CommandExecution": Events._nothing,
    "McpToolCall": Events._nothing,
    "DynamicToolCall": Events._nothing,
    "FileChange": Events._changed,
    "CollabAgentToolCall": Events._collaborated,
    "SubAgentActivity": Events._sub_agent,
    **dict.fromkeys(_REPEATING_ITEMS, Events._nothing),
}


def _time(milliseconds_since_1970: int | None) -> str | None:
    if milliseconds_since_1970 is None or milliseconds_since_1970 > 253_402_300_799_000:
        return None
    moment = datetime.fromtimestamp(milliseconds_since_1970 / 1000, UTC)
    return moment.strftime("%Y-%m-%dT%H:%M:%S.") + f"{milliseconds_since_1970 % 1000:03d}Z"
