"""Sessions written by hand: each event one JSON object, its contents in place of the references to them.

`{"type": "tool_call.requested", "call_id": "1", "tool": "Bash", "arguments": {"command": "ls"}}`. A content that is a
text is kept as text, anything else as JSON. `@session` names the session (`main` by default), `@agent`, `@actor`
(`kind` or `kind:id`) and `@file` (`name:line`) say what stands around the event, `@context` gives the messages of a
model call.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path
from types import UnionType
from typing import Any, Self, Union, cast, get_args, get_origin

from ledger.audit import Detector, Finding, query
from ledger.audit.report import Report
from ledger.events import BY_NAME, Actor, ContentRef, Draft, Event, Source
from ledger.events.record import ActorKind
from ledger.home import Ledger, open_ledger
from ledger.lake.feed import Stored
from ledger.lake.memory import MemoryLake
from ledger.recorder import Keeper
from ledger.recorder.context import ContextChain
from ledger.views.findings import audit
from ledger.views.lake import lake_feed

Told = dict[str, Any]
"""An event as it is written by hand."""


class History:
    """A ledger of its own. Use as a context manager."""

    def __init__(self, home: Path) -> None:
        self.ledger: Ledger = open_ledger(home, f"sqlite:///{home / 'ledger.sqlite'}")
        self._keepers: dict[str, Keeper] = {}
        self._chains: dict[str, ContextChain] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.ledger.close()

    def add(self, events: Iterable[Told], prefix: str = "") -> list[tuple[str, int]]:
        """Keep events; give the session and seq of each. `prefix` is put before the names of their sessions."""
        return [self._add(told, prefix) for told in events]

    def _add(self, told: Told, prefix: str) -> tuple[str, int]:
        session = prefix + told.get("@session", "main")
        keeper = self._keepers.setdefault(session, self.ledger.recorder.keeper())
        fields = {name: value for name, value in told.items() if not name.startswith("@") and name != "type"}
        event = BY_NAME[told["type"]]
        for name in fields:
            fields[name] = self._kept(event, name, fields[name], keeper)
        if "@context" in told:
            chain = self._chains.setdefault(session, ContextChain(keeper))
            chain.replace([keeper.json(message) for message in told["@context"]])
            fields |= {
                "context": chain.head,
                "context_length": len(chain),
                "context_added": chain.take_added(),
            }
        for name in ("to_session", "from_session", "parent", "origin"):
            if name in fields and prefix and name in event.model_fields and event.TYPE != "draw.drawn":
                fields[name] = _session(event, name, fields[name], prefix)
        draft = Draft(event.model_validate(fields), **_around(told))
        records = self.ledger.recorder.append(session, [draft], keeper)
        return session, records[0].seq

    def _kept(self, event: type[Event], name: str, value: Any, keeper: Keeper) -> Any:
        annotation = event.model_fields[name].annotation
        if _holds(annotation, ContentRef) and value is not None:
            return keeper.text(value, name) if isinstance(value, str) else keeper.json(value, name)
        if name == "charter" or name == "artifacts":
            return [
                {"artifact": artifact, "digest": keeper.text(text).digest} for artifact, text in value.items()
            ]
        return value

    def findings(self, detectors: Sequence[Detector], sessions: Iterable[str] | None = None) -> list[Finding]:
        """What detectors find in it."""
        return self.report(detectors, sessions).findings

    def report(self, detectors: Sequence[Detector], sessions: Iterable[str] | None = None) -> Report:
        """The whole answer."""
        lake = MemoryLake(lake_feed(self.ledger.store).contents)
        if any(detector.sql is not None for detector in detectors):
            store: Any = self.ledger.store
            for session in store.sessions():
                rows = store.recorder.select_events(session)
                lake.add(
                    session,
                    [Stored(row.id, session, row.originator_version, row.topic, row.state) for row in rows],
                )
        wanted = None if sessions is None else set(sessions)
        return audit(
            self.ledger.store,
            detectors,
            lambda detector, some: query(lake.connection, detector, some),
            wanted,
        )


def _holds(annotation: Any, kind: type) -> bool:
    if get_origin(annotation) in (Union, UnionType):
        return any(_holds(one, kind) for one in get_args(annotation))
    return annotation is kind


def _session(event: type[Event], name: str, value: Any, prefix: str) -> Any:
    is_session = name != "origin" or event.TYPE == "session.forked"
    return prefix + value if is_session and value is not None else value


def _around(told: Told) -> dict[str, Any]:
    around: dict[str, Any] = {}
    if "@agent" in told:
        around["agent"] = told["@agent"]
    if "@actor" in told:
        kind, _, name = told["@actor"].partition(":")
        around["actor"] = Actor(cast(ActorKind, kind), name or None)
    if "@file" in told:
        file, _, line = told["@file"].rpartition(":")
        around["source"] = Source("hand", file=file, line=int(line))
    if "@at" in told:
        around["occurred_at"] = told["@at"]
    return around
