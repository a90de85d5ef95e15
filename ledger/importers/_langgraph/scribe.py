"""What every draft of one session has in common, and the facts that a checkpoint's own fields give."""

import re
from datetime import UTC, datetime
from typing import Any

from ledger.events import ContentRef, Draft, Sibling, Source
from ledger.events.record import Actor, ActorKind, Event, Grade
from ledger.importers import Desk, Item
from ledger.importers._langgraph.messages import text_or_none
from ledger.importers._langgraph.saver import Key, Saved
from ledger.importers._langgraph.values import as_text

FORMAT = "langgraph"
"""Name of the format."""

GRADE: Grade = "semantic"
"""What it proves."""

_UTC = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?Z")


class Step:
    """One checkpoint with the facts around it."""

    def __init__(self, key: Key, saved: Saved, line: int) -> None:
        self.key = key
        """Where it stands."""
        self.id = as_text(key.id)
        """Its id."""
        self.saved = saved
        """What is in it."""
        self.line = line
        """Which row of the database it was, in reading order."""
        self.body: dict[str, Any] = saved.body if isinstance(saved.body, dict) else {}
        """The checkpoint's fields."""
        self.metadata: dict[str, Any] = saved.metadata if isinstance(saved.metadata, dict) else {}
        """Its metadata."""

    @property
    def values(self) -> dict[str, Any]:
        """Values by channel."""
        values = self.body.get("channel_values")
        return values if isinstance(values, dict) else {}

    @property
    def source(self) -> str:
        """`input`, `loop`, `update` or `fork`."""
        return text_or_none(self.metadata.get("source")) or "unknown"

    @property
    def time(self) -> str | None:
        """When it was taken, in UTC."""
        given = self.body.get("ts")
        if not isinstance(given, str):
            return None
        if _UTC.fullmatch(given):
            return given
        try:
            return datetime.fromisoformat(given).astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        except (ValueError, OverflowError):
            return None

    @property
    def agent(self) -> str | None:
        """Agent that it belongs to, where the graph names one."""
        return text_or_none(self.metadata.get("lc_agent_name"))

    @property
    def is_finished(self) -> bool:
        """Whether no node waits to run."""
        if not self.values and not self.body:
            return False
        version = self.body.get("v")
        if not isinstance(version, int) or version < 3:
            return False
        return not any(
            name.startswith(("branch:", "start:"))
            or name == "__start__"
            or (name == "__pregel_tasks" and value)
            for name, value in self.values.items()
        )

    def delta_channels(self) -> set[str]:
        """Channels that the checkpoint does not hold, because its saver keeps only what was written to them."""
        counters = self.metadata.get("counters_since_delta_snapshot")
        return {name for name in counters if name not in self.values} if isinstance(counters, dict) else set()


class Scribe:
    """Makes the drafts and items of one session."""

    def __init__(self, desk: Desk, session: str, thread: str, agent: str | None, depth: int) -> None:
        self.desk = desk
        self.session = session
        """Session that all of it belongs to."""
        self.agent = agent
        """Its agent."""
        self.depth = depth
        """How many graphs it lies in."""
        self.thread = thread
        """Its thread, as the application names it."""

    def draft(
        self,
        event: Event,
        item: str,
        *,
        time: str | None = None,
        actor: ActorKind | None = None,
        cause: int | str | Sibling | None = None,
        rest: ContentRef | None = None,
    ) -> Draft:
        """A fact read from the row that `item` names."""
        return Draft(
            event,
            occurred_at=time,
            actor=None if actor is None else Actor(actor, self.agent if actor == "agent" else None),
            cause=cause,
            correlation=self.thread,
            agent=self.agent,
            depth=self.depth,
            source=Source(FORMAT, self.desk.file, item, None, None if rest is None else rest.digest),
            grade=GRADE,
        )

    def item(
        self,
        key: str,
        drafts: list[Draft],
        line: int | None,
        *,
        cause: str | None = None,
        check: bytes = b"",
        claim: str | None = None,
    ) -> Item:
        """Facts that stand or fall together."""
        return Item(self.session, key, drafts, line, check, cause, claim)
