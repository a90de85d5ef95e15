"""Fields of ADK's records, which databases write in snake case and its API in camel case. Makes no events."""

import re
from typing import Any

from ledger.events.model_call import Usage
from ledger.importers._harness.values import items, number, record, words

FORMAT = "google-adk"
"""The importer's name."""

CONFIRMATION = "adk_request_confirmation"
"""Call by which the runner asks a person to confirm another call."""

FRAMEWORK_CALLS = frozenset({CONFIRMATION, "adk_request_credential", "adk_request_input"})
"""Calls that no model made: by these the runner asks a person. They are not sent to a model."""

_LETTER = re.compile(r"_([a-z])")


def get(value: Any, name: str) -> Any:
    """A field by its name in snake case, however it is spelled; None for anything else."""
    fields = record(value)
    found = fields.get(name)
    return found if found is not None else fields.get(_camel(name))


def _camel(name: str) -> str:
    return _LETTER.sub(lambda match: match[1].upper(), name)


def parts_of(content: Any) -> list[dict[str, Any]]:
    """The parts of a content."""
    return [part for part in items(get(content, "parts")) if isinstance(part, dict)]


def calls_of(content: Any) -> list[dict[str, Any]]:
    """The function calls in a content."""
    found = (get(part, "function_call") for part in parts_of(content))
    return [call for call in found if isinstance(call, dict)]


def responses_of(content: Any) -> list[dict[str, Any]]:
    """The function responses in a content."""
    found = (get(part, "function_response") for part in parts_of(content))
    return [response for response in found if isinstance(response, dict)]


def is_framework(content: Any) -> bool:
    """Whether a content holds nothing but questions of the runner to a person, or the answers to these."""
    named = [words(get(one, "name")) for one in (*calls_of(content), *responses_of(content))]
    return (
        bool(named) and len(named) == len(parts_of(content)) and all(one in FRAMEWORK_CALLS for one in named)
    )


def usage_of(value: Any) -> Usage | None:
    """Usage with each token counted once: a prompt includes what was cached, a total includes thoughts."""
    given, total = number(get(value, "prompt_token_count")), number(get(value, "total_token_count"))
    if given is None and total is None:
        return None
    told, thoughts = number(get(value, "candidates_token_count")), number(get(value, "thoughts_token_count"))
    cached = number(get(value, "cached_content_token_count"))
    by_tools = number(get(value, "tool_use_prompt_token_count")) or 0
    written = None if told is None and thoughts is None else (told or 0) + (thoughts or 0)
    if total is not None and given is not None and total >= given + by_tools:
        written = total - given - by_tools  # providers differ in whether the candidates include the thoughts
    return Usage(
        input_tokens=None if given is None else max(0, given + by_tools - (cached or 0)),
        output_tokens=written,
        cache_read_tokens=cached,
        reasoning_tokens=thoughts,
    )


def seconds(value: Any) -> float | None:
    """A time as seconds since 1970."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if is_number and abs(value) < 2**62 else None
