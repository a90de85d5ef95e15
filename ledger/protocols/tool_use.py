"""Tool calls and their results inside messages, whatever protocol or log form they have. Must not fail on any value."""

from typing import Any, NamedTuple

from ledger.events.canonical import decode_json

_RESPONSES_CALLS = {
    "function_call": "arguments",
    "custom_tool_call": "input",
    "local_shell_call": "action",
    "mcp_call": "arguments",
    "web_search_call": "action",
    "file_search_call": "queries",
    "code_interpreter_call": "code",
    "computer_call": "action",
    "shell_call": "action",
    "apply_patch_call": "operation",
}
"""Items of the Responses protocol that ask for a tool, and the field with its arguments."""

_PROVIDER_RUNS = frozenset({"mcp_call", "web_search_call", "file_search_call", "code_interpreter_call"})
_BLOCK_CALLS = frozenset({"tool_use", "server_tool_use", "mcp_tool_use"})
_BLOCKS_LOOKED_AT = 100_000


class ToolUse(NamedTuple):
    """A tool that a message asks for."""

    call_id: str | None
    """Id of the call; None where the form has none."""

    tool: str
    """Name of the tool."""

    arguments: Any
    """Arguments: a JSON value, or a text that is not JSON."""

    server: str | None = None
    """MCP server."""

    provider_executed: bool = False
    """Whether the provider ran it on its side."""

    result: Any = None
    """Result that came with the call, where the provider ran it."""


class ToolResult(NamedTuple):
    """A result that a message brings."""

    call_id: str | None
    """Id of the call; None where the form has none."""

    tool: str | None
    """Name of the tool, where the message says it."""

    content: Any
    """The result as the model is shown it."""

    failed: bool | None
    """Whether it is marked as a failure; None where the form has no such mark."""


def calls_in(message: Any) -> list[ToolUse]:
    """The tool calls of a model's message, or of a list of items."""
    found: list[ToolUse] = []
    for item in _items(message):
        _add_calls(item, found)
    return found


def results_in(message: Any) -> list[ToolResult]:
    """The tool results that a message of the client brings."""
    found: list[ToolResult] = []
    for item in _items(message):
        _add_results(item, found)
    return found


def arguments_of(value: Any) -> Any:
    """Arguments as a JSON value, where a text holds one."""
    if isinstance(value, str):
        try:
            return decode_json(value) if value.strip() else value
        except ValueError:
            return value
    return value


def _items(message: Any) -> list[dict[str, Any]]:
    listed = message if isinstance(message, list) else [message]
    return [item for item in listed[:_BLOCKS_LOOKED_AT] if isinstance(item, dict)]


def _blocks(item: dict[str, Any], name: str) -> list[dict[str, Any]]:
    blocks = item.get(name)
    return [block for block in blocks if isinstance(block, dict)] if isinstance(blocks, list) else []


def _add_calls(item: dict[str, Any], found: list[ToolUse]) -> None:
    kind = item.get("type")
    if isinstance(kind, str) and kind in _RESPONSES_CALLS and "role" not in item:
        found.append(
            ToolUse(
                text(item.get("call_id")) or text(item.get("id")),
                text(item.get("name")) or kind.removesuffix("_call"),
                arguments_of(item.get(_RESPONSES_CALLS[kind])),
                text(item.get("server_label")),
                kind in _PROVIDER_RUNS,
                item.get("output") if kind == "mcp_call" else None,
            )
        )
        return
    for call in _blocks(item, "tool_calls"):
        found.append(_chat_call(call))
    legacy = item.get("function_call")
    if isinstance(legacy, dict) and text(legacy.get("name")):
        found.append(ToolUse(None, str(legacy["name"]), arguments_of(legacy.get("arguments"))))
    for block in _blocks(item, "content"):
        if isinstance(block.get("type"), str) and block["type"] in _BLOCK_CALLS:
            name, server = text(block.get("name")), text(block.get("server_name"))
            runs = block["type"] != "tool_use"
            found.append(ToolUse(text(block.get("id")), name or "unnamed", block.get("input"), server, runs))
    for part in _blocks(item, "parts"):
        call = _either(part, "functionCall", "function_call")
        if isinstance(call, dict):
            found.append(ToolUse(text(call.get("id")), text(call.get("name")) or "unnamed", call.get("args")))


def _chat_call(call: dict[str, Any]) -> ToolUse:
    """OpenAI's form and those of logs: `function` is an object, or the name itself."""
    function = call.get("function")
    inner = function if isinstance(function, dict) else call
    custom = call.get("custom")
    inner = custom if isinstance(custom, dict) else inner
    name = text(inner.get("name")) or text(function) or text(call.get("name")) or "unnamed"
    given = _either(inner, "arguments", "args", "input")
    return ToolUse(text(call.get("id")), name, arguments_of(given))


def _add_results(item: dict[str, Any], found: list[ToolResult]) -> None:
    kind, role = item.get("type"), item.get("role")
    if isinstance(kind, str) and kind.endswith("_call_output") and role is None:
        found.append(ToolResult(text(item.get("call_id")), None, item.get("output"), None))
    elif role in ("tool", "function") and "contents" not in item:  # a list of parts of another form
        call = item.get("tool_call")
        named = text(item.get("name")) or text(item.get("function"))
        if named is None and isinstance(call, dict):
            named = text(call.get("function"))
        error = item.get("error")
        failed = True if error else False if "error" in item else None
        found.append(ToolResult(text(item.get("tool_call_id")), named, item.get("content"), failed))
    else:
        for block in _blocks(item, "content"):
            block_type = block.get("type")
            if isinstance(block_type, str) and block_type.endswith("tool_result"):
                failed = block.get("is_error")
                found.append(
                    ToolResult(
                        text(block.get("tool_use_id")),
                        None,
                        block.get("content"),
                        failed if isinstance(failed, bool) else False,
                    )
                )
        for part in _blocks(item, "parts"):
            answer = _either(part, "functionResponse", "function_response")
            if isinstance(answer, dict):
                found.append(
                    ToolResult(text(answer.get("id")), text(answer.get("name")), answer.get("response"), None)
                )


def _either(fields: dict[str, Any], *names: str) -> Any:
    return next((fields[name] for name in names if fields.get(name) is not None), None)


def text(value: Any) -> str | None:
    """The value if it is a text with something in it."""
    return value if isinstance(value, str) and value else None
