"""One model answer from the rows that hold its parts, and what it cost."""

from dataclasses import dataclass, field
from typing import Any

from ledger.events import ContentRef
from ledger.events.model_call import ModelCallAnswered, Usage
from ledger.importers._claude.row import Row, count_of, name_of
from ledger.recorder import Keeper

_ALWAYS = {"role": "assistant", "type": "message"}

SYNTHETIC = "<synthetic>"
"""Model named in answers that the harness wrote itself."""


@dataclass(slots=True)
class Answer:
    """Rows of one model answer, in the order in which they came."""

    message_id: str
    """Provider's id of the answer."""

    call_id: str
    """Joins it to its request."""

    rows: list[Row] = field(default_factory=list)
    """Its rows so far."""

    emitted: int = 0
    """How many of them have been handed on already."""

    shown: ContentRef | None = None
    """The message that they made when they were."""

    @property
    def is_synthetic(self) -> bool:
        """Whether the harness wrote it in a model's place."""
        return bool(self.rows) and self.rows[-1].model == SYNTHETIC

    @property
    def is_error(self) -> bool:
        """Whether it only tells the user of an error: the model is never shown it."""
        return any(row.data.get("isApiErrorMessage") is True for row in self.rows)

    def message(self, keep: Keeper) -> ContentRef:
        """All parts as one message."""
        blocks = [block for row in self.rows for block in row.all_blocks]
        return keep.json({"content": blocks, "role": "assistant"}, "answer")

    def event(self, message: ContentRef, *, revision: int) -> ModelCallAnswered:
        """The answer as the rows so far tell it."""
        last = self.rows[-1]
        reasons = (name_of(row.message.get("stop_reason")) for row in reversed(self.rows))
        return ModelCallAnswered(
            call_id=self.call_id,
            model=last.model,
            message=message,
            stop_reason=next((reason for reason in reasons if reason), None),
            usage=None if self.is_synthetic else self._usage(),
            response_id=name_of(last.message.get("id")),
            request_id=name_of(last.data.get("requestId")),
            revision=revision,
            synthetic=self.is_synthetic,
        )

    def rest(self, event: ModelCallAnswered, steady: dict[str, str]) -> list[dict[str, Any]]:
        """For each row what the event does not carry; a usage that is not there is that of the row before."""
        said = {"id": event.response_id, "model": event.model, "stop_reason": event.stop_reason, **_ALWAYS}
        rests = []
        usage = None
        for row in self.rows:
            rest = row.rest(steady, "message")
            rest["uuid"], rest["timestamp"] = row.data.get("uuid"), row.data.get("timestamp")
            if rest.get("requestId") == event.request_id is not None:
                del rest["requestId"]
            message = {
                name: value
                for name, value in row.message.items()
                if name != "content" and said.get(name) != value
            }
            if "usage" in message and message["usage"] == usage:
                del message["usage"]
            usage = row.message.get("usage")
            rests.append(rest | {"message": message} if message else rest)
        return rests

    def _usage(self) -> Usage | None:
        """Usage repeats on each row and, in old versions, grows: the fullest one counts, once."""
        found = [row.message["usage"] for row in self.rows if isinstance(row.message.get("usage"), dict)]
        if not found:
            return None
        usage = _usage(max(found, key=lambda one: count_of(one.get("output_tokens")) or 0))
        # A row that compaction preserved is copied into a fork with zeros: not a call that cost nothing.
        return usage if any(usage.model_dump().values()) else None


def _usage(usage: dict[str, Any]) -> Usage:
    details = usage.get("output_tokens_details")
    return Usage(
        input_tokens=count_of(usage.get("input_tokens")),
        output_tokens=count_of(usage.get("output_tokens")),
        cache_read_tokens=count_of(usage.get("cache_read_input_tokens")),
        cache_write_tokens=count_of(usage.get("cache_creation_input_tokens")),
        reasoning_tokens=count_of(details.get("thinking_tokens")) if isinstance(details, dict) else None,
    )
