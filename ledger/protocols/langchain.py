"""Facts in LangChain's messages that have one meaning wherever they are read. Must not fail on any value."""

from typing import Any

from ledger.events.model_call import Usage

_LARGEST_COUNT = 2**53


def usage_of(told: Any) -> Usage | None:
    """Tokens of a `usage_metadata`, each counted once; None where it does not say."""
    told = _dict(told)
    given, written = _count(told.get("input_tokens")), _count(told.get("output_tokens"))
    if given is None and written is None:
        return None
    details = _dict(told.get("input_token_details"))
    read, stored = _count(details.get("cache_read")), _count(details.get("cache_creation"))
    return Usage(
        input_tokens=None if given is None else max(0, given - (read or 0) - (stored or 0)),
        output_tokens=written,
        cache_read_tokens=read,
        cache_write_tokens=stored,
        reasoning_tokens=_count(_dict(told.get("output_token_details")).get("reasoning")),
    )


def _dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _count(value: Any) -> int | None:
    is_count = isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _LARGEST_COUNT
    return value if is_count else None
