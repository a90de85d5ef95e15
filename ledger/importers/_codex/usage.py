"""Tokens of Codex model calls, each counted once: from usage records, or from running totals that repeat."""

from typing import Any

from ledger.events.model_call import Usage
from ledger.importers._codex.row import Row, count_or_none

_FIELDS = (
    "input_tokens",
    "cached_input_tokens",
    "cache_write_input_tokens",
    "output_tokens",
    "reasoning_output_tokens",
)


class UsageMeter:
    """Reads `token_usage_record` and `token_count` rows of one session."""

    def __init__(self) -> None:
        self._total: dict[str, int] | None = None
        self._has_records = False
        self.last_total: int | None = None
        """Tokens of the last call, which is what the context then held."""

    def record(self, row: Row) -> Usage:
        """The usage of one response. From now on running totals say nothing new."""
        self._has_records = True
        counts = _counts(row.payload.get("usage"))
        self.last_total = _size(row.payload.get("usage"), counts)
        return _usage(counts)

    def count(self, row: Row) -> Usage | None:
        """What a running total adds; None when it repeats the last one, or says nothing."""
        if self._has_records:
            return None
        info = row.payload.get("info", row.payload)
        if not isinstance(info, dict):
            return None
        last = info.get("last_token_usage")
        if "total_token_usage" not in info and last is None:
            last = info  # the oldest form: the counts of one call, without a total
        counts, total = _counts(last), _counts(info.get("total_token_usage"))
        self.last_total = _size(last, counts) or self.last_total
        if not total:
            return _usage(counts) if any(counts.values()) else None
        before, self._total = self._total, total
        if before == total:
            return None
        if before is not None:
            added = {name: total.get(name, 0) - before.get(name, 0) for name in _FIELDS}
            if all(value >= 0 for value in added.values()):
                return _usage({name: value for name, value in added.items() if name in total})
        return _usage(counts or total) if any((counts or total).values()) else None


def turn_usage(native: Any) -> Usage | None:
    """Usage of a whole turn, as `codex exec --json` gives it."""
    counts = _counts(native)
    return _usage(counts) if counts else None


def _counts(native: Any) -> dict[str, int]:
    if not isinstance(native, dict):
        return {}
    found = {name: count_or_none(native.get(name)) for name in _FIELDS}
    return {name: value for name, value in found.items() if value is not None}


def _size(native: Any, counts: dict[str, int]) -> int | None:
    total = count_or_none(native.get("total_tokens")) if isinstance(native, dict) else None
    return (
        total
        if total is not None
        else sum(counts.get(name, 0) for name in ("input_tokens", "output_tokens")) or None
    )


def _usage(counts: dict[str, int]) -> Usage:
    """Codex's input count includes what came from or went into the cache; ours does not."""
    whole, read = counts.get("input_tokens"), counts.get("cached_input_tokens")
    write = counts.get("cache_write_input_tokens")
    return Usage(
        input_tokens=None if whole is None else max(0, whole - (read or 0) - (write or 0)),
        output_tokens=counts.get("output_tokens"),
        cache_read_tokens=read,
        cache_write_tokens=write,
        reasoning_tokens=counts.get("reasoning_output_tokens"),
    )
