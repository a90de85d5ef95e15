"""The one schema of the lake: each column of `events`, its type, its documentation, and its OpenTelemetry name.

A field of an event becomes a column by one line in `_FIELDS_SINCE`; its documentation is the docstring of the field. A
column is never removed and never changes its type: a new meaning is a new column.
"""

from collections.abc import Iterator
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, NamedTuple, Union, get_args, get_origin

import pyarrow as pa
from pydantic.fields import FieldInfo

from ledger.events import EVENTS
from ledger.events.record import Part

SCHEMA_VERSION = 2
"""Raised when columns are added."""

OTEL_VERSION = "1.41"
"""The OpenTelemetry semantic conventions whose names the columns carry."""

MONEY = pa.decimal128(20, 10)
"""Exact amounts. What does not fit is left to `payload`."""

Kind = Literal["word", "text", "count", "flag", "money", "time"]
"""`word`: text of few different values, kept as dictionary."""

_TYPES: dict[Kind, pa.DataType] = {
    "word": pa.string(),
    "text": pa.string(),
    "count": pa.int64(),
    "flag": pa.bool_(),
    "money": MONEY,
    "time": pa.timestamp("us", "UTC"),
}


class Column(NamedTuple):
    """One column of `events`."""

    name: str
    """Its name in SQL."""

    kind: Kind
    """What it holds."""

    doc: str
    """What it means."""

    field: str | None = None
    """Field of events that it is taken from, a dot before the field of a part; None: it is of the record itself."""

    otel: str | None = None
    """Its name in OpenTelemetry's conventions, where there is one."""


_RECORD = (
    Column("position", "count", "Place in the whole ledger, from 1, without holes."),
    Column("session", "word", "Session that the record belongs to.", otel="gen_ai.conversation.id"),
    Column("seq", "count", "Place in the session, from 1, without holes."),
    Column("type", "word", "Name of the event."),
    Column("recorded_at", "time", "When the recorder stamped it."),
    Column("occurred_at", "time", "When it happened, as the source says; NULL where it does not say."),
    Column("actor_kind", "word", "Who did it: human, agent, policy, judge or system."),
    Column("actor", "word", "Their name in the source."),
    Column("cause_seq", "count", "Seq of the record of this session that led to this one."),
    Column("cause_elsewhere", "text", "The record of another session that led to this one, as SESSION#SEQ."),
    Column("correlation", "word", "Joins what belongs together over sessions: run, trace or turn."),
    Column("agent", "word", "Name of the agent that acted.", otel="gen_ai.agent.name"),
    Column("depth", "count", "Delegation depth: 0 for the root session."),
    Column("grade", "word", "How much the source can prove: wire, near-wire, semantic or skeleton."),
    Column("source_format", "word", "Importer that read it; NULL for live records."),
    Column("source_file", "word", "File that it was read in, as named on import."),
    Column("source_item", "text", "Native id of the source record."),
    Column("source_line", "count", "Line in that file, from 1."),
)

