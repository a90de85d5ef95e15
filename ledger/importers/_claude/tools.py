"""Tool calls, their results, who allowed them, and messages: the events of `assistant` and `user` rows."""

from collections.abc import Iterator
from typing import Any, Literal

from ledger.events import ContentRef, Event
from ledger.events.approval import ApprovalDecided
from ledger.events.input import ContextInjected, MessageReceived
from ledger.events.tool_call import ToolCallRequested, ToolCallSettled
from ledger.importers._claude.row import Row, count_of, first_text, name_of
from ledger.recorder import Keeper

_CALLS = ("tool_use", "server_tool_use", "mcp_tool_use")
_PROVIDER_RESULTS = (
    "web_search_tool_result",
    "web_fetch_tool_result",
    "code_execution_tool_result",
    "bash_code_execution_tool_result",
    "text_editor_code_execution_tool_result",
    "mcp_tool_result",
)
_RULE_REFUSALS = (
    "Permission to use ",
    "Claude requested permissions to use ",
    "Claude requested permissions to write to ",
    "This command requires approval",
)
_REFUSALS = (
    "The user doesn't want to proceed with this tool use",
    "The user doesn't want to take this action",
    "[Request interrupted by user for tool use]",
    *_RULE_REFUSALS,
)
_OUTPUTS = ("<local-command-stdout>", "<local-command-stderr>", "<local-command-caveat>", "<bash-std")
_OUTCOMES: dict[Any, Literal["approved", "denied"]] = {"accept": "approved", "reject": "denied"}
_RULES: dict[str, Literal["policy"]] = {"config": "policy", "hook": "policy"}
_SCOPES: dict[Any, Literal["once", "session", "rule"]] = {
    "once": "once",
    "session": "session",
    "rule": "rule",
}


def call_events(keep: Keeper, row: Row) -> Iterator[ToolCallRequested | ToolCallSettled]:
    """Tool calls in a part of an answer, and results of tools that the provider ran itself."""
    for block in row.blocks:
        kind = block.get("type")
        if kind in _CALLS:
            name = name_of(block.get("name")) or "unknown"
            parts = name.split("__")
            yield ToolCallRequested(
                call_id=row.call_id(block),
                tool=name,
                arguments=keep.json(block.get("input"), f"arguments of {name}"),
                server=parts[1]
                if parts[0] == "mcp" and len(parts) > 2
                else name_of(block.get("server_name")),
                provider_executed=kind != "tool_use",
            )
        elif kind in _PROVIDER_RESULTS:
            failed = block.get("is_error") is True or _is_error(block.get("content"))
            yield ToolCallSettled(
                call_id=row.call_id(block, "tool_use_id"),
                outcome="failed" if failed else "returned",
                result=keep.json(block, "tool result"),
            )


def _is_error(content: Any) -> bool:
    kind = content.get("type") if isinstance(content, dict) else None
    return isinstance(kind, str) and kind.endswith("_error")


def result_event(
    keep: Keeper, row: Row, block: dict[str, Any], shown: ContentRef, *, orphan: bool
) -> ToolCallSettled:
    """The settlement of a call. `shown`: the result as the model got it."""
    denied = _is_denied(row, block)
    failed = block.get("is_error") is True
    details = row.data.get("toolUseResult")
    outcome: Literal["returned", "failed", "denied"] = (
        "denied" if denied else "failed" if failed else "returned"
    )
    return ToolCallSettled(
        call_id=row.call_id(block, "tool_use_id"),
        outcome=outcome,
        result=shown,
        details=None if details is None else keep.json(details, "tool result details"),
        error=name_of(row.data.get("toolDenialKind")) if denied else "error" if failed else None,
        duration_ms=count_of(details.get("durationMs")) if isinstance(details, dict) else None,
        orphan=orphan,
    )


def _is_denied(row: Row, block: dict[str, Any]) -> bool:
    decision = row.data.get("permissionDecision")
    if isinstance(decision, dict):
        return decision.get("decision") == "reject"
    return block.get("is_error") is True and first_text(block.get("content")).startswith(_REFUSALS)


def decision_event(row: Row, block: dict[str, Any]) -> ApprovalDecided | None:
    """Who allowed or refused a call: `permissionDecision.source` tells; the other marks mislead."""
    decision = row.data.get("permissionDecision")
    call_id = row.call_id(block, "tool_use_id")
    if isinstance(decision, dict):
        source = name_of(decision.get("source")) or ""
        said = sorted(
            (name, text) for name, text in decision.items() if isinstance(text, str) and name != "decision"
        )
        return ApprovalDecided(
            approval_id=call_id,
            call_id=call_id,
            outcome=_OUTCOMES.get(name_of(decision.get("decision")), "unknown"),
            decided_by="human" if source.startswith("user") else _RULES.get(source, "unknown"),
            how=name_of(" ".join(f"{name}={value}" for name, value in said)),
            scope=_SCOPES.get(name_of(decision.get("grantScope")), "unknown"),
        )
    if not _is_denied(row, block):
        return None
    by_rule = first_text(block.get("content")).startswith(_RULE_REFUSALS)
    return ApprovalDecided(
        approval_id=call_id,
        call_id=call_id,
        outcome="denied",
        decided_by="policy" if by_rule else "human",
        evidence="inferred",
    )


def message_event(row: Row, message: ContentRef, *, to_agent: bool) -> Event:
    """A user row that is more than results: somebody's message, or text that the harness put in."""
    text = first_text(row.content)
    if row.is_summary:
        return ContextInjected(provenance="compaction_summary", message=message)
    if row.data.get("isMeta") is True:
        return ContextInjected(provenance="meta", message=message)
    if text.startswith(_OUTPUTS):
        return ContextInjected(provenance="command_output", message=message)
    if text.startswith("<task-notification>"):
        return ContextInjected(provenance="task_notification", message=message)
    if to_agent:
        return MessageReceived(origin="agent" if row.parent is None else "unknown", message=message)
    return MessageReceived(origin="human", message=message)
