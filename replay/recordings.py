"""The recorded exchanges of sessions, as an index: where each request and its answer stand. Holds no content.

An entry is some hundred bytes, so that a session of 100,000 exchanges is no burden; bodies and answers are read from
the ledger when they are asked for.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

from ledger.errors import ContentMissingError, InputError
from ledger.events import ContentRef, Record
from ledger.events.canonical import canonical_json, decode_json
from ledger.events.http import HttpAnswered, HttpRequested
from ledger.events.model_call import ModelCallAnswered, ModelCallFailed, ModelCallRequested
from ledger.events.session import SessionResumed, SessionStarted
from ledger.protocols.http_bodies import pairs_of
from ledger.protocols.responses import put_together
from ledger.protocols.tool_use import calls_in
from ledger.store import EventStore
from ledger.store.content import content_digest
from replay.context import rebuild_request
from replay.matching import Canonical, Folders, ModelRequest, canonical, model_request
from replay.matching.lanes import Lane
from replay.raw import http_of, raw_pieces

_NOT_PASSED_ON = frozenset(
    (
        "content-length",
        "content-encoding",
        "transfer-encoding",
        "connection",
        "keep-alive",
        "date",
        "trailer",
        "upgrade",
    )
)

Piece = tuple[int, bytes]
"""Milliseconds since the request, and bytes of the answer's body."""


class Form(NamedTuple):
    """What matching keeps of the canonical form of a recorded request."""

    key: bytes
    """Canonical key."""

    lane: Lane
    """Conversation."""

    rules: tuple[str, ...]
    """Rules that fired."""

    operation: str
    """What was asked of the provider."""

    model: str | None
    """Model asked for."""

    ids: tuple[str, ...]
    """Random ids, by first appearance."""


@dataclass(slots=True)
class Recording:
    """One recorded exchange."""

    session: str
    """Session that holds it."""
    seq: int
    """Record of the request."""
    protocol: str | None
    """Shape of the body; None for traffic that is no model call."""
    mark: bytes
    """Digest of the body; for other traffic, of method, target and body."""
    count: int = 0
    """Messages of the request."""
    lane: str | None = None
    """Conversation, as the client names it; None where it does not."""
    started: int = 0
    """When it was sent, by the session's clock."""
    first_byte: int | None = None
    """When the answer began."""
    ended: int | None = None
    """When it ended; None where no end is recorded."""
    answer_seq: int | None = None
    """Record of the answer or the failure."""
    is_broken: bool = False
    """Whether the client hung up, or the answer was cut."""
    is_used: bool = False
    """Whether the replay has had it."""
    form: Form | None = None
    """Canonical form, once it was needed."""


class RecordedAnswer(NamedTuple):
    """What the provider sent back, as far as it was recorded."""

    status: int | None
    """HTTP status; None where no answer came."""

    headers: list[tuple[str, str]]
    """Headers that may be passed on."""

    pieces: list[Piece]
    """The body in pieces, without content encoding."""

    ended: str
    """`complete`, `cut` by the provider, or `aborted` by the client."""


