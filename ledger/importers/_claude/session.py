"""One Claude Code session as its rows arrive: puts answers together and hands items on in order."""

from collections import OrderedDict
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from ledger.events import ContentRef, Draft, Event, Source
from ledger.events.governance import ModeChanged
from ledger.events.model_call import ModelCallRequested
from ledger.events.record import Grade
from ledger.events.recovery import RolledBack
from ledger.events.session import SessionResumed, SessionStarted
from ledger.events.tool_call import ToolCallRequested
from ledger.importers._claude.answers import Answer
from ledger.importers._claude.conversation import Conversation
from ledger.importers._claude.delegations import Delegations
from ledger.importers._claude.file_history import KINDS, Backups
from ledger.importers._claude.journal import Journal
from ledger.importers._claude.others import (
    actor_of,
    attachment_events,
    attachment_fields,
    failed_call,
    state_events,
)
from ledger.importers._claude.row import Row, count_of, name_of
from ledger.importers._claude.tools import call_events, decision_event, message_event, result_event
from ledger.intake import Desk, Item

FORMAT = "claude-code"
"""Name of the format, in sources and for `--format`."""

_FIRST_JOURNAL = (2, 1, 200)
_FIRST_SEAM = (2, 1)
_WAITING_ROWS = 3000
_WAITING_BYTES = 64 * 1024 * 1024
_ANSWERS_KEPT = 16
_CALLS_KEPT = 50_000
_MODES = {"permissionMode": "approval", "cwd": "cwd", "gitBranch": "git_branch"}
_SURROUNDINGS = ("gitBranch", "entrypoint", "userType", "agentId")


class Origin(NamedTuple):
    """Where a sub-agent comes from."""

    session: str
    """Session that it belongs to."""

    agent: str
    """Its id."""

    call_id: str | None
    """Call that started it, where that is known."""

    meta: dict[str, Any]
    """What the file beside its log says of it."""


