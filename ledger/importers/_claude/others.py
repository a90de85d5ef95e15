"""Rows that are neither messages nor journal: attachments, errors, and the harness's state."""

from collections.abc import Iterator
from typing import Any, Literal

from ledger.events import Actor, Event
from ledger.events.approval import ApprovalDecided
from ledger.events.capability import CapabilityKind, CapabilityLoaded, CapabilityUnloaded
from ledger.events.governance import ArtifactChanged, ModeChanged
from ledger.events.input import ContextInjected, MessageReceived
from ledger.events.keeping import SourceKept
from ledger.events.model_call import ModelCallAnswered, ModelCallFailed
from ledger.events.policy import PolicyEvaluated
from ledger.events.tool_call import ToolCallRequested
from ledger.importers._claude.row import Row, count_of, name_of
from ledger.recorder import Keeper

_KNOWN = frozenset(
    "summary progress queue-operation last-prompt mode permission-mode tools-used atis-latch cost-state"
    " custom-title agent-name agent-color agent-setting ai-title"
    " pr-link tag content-replacement".split()
)
_KNOWN_SYSTEM = frozenset(
    "compact_boundary microcompact_boundary turn_duration local_command api_error stop_hook_summary"
    " away_summary informational bridge_status permission_retry agents_killed memory_saved api_metrics"
    " scheduled_task_fire".split()
)
_SNAPSHOT = "prompt_snapshot"
_HOOKS: dict[str, Literal["allow", "deny", "error"]] = {
    "hook_success": "allow",
    "hook_additional_context": "allow",
    "hook_blocking_error": "deny",
    "hook_non_blocking_error": "error",
}
_LISTS: dict[str, tuple[CapabilityKind, str, str]] = {
    "deferred_tools_delta": ("tool", "addedNames", "removedNames"),
    "agent_listing_delta": ("agent", "addedTypes", "removedTypes"),
    "skill_listing": ("skill", "names", "removedNames"),
    "mcp_instructions_delta": ("mcp_server", "addedNames", "removedNames"),
}


def state_events(keep: Keeper, row: Row) -> tuple[list[Event], bool]:
    """Events of any other row, the first of which holds all of it, and whether its type is known."""
    body = keep.json(row.data, row.native_type)
    recognized = row.kind in _KNOWN or (
        row.kind == "system" and name_of(row.data.get("subtype")) in _KNOWN_SYSTEM
    )
    events: list[Event] = [SourceKept(native_type=row.native_type, recognized=recognized, body=body)]
    if row.kind in ("mode", "permission-mode"):
        new = name_of(row.data.get("mode")) or name_of(row.data.get("permissionMode"))
        if new is not None:
            events.append(
                ModeChanged(mode="harness" if row.kind == "mode" else "approval", new=new, cause="unknown")
            )
    return events, recognized


def failed_call(keep: Keeper, row: Row, call_id: str | None) -> ModelCallFailed:
    """An answer that did not come; `call_id` names the call where that is known."""
    error = row.data.get("error")
    return ModelCallFailed(
        call_id=call_id or row.key,
        status=count_of(error.get("status")) if isinstance(error, dict) else None,
        error="api_error",
        detail=keep.json(error, "api error"),
        will_retry=row.data.get("retryInMs") is not None,
    )


def attachment_fields(row: Row, attachment: dict[str, Any]) -> list[str]:
    """Fields of an attachment's row that its events carry."""
    if attachment.get("type") == _SNAPSHOT:
        return ["attachment"]
    role = row.data.get("renderedRole")
    return ["attachment", "rendered", *(["renderedRole"] if name_of(role) == role else [])]


def attachment_events(keep: Keeper, row: Row, attachment: dict[str, Any]) -> Iterator[Event]:
    """What the harness put into the context, with what it says beside the words; at least one event."""
    kind = name_of(attachment.get("type")) or "none"
    if kind == _SNAPSHOT:
        content = keep.json(attachment, "prompt snapshot")
        yield ArtifactChanged(artifact="system_prompt", kind="prompt", content=content, cause="harness")
        return
    if kind in _HOOKS:
        yield PolicyEvaluated(
            rule=f"hook:{name_of(attachment.get('hookName')) or 'unknown'}",
            verdict=_HOOKS[kind],
            call_id=name_of(attachment.get("toolUseID")),
            detail=keep.json(attachment, "hook"),
        )
    if kind == "instructions":
        yield from _rule_files(keep, attachment.get("files"))
    rendered = _shown(row.data.get("rendered")) or attachment
    role = name_of(row.data.get("renderedRole")) or "user"
    message = keep.json({"content": rendered, "role": role}, f"attachment {kind}")
    yield ContextInjected(provenance=kind, message=message)
    if rendered is not attachment:
        yield SourceKept(
            native_type=row.native_type, recognized=True, body=keep.json(attachment, f"attachment {kind}")
        )
    yield from _capabilities(kind, attachment)


def _shown(rendered: Any) -> Any:
    """The words as the model got them, as blocks of a message where they have their usual form."""
    if not isinstance(rendered, list):
        return rendered
    texts = [one["content"] for one in rendered if isinstance(one, dict) and one.keys() == {"content"}]
    if len(texts) < len(rendered) or not all(isinstance(text, str) for text in texts):
        return rendered
    return [{"type": "text", "text": text} for text in texts]


def _rule_files(keep: Keeper, files: Any) -> Iterator[ArtifactChanged]:
    for file in files if isinstance(files, list) else ():
        path = name_of(file.get("path")) if isinstance(file, dict) else None
        if path is not None:
            text = file.get("content")
            kept = (
                keep.text(text, "instructions") if isinstance(text, str) else keep.json(text, "instructions")
            )
            yield ArtifactChanged(artifact=f"file:{path}", kind="rule_file", content=kept, cause="unknown")


def _capabilities(kind: str, attachment: dict[str, Any]) -> Iterator[Event]:
    if kind not in _LISTS:
        return
    sort, added, removed = _LISTS[kind]
    for name in _names(attachment.get(added)):
        yield CapabilityLoaded(kind=sort, capability=name, when="on_demand")
    for name in _names(attachment.get(removed)):
        yield CapabilityUnloaded(kind=sort, capability=name)


def _names(listed: Any) -> Iterator[str]:
    for entry in listed if isinstance(listed, list) else ():
        if (name := name_of(entry)) is not None:
            yield name


def actor_of(event: Event, agent: str | None) -> Actor:
    """Who did it, as far as the kind of the event tells."""
    match event:
        case MessageReceived(origin="human") | ApprovalDecided(decided_by="human"):
            return Actor("human")
        case MessageReceived(origin="agent"):
            return Actor("agent")
        case ModelCallAnswered(synthetic=False) | ToolCallRequested():
            return Actor("agent", agent)
        case ApprovalDecided(decided_by="policy") | PolicyEvaluated():
            return Actor("policy")
        case _:
            return Actor("system", "claude-code")
