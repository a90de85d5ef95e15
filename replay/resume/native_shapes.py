"""Messages in the shapes of harness logs that follow no provider's protocol: DeepSeek Harness, opencode, pi."""

from collections.abc import Iterator
from typing import Any

from ledger.protocols.tool_use import arguments_of, text

_CALLS = ("toolCall", "tool-call")
_RESULT_ROLES = ("toolResult", "tool")


def is_native_result(message: dict[str, Any]) -> bool:
    """Whether a message is a tool's result as pi or DeepSeek Harness writes it."""
    return message.get("role") in _RESULT_ROLES and "toolCallId" in message


def native_result(message: dict[str, Any]) -> tuple[str | None, str | None, Any, bool | None]:
    """Call id, tool, content and whether it failed."""
    failed = message.get("isError")
    return (
        text(message["toolCallId"]),
        text(message.get("toolName")),
        message.get("content"),
        failed if isinstance(failed, bool) else None,
    )


def native_call(block: dict[str, Any]) -> tuple[str | None, str, Any] | None:
    """Call id, tool and arguments of a block that asks for a tool; None for another."""
    kind = block.get("type")
    if kind in _CALLS:
        return (
            text(block.get("id")),
            text(block.get("name")) or "unnamed",
            arguments_of(block.get("arguments")),
        )
    if kind == "tool" and "callID" in block:  # opencode
        state = block.get("state")
        given = state.get("input") if isinstance(state, dict) else None
        return text(block["callID"]), text(block.get("tool")) or "unnamed", given
    return None


def results_in_parts(parts: Any) -> Iterator[tuple[str | None, str | None, Any, bool | None]]:
    """Results that opencode keeps in the parts that asked for them."""
    for part in parts if isinstance(parts, list) else ():
        if (
            not isinstance(part, dict)
            or part.get("type") != "tool"
            or not isinstance(part.get("state"), dict)
        ):
            continue
        state = part["state"]
        if "output" in state or "error" in state:
            failed = "error" in state
            shown = state.get("error") if failed else state["output"]
            yield text(part.get("callID")), text(part.get("tool")), shown, failed
