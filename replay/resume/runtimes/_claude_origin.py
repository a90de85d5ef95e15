"""What the ledger keeps of the rows of an imported Claude Code session: their ids, so that the copy is known as one."""

from collections import defaultdict
from dataclasses import dataclass
from typing import Any, NamedTuple
from uuid import UUID

from ledger.errors import ContentMissingError
from ledger.events import ContentRef, Record
from ledger.events.canonical import canonical_json
from ledger.events.input import ContextInjected, MessageReceived
from ledger.events.model_call import ModelCallAnswered
from ledger.events.tool_call import ToolCallSettled
from ledger.protocols.tool_use import calls_in
from replay.conversation import decode_content
from replay.resume.point import Point

Row = tuple[str | None, str | None]
"""Id and time of a row, as far as they are known."""


class Settled(NamedTuple):
    """The row of a tool's result."""

    uuid: str | None
    """Its id."""

    time: str | None
    """Its time."""

    details: Any
    """What the harness itself keeps of the result; None where that is not known."""


@dataclass(frozen=True)
class AnswerRows:
    """The rows of one answer."""

    message_id: str
    """Provider's id of the answer, or one of ours."""

    model: str | None
    """Model that answered."""

    stop_reason: str | None
    """Why it stopped."""

    rows: list[Row]
    """One for each block."""


class ClaudeOrigin:
    """Rows and ids by what was said. Knows nothing of a session that was not imported, but for answers."""

    def __init__(self, point: Point) -> None:
        self._point = point
        self._said: dict[str, list[Row]] = defaultdict(list)
        self._settled: dict[str, Settled] = {}
        self._answers: dict[bytes | str, list[Record]] = defaultdict(list)
        for record in point.records():
            self._take(record)

    def said(self, words: str | None) -> Row:
        """The next row that says these words."""
        known = self._said.get(words or "")
        return known.pop(0) if known else (None, None)

    def settled(self, call_id: str) -> Settled:
        """The row of a result."""
        return self._settled.get(call_id, Settled(None, None, None))

    def answer(self, content: list[dict[str, Any]], place: int | None) -> AnswerRows:
        """The rows of an answer of these blocks. `place` names it where nothing is known; None: as the one before."""
        record = next((self._answers[key].pop(0) for key in _keys(content) if self._answers.get(key)), None)
        if record is None:
            self._place = self._place if place is None else place
            name = f"msg_loopledger_{self._point.seq}_{self._place}"
            return AnswerRows(name, None, "end_turn", [(None, None)] * len(content))
        event = record.event
        assert isinstance(event, ModelCallAnswered)
        rows = self._rows(record, len(content))
        name = event.response_id or f"msg_{event.call_id}"
        return AnswerRows(name, event.model, event.stop_reason, rows)

    _place = 0

    def _take(self, record: Record) -> None:
        event, row = record.event, (_uuid(record), record.occurred_at)
        if isinstance(event, MessageReceived | ContextInjected):
            message = self._value(event.message)
            content = message.get("content") if isinstance(message, dict) else message
            for block in content if isinstance(content, list) else [content]:
                words = block.get("text") if isinstance(block, dict) else block
                if isinstance(words, str):
                    self._said[words].append(row)
        elif isinstance(event, ToolCallSettled):
            details = None if event.details is None or row[0] is None else self._value(event.details)
            self._settled[event.call_id] = Settled(*row, details)
        elif isinstance(event, ModelCallAnswered):
            message = self._value(event.message)
            if isinstance(message, dict) and isinstance(message.get("content"), list):
                for key in _keys(message["content"]):
                    self._answers[key].append(record)

    def _rows(self, record: Record, count: int) -> list[Row]:
        """The rows' ids stand in what the event did not carry."""
        digest = None if record.source is None else record.source.rest
        try:
            rest = None if digest is None else decode_content(self._point.ledger.store.content(digest))
        except ContentMissingError:
            rest = None
        if isinstance(rest, list) and len(rest) == count and all(isinstance(one, dict) for one in rest):
            return [(_text(one.get("uuid")), _text(one.get("timestamp"))) for one in rest]
        return [(None, record.occurred_at)] * count

    def _value(self, ref: ContentRef) -> Any:
        try:
            return decode_content(self._point.ledger.store.content(ref.digest))
        except ContentMissingError:
            return None


def _uuid(record: Record) -> str | None:
    """The id of the row that a record was read from."""
    source = record.source
    if source is None or source.format != "claude-code" or source.item is None:
        return None
    try:
        return str(UUID(source.item))
    except ValueError:
        return None


def _keys(content: list[Any]) -> list[bytes | str]:
    """What an answer is known by: its blocks; and its calls, whose arguments the harness may spell otherwise."""
    calls = [call.call_id for call in calls_in({"content": content}) if call.call_id is not None]
    return [canonical_json(content), *calls]


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None
