"""Records as JSON and as one line of text. Loads no content."""

from typing import Any

from ledger.events import Record, UnknownEvent

_HIDDEN = frozenset(
    {
        *("call_id", "layout", "compaction_id", "body_digest", "context", "context_added"),
        *("approval_id", "arguments_digest", "policy_version", "finding_id", "checkpoint_id", "hold_id"),
        *("context_before", "context_after", "delegation_id", "effect_id", "case_id"),
    }
)
"""Ids and digests: they lead from record to record, and tell a reader nothing."""


def record_data(record: Record) -> dict[str, Any]:
    """The fields of a record's event."""
    if isinstance(record.event, UnknownEvent):
        return record.event.data
    return record.event.model_dump(mode="json")


def record_json(record: Record) -> dict[str, Any]:
    """The documented form of `events --json`."""
    source = record.source
    return {
        "session": record.session,
        "seq": record.seq,
        "position": record.position,
        "type": record.type,
        "occurred_at": record.occurred_at,
        "recorded_at": record.recorded_at,
        "actor": None if record.actor is None else {"kind": record.actor.kind, "id": record.actor.id},
        "cause": record.cause,
        "correlation": record.correlation,
        "agent": record.agent,
        "depth": record.depth,
        "grade": record.grade,
        "source": None
        if source is None
        else {
            "format": source.format,
            "file": source.file,
            "item": source.item,
            "line": source.line,
            "rest": source.rest,
        },
        "hash": record.hash,
        "previous": record.previous,
        "data": record_data(record),
    }


def outline(record: Record) -> str:
    """What a record says, in few words: its fields that are more than their defaults, contents by size."""
    if isinstance(record.event, UnknownEvent):
        return f"of a newer version ({record.event.stored_version})"
    fields = record.event.model_dump(mode="json", exclude_defaults=True)
    words = []
    for name, value in fields.items():
        if name in _HIDDEN:
            continue
        if is_content(value):
            words.append(f"{name} {value['size']} B")
        elif name == "usage":
            words.extend(f"{kind.removesuffix('_tokens')} {count}" for kind, count in value.items())
        elif isinstance(value, list | dict):
            words.append(f"{len(value)} {name}")
        else:
            words.append(f"{name}={value}" if isinstance(value, bool | int) else str(value))
    return " · ".join(words)


def is_content(value: Any) -> bool:
    """Whether a field points to content."""
    return isinstance(value, dict) and value.keys() == {"digest", "size", "kind"}
