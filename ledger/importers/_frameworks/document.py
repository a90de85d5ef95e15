"""What importers of in-process frameworks share: a JSON file in pieces, records without a call id, kept records."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Literal, NamedTuple

from ledger.events import Draft
from ledger.events.keeping import SourceKept
from ledger.events.record import Grade
from ledger.events.tool_call import ToolCallRequested, ToolCallStarted
from ledger.importers import Desk, Item
from ledger.importers._files import open_source
from ledger.importers._json_pieces import Piece, Torn, json_pieces
from ledger.importers._plain.scribe import Scribe
from ledger.protocols.drafting import Place
from ledger.protocols.exchanges import Exchanges
from ledger.protocols.tool_use import ToolResult, ToolUse

_CALLS_KEPT = 10_000


def pieces_of(
    path: Path, desk: Desk, spread: frozenset[str], format_name: str, session: str, inside: str | None = None
) -> Iterator[Piece | Item]:
    """The parts of a document; a damaged rest as items of a session."""
    with open_source(path) as stream:
        for number, piece in enumerate(json_pieces(stream, spread, inside=inside)):
            if isinstance(piece, Torn):
                scribe = Scribe(desk, format_name, session, "semantic")
                key = f"damage:{number}:{desk.keep.digest(piece.raw)[:16]}"
                draft = scribe.draft(Place(key), desk.damage(None, piece.reason, piece.raw))
                yield Item(scribe.session, key, [draft], None, piece.raw)
            else:
                yield piece


class _Asked(NamedTuple):
    """A tool call that a model asked for and of which no run was seen."""

    native_id: str
    call_id: str
    tool: str
    arguments: str


class Loop:
    """The loop of one session: model calls, and tools that say neither by which call nor, some, how they ended."""

    def __init__(self, desk: Desk, format_name: str, session: str, grade: Grade = "semantic") -> None:
        self.scribe = Scribe(desk, format_name, session, grade)
        self.desk = desk
        self.keep = desk.keep
        self.exchanges = Exchanges(self.scribe)
        self.tools = self.exchanges.tools
        self.session = self.scribe.session
        self._asked: list[_Asked] = []

    def note_calls(self, drafts: Iterable[Draft]) -> Iterator[Draft]:
        """Pass drafts on; remember the tool calls among them, of which a run is to be seen."""
        for draft in drafts:
            event = draft.event
            if isinstance(event, ToolCallRequested):
                found = self.tools.find(event.call_id)
                native = found.native_id if found is not None and found.native_id else event.call_id
                self._asked.append(_Asked(native, event.call_id, event.tool, event.arguments.digest))
                del self._asked[:-_CALLS_KEPT]
            yield draft

    def runs(self, tool: str, arguments: Any, place: Place) -> tuple[str, list[Draft]]:
        """A tool began to run: the call's id, and its drafts. Joined by name and arguments, else by name."""
        digest = None if arguments is None else self.tools.content(arguments, "arguments").digest
        named = [one for one in self._asked if one.tool == self.scribe.word(tool, "tool")]
        same = next((one for one in named if one.arguments == digest), next(iter(named), None))
        drafts: list[Draft] = []
        if same is None:
            use = ToolUse(f"{place.key}.run", tool, arguments)
            draft = self.tools.requested(use, place)
            drafts.append(draft)
            native, call_id = f"{place.key}.run", getattr(draft.event, "call_id", place.key)
        else:
            self._asked.remove(same)
            native, call_id = same.native_id, same.call_id
        drafts.append(self.scribe.draft(place, ToolCallStarted(call_id=call_id)))
        return native, drafts

    def settle(
        self,
        result: ToolResult,
        place: Place,
        *,
        outcome: Literal["returned", "failed", "denied", "unknown"] | None = None,
        error: str | None = None,
        duration_ms: int | None = None,
        rest: Any = None,
    ) -> Iterator[Draft]:
        """How a call ended, said once."""
        if self.tools.is_new(result):
            yield self.tools.settled(
                result, place, outcome=outcome, error=error, duration_ms=duration_ms, rest=rest
            )[0]

    def kept(self, native_type: str, body: Any, place: Place, *, recognized: bool = True) -> Draft:
        """A record that carries no act of the loop, whole."""
        name = self.scribe.word(native_type, "type") or "none"
        if not recognized:
            self.desk.tally.unknown[name] += 1
        event = SourceKept(native_type=name, recognized=recognized, body=self.keep.json(body, name))
        return self.scribe.draft(place, event)
