"""One line of a Codex rollout as a row, whatever its generation. Decides nothing about events."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from ledger.events import Draft, Source
from ledger.events.record import Actor, ActorKind, Event, Grade
from ledger.importers import Desk

FORMAT = "codex"

MODEL_ITEMS = frozenset(
    {
        "reasoning",
        "function_call",
        "custom_tool_call",
        "local_shell_call",
        "web_search_call",
        "tool_search_call",
        "image_generation_call",
        "file_search_call",
        "code_interpreter_call",
        "computer_call",
        "mcp_call",
    }
)
"""Types of response items that a model writes; assistant messages besides."""

_CLIENT_ITEMS = frozenset(
    {
        "function_call_output",
        "custom_tool_call_output",
        "local_shell_call_output",
        "tool_search_output",
        "ghost_snapshot",
        "agent_message",
        "compaction",
        "compaction_summary",
        "context_compaction",
        "message",
        "other",
    }
)
_NOT_SENT = ("internal_chat_message_metadata_passthrough", "metadata", "timestamp", "ordinal")


@dataclass(frozen=True, slots=True)
class Row:
    """One source record."""

    kind: str
    """`session_meta`, `turn_context`, `response_item`, `event_msg`, ...; `other` when it has no shape."""

    sub: str
    """Type of the payload, or an empty text."""

    payload: dict[str, Any]
    """What the record says."""

    time: str | None
    """Its time as given."""

    ordinal: int | None
    """Its ordinal, in the generation that has them."""

    key: str
    """Identity within the session: by ordinal, or by line."""

    line: int
    """Line in the file."""

    raw: bytes
    """Its bytes."""

    @property
    def native_type(self) -> str:
        """Type in the source's words."""
        return f"{self.kind}:{self.sub}" if self.sub else self.kind

    @property
    def is_model_item(self) -> bool:
        """Whether a model wrote it."""
        if self.kind != "response_item":
            return False
        return is_model_item(self.sub, self.payload)

    @property
    def turn(self) -> str | None:
        """Turn that it names."""
        passed = self.payload.get("internal_chat_message_metadata_passthrough")
        named = self.payload.get("turn_id") or (passed.get("turn_id") if isinstance(passed, dict) else None)
        return text_or_none(named)

    def rest(self, used: Iterable[str] = ()) -> dict[str, Any]:
        """Fields of the payload but for those named."""
        dropped = frozenset(used)
        return {name: value for name, value in self.payload.items() if name not in dropped}


def is_model_item(sub: str, payload: dict[str, Any]) -> bool:
    """Whether a response item is a model's: reasoning, an assistant message, or a call."""
    return (
        sub in MODEL_ITEMS
        or sub.endswith("_call")
        or (sub == "message" and payload.get("role") == "assistant")
    )


def row_of(value: dict[str, Any], line: int, index: int, raw: bytes) -> Row:
    """The row of one record; `index` counts records that share a line."""
    ordinal = value.get("ordinal")
    ordinal = ordinal if isinstance(ordinal, int) and not isinstance(ordinal, bool) else None
    key = f"o:{ordinal}" if ordinal is not None else f"l:{line}" + (f".{index}" if index else "")
    kind, payload = _shape(value)
    sub = payload.get("type") if kind in ("response_item", "event_msg") else None
    if kind == "response_item" and sub is None and "role" in payload:
        sub = "message"
    time = value.get("timestamp")
    return Row(
        kind, sub if isinstance(sub, str) else "", payload, text_or_none(time), ordinal, key, line, raw
    )


def _shape(value: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """Kind and payload: with envelope, or flat as in the first generation."""
    kind, payload = value.get("type"), value.get("payload")
    if isinstance(kind, str) and isinstance(payload, dict):
        return kind, payload
    if isinstance(kind, str) and (
        is_model_item(kind, value) or kind in _CLIENT_ITEMS or kind.endswith("_output")
    ):
        return "response_item", value
    if isinstance(value.get("record_type"), str):
        return str(value["record_type"]), value
    if (
        kind is None
        and isinstance(value.get("id"), str)
        and ("instructions" in value or "timestamp" in value)
    ):
        return "session_meta", value
    return (kind if isinstance(kind, str) else "other"), value


def sent_form(item: dict[str, Any]) -> dict[str, Any]:
    """A response item as it is sent to the model: without what the log adds."""
    return {name: value for name, value in item.items() if name not in _NOT_SENT}


def log_form(item: dict[str, Any]) -> dict[str, Any]:
    """What the log adds to a response item."""
    return {name: item[name] for name in _NOT_SENT[:2] if name in item}


def text_or_none(value: Any) -> str | None:
    """The value if it is a text with something in it."""
    return value if isinstance(value, str) and value else None


def count_or_none(value: Any) -> int | None:
    """The value if it is a number of something."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 2**63:
        return None
    return int(value)


class Scribe:
    """Makes drafts of one session: actor, turn, depth and source are filled in here."""

    def __init__(self, desk: Desk, session: str, grade: Grade = "semantic") -> None:
        self.desk = desk
        self.keep = desk.keep
        self.session = session
        self.agent: str | None = None
        self.depth = 0
        self.turn: str | None = None
        self.grade = grade

    def draft(
        self,
        row: Row,
        event: Event,
        actor: ActorKind = "system",
        *,
        rest: Any = None,
        time: str | None = None,
    ) -> Draft:
        """A draft of an event that this row shows. `rest`: native fields that no event field carries."""
        kept = self.keep.json(rest, row.native_type).digest if rest else None
        source = Source(FORMAT, self.desk.file, row.key, row.line, kept)
        named = self.agent if actor == "agent" else None
        return Draft(
            event,
            time or row.time,
            Actor(actor, named),
            correlation=row.turn or self.turn,
            agent=self.agent,
            depth=self.depth,
            source=source,
            grade=self.grade,
        )