_FIELDS: tuple[tuple[str, Kind, str | None, str | None], ...] = (
    # column, kind, field where it has another name, OpenTelemetry name
    ("call_id", "text", None, "gen_ai.tool.call.id"),
    ("tool", "word", None, "gen_ai.tool.name"),
    ("server", "word", None, None),
    ("effect_class", "word", None, None),
    ("effect_declared", "word", None, None),
    ("outcome", "word", None, None),
    ("error", "word", None, "error.type"),
    ("duration_ms", "count", None, None),
    ("purpose", "word", None, None),
    ("protocol", "word", None, None),
    ("provider", "word", None, "gen_ai.provider.name"),
    ("model", "word", None, "gen_ai.request.model"),
    ("harness", "word", None, None),
    ("name", "word", None, None),
    ("cwd", "word", None, None),
    ("completeness", "word", None, None),
    ("stop_reason", "word", None, "gen_ai.response.finish_reasons"),
    ("response_id", "text", None, "gen_ai.response.id"),
    ("input_tokens", "count", "usage.input_tokens", "gen_ai.usage.input_tokens"),
    ("output_tokens", "count", "usage.output_tokens", "gen_ai.usage.output_tokens"),
    ("cache_read_tokens", "count", "usage.cache_read_tokens", "gen_ai.usage.cache_read.input_tokens"),
    ("cache_write_tokens", "count", "usage.cache_write_tokens", "gen_ai.usage.cache_creation.input_tokens"),
    ("reasoning_tokens", "count", "usage.reasoning_tokens", None),
    ("cost_usd", "money", None, None),
    ("first_byte_ms", "count", None, None),
    ("context", "text", None, None),
    ("context_length", "count", None, None),
    ("attempt", "count", None, None),
    ("revision", "count", None, None),
    ("synthetic", "flag", None, None),
    ("lane", "word", None, None),
    ("status", "count", None, "http.response.status_code"),
    ("origin", "word", None, None),
    ("trust", "word", None, None),
    ("sender", "word", None, None),
    ("provenance", "word", None, None),
    ("approval_id", "text", None, None),
    ("decided_by", "word", None, None),
    ("decider", "word", None, None),
    ("how", "word", None, None),
    ("scope", "word", None, None),
    ("evidence", "word", None, None),
    ("policy_version", "word", None, None),
    ("arguments_digest", "text", None, None),
    ("rule", "word", None, None),
    ("verdict", "word", None, None),
    ("reason", "word", None, None),
    ("compaction_id", "text", None, None),
    ("trigger", "word", None, None),
    ("tokens_before", "count", None, None),
    ("tokens_after", "count", None, None),
    ("messages_before", "count", None, None),
    ("messages_after", "count", None, None),
    ("artifact", "word", None, None),
    ("constraint_name", "word", "constraint", None),
    ("kind", "word", None, None),
    ("cause", "word", None, None),
    ("mode", "word", None, None),
    ("capability", "word", None, None),
    ("secret_digest", "word", None, None),
    ("delegation_id", "text", None, None),
    ("to_session", "text", None, None),
    ("to_agent", "word", None, None),
    ("from_session", "text", None, None),
    ("parent", "text", None, None),
    ("effect_id", "text", None, None),
    ("target", "text", None, None),
    ("operation", "word", None, None),
    ("checkpoint_id", "text", None, None),
    ("to_seq", "count", None, None),
    ("origin_seq", "count", None, None),
    ("finding_id", "text", None, None),
    ("detector", "word", None, None),
    ("severity", "word", None, None),
    ("file", "word", None, None),
    ("format", "word", None, None),
)

_CONTENT = (
    Column(
        "effect_guess",
        "word",
        "Effect class of a tool call that declares none, inferred from name and arguments.",
    ),
    Column("content_field", "word", "Field of the event whose content `text` shows."),
    Column(
        "content_digest", "text", "Keyed digest of that content: equal for equal contents of this ledger."
    ),
    Column("content_size", "count", "Its length in bytes."),
    Column(
        "text",
        "text",
        "That content as text: JSON of a message, of arguments or of a result, or plain text; its first mebibyte."
        " NULL where it is no text, was erased, or is beyond 64 MiB.",
    ),
    Column("damage", "text", "Why the record could not be read; NULL for a sound one."),
    Column("payload", "text", "The event's fields as canonical JSON; fields at their default are left out."),
)

# Added later. A column's place is its number in the files, which readers of Iceberg go by: new ones come last.
_FIELDS_SINCE: tuple[tuple[str, Kind, str | None, str | None], ...] = (
    ("runs_again", "flag", None, None),
    ("branch", "text", None, None),
    ("at_seq", "count", None, None),
    ("checkpoint_seq", "count", "seq", None),
    ("system_digest", "word", "system.digest", None),
    ("tools_digest", "word", "tools.digest", None),
)

_CONTENT_SINCE = (
    Column(
        "system_prompt",
        "text",
        "System prompt of a model call, in the protocol's own shape: at the first call of each file that sent it; view"
        " `instructions` has each once.",
        otel="gen_ai.system_instructions",
    ),
    Column(
        "tool_schemas",
        "text",
        "Tool schemas that were offered to a model call, in the protocol's own shape: as `system_prompt`.",
        otel="gen_ai.tool.definitions",
    ),
)