class Recordings:
    """The exchanges of some sessions; `upto`: only those that had ended at that place of the whole ledger."""

    def __init__(
        self, store: EventStore, sessions: Sequence[str], folders: Folders, upto: int | None = None
    ) -> None:
        self._store = store
        self._upto = upto
        self._folders = folders
        self.entries: list[Recording] = []
        """All of them, session by session in recorded order."""
        self.not_kept: list[tuple[str, int]] = []
        """Requests whose body the source did not show: (session, seq)."""
        for session in sessions:
            self._scan(session)
        if upto is not None:
            self.entries = [entry for entry in self.entries if entry.answer_seq is not None]

    # -- index -----------------------------------------------------------------------------------------------

    def _scan(self, session: str) -> None:
        open_calls: dict[str, Recording] = {}
        clock = _Clock()
        for record in self._store.read(session):
            if self._upto is not None and record.position > self._upto:
                break
            event = record.event
            if isinstance(event, ModelCallRequested):
                entry = self._requested(record, event)
                if entry is not None:
                    entry.started = clock.start(record, event.at_us)
                    open_calls[event.call_id] = entry
            elif isinstance(event, ModelCallAnswered | ModelCallFailed):
                found = open_calls.get(event.call_id)
                if found is not None:
                    found.answer_seq = record.seq
                    found.is_broken = (
                        isinstance(event, ModelCallAnswered) and event.completeness != "complete"
                    )
                    found.first_byte = clock.at(event.first_byte_at_us)
                    found.ended = clock.end(found.started, record, event.ended_at_us, event.duration_ms)
                    if not isinstance(event, ModelCallAnswered) or event.revision == 0:
                        del open_calls[event.call_id]
            elif isinstance(event, HttpRequested):
                body = event.body.digest if event.body is not None else ""
                mark = other_mark(event.method, event.target, body)
                entry = Recording(session, record.seq, None, mark, started=clock.start(record, event.at_us))
                open_calls[f"http {event.exchange_id}"] = entry
                self.entries.append(entry)
            elif isinstance(event, HttpAnswered):
                found = open_calls.pop(f"http {event.exchange_id}", None)
                if found is not None:
                    found.answer_seq = record.seq
                    found.ended = clock.end(found.started, record, event.ended_at_us, None)
            elif isinstance(event, SessionStarted | SessionResumed):
                clock.begin()

    def _requested(self, record: Record, event: ModelCallRequested) -> Recording | None:
        if event.body_digest is None:
            self.not_kept.append((record.session, record.seq))
            return None
        mark = bytes.fromhex(event.body_digest)
        entry = Recording(
            record.session, record.seq, event.protocol, mark, event.context_length, lane=event.lane
        )
        self.entries.append(entry)
        return entry

    # -- content ---------------------------------------------------------------------------------------------

    def request(self, entry: Recording) -> ModelRequest:
        """The request of an entry, rebuilt. Raises ContentMissingError, LedgerError."""
        rebuilt = rebuild_request(self._store, entry.session, entry.seq)
        record = self._store.record(entry.session, entry.seq)
        target, headers = self._around(record)
        return model_request(rebuilt.protocol, target, headers, rebuilt.body or {})

    def canonical(self, entry: Recording) -> Canonical:
        """Its canonical form, whole."""
        request = self.request(entry)
        found = canonical(request, self._folders)
        if entry.form is None:
            entry.form = Form(found.key, found.lane, found.rules, request.operation, request.model, found.ids)
        return found

    def form(self, entry: Recording) -> Form:
        """What matching needs of its canonical form; made at the first asking."""
        if entry.form is None:
            self.canonical(entry)
        assert entry.form is not None
        return entry.form

    def answer(self, entry: Recording) -> RecordedAnswer:
        """Its answer. Raises ContentMissingError; InputError when a streamed answer was not kept as such."""
        if entry.answer_seq is None:
            return RecordedAnswer(None, [], [], "cut")
        record = self._store.record(entry.session, entry.answer_seq)
        event = record.event
        if isinstance(event, ModelCallAnswered):
            return self._answered(record, event, entry)
        if isinstance(event, ModelCallFailed):
            return self._failed(record, event)
        assert isinstance(event, HttpAnswered)
        pieces = raw_pieces(self._store, event.stream) if event.stream is not None else []
        around = http_of(self._store, event.http) if event.http is not None else {}
        return RecordedAnswer(event.status, _passed_on(around), pieces, _ended(around, event.outcome))

    def calls(self, entry: Recording) -> list[str]:
        """Names of the tools that its answer calls, as far as it is kept."""
        if entry.answer_seq is None:
            return []
        event = self._store.record(entry.session, entry.answer_seq).event
        if not isinstance(event, ModelCallAnswered):
            return []
        try:
            return [call.tool for call in calls_in(self._json(event.message))]
        except (ContentMissingError, ValueError):
            return []

    def _answered(self, record: Record, event: ModelCallAnswered, entry: Recording) -> RecordedAnswer:
        around = self._response(record, event.http)
        status = _status(around, 200)
        default = {"partial": "cut", "aborted": "aborted"}.get(event.completeness, "complete")
        headers = _passed_on(around)
        if event.stream is not None:
            return RecordedAnswer(
                status, headers, raw_pieces(self._store, event.stream), _ended(around, default)
            )
        kind = next((value for name, value in headers if name.lower() == "content-type"), "")
        if "event-stream" in kind or event.first_byte_ms is not None:
            raise InputError(
                f"{record.place}: the pieces of this streamed answer were not kept, since a secret lay across them"
            )
        message = self._json(event.message)
        envelope = None if event.envelope is None else self._json(event.envelope)
        body = put_together(entry.protocol or "", message, envelope)
        raw = body.encode() if isinstance(body, str) else canonical_json(body)
        return RecordedAnswer(status, headers, [(event.duration_ms or 0, raw)], _ended(around, default))

    def _failed(self, record: Record, event: ModelCallFailed) -> RecordedAnswer:
        around = self._response(record, event.http)
        if event.stream is not None:
            pieces = raw_pieces(self._store, event.stream)
        elif event.detail is not None and event.status is not None:
            content = self._store.content(event.detail.digest)
            pieces = [(event.duration_ms or 0, content)]
        else:
            pieces = []
        headers = _passed_on(around) or ([("content-type", "application/json")] if pieces else [])
        is_left = event.error == "client went away"
        ended = "complete" if event.status is not None else "aborted" if is_left else "cut"
        return RecordedAnswer(event.status, headers, pieces, _ended(around, ended))

    def _around(self, record: Record) -> tuple[str | None, list[tuple[str, str]]]:
        """Target and headers of a request, from its own field or from what an importer kept beside it."""
        event = record.event
        assert isinstance(event, ModelCallRequested)
        if event.http is not None:
            around = http_of(self._store, event.http)
            return str(around.get("target") or ""), pairs_of(around.get("headers"))
        rest = self._rest(record)
        url = rest.get("url")
        return (url if isinstance(url, str) else None), pairs_of(rest.get("headers"))

    def _response(self, record: Record, http: ContentRef | None) -> dict[str, Any]:
        return http_of(self._store, http) if http is not None else self._rest(record)

    def _rest(self, record: Record) -> dict[str, Any]:
        digest = record.source.rest if record.source is not None else None
        if digest is None:
            return {}
        try:
            found = decode_json(self._store.content(digest))
        except (ContentMissingError, ValueError):
            return {}
        return found if isinstance(found, dict) else {}

    def _json(self, ref: ContentRef) -> Any:
        content = self._store.content(ref.digest)
        return content.decode("utf-8", "replace") if ref.kind == "text" else decode_json(content)


