"""What can executing code see? The sandbox, the surroundings and the secrets that the record shows."""

from collections import Counter, OrderedDict
from typing import Any

from ledger.audit import Reader
from ledger.effects.classes import command_in
from ledger.effects.words import words_of
from ledger.events import ContentRef, Record
from ledger.events.credential import CredentialUsed, SecretRedacted
from ledger.events.draw import Drawn
from ledger.events.governance import ModeChanged
from ledger.events.recovery import FilesSeen
from ledger.events.session import SessionResumed, SessionStarted
from ledger.events.tool_call import ToolCallRequested, ToolCallSettled
from replay.scorecard.answer import Answer, Asker, Evidence, nothing, some

_RUNNERS = frozenset("bash shell exec execute python interpreter terminal repl powershell".split())
_OPEN = frozenset({"danger-full-access", "off", "none", "disabled", "false", "full"})
_MOST_NAMES = 50
_MOST_CALLS = 1000


class Sight(Asker):
    """One session."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._seen = Evidence()
        self._tools: dict[str, None] = {}
        self._sandboxes: dict[str, None] = {}
        self._folders: dict[str, None] = {}
        self._surroundings: dict[str, None] = {}
        self._credentials: dict[str, None] = {}
        self._sandbox: str | None = None
        self._ran_in: Counter[str | None] = Counter()
        self._calls: OrderedDict[str, tuple[Record, str, str | None]] = OrderedDict()

    def take(self, record: Record) -> None:
        """One more record."""
        event = record.event
        match event:
            case ToolCallRequested():
                self._called(record, event)
            case ToolCallSettled() if (call := self._calls.pop(event.call_id, None)) is not None:
                if event.outcome not in ("denied", "not_started"):
                    self._ran(*call)
            case ModeChanged() if event.mode == "sandbox":
                self._sandbox = event.new
                self._note(self._sandboxes, event.new)
                self._seen.add(record, f"sandbox: {event.new}")
            case ModeChanged() if event.mode == "cwd":
                self._note(self._folders, event.new)
            case SessionStarted():
                if event.cwd is not None:
                    self._note(self._folders, event.cwd)
                    self._seen.add(record, "working directory")
                self._environment(record, event.environment)
            case SessionResumed():
                self._environment(record, event.environment)
            case Drawn() if event.kind == "environment":
                self._seen.add(record, "read from the environment")
            case FilesSeen():
                self._seen.add(record, "files of the workspace")
            case CredentialUsed():
                self._note(self._credentials, event.handle)
                self._seen.add(record, "credential used")
            case SecretRedacted():
                self._seen.add(record, "secret in the open")
            case _:
                pass

    def _called(self, record: Record, event: ToolCallRequested) -> None:
        arguments: Any = self._reader.value(event.arguments)
        fields = arguments if isinstance(arguments, dict) else {}
        if command_in(event.tool, fields) is None and not _RUNNERS & set(words_of(event.tool)):
            return
        if (before := self._calls.pop(event.call_id, None)) is not None:
            self._ran(*before)
        self._calls[event.call_id] = record, event.tool, self._sandbox
        if len(self._calls) > _MOST_CALLS:
            self._ran(*self._calls.popitem(last=False)[1])

    def _ran(self, record: Record, tool: str, sandbox: str | None) -> None:
        self._seen.add(record, "code ran")
        self._note(self._tools, tool)
        if sandbox in self._ran_in or len(self._ran_in) < _MOST_NAMES:
            self._ran_in[sandbox] += 1

    def _environment(self, record: Record, reference: ContentRef | None) -> None:
        value = self._reader.value(reference)
        if isinstance(value, dict):
            self._seen.add(record, "surroundings")
            for name in value:
                self._note(self._surroundings, str(name))

    def _note(self, names: dict[str, None], name: str) -> None:
        if len(names) < _MOST_NAMES:
            names[name[:200]] = None

    def answer(self) -> Answer:
        """The answer."""
        while self._calls:
            self._ran(*self._calls.popitem(last=False)[1])
        seen = self._seen
        confined = {name: count for name, count in self._ran_in.items() if name and name.lower() not in _OPEN}
        in_the_open = sum(
            count for name, count in self._ran_in.items() if name is not None and name not in confined
        )
        facts = {
            "code_calls": seen["code ran"],
            "tools": list(self._tools),
            "sandboxes": list(self._sandboxes),
            "calls_by_sandbox": {name or "(not on record)": count for name, count in self._ran_in.items()},
            "calls_without_sandbox": in_the_open,
            "folders": list(self._folders),
            "surroundings": list(self._surroundings),
            "environment_reads": seen["read from the environment"],
            "file_snapshots": seen["files of the workspace"],
            "credentials": list(self._credentials),
            "secrets_in_the_open": seen["secret in the open"],
        }
        if not seen["code ran"]:
            return nothing("sight", "no tool that runs code was called", **facts)
        witnesses = tuple(seen.witnesses)
        where = f"in {some(self._folders, 2)}" if self._folders else "in a folder that is not on record"
        secrets = seen["secret in the open"]
        beside = f"; {secrets} secrets stood in the open" if secrets else ""
        ran = f"code ran {seen['code ran']} times ({some(self._tools, 3)}) {where}"
        inside = ", ".join(f"{count} in the sandbox {name}" for name, count in list(confined.items())[:3])
        if in_the_open:
            told = (
                "without a sandbox" if in_the_open == seen["code ran"] else f"{in_the_open} without a sandbox"
            )
            told = f"{ran}, {', '.join(part for part in (told, inside) if part)}{beside}"
            return Answer("sight", "open", told, witnesses, facts)
        if confined and not self._ran_in[None]:
            return Answer("sight", "confined", f"{ran}, {inside}{beside}", witnesses, facts)
        if confined:
            told = f"{ran}, {inside}; what was around the other {self._ran_in[None]} is not on record{beside}"
            return Answer("sight", "partly known", told, witnesses, facts)
        if self._folders or self._surroundings or self._credentials or secrets:
            told = f"{ran}; whether a sandbox was around it is not on record{beside}"
            return Answer("sight", "partly known", told, witnesses, facts)
        return nothing("sight", f"{ran}, and nothing on record tells what it could see", **facts)
