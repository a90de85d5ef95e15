"""Where an importer works: takes content in, counts, and hands over items. Knows no format."""

import hashlib
import re
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from ledger.events import Draft, Event
from ledger.events.compaction import CompactionDone
from ledger.events.model_call import ModelCallAnswered, ModelCallFailed, Usage
from ledger.events.record import Grade
from ledger.events.recovery import DamageFound
from ledger.events.tool_call import ToolCallRequested, ToolCallSettled
from ledger.recorder import ContextChain, Keeper

_LISTED = 1000
_CALLS_KEPT = 50_000
_OPEN_CALLS_KEPT = 200_000
_LONGEST_SESSION = 200
_UNSAFE = re.compile(r"[^\w.:@+=/~-]")


@dataclass(slots=True)
class Item:
    """One source record and the drafts made from it. The unit of idempotency: recorded whole, once."""

    session: str
    """Session that the drafts belong to."""

    key: str
    """Native identity of the source record within session and format: the same key on every import."""

    drafts: list[Draft]
    """Facts, in order. A `Sibling` cause counts within this list."""

    line: int | None = None
    """Line in the file, from 1."""

    check: bytes = b""
    """The source record's bytes, where they are cheap to have: the same key with others is another record."""

    cause: str | None = None
    """Key of the item in the same session that led to this one; for drafts that name no cause themselves.
    One that was never seen counts as a dangling parent."""

    claim: str | None = None
    """A name, unique over all sessions of the format, that this item's session claims if nobody has yet."""


class Known(NamedTuple):
    """Where an item stands that is in the ledger already."""

    seq: int
    """Seq of the first record made from it."""
    line: int
    """Line in its file."""


@dataclass
class Tally:
    """What an import report counts."""

    lines: int = 0
    """Lines of the file."""
    duplicates: int = 0
    """Source records that the file holds again, byte for byte."""
    dangling_parents: int = 0
    """Source records that continue one which was never written."""
    dangling: list[dict[str, Any]] = field(default_factory=list)
    """The first of these, with line and the parent that they name."""
    quarantined: list[dict[str, Any]] = field(default_factory=list)
    """Places that could not be read, or not without loss: line and reason of the first 1,000."""
    quarantined_more: int = 0
    """How many more there are."""
    repaired: list[dict[str, Any]] = field(default_factory=list)
    """Records that were read in spite of damage: line and reason of the first 1,000."""
    repaired_more: int = 0
    """How many more there are."""
    unknown: Counter[str] = field(default_factory=Counter)
    """Source records of types that the importer does not know, by type. They are kept whole."""
    native: Counter[str] = field(default_factory=Counter)
    """All source records read, by their type in the source's words."""
    counts: Counter[str] = field(default_factory=Counter)
    """Model calls, tool calls and the like."""
    tokens: Counter[str] = field(default_factory=Counter)
    """Tokens, each counted once."""
    sessions: dict[str, None] = field(default_factory=dict)
    """Sessions that the file holds records of."""
    secrets: Counter[str] = field(default_factory=Counter)
    """Secrets taken out, by kind."""
    notes: list[str] = field(default_factory=list)
    """Anything else that a reader of the report should know."""
    grade: Grade | None = None
    """What this file proves, where that is less or more than its format at best."""


