"""The messages of one session as the model is shown them next: grows, is compacted, is cut by a rewind."""

from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

from ledger.events import ContentRef
from ledger.events.compaction import CompactionDone
from ledger.importers._claude.row import Row, count_of, name_of, user_message
from ledger.intake import Desk

_PLACES_KEPT = 20_000
_TRIGGERS: dict[str | None, Literal["auto", "manual"]] = {"auto": "auto", "manual": "manual"}
_SEAM = "\n"  # put by the harness between two texts when it joins two user messages


@dataclass(slots=True)
class _Place:
    """Where a row stands in the context."""

    length: int
    """Messages in the context when the row had been taken in."""

    message: ContentRef | None
    """The message that the row is part of, if it is."""

    holds_result: bool
    """Whether the row brought a tool's result: those of one answer are siblings, not branches."""


class Conversation:
    """The context of one session, and which row brought which message."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self.chain = desk.context()
        """The messages."""
        self._places: OrderedDict[str, _Place] = OrderedDict()
        self._open_text: list[Any] | None = None
        self._summary: Row | None = None
        self._length_with_summary = 0

    def hears(self, row: Row, *, seamed: bool) -> ContentRef:
        """Take in a `user` row; give its message as the log holds it.

        `seamed`: this version of the harness puts a line end where it joins two texts.
        """
        message = user_message(self._desk.keep, row)
        is_last = True
        if self._summary is not None and row is self._summary:
            is_last = len(self.chain) == self._length_with_summary  # the compaction put it there already
            self._summary = None
        else:
            if seamed:
                self._close_seam(row)
            self.chain.append(message)
        self._open_text = (
            row.all_blocks if is_last and row.all_blocks and _is_text(row.all_blocks[-1]) else None
        )
        self._note(row.uuid, message, holds_result=bool(row.results))
        return message

    def _close_seam(self, row: Row) -> None:
        """Two user rows in a row become one message; where text meets text, the first gets a line end."""
        blocks = self._open_text
        if blocks is None or not row.all_blocks or not _is_text(row.all_blocks[0]):
            return
        closed = [*blocks[:-1], {**blocks[-1], "text": blocks[-1]["text"] + _SEAM}]
        self.chain.cut(len(self.chain) - 1)
        self.chain.append(self._desk.keep.json({"content": closed, "role": "user"}, "user message"))

    def answers(self, rows: Iterable[Row], message: ContentRef, before: ContentRef | None) -> None:
        """Take in an answer. `before`: a shorter reading of it, whose place it takes."""
        if before is None:
            self.chain.append(message)
            self._open_text = None
        else:
            self.chain.exchange(before, message)
        for row in rows:
            self._note(row.uuid, message)

    def passes(self, row: Row) -> None:
        """Take note of a row that is no message: a prompt may continue it."""
        self._note(row.uuid, None)

    def request_replaced_it(self) -> None:
        """The journal said what the messages are: rows and messages do not go together any more."""
        self._open_text = None

    def rewinds_to(self, uuid: str) -> bool:
        """Whether a prompt that continues this row leaves messages behind; if it does, they are cut."""
        if uuid not in self._places:
            return False
        left: list[_Place] = []
        for name in reversed(self._places):
            if name == uuid:
                break
            left.append(self._places[name])
        kept = self._places[uuid]
        length = kept.length
        while kept.holds_result and left and left[-1].holds_result:
            length = left.pop().length
        if not any(place.message is not None for place in left):
            return False
        for _ in left:
            self._places.popitem()
        self.chain.cut(length)
        self._open_text = None
        return True

    def compact(self, boundary: Row, summary: Row | None) -> CompactionDone:
        """Leave only the summary and the messages that the boundary says are preserved."""
        keep = self._desk.keep
        meta = boundary.compaction
        before, length = self.chain.head, len(self.chain)
        kept = [(uuid, self._places[uuid]) for uuid in boundary.preserved if uuid in self._places]
        self.chain.replace([])
        self._places.clear()
        self._open_text = None
        shown = None
        self._summary = summary
        if summary is not None:
            shown = user_message(keep, summary)
            self.chain.append(shown)
        self._length_with_summary = len(self.chain)
        last = None
        for uuid, place in kept:
            if place.message is not None and place.message != last:
                self.chain.append(place.message)
                last = place.message
            self._note(uuid, place.message, holds_result=place.holds_result)
        return CompactionDone(
            compaction_id=boundary.uuid or boundary.key,
            trigger=_TRIGGERS.get(name_of(meta.get("trigger")), "unknown"),
            evidence="logged",
            context_before=before,
            context_after=self.chain.head,
            context_added=self.chain.take_added(),
            messages_before=length,
            messages_after=len(self.chain),
            summary=shown,
            tokens_before=count_of(meta.get("preTokens")),
            tokens_after=count_of(meta.get("postTokens")),
            duration_ms=count_of(meta.get("durationMs")),
        )

    def _note(self, uuid: str | None, message: ContentRef | None, *, holds_result: bool = False) -> None:
        if uuid is not None:
            self._places[uuid] = _Place(len(self.chain), message, holds_result)
            self._places.move_to_end(uuid)
            if len(self._places) > _PLACES_KEPT:
                self._places.popitem(last=False)


def _is_text(block: Any) -> bool:
    return isinstance(block, dict) and block.get("type") == "text" and isinstance(block.get("text"), str)
