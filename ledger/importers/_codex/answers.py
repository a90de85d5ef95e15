"""Puts the rows of one model answer together, and says what is known of the request that it answers."""

from dataclasses import dataclass, field
from typing import Any

from ledger.events import ContentRef, Draft
from ledger.events.model_call import ModelCallAnswered, ModelCallRequested, Purpose, Usage
from ledger.importers._codex.governance import Governance
from ledger.importers._codex.history import History
from ledger.importers._codex.row import Row, Scribe, log_form, sent_form, text_or_none

_ROWS_HELD = 2000
_BYTES_HELD = 32 * 1024 * 1024


@dataclass
class Answer:
    """Rows from the first item of an answer until its usage is known and the next thing happens."""

    rows: list[Row] = field(default_factory=list)
    size: int = 0
    usage: Usage | None = None
    by_record: bool = False
    closed: bool = False
    """Whether something else than the model has spoken since."""
    response_id: str | None = None
    requested: bool = False
    """Whether the request was handed on already, because an earlier import ended inside this answer."""
    revision: int = 0
    purpose: Purpose | None = None
    known: tuple[object, ...] | None = None
    """Extent that was handed on already."""

    @property
    def extent(self) -> tuple[object, ...]:
        """What a revision would have to change."""
        return len(self.items), self.usage, self.response_id, self.is_whole

    @property
    def is_whole(self) -> bool:
        """Whether the answer is known to have ended."""
        items = self.items
        return self.usage is not None or self.closed or (bool(items) and items[-1].sub == "message")

    @property
    def key(self) -> str:
        """Key of the first row."""
        return self.rows[0].key

    @property
    def items(self) -> list[Row]:
        """What the model wrote."""
        return [row for row in self.rows if row.is_model_item]

    @property
    def is_full(self) -> bool:
        """Whether holding more would cost too much memory."""
        return len(self.rows) >= _ROWS_HELD or self.size >= _BYTES_HELD

    def add(self, row: Row) -> None:
        """Hold one more row."""
        self.rows.append(row)
        self.size += len(row.raw)

    def is_done_with(self, row: Row) -> bool:
        """Whether nothing that could still come belongs to this answer, now that this row is in."""
        if self.is_full:
            return True
        if row.kind == "token_usage_record" or row.sub == "token_count":
            return False
        if row.kind == "event_msg" and row.sub in ("task_complete", "turn_complete", "turn_aborted"):
            return True
        return self.closed and (self.usage is not None or row.kind == "compacted")


class Requests:
    """Makes the events of model calls."""

    def __init__(self, scribe: Scribe, governance: Governance, history: History) -> None:
        self._scribe = scribe
        self._governance = governance
        self._history = history
        self.provider: str | None = None
        self.purpose: Purpose = "main"

    def requested(self, answer: Answer) -> Draft:
        """The request: its context is the history as it stood before the answer's first item."""
        row = answer.rows[0]
        history, governance = self._history, self._governance
        seen = bool(answer.items)
        if seen:
            history.close_calls()
        purpose = answer.purpose or self.purpose
        not_seen = ["tools", "parameters"]
        if governance.system is None:
            not_seen.insert(0, "system")
        else:
            not_seen.append("system: which of its lines the harness left out")
        if history.missing is not None:
            not_seen.append(f"messages: {history.missing}")
        if purpose == "compaction":
            not_seen.append("messages[-1]: the order to summarise")
        context = history.context
        known = seen and len(context) > 0
        partial = history.missing is not None or purpose == "compaction"
        event = ModelCallRequested(
            call_id=self.call_id(answer),
            purpose=purpose,
            protocol="openai.responses",
            model=governance.modes.get("model"),
            provider=self.provider,
            context=context.head if known else None,
            context_length=len(context) if known else 0,
            context_added=context.take_added() if known else 0,
            system=governance.system,
            parameters=self._known_parameters(),
            completeness=("partial" if partial else "messages") if known else "none",
            not_seen=tuple(not_seen if known else ["messages", *not_seen]),
            artifacts=governance.take_changed(),
        )
        draft = self._scribe.draft(row, event, "agent")
        return Draft(
            draft.event,
            None,  # the log does not say when the request was sent
            draft.actor,
            correlation=draft.correlation,
            agent=draft.agent,
            depth=draft.depth,
            source=draft.source,
            grade=draft.grade,
        )

    def answered(self, answer: Answer) -> Draft:
        """The answer: the items that the model wrote, as they are sent back to it afterwards."""
        items = answer.items
        last = items[-1] if items else answer.rows[-1]
        added = [log_form(row.payload) | {"key": row.key, "time": row.time} for row in items]
        event = ModelCallAnswered(
            call_id=self.call_id(answer),
            model=self._governance.modes.get("model"),
            message=self._scribe.keep.json([sent_form(row.payload) for row in items], "model answer"),
            usage=answer.usage,
            response_id=answer.response_id,
            completeness="complete" if answer.is_whole and items else "partial",
            revision=answer.revision,
        )
        return self._scribe.draft(last, event, "agent", rest={"items": added} if added else None)

    @staticmethod
    def call_id(answer: Answer) -> str:
        """Id of the call: by the place of its first row, which does not change when the file grows."""
        return f"model-{answer.key}"

    def _known_parameters(self) -> ContentRef | None:
        known: dict[str, Any] = {}
        if (model := self._governance.modes.get("model")) is not None:
            known["model"] = model
        if self._governance.reasoning:
            known["reasoning"] = self._governance.reasoning
        return self._scribe.keep.json(known, "parameters") if known else None


def response_of(row: Row) -> str | None:
    """Provider's id of a response, from its usage record or the compaction it made."""
    return text_or_none(row.payload.get("response_id")) or text_or_none(
        row.payload.get("compaction_response_id")
    )