class Desk:
    """Given to `read`: content goes through `keep`, oddities are counted here, nothing is written."""

    def __init__(
        self,
        keep: Keeper,
        file: str,
        path: Path,
        *,
        lookup: Callable[[str, str], Known | None] = lambda session, key: None,
        recorded: Callable[[str, str], bool] = lambda session, key: False,
        claimed: Callable[[str], str | None] = lambda claim: None,
        recall: Callable[[str, str, int], Event | None] = lambda session, key, place: None,
        foresee: Callable[[Iterable[tuple[str, str]], Iterable[str]], None] = lambda items, claims: None,
    ) -> None:
        self.keep = keep
        """Way in for content: `keep.json(value, where)`, `keep.text(...)`, `keep.raw(...)`."""
        self.file = file
        """The file as the user named it, for `Source.file`."""
        self.path = path
        """The file."""
        self.lookup = lookup
        """Finds an item of a session by its key, recorded by this import or an earlier one."""
        self.recall = recall
        """Gives an event of an item that is in the ledger, by the item's session and key and its place in the item."""
        self.recorded = recorded
        """Whether the ledger held an item of this session and key before this batch: cheap."""
        self.claimed = claimed
        """Tells which session made a claim; None when nobody did."""
        self.foresee = foresee
        """Looks up many at once, items by session and key and claims: `recorded` and `claimed` are cheaper then."""
        self.tally = Tally()
        """What the report will say."""
        self._names: OrderedDict[str, str] = OrderedDict()
        self._open_calls: OrderedDict[tuple[str, str], None] = OrderedDict()
        self._open_calls_more = 0
        self._usages: OrderedDict[tuple[str, str], Usage | None] = OrderedDict()

    def context(self) -> ContextChain:
        """A new, empty context for a session's model calls."""
        return ContextChain(self.keep)

    def fallback_session(self, format_name: str) -> str:
        """A session id for a file that names none: the same for the same file name and folder name."""
        name = "/".join(self.path.parts[-2:])
        return f"{format_name}-{hashlib.sha256(name.encode('utf-8', 'surrogateescape')).hexdigest()[:16]}"

    def session_name(self, text: str) -> str:
        """A source's name for a session as the ledger uses it: without secrets, `#`, blanks, endless length.

        The same on every import; most names stay as they are.
        """
        known = self._names.get(text)
        if known is not None:
            return known
        clean = self.keep.scalar(text, "session")
        name = _UNSAFE.sub("_", clean)
        if name != text or len(name) > _LONGEST_SESSION:
            digest = self.keep.digest(text.encode("utf-8", "surrogatepass"))[:16]
            name = f"{name[: _LONGEST_SESSION // 2]}-{digest}"
        self._names[text] = name
        if len(self._names) > _LISTED:
            self._names.popitem(last=False)
        return name

    @staticmethod
    def claim_of(session: str) -> int:
        """The number under which a session's claims are kept."""
        return (
            int.from_bytes(hashlib.sha256(session.encode("utf-8", "surrogatepass")).digest()[:8], "big") >> 1
        )

    def damage(
        self,
        line: int | None,
        reason: str,
        content: bytes | None,
        *,
        repaired: bool = False,
        lossy: bool = False,
    ) -> DamageFound:
        """Count a damaged place and give the event that keeps its bytes.

        `repaired`: its record was read all the same, and comes as an item of its own; `lossy`: but not all.
        """
        tally, entry = self.tally, {"line": line, "reason": reason}
        if repaired:
            tally.repaired_more += _list(tally.repaired, entry)
        if lossy or not repaired:
            tally.quarantined_more += _list(tally.quarantined, entry)
        kept = None if content is None else self.keep.raw(content, "damage")
        return DamageFound(reason=reason, content=kept, repaired=repaired)

    def dangle(self, line: int | None, parent: str) -> None:
        """Count a source record that continues one which was never written."""
        self.tally.dangling_parents += 1
        _list(self.tally.dangling, {"line": line, "parent": parent})

    def count(self, item: Item) -> None:
        """Count an item for the report. Called by the intake for every item but duplicates."""
        tally = self.tally
        if item.line is not None:
            tally.sessions[item.session] = None
        for draft in item.drafts:
            event = draft.event
            if isinstance(event, ModelCallAnswered):
                if not event.synthetic and (item.session, event.call_id) not in self._usages:
                    tally.counts["model_calls"] += 1
                self._count_tokens(item.session, event)
            elif isinstance(event, ModelCallFailed):
                tally.counts["failed_calls"] += 1
            elif isinstance(event, ToolCallRequested):
                tally.counts["tool_calls"] += 1
                self._open_calls[item.session, event.call_id] = None
                if len(self._open_calls) > _OPEN_CALLS_KEPT:
                    self._open_calls.popitem(last=False)
                    self._open_calls_more += 1
            elif isinstance(event, ToolCallSettled):
                self._count_result(item.session, event)
            elif isinstance(event, CompactionDone):
                tally.counts["compactions"] += 1

    def _count_result(self, session: str, event: ToolCallSettled) -> None:
        if event.result is None and event.outcome in ("not_started", "unknown"):
            return
        self.tally.counts["tool_results"] += 1
        if event.outcome in ("failed", "denied"):
            self.tally.counts["error_results"] += 1
        if event.orphan:
            self.tally.counts["orphan_results"] += 1
        else:
            self._open_calls.pop((session, event.call_id), None)

    def _count_tokens(self, session: str, event: ModelCallAnswered) -> None:
        """A revised answer counts in the place of the earlier one."""
        if event.synthetic:
            return
        for sign, usage in ((-1, self._usages.get((session, event.call_id))), (1, event.usage)):
            if usage is not None:
                self.tally.tokens["input"] += sign * (usage.input_tokens or 0)
                self.tally.tokens["output"] += sign * (usage.output_tokens or 0)
                self.tally.tokens["cache_read"] += sign * (usage.cache_read_tokens or 0)
                self.tally.tokens["cache_write"] += sign * (usage.cache_write_tokens or 0)
        self._usages[session, event.call_id] = event.usage
        if len(self._usages) > _CALLS_KEPT:
            self._usages.popitem(last=False)

    @property
    def unanswered(self) -> int:
        """Calls that were requested and have no result."""
        return len(self._open_calls) + self._open_calls_more


def _list(entries: list[dict[str, Any]], entry: dict[str, Any]) -> int:
    """List an entry if there is room; gives 1 if there is none."""
    if len(entries) >= _LISTED:
        return 1
    entries.append(entry)
    return 0