class _Clock:
    """The times of one session as numbers that grow: by its own clock, by the source's times, or by order alone."""

    def __init__(self) -> None:
        self._base = 0
        self._latest = 0

    def begin(self) -> None:
        """The recorder's clock starts again."""
        self._base = self._latest + 1 if self._latest else 0

    def at(self, time: int | None) -> int | None:
        """A time by the recorder's clock."""
        return None if time is None else self._seen(self._base + time)

    def start(self, record: Record, time: int | None) -> int:
        """When a request was sent."""
        if time is not None:
            return self._seen(self._base + time)
        return self._seen(_microseconds(record.occurred_at) or self._latest + 1)

    def end(self, started: int, record: Record, time: int | None, duration_ms: int | None) -> int:
        """When its answer ended."""
        if time is not None:
            return self._seen(self._base + time)
        if duration_ms is not None:
            return self._seen(started + duration_ms * 1000)
        return self._seen(max(started + 1, self._latest + 1))

    def _seen(self, time: int) -> int:
        self._latest = max(self._latest, time)
        return time


def other_mark(method: str, target: str, body_digest: str) -> bytes:
    """What tells traffic apart that is no model call."""
    return f"{method.upper()} {target} {body_digest}".encode("utf-8", "replace")


def model_mark(salt: bytes, request: ModelRequest) -> bytes:
    """What tells the bodies of model requests apart: the digest of what is recorded as the body."""
    body = {**request.body}
    if request.protocol == "gemini":
        body.pop("model", None)  # it is in the address
    return content_digest(salt, canonical_json(body))


def sessions_of_run(store: EventStore, session: str) -> list[str]:
    """A session and those whose ids extend its own: its sub-agents."""
    return [session, *(one for one in _starting_with(store, session) if one != session)]


def _starting_with(store: EventStore, session: str) -> Iterator[str]:
    for found in store.recorder.find_sessions(session, 1000):
        rest = found[len(session) :]
        if rest and not rest[0].isalnum():
            yield found


def _microseconds(time: str | None) -> int | None:
    try:
        return round(datetime.fromisoformat(time).timestamp() * 1_000_000) if time else None
    except (ValueError, OverflowError):
        return None


def _passed_on(around: dict[str, Any]) -> list[tuple[str, str]]:
    return [
        (name, value) for name, value in pairs_of(around.get("headers")) if name.lower() not in _NOT_PASSED_ON
    ]


def _status(around: dict[str, Any], default: int) -> int:
    status = around.get("status")
    return status if isinstance(status, int) and 100 <= status < 1000 else default


def _ended(around: dict[str, Any], default: str) -> str:
    ended = around.get("ended")
    if ended in ("complete", "cut", "aborted"):
        return str(ended)
    return "cut" if default == "unreachable" else default
