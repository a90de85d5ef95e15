"""The session database (`SQLiteSession` and `SQLAlchemySession`): items of the Responses API, one in a row.

A row knows no agent, no usage and no response. The items that a model wrote between two inputs are taken as one answer.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ledger.events import Draft
from ledger.events.canonical import canonical_json, decode_json, spelled
from ledger.events.compaction import CompactionDone
from ledger.events.session import SessionStarted
from ledger.importers import Desk, Item
from ledger.importers._harness.story import Place
from ledger.importers._harness.values import moment, words
from ledger.importers._openai_agents.items import FORMAT, is_output
from ledger.importers._openai_agents.talk import Talk
from ledger.importers._sqlite import Database, Tables, open_database

_ROWS = (
    "select messages.id, messages.session_id, messages.message_data, messages.created_at "
    "from agent_messages as messages order by messages.session_id, messages.id"
)
_BESIDE = {
    "message_structure": (
        "session_id",
        "message_id",
        "branch_id",
        "message_type",
        "sequence_number",
        "user_turn_number",
        "branch_turn_number",
        "tool_name",
        "created_at",
    ),
    "turn_usage": (
        "session_id",
        "branch_id",
        "user_turn_number",
        "requests",
        "input_tokens",
        "output_tokens",
        "total_tokens",
        "input_tokens_details",
        "output_tokens_details",
        "created_at",
    ),
}
_BRANCHES = "the session has branches: their rows are told in the order of writing, as one conversation"
_EARLIER = "select count(*), max(id) from agent_messages where id < ?"


def is_session_database(tables: Tables) -> bool:
    """Whether the tables are those of the SDK."""
    return {"session_id", "message_data"} <= set(tables.get("agent_messages", ())) and (
        "session_id" in tables.get("agent_sessions", ())
    )


def session_items(path: Path, desk: Desk) -> Iterator[Item]:
    """The sessions of a database, one after the other, row by row."""
    with open_database(path) as database:
        reader: _Session | None = None
        for row_id, session, data, created in database.rows(_ROWS):
            desk.tally.lines += 1
            name = words(session) if isinstance(session, str) else None
            name = name or desk.fallback_session(FORMAT)
            if reader is None or reader.name != name:
                if reader is not None:
                    yield from reader.finish()
                number = row_id if isinstance(row_id, int) else 0
                before = database.row(_EARLIER, (number,)) or (0, 0)
                gone = number - 1 - (before[1] or 0) if isinstance(before[1] or 0, int) else 0
                reader = _Session(desk, name, gone)
            yield from reader.take(row_id, data, _time(created))
        if reader is not None:
            yield from reader.finish()
        for table in _BESIDE:
            yield from _beside(database, table, desk)


def _beside(database: Database, table: str, desk: Desk) -> Iterator[Item]:
    """Rows of `AdvancedSQLiteSession`: which branch and turn a row belongs to, and the usage of turns."""
    columns = database.tables().get(table, ())
    wanted = [name for name in _BESIDE[table] if name in columns]
    if "session_id" not in wanted:
        return
    for row in database.rows(f"select rowid, {', '.join(wanted)} from {table} order by rowid"):  # noqa: S608
        body = {
            name: value for name, value in zip(wanted, row[1:], strict=True) if not isinstance(value, bytes)
        }
        session = words(body.get("session_id")) or desk.fallback_session(FORMAT)
        desk.tally.native[table] += 1
        if body.get("branch_id") not in (None, "main") and _BRANCHES not in desk.tally.notes:
            desk.tally.notes.append(_BRANCHES)
        story = Talk(desk, desk.session_name(session)).story
        story.place = Place(f"{table}:{row[0]}", None, _time(body.get("created_at")), canonical_json(body))
        yield story.item([story.kept(table, body)])


def _time(value: Any) -> str | None:
    """SQLite's own form is UTC without saying so."""
    text = moment(value.replace(" ", "T")) if isinstance(value, str) else None
    return f"{text}Z" if text is not None and text[-1:].isdigit() and "+" not in text else text


class _Session:
    """One session of the database."""

    def __init__(self, desk: Desk, name: str, gone: int) -> None:
        self.name = name
        self._desk = desk
        self._gone = gone
        self._talk = Talk(desk, desk.session_name(name))
        self._answer: list[Any] = []
        self._answer_rows: list[Place] = []
        self._is_begun = False

    def take(self, row_id: Any, data: Any, time: str | None) -> Iterator[Item]:
        """One row."""
        line = self._desk.tally.lines
        raw = data.encode("utf-8", "surrogateescape") if isinstance(data, str) else data
        place = Place(f"row:{row_id}", line, time, raw if isinstance(raw, bytes) else b"")
        if not self._is_begun:
            self._is_begun = True
            yield self._begin(place)
        try:
            item = decode_json(raw) if isinstance(raw, bytes) else None
        except ValueError as error:
            yield from self.finish()
            self._talk.story.place = place
            event = self._desk.damage(line, f"expected a JSON item in row {row_id}: {error}", place.check)
            yield self._talk.story.item([self._talk.story.draft(event)])
            return
        kind = item.get("type") if isinstance(item, dict) else None
        role = item.get("role") if isinstance(item, dict) else None
        self._desk.tally.native[f"item:{spelled(kind or role or 'none')[:60]}"] += 1
        if kind == "compaction" and isinstance(item, dict):
            yield from self.finish()
            self._talk.story.place = place
            yield self._talk.story.item(self._compacted(item))
        elif is_output(item):
            self._answer.append(item)
            self._answer_rows.append(place)
        else:
            yield from self.finish()
            self._talk.story.place = place
            if isinstance(item, dict):
                yield self._talk.story.item(self._talk.message(item))
            else:
                name = f"item:{type(item).__name__}"
                yield self._talk.story.item([self._talk.story.kept(name, item, recognized=False)])

    def finish(self) -> Iterator[Item]:
        """The answer that is complete, now that something else follows."""
        if not self._answer:
            return
        answer, rows = self._answer, self._answer_rows
        self._answer, self._answer_rows = [], []
        first, story = rows[0], self._talk.story
        story.place = Place(first.key, first.line, first.time, b"\n".join(row.check for row in rows))
        not_seen = ("usage", "model", "where one answer ends and the next begins")
        drafts = list(self._talk.answer(f"answer-{first.key}", answer, not_seen=not_seen))
        yield story.item(drafts)

    def _begin(self, place: Place) -> Item:
        self._talk.story.place = Place("start", place.line)
        event = SessionStarted(harness=FORMAT)
        return self._talk.story.item([self._talk.story.draft(event)])

    def _compacted(self, item: dict[str, Any]) -> list[Draft]:
        """The history was deleted and written anew: what stands here up to the summary is all that is left of it."""
        talk, story = self._talk, self._talk.story
        story.say(item)
        gone = f"{self._gone} rows before the first of this session are gone" if self._gone else None
        event = CompactionDone(
            compaction_id=words(item.get("id")) or story.place.key,
            trigger="unknown",
            evidence="logged",
            evidence_detail=gone,
            context_after=story.context.head,
            context_added=story.context.take_added(),
            messages_after=len(story.context),
            summary=talk.keep.json(item, "compaction"),
        )
        story.missing = "what was deleted when the session was compacted"
        return [story.draft(event, rest=canonical_rest(item))]


def canonical_rest(item: dict[str, Any]) -> dict[str, Any] | None:
    """Native fields of a compaction beside its summary."""
    left = {name: value for name, value in item.items() if name not in ("id", "type", "encrypted_content")}
    return left if left and canonical_json(left) != b"{}" else None
