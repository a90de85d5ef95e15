"""One sample of an Inspect log: where it begins, what happened in it, how it ended."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any, BinaryIO, Literal

from ledger.events import Event
from ledger.events.canonical import canonical_json
from ledger.events.keeping import SourceKept
from ledger.events.record import Grade
from ledger.events.session import SessionEnded, SessionStarted
from ledger.importers import Desk, Item
from ledger.importers._inspect.events import Events
from ledger.importers._inspect.lanes import Lanes
from ledger.importers._inspect.pools import Pools
from ledger.importers._json_pieces import Torn, json_pieces
from ledger.importers._plain.conversation import Conversation
from ledger.importers._plain.scribe import Scribe, utc_time
from ledger.protocols.drafting import Place
from ledger.protocols.tool_use import text

_SPREAD = frozenset({"events"})
_POOLS = frozenset({"attachments", "message_pool", "call_pool", "events_data"})
_REPEATED = frozenset({"events", "messages", *_POOLS})
"""Fields of a sample that its events say, or that they only refer to."""


def read_sample(
    run: "Run",
    opened: Callable[[], AbstractContextManager[BinaryIO]],
    damage: Callable[[str, bytes | None], Item],
) -> Iterator[Item]:
    """A sample from a stream that can be opened twice. Its events are never in memory all at once."""
    sample: dict[str, Any] = {}
    with opened() as stream:
        for piece in json_pieces(stream, _SPREAD):
            if isinstance(piece, Torn):
                yield damage(piece.reason, piece.raw)
            elif len(piece.path) == 1:
                sample[str(piece.path[0])] = piece.value
            else:
                sample.setdefault("events", True)  # they come in the second reading
    with opened() as stream:
        events = (
            piece.value
            for piece in json_pieces(stream, _SPREAD)
            if not isinstance(piece, Torn) and len(piece.path) == 2
        )
        yield from run.sample(sample, events if sample.pop("events", None) else None)


class Run:
    """An evaluation, and what its samples have in common."""

    def __init__(self, desk: Desk, format_name: str, grade: Grade) -> None:
        self._desk = desk
        self._format = format_name
        self._grade = grade
        self._first: str | None = None
        self.header: dict[str, Any] = {}
        """Fields of the log beside its samples."""

    @property
    def first_session(self) -> str:
        """The session of the first sample; one of the file's own while there is none."""
        return self._first or self._desk.fallback_session(self._format)

    def sample(
        self, sample: Any, events: Iterator[Any] | None = None, *, is_bare: bool = False
    ) -> Iterator[Item]:
        """One sample. `events` where they are not in it; `is_bare`: it is a list of events and no more."""
        if not isinstance(sample, dict):
            self._desk.tally.unknown["sample"] += 1
            sample = {"value": sample}
        if not is_bare:
            self._desk.tally.native["samples"] += 1
        scribe = Scribe(self._desk, self._format, self._name(sample, is_bare=is_bare), self._grade)
        self._first = self._first or scribe.session
        yield self._started(scribe, sample)
        pools = Pools(sample)
        if events is None:
            listed = sample.get("events")
            events = iter(listed) if isinstance(listed, list) and listed else None
        if events is not None:
            yield from Events(Lanes(self._desk, scribe), pools).items(events)
        else:
            yield from self._messages(scribe, sample, pools)
        rest = {name: value for name, value in sample.items() if name not in _REPEATED}
        if rest:
            body = scribe.keep.json(pools.resolve(rest), "sample")
            yield self._item(
                scribe, "sample", SourceKept(native_type="sample", recognized=True, body=body), rest
            )
        if not is_bare:
            yield self._item(scribe, "end", _ended(scribe, sample), "end")

    def _name(self, sample: dict[str, Any], *, is_bare: bool) -> str:
        if is_bare:
            return self._desk.fallback_session(self._format)
        if named := text(sample.get("uuid")):
            return f"{self._format}-{named}"
        evaluation = self._evaluation
        run = text(evaluation.get("eval_id")) or text(evaluation.get("run_id"))
        start = (
            f"{self._format}-{run}" if run and run.strip(".") else self._desk.fallback_session(self._format)
        )
        return f"{start}-{sample.get('id')}-{sample.get('epoch')}"

    @property
    def _evaluation(self) -> dict[str, Any]:
        evaluation = self.header.get("eval")
        return evaluation if isinstance(evaluation, dict) else {}

    def _started(self, scribe: Scribe, sample: dict[str, Any]) -> Item:
        evaluation = self._evaluation
        packages = evaluation.get("packages")
        task, number = text(evaluation.get("task")), sample.get("id")
        name = f"{task} {number}, epoch {sample.get('epoch')}" if task and number is not None else None
        scribe.correlation = scribe.word(evaluation.get("run_id"), "run id")
        started = SessionStarted(
            harness="inspect_ai",
            harness_version=scribe.word(packages.get("inspect_ai"), "version")
            if isinstance(packages, dict)
            else None,
            name=scribe.word(name, "session name"),
            model=scribe.word(evaluation.get("model"), "model"),
            environment=scribe.keep.json(evaluation, "eval") if evaluation else None,
        )
        time = utc_time(sample.get("started_at")) or utc_time(evaluation.get("created"))
        return self._item(scribe, "start", started, "start", time)

    def _messages(self, scribe: Scribe, sample: dict[str, Any], pools: Pools) -> Iterator[Item]:
        """A sample without events: its messages are all there is."""
        messages = sample.get("messages")
        talk = Conversation(scribe, "inspect", model=text(self._evaluation.get("model")))
        for index, message in enumerate(messages if isinstance(messages, list) else [], start=1):
            yield talk.item(pools.resolve(message), Place(f"message:{index}", index))

    def _item(self, scribe: Scribe, key: str, event: Event, checked: Any, time: str | None = None) -> Item:
        place = Place(key, max(1, self._desk.tally.lines), time)
        return Item(scribe.session, key, [scribe.draft(place, event)], place.line, canonical_json(checked))


def _ended(scribe: Scribe, sample: dict[str, Any]) -> SessionEnded:
    outcome: Literal["completed", "failed", "aborted"] = "completed"
    reason = None
    error, limit = sample.get("error"), sample.get("limit")
    if error:
        outcome, reason = "failed", "error"
    elif isinstance(limit, dict):
        outcome, reason = "aborted", f"{limit.get('type')} limit"
    return SessionEnded(outcome=outcome, reason=scribe.word(reason, "reason"))