class SessionReader:
    """Turns the rows of one session (or sub-agent) into items."""

    def __init__(
        self, desk: Desk, session: str, origin: Origin | None = None, backups: Backups | None = None
    ) -> None:
        self.session = session
        """Its name in the ledger."""
        self.claims: list[str] = []
        """Claimed by the next items, one each: see `Item.claim`."""
        self._desk = desk
        self._origin = origin
        self._backups = backups
        self._was_here = desk.recorded(session, "start")
        self._agent = None if origin is None else name_of(origin.meta.get("agentType")) or origin.agent
        self._depth = 0 if origin is None else count_of(origin.meta.get("spawnDepth")) or 1
        self._merged = desk.keep.json({"merge": "same-role"}, "layout")
        self._conversation = Conversation(desk)
        self._journal = Journal(desk)
        self._journaled = False
        self._answer: Answer | None = None
        self._waiting: list[Row] = []
        self._waiting_bytes = 0
        self._answers: OrderedDict[str, Answer] = OrderedDict()
        self._calls: OrderedDict[str, None] = OrderedDict()
        self._steady: dict[str, str] = {}
        self._prompt_missing = False
        self._boundary: Row | None = None
        self._leaf: str | None = None
        self.delegations = Delegations(desk, origin.session if origin else session)
        """Work handed to sub-agents."""

    def start(self, row: Row) -> Item:
        """The session's first event, from its first row."""
        data = row.data
        surroundings = {name: data[name] for name in _SURROUNDINGS if name in data}
        if data.get("sessionId") != self.session:
            surroundings["sessionId"] = data.get("sessionId")
        for name in ("sessionId", "version", "cwd", *_SURROUNDINGS):
            if isinstance(value := data.get(name), str):
                self._steady[name] = value
        self._prompt_missing = self._origin is not None and row.kind == "assistant"
        event = SessionStarted(
            harness="claude-code",
            harness_version=name_of(data.get("version")),
            agent=self._agent,
            model=name_of(self._origin.meta.get("model")) if self._origin else None,
            cwd=name_of(data.get("cwd")),
            parent=self._origin.session if self._origin else None,
            parent_call=self._origin.call_id if self._origin else None,
            environment=self._desk.keep.json(surroundings, "surroundings"),
        )
        source = Source(FORMAT, self._desk.file, "start")
        draft = Draft(event, row.time, source=source, agent=self._agent, depth=self._depth, grade="semantic")
        return Item(self.session, "start", [draft])

    def settle(self) -> Iterator[Item]:
        """What waits for more rows, as it is."""
        yield from self._close_answer()
        yield from self._close_boundary(None)

    def finish(self) -> Iterator[Item]:
        """What still waits at the end of the file."""
        yield from self.settle()
        self._desk.tally.grade = "near-wire" if self._journaled else (self._desk.tally.grade or "semantic")

    def take(self, row: Row) -> Iterator[Item]:
        """Items of the next row, and of those that waited for it."""
        self._desk.tally.native[row.native_type] += 1
        if row.is_answer and not row.is_repeated:
            yield from self._take_answer(row)
        elif self._answer is None or (row.ends_answer and not row.is_repeated) or self._has_waited_enough:
            yield from self._close_answer()
            yield from self._plain(row)
        else:
            self._wait(row)

    @property
    def _has_waited_enough(self) -> bool:
        return len(self._waiting) >= _WAITING_ROWS or self._waiting_bytes >= _WAITING_BYTES

    def _wait(self, row: Row) -> None:
        self._waiting.append(row)
        self._waiting_bytes += len(row.raw)

    def _take_answer(self, row: Row) -> Iterator[Item]:
        current = self._answer
        if current is not None and (current.message_id != row.message_id or self._has_waited_enough):
            yield from self._close_answer()
            current = None
        if current is None:
            yield from self._close_boundary(None)
            before = self._answers.pop(row.message_id, None)
            current = self._answer = before or Answer(row.message_id, row.request_ref or row.message_id)
        current.rows.append(row)
        self._wait(row)
        self.delegations.expect(row)

    def _close_answer(self) -> Iterator[Item]:
        """Request, answer, then the rows that waited, in file order."""
        answer, waiting = self._answer, self._waiting
        self._answer, self._waiting, self._waiting_bytes = None, [], 0
        if answer is None:
            return
        first, last = answer.rows[0], answer.rows[-1]
        steady = dict(self._steady)
        name = f"answer:{answer.message_id}"
        cause = first.parent
        if not (answer.emitted or answer.is_synthetic or self._journal.knows(answer.call_id)):
            request = self._draft(first, self._request(answer.call_id, first))
            yield Item(self.session, f"request:{answer.message_id}", [request], first.line, cause=cause)
            cause = f"request:{answer.message_id}"
        known = answer.emitted > 0 or (
            self._was_here and self._desk.recorded(self.session, f"{name}:{first.key}")
        )
        message = answer.message(self._desk.keep)
        event = answer.event(message, revision=len(answer.rows) - 1 if known else 0)
        rest = self._desk.keep.json(answer.rest(event, steady), "assistant rows")
        draft = self._draft(last, event, rest=rest.digest)
        yield Item(self.session, f"{name}:{last.key}", [draft], first.line, cause=cause)
        for key in {row.key: None for row in answer.rows[answer.emitted : -1] if row.key != last.key}:
            # So that a file that holds only some of these rows adds no second, shorter answer.
            yield Item(self.session, f"{name}:{key}", [], last.line)
        if not answer.is_error:
            self._conversation.answers(answer.rows, message, answer.shown)
            answer.shown = message
            if self._is_from(_FIRST_JOURNAL):
                self._journal.answered(answer, message)
        answer.emitted = len(answer.rows)
        self._answers[answer.message_id] = answer
        if len(self._answers) > _ANSWERS_KEPT:
            self._answers.popitem(last=False)
        uuids = {row.uuid for row in answer.rows}
        for row in waiting:
            if row.is_answer and not row.is_repeated:
                # A parent outside the answer may be one that was never written.
                own = row is first or row.parent in uuids
                yield self._answer_row(row, f"{name}:{last.key}" if own else row.parent)
            else:
                yield from self._plain(row)

    def _is_from(self, version: tuple[int, ...]) -> bool:
        """Whether the rows come from this version of the harness or a later one."""
        if self._journaled:
            return True
        parts = self._steady.get("version", "").split(".")[:3]
        return tuple(int(part) for part in parts if part.isdecimal() and len(part) < 9) >= version

    def _request(self, call_id: str, row: Row) -> ModelCallRequested:
        """A request that the log does not hold: its messages are those that the log holds."""
        chain = self._conversation.chain
        missing = ("messages[0]",) if self._prompt_missing else ()
        return ModelCallRequested(
            call_id=call_id,
            purpose="main" if self._origin is None else "sub-agent",
            protocol="anthropic.messages",
            model=row.model,
            provider="anthropic",
            context=chain.head,
            context_length=len(chain),
            context_added=chain.take_added(),
            layout=self._merged,
            completeness="none" if not len(chain) else "partial" if missing else "messages",
            not_seen=(*missing, "system", "tools", "parameters", "reminders"),
        )

    def _answer_row(self, row: Row, cause: str | None) -> Item:
        drafts = [self._draft(row, event) for event in self._mode_events(row)]
        for event in call_events(self._desk.keep, row):
            drafts.append(self._draft(row, event))
            if isinstance(event, ToolCallRequested):
                self._calls[event.call_id] = None
                if len(self._calls) > _CALLS_KEPT:
                    self._calls.popitem(last=False)
                if (started := self.delegations.started(row, event)) is not None:
                    drafts.append(self._draft(row, started))
        self._leaf = row.uuid or self._leaf
        return self._item(row, drafts, cause)

    def _plain(self, row: Row) -> Iterator[Item]:
        if row.is_repeated:
            yield self._item(row, [], None)
            return
        if row.is_boundary:
            yield from self._close_boundary(None)
            self._boundary = row
            return
        if row.is_summary or row.starts_turn:
            yield from self._close_boundary(row if row.is_summary else None)
        drafts = [self._draft(row, event) for event in self._mode_events(row)]
        attachment = row.data.get("attachment")
        if row.kind == "user" and row.content is not None:
            drafts.extend(self._user_drafts(row))
        elif row.kind == "api-request":
            request = self._journal.request(row, self._conversation.chain, side=self._origin is not None)
            self._conversation.request_replaced_it()
            self._journaled = True
            drafts.append(self._draft(row, request, rest=self._rest(row), grade="near-wire"))
        elif (learnt := self._journal.learn(row)) is not None:
            kept, field = learnt
            drafts.extend(self._drafts(row, kept, self._rest(row, field), grade="near-wire"))
        elif row.kind == "attachment" and isinstance(attachment, dict):
            events = attachment_events(self._desk.keep, row, attachment)
            drafts.extend(self._drafts(row, events, self._rest(row, *attachment_fields(row, attachment))))
        elif row.kind == "system" and row.data.get("subtype") == "api_error":
            failure = failed_call(self._desk.keep, row, row.request_ref or self._journal.failed())
            drafts.append(self._draft(row, failure, rest=self._rest(row, "error")))
        elif row.kind in KINDS and self._backups is not None:
            drafts.extend(self._drafts(row, self._backups.events(row, self.session), None))
        else:
            states, recognized = state_events(self._desk.keep, row)
            if not recognized:
                self._desk.tally.unknown[row.native_type] += 1
            drafts.extend(self._drafts(row, states, None))
        if row.uuid is not None:
            if row.content is None or row.kind != "user":
                self._conversation.passes(row)
            self._leaf = row.uuid
        yield self._item(row, drafts, row.parent)

    def _user_drafts(self, row: Row) -> Iterator[Draft]:
        if row.starts_turn and (rolled_back := self._rollback(row)) is not None:
            yield rolled_back
        # Hashes are worth their time only where a journal may name them.
        message = self._conversation.hears(row, seamed=self._is_from(_FIRST_SEAM))
        if self._is_from(_FIRST_JOURNAL):
            self._journal.asked(row, message)
        yield from self._drafts(row, self._user_events(row, message), self._rest_of_user(row))

    def _user_events(self, row: Row, message: ContentRef) -> Iterator[Event]:
        keep = self._desk.keep
        for block in row.results:
            shown = message if len(row.all_blocks) == 1 else keep.json(block, "tool result")
            yield result_event(
                keep, row, block, shown, orphan=row.call_id(block, "tool_use_id") not in self._calls
            )
            if (returned := self.delegations.returned(row, block)) is not None:
                yield returned
            if (decision := decision_event(row, block)) is not None:
                yield decision
        if len(row.results) < len(row.all_blocks) or not row.results:
            yield message_event(row, message, to_agent=self._origin is not None)
            if (notified := self.delegations.notified(row)) is not None:
                yield notified

    def _mode_events(self, row: Row) -> Iterator[ModeChanged | SessionResumed]:
        """What changed in what every row repeats."""
        steady, data = self._steady, row.data
        version = data.get("version")
        if version != steady.get("version") and (version := name_of(version)) is not None:
            if "version" in steady:
                yield SessionResumed(how=f"version {version}")
            steady["version"] = version
        for name, mode in _MODES.items():
            value, old = data.get(name), steady.get(name)
            if value != old and (value := name_of(value)) is not None and value != old:
                self._steady[name] = value
                yield ModeChanged(
                    mode=mode, old=old, new=value, cause="startup" if old is None else "unknown"
                )

    def _rollback(self, row: Row) -> Draft | None:
        """A prompt that continues an older row than the last one: a rewind, which leaves no other trace."""
        if row.parent is None or row.parent == self._leaf or not self._conversation.rewinds_to(row.parent):
            return None
        found = self._desk.lookup(self.session, row.parent)
        return self._draft(
            row, RolledBack(to_seq=None if found is None else found.seq, reason="rewind", evidence="inferred")
        )

    def _close_boundary(self, summary: Row | None) -> Iterator[Item]:
        """A compaction: the boundary row, and the summary row that follows it."""
        row, self._boundary = self._boundary, None
        if row is None:
            return
        draft = self._draft(row, self._conversation.compact(row, summary), rest=self._rest(row))
        parent = row.parent or name_of(row.data.get("logicalParentUuid"))
        if summary is None:
            yield self._item(row, [draft], parent)
            return
        yield Item(self.session, f"{row.key}+{summary.key}", [draft], row.line, cause=parent)
        yield self._item(row, [], None)

    def _item(self, row: Row, drafts: list[Draft], cause: str | None) -> Item:
        claim = self.claims.pop() if self.claims else None
        return Item(self.session, row.key, drafts, row.line, row.raw, cause=cause, claim=claim)

    def _rest(self, row: Row, *shown: str) -> str | None:
        rest = row.rest(self._steady, *shown)
        return self._desk.keep.json(rest, "row").digest if rest else None

    def _rest_of_user(self, row: Row) -> str | None:
        rest = row.rest_of_user(self._steady)
        return self._desk.keep.json(rest, "row").digest if rest else None

    def _drafts(
        self, row: Row, events: Iterable[Event], rest: str | None, grade: Grade = "semantic"
    ) -> Iterator[Draft]:
        for event in events:
            yield self._draft(row, event, rest=rest, grade=grade)
            rest = None

    def _draft(self, row: Row, event: Event, *, rest: str | None = None, grade: Grade = "semantic") -> Draft:
        return Draft(
            event,
            row.time,
            actor_of(event, self._agent),
            correlation=row.correlation,
            agent=self._agent,
            depth=self._depth,
            source=Source(FORMAT, self._desk.file, row.uuid or row.key, row.line, rest),
            grade=grade,
        )
