"""Items of the Responses API, and usage as the SDK counts it. Reads values with care, makes no events."""

from collections.abc import Iterator
from typing import Any

from ledger.events.model_call import Usage
from ledger.importers._frameworks.histories import step_digest
from ledger.importers._harness.values import number, record, words

FORMAT = "openai-agents"
"""The importer's name."""

NOT_APPROVED = "Tool execution was not approved."
"""What the SDK shows the model in place of a result when a call was rejected, unless a program says otherwise."""

TOOL_FAILED = "An error occurred while running the tool. Please try again."
"""What the SDK shows the model when a tool raised, unless a program says otherwise."""

_OUTPUT_KINDS = frozenset({"reasoning", "compaction", "mcp_list_tools", "mcp_approval_request"})


def is_output(item: Any) -> bool:
    """Whether a model wrote the item."""
    kind, role = record(item).get("type"), record(item).get("role")
    if role is not None:
        return bool(role == "assistant")
    return isinstance(kind, str) and (kind in _OUTPUT_KINDS or kind.endswith("_call"))


def is_result(item: Any) -> bool:
    """Whether the item is what a tool gave."""
    kind = record(item).get("type")
    return isinstance(kind, str) and kind.endswith("_output")


def identity(item: Any) -> list[Any]:
    """What tells an item from others: its type and its ids."""
    fields = record(item)
    return [words(fields.get(name)) for name in ("type", "role", "call_id", "id")]


def outcome_of(output: Any) -> str:
    """How a call ended, by the text that the model was shown."""
    if output == NOT_APPROVED:
        return "denied"
    return "failed" if output == TOOL_FAILED else "returned"


def usage_of(value: Any) -> Usage | None:
    """Usage with each token counted once; `input_tokens` of the SDK includes the cached ones."""
    fields = record(value)
    given, written = number(fields.get("input_tokens")), number(fields.get("output_tokens"))
    if given is None and written is None:
        return None
    detail, output_detail = (
        _one(fields.get("input_tokens_details")),
        _one(fields.get("output_tokens_details")),
    )
    read, wrote = number(detail.get("cached_tokens")), number(detail.get("cache_write_tokens"))
    rest = None if given is None else max(0, given - (read or 0) - (wrote or 0))
    return Usage(
        input_tokens=rest,
        output_tokens=written,
        cache_read_tokens=read,
        cache_write_tokens=wrote,
        reasoning_tokens=number(output_detail.get("reasoning_tokens")),
    )


def _one(value: Any) -> dict[str, Any]:
    """Details are an object, or a list of one in a saved state."""
    return record(value[0]) if isinstance(value, list) and value else record(value)


def input_items(value: Any) -> Iterator[dict[str, Any]]:
    """Input of a run as items: a text stands for a message of the user."""
    if isinstance(value, str):
        yield {"content": value, "role": "user"}
    elif isinstance(value, list):
        for item in value:
            yield item if isinstance(item, dict) else {"content": item, "role": "unknown"}


def call_name(tool: str, arguments: Any) -> str:
    """A name for calls of this tool with these arguments."""
    return f"{tool}\0{step_digest(arguments)}"


def is_run(span: dict[str, Any]) -> bool:
    """Whether a span shows that an agent runs."""
    data = record(span.get("span_data"))
    return data.get("type") == "agent" or record(data.get("data")).get("sdk_span_type") == "task"
