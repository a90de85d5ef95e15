"""One row of a Claude Code log, with what a reader asks of it. Trusts no field to have its usual type."""

import re
from functools import cached_property
from typing import Any, cast

from ledger.events import ContentRef
from ledger.recorder import Keeper

_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:Z|[+-]\d\d:\d\d)")
_LARGEST_COUNT = 2**53
_LONGEST_NAME = 4096
_CARRIED = frozenset("type uuid parentUuid isSidechain timestamp promptId".split())
_STEADY = ("sessionId", "agentId", "cwd", "version", "gitBranch", "userType", "entrypoint", "permissionMode")


class Row:
    """One row. Its properties say what is there in the type that is expected, or None."""

    def __init__(self, data: dict[str, Any], line: int, raw: bytes, key: str) -> None:
        self.data = data
        """The row as read."""
        self.line = line
        """Its line in the file, from 1."""
        self.raw = raw
        """Its bytes."""
        self.key = key
        """Native identity within the session."""
        self.is_repeated = False
        """Whether the file held this very row before: it counts as a duplicate and says nothing new."""
        kind = data.get("type")
        self.kind = kind if isinstance(kind, str) else ""
        """Its type in the source's words."""
        message = data.get("message")
        self.message: dict[str, Any] = message if isinstance(message, dict) else {}
        """What was said, where the row holds a message."""
        self.uuid = name_of(data.get("uuid"))
        """Its own id; rows of the request journal and of the harness's state have none."""
        self.parent = name_of(data.get("parentUuid"))
        """Id of the row that it continues."""
        self.request_ref = name_of(data.get("requestRef"))
        """Id of the journaled request that it answers."""

    @cached_property
    def time(self) -> str | None:
        """When it was written, where that is a time."""
        time = self.data.get("timestamp")
        return time if isinstance(time, str) and _TIME.fullmatch(time) else None

    @cached_property
    def correlation(self) -> str | None:
        """Id of the turn that it belongs to."""
        return name_of(self.data.get("promptId"))

    @property
    def model(self) -> str | None:
        """Model that answered."""
        return name_of(self.message.get("model"))

    @cached_property
    def content(self) -> list[Any] | str | None:
        """Content of the message: blocks or text; None when the row has no message that one could read."""
        content = self.message.get("content")
        return content if isinstance(content, list | str) else None

    @cached_property
    def all_blocks(self) -> list[Any]:
        """Content as a list, whatever its entries are; a plain text is one text block."""
        if isinstance(self.content, str):
            return [{"type": "text", "text": self.content}]
        return self.content or []

    @cached_property
    def blocks(self) -> list[dict[str, Any]]:
        """Those entries of the content that are blocks."""
        return [block for block in self.all_blocks if isinstance(block, dict)]

    @property
    def is_answer(self) -> bool:
        """Whether it is a part of a model's answer."""
        return self.kind == "assistant" and self.content is not None

    @property
    def message_id(self) -> str:
        """Provider's id of the answer; rows without one stand for themselves."""
        return name_of(self.message.get("id")) or self.key

    @property
    def native_type(self) -> str:
        """Type as the source names it, with the subtype of system rows and attachments."""
        attachment = self.data.get("attachment")
        sub = attachment.get("type") if isinstance(attachment, dict) else self.data.get("subtype")
        kind = name_of(self.kind) or "none"
        return f"{kind}/{sub}" if isinstance(sub := name_of(sub), str) else kind

    @property
    def is_boundary(self) -> bool:
        """Whether a compaction happened here."""
        return self.kind == "system" and self.data.get("subtype") == "compact_boundary"

    @property
    def is_summary(self) -> bool:
        """Whether it holds the summary of a compaction."""
        return self.kind == "user" and self.data.get("isCompactSummary") is True and self.content is not None

    @cached_property
    def results(self) -> list[dict[str, Any]]:
        """Tool results in the row."""
        return [block for block in self.blocks if block.get("type") == "tool_result"]

    @property
    def starts_turn(self) -> bool:
        """Whether it is a prompt rather than a result."""
        return self.kind == "user" and self.content is not None and not self.results

    @property
    def ends_answer(self) -> bool:
        """Whether no further part of the answer before it can follow."""
        return self.starts_turn or self.is_boundary or self.kind == "api-request"

    @property
    def compaction(self) -> dict[str, Any]:
        """What a boundary says about its compaction."""
        found = self.data.get("compactMetadata")
        return found if isinstance(found, dict) else {}

    @property
    def preserved(self) -> list[str]:
        """Ids of the rows that a compaction left in the context."""
        listed = self.compaction.get("preservedMessages")
        uuids = listed.get("uuids") if isinstance(listed, dict) else None
        return [uuid for uuid in uuids if isinstance(uuid, str)] if isinstance(uuids, list) else []

    def call_id(self, block: dict[str, Any], field: str = "id") -> str:
        """Id of the call that a block of this row makes or answers; the block's place where it has none."""
        named = name_of(block.get(field))
        if named:
            return named
        return f"{self.key}:{next(index for index, one in enumerate(self.blocks) if one is block)}"

    def rest(self, steady: dict[str, str], *shown: str) -> dict[str, Any]:
        """Fields that no event carries.

        `steady` holds what the session's events have said already and rows repeat; `shown` names the fields
        that the row's own events carry.
        """
        rest = {
            name: value
            for name, value in self.data.items()
            if name not in _CARRIED
            and name not in shown
            and not (name in _STEADY and steady.get(name) == value)
        }
        for name, carried in (
            ("timestamp", self.time),
            ("uuid", self.uuid),
            ("parentUuid", self.parent),
            ("promptId", self.correlation),
        ):
            value = self.data.get(name)
            if value is not None and value != carried:  # of no use as a time or id, so it stands nowhere else
                rest[name] = value
        if "isSidechain" in self.data and not isinstance(self.data["isSidechain"], bool):
            rest["isSidechain"] = self.data["isSidechain"]
        return rest

    def rest_of_user(self, steady: dict[str, str]) -> dict[str, Any]:
        """Fields of a `user` row that its events do not carry."""
        rest = self.rest(steady, "message", *(("toolUseResult",) if self.results else ()))
        if self.message.keys() - {"role", "content"} or self.message.get("role") != "user":
            rest["message"] = {name: value for name, value in self.message.items() if name != "content"}
        return rest


def user_message(keep: Keeper, row: Row) -> ContentRef:
    """The row's message as it goes to the model."""
    return keep.json({"content": row.content, "role": "user"}, "user message")


def name_of(value: Any) -> str | None:
    """A text that can stand in an event: not empty, of sane length, without half characters."""
    if not isinstance(value, str) or not value or len(value) > _LONGEST_NAME:
        return None
    if not value.isascii():
        value = value.encode("utf-8", "replace").decode()
    return cast(str, value)


def count_of(value: Any) -> int | None:
    """A number that counts something."""
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= _LARGEST_COUNT:
        return int(value)
    return None


def first_text(content: Any) -> str:
    """The text that a message, or the content of a tool result, begins with."""
    if isinstance(content, list):
        first = content[0] if content else None
        content = first.get("text") if isinstance(first, dict) else None
    return content if isinstance(content, str) else ""