CONTENTS = {
    "input.message_received": "message",
    "input.context_injected": "message",
    "model_call.answered": "message",
    "model_call.failed": "detail",
    "tool_call.requested": "arguments",
    "tool_call.settled": "result",
    "approval.asked": "context",
    "approval.decided": "rule",
    "policy.evaluated": "detail",
    "compaction.done": "summary",
    "compaction.pinned": "message",
    "governance.artifact_changed": "content",
    "governance.constraint_declared": "text",
    "governance.mode_changed": "detail",
    "capability.loaded": "definition",
    "delegation.started": "payload",
    "delegation.returned": "result",
    "draw.drawn": "value",
    "recovery.damage_found": "content",
    "replay.diverged": "detail",
    "review.finding_raised": "message",
    "review.constraint_seen": "text",
    "review.verdict_given": "reason",
    "review.note_written": "text",
    "ledger.imported": "report",
}
"""The field of each event whose content `text` shows. What is not named here stays in the store alone."""


SENT_AGAIN = {
    "model_call.requested": {
        "system": ("system_digest", "system_prompt"),
        "tools": ("tools_digest", "tool_schemas"),
    }
}
"""Contents that most calls repeat: the field of an event, the column of its digest, and the column of its text."""

TEXTS = {
    "content_digest": "text",
    **{digest: text for fields in SENT_AGAIN.values() for digest, text in fields.values()},
}
"""The columns that hold texts of contents, by the column of their digest: what an erasure empties."""


def is_plain(annotation: Any) -> bool:
    """Whether a field holds a word, a number or nothing: no part, no list, no reference to content."""
    origin = get_origin(annotation)
    if origin in (Union, UnionType):
        return all(is_plain(member) for member in get_args(annotation))
    if origin is Annotated:
        return is_plain(get_args(annotation)[0])
    if origin is Literal or annotation is NoneType:
        return True
    return isinstance(annotation, type) and annotation.__name__ in ("str", "int", "bool", "Decimal")


def _part_of(field: FieldInfo, part: str) -> FieldInfo | None:
    """The field of a part; None where the field holds no such part."""
    for kind in get_args(field.annotation):
        if isinstance(kind, type) and issubclass(kind, Part):
            return kind.model_fields.get(part)
    return None


def _documentation(path: str) -> str:
    """What the events say of a field, each text once."""
    name, _, part = path.partition(".")
    texts: dict[str, list[str]] = {}
    for event in EVENTS:
        field = event.model_fields.get(name)
        if field is None:
            continue
        outer = field
        if part:
            field = _part_of(field, part)
            if field is None:
                continue
        elif not is_plain(field.annotation):
            continue
        text = (field.description if part != "digest" else outer.description) or ""
        texts.setdefault(text.replace("\n", " "), []).append(event.TYPE)
    if len(texts) == 1:
        return next(iter(texts))
    return " ".join(f"{', '.join(names)}: {text}" for text, names in texts.items())


def _columns(fields: tuple[tuple[str, Kind, str | None, str | None], ...]) -> Iterator[Column]:
    for name, kind, field, otel in fields:
        yield Column(name, kind, _documentation(field or name), field or name, otel)


COLUMNS: tuple[Column, ...] = (
    *_RECORD,
    *_columns(_FIELDS),
    *_CONTENT,
    *_columns(_FIELDS_SINCE),
    *_CONTENT_SINCE,
)
"""All columns of `events`, in their order in the files."""

SCHEMA = pa.schema(
    [
        pa.field(
            column.name,
            _TYPES[column.kind],
            metadata={
                "doc": column.doc,
                "PARQUET:field_id": str(number),
                **({"otel": column.otel} if column.otel else {}),
            },
        )
        for number, column in enumerate(COLUMNS, 1)
    ],
    metadata={"schema_version": str(SCHEMA_VERSION), "otel.semconv": OTEL_VERSION, "producer": "loopledger"},
)
"""The Arrow schema of every file."""


RECORDED_DATE = pa.field("recorded_date", pa.date32())
"""The column that the folders of the files name."""


class Taken(NamedTuple):
    """How one column is taken from the fields of one event."""

    column: str
    """The column."""

    field: str
    """The field."""

    part: str | None
    """The field inside it, where it is a part."""

    default: Any
    """What a field that was left out says."""


def _plans() -> dict[str, tuple[Taken, ...]]:
    plans = {}
    for event in EVENTS:
        taken = []
        for column in COLUMNS:
            name, _, part = (column.field or "").partition(".")
            field = event.model_fields.get(name)
            if field is None:
                continue
            if _part_of(field, part) is not None if part else is_plain(field.annotation):
                default = None if part or field.is_required() else field.default
                taken.append(Taken(column.name, name, part or None, default))
        plans[event.TYPE] = tuple(taken)
    return plans


PLANS = _plans()
"""What to take from each event, by its name."""
