"""One conversation of a file of chat messages, with the fields that stand beside its messages."""

import re
from collections.abc import Iterator
from typing import Any

from ledger.events import Draft
from ledger.events.canonical import canonical_json
from ledger.events.keeping import SourceKept
from ledger.events.record import Grade
from ledger.events.session import SessionEnded, SessionStarted
from ledger.importers import Desk, Item
from ledger.importers._plain.conversation import Conversation
from ledger.importers._plain.scribe import Scribe, identity
from ledger.protocols.drafting import Place
from ledger.protocols.tool_use import text

_OPENING = 2
_NAMES = ("messages", "traj", "history")
_SPEAKER = re.compile(r"[^()]{1,100}\([^()]{1,100}\)")
_DESCRIBED = {"suite_name": "agentdojo", "traj": "tau-bench", "history": "agent-log"}
"""Field by which a kind of record is known, and the harness that it names."""


def messages_name(record: Any) -> str | None:
    """Name under which a record keeps its messages, if it does."""
    if not isinstance(record, dict):
        return None
    for name in _NAMES:
        if isinstance(record.get(name), list) and (name != "traj" or "task_id" in record):
            return name
    return None


class ChatRecord:
    """Takes fields and messages in the order of the file; what it opens with gives its session a name."""

    def __init__(self, desk: Desk, format_name: str, where: list[Any]) -> None:
        self._desk = desk
        self._format = format_name
        self._where = where
        self._fields: dict[str, Any] = {}
        self._held: list[tuple[Any, str, int | None]] = []
        self._talk: Conversation | None = None
        self._scribe: Scribe | None = None
        self._count = 0
        self._list_name = ""

    @property
    def session(self) -> str:
        """The session, by a name that stays the same when messages are added at the end of the file."""
        if self._scribe is not None:
            return self._scribe.session
        opening = [message for message, _, _ in self._held[:_OPENING]]
        told = {
            name: value
            for name, value in self._fields.items()
            if isinstance(value, str | int) and name not in ("utility", "security", "reward")
        }
        known = {
            name: told[name] for name in sorted(told) if name.endswith(("id", "_name", "trial", "index"))
        }
        return f"chat-{identity(self._desk.path.parts[-2:], self._where, known, opening)}"

    @property
    def has_messages(self) -> bool:
        """Whether a message was taken."""
        return bool(self._held) or self._talk is not None

    def field(self, name: str, value: Any) -> None:
        """A field beside the messages."""
        self._fields[name] = value

    def message(self, message: Any, name: str, line: int | None = None) -> Iterator[Item]:
        """A message; `name` is that of its list."""
        self._held.append((message, name, line))
        if self._talk is not None or len(self._held) >= _OPENING:
            yield from self._release()

    def oddity(self, value: Any, line: int) -> Iterator[Item]:
        """A line that is neither message nor record: what describes the file, or anything."""
        yield from self._open(line)
        assert self._scribe is not None
        is_metadata = isinstance(value, dict) and value.keys() == {"metadata"}
        name = "metadata" if is_metadata else f"line:{type(value).__name__}"
        self._desk.tally.native[name] += 1
        if not is_metadata:
            self._desk.tally.unknown[name] += 1
        body = self._desk.keep.json(value, name)
        place = Place(f"line:{line}", line)
        event = SourceKept(native_type=name, recognized=is_metadata, body=body)
        yield self._item(place, [self._scribe.draft(place, event)], value)

    def finish(self, *, is_whole: bool = True) -> Iterator[Item]:
        """The end of the record: what stood beside the messages, kept whole, and how the run ended."""
        if not self._held and not self._fields and self._talk is None:
            return
        yield from self._release()
        scribe, harness = self._scribe, self._harness
        assert scribe is not None
        if self._fields:
            kind = f"{harness}.record"
            self._desk.tally.native[kind] += 1
            body = self._desk.keep.json(self._fields, kind)
            place = Place("record", self._line)
            event = SourceKept(native_type=kind, recognized=True, body=body)
            yield self._item(place, [scribe.draft(place, event)], self._fields)
        if harness in ("agentdojo", "tau-bench") and is_whole:
            place = Place("end", self._line)
            failed = bool(self._fields.get("error"))
            ended = SessionEnded(
                outcome="failed" if failed else "completed",
                reason="the run ended with an error" if failed else None,
            )
            yield self._item(place, [scribe.draft(place, ended)], failed)
        self._fields = {}

    @property
    def _line(self) -> int:
        return max(1, self._count)

    @property
    def _harness(self) -> str:
        names = {*self._fields, *(name for _, name, _ in self._held), self._list_name}
        return next((harness for name, harness in _DESCRIBED.items() if name in names), "chat")

    def _release(self) -> Iterator[Item]:
        yield from self._open(self._held[0][2] if self._held else None)
        held, self._held = self._held, []
        assert self._talk is not None
        for message, _, line in held:
            self._count += 1
            yield self._talk.item(message, Place(f"message:{self._count}", line or self._count))

    def _open(self, line: int | None) -> Iterator[Item]:
        """Begin the session, once."""
        if self._scribe is not None:
            return
        messages = [message for message, _, _ in self._held]
        harness = self._harness
        named = harness == "agent-log" or any(_speaks_by_name(message) for message in messages)
        grade: Grade = "skeleton" if named else "semantic"
        if named:
            self._desk.tally.grade = grade
        self._scribe = scribe = Scribe(self._desk, self._format, self.session, grade)
        self._list_name = self._held[0][1] if self._held else ""
        self._talk = Conversation(scribe, _protocol(harness, messages), named=named, model=self._model)
        place = Place("start", line or 1)
        agent = self._fields.get("pipeline_name")
        started = SessionStarted(
            harness="chat" if harness == "agent-log" else harness,
            name=scribe.word(self._name(), "session name"),
            agent=scribe.word(agent, "agent"),
            model=scribe.word(self._model, "model"),
        )
        yield self._item(place, [scribe.draft(place, started)], "start")

    @property
    def _model(self) -> str | None:
        return text(self._fields.get("model"))

    def _name(self) -> str | None:
        fields = self._fields
        if isinstance(fields.get("suite_name"), str):
            return f"{fields['suite_name']} suite"
        if "task_id" in fields:
            trial = fields.get("trial")
            return f"task {fields['task_id']}" + (f", trial {trial}" if trial is not None else "")
        return None

    def _item(self, place: Place, drafts: list[Draft], checked: Any) -> Item:
        assert self._scribe is not None
        return Item(self._scribe.session, place.key, drafts, place.line, canonical_json(checked))


def _speaks_by_name(message: Any) -> bool:
    """Whether a message's role is an agent with what it does, such as `Orchestrator (thought)`."""
    return isinstance(message, dict) and bool(_SPEAKER.fullmatch(str(message.get("role"))))


def _protocol(harness: str, messages: list[Any]) -> str:
    """The shape of the messages, by what the first of them look like."""
    if harness == "agentdojo":
        return "agentdojo"
    for message in messages:
        content = message.get("content") if isinstance(message, dict) else None
        for block in content if isinstance(content, list) else ():
            if isinstance(block, dict) and block.get("type") in ("tool_use", "tool_result"):
                return "anthropic.messages"
    return "openai.chat"
