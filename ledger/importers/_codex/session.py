"""One Codex thread as its rows arrive: answers put together, history kept, items handed on in file order."""

from collections import OrderedDict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ledger.events import ContentRef, Draft
from ledger.events.compaction import CompactionDone
from ledger.events.input import ContextInjected, MessageReceived
from ledger.events.keeping import SourceKept
from ledger.events.model_call import ModelCallFailed
from ledger.events.recovery import CheckpointTaken, RolledBack
from ledger.events.session import SessionResumed
from ledger.importers import Desk, Item
from ledger.importers._codex.answers import Answer, Requests, response_of
from ledger.importers._codex.calls import Calls
from ledger.importers._codex.context import parts_of, starts_turn
from ledger.importers._codex.events import Events
from ledger.importers._codex.governance import Governance
from ledger.importers._codex.history import History
from ledger.importers._codex.opening import Opening
from ledger.importers._codex.row import Row, Scribe, text_or_none
from ledger.importers._codex.usage import UsageMeter

_CLOSING = ("response_item", "turn_context", "compacted")
_ORDINALS_KEPT = 4096
_PROMPTS_KEPT = 10_000


class ThreadReader:
    """Turns the rows of one thread into items."""

    def __init__(self, desk: Desk, session: str, path: Path) -> None:
        self.session = session
        self._desk = desk
        self._scribe = Scribe(desk, session)
        self._history = History(desk)
        self._governance = Governance(self._scribe)
        self._calls = Calls(self._scribe)
        self._events = Events(self._scribe, self._calls, self._roll_back)
        self._requests = Requests(self._scribe, self._governance, self._history)
        self._opening = Opening(self._scribe, self._governance, self._requests, self._history, path)
        self._usage = UsageMeter()
        self._answer: Answer | None = None
        self._ordinals: OrderedDict[int, int] = OrderedDict()
        self._prompts: list[str] = []
        self._prompt_in_turn = False
        self._summing = False
        self._last_key: str | None = None
        self._answered: tuple[str | None, str | None] = (None, None)
        self._cuts = self._earlier_cuts()

    def _earlier_cuts(self) -> dict[int, int]:
        """Lines at which earlier imports found the file's end inside an answer: line -> number."""
        cuts: dict[int, int] = {}
        while (known := self._desk.lookup(self.session, f"cut:{len(cuts) + 1}")) is not None:
            if known.line in cuts:
                break
            cuts[known.line] = len(cuts) + 1
        return cuts

    def take(self, row: Row) -> Iterator[Item]:
        """One row of the file."""
        self._desk.tally.native[row.native_type] += 1
        if self._is_repeat(row):
            self._desk.tally.duplicates += 1
            return
        if row.ordinal is not None and row.ordinal < self._opening.own_from:
            yield self._inherited(row)
            return
        yield from self._gathered(row)
        if row.line in self._cuts and self._answer is not None:
            yield from self._cut(self._answer, self._cuts[row.line])

    def finish(self) -> Iterator[Item]:
        """The end of the file; an answer that may still grow says so."""
        answer, self._answer = self._answer, None
        if answer is None:
            return
        if answer.rows[-1].line not in self._cuts:
            yield from self._cut(answer, len(self._cuts) + 1)
        for row in answer.rows:
            yield from self._single(row)

    def damaged(self) -> None:
        """A line was lost: what it held may be missing from every context until the next compaction."""
        self._history.missing = self._history.missing or "what damaged lines held"

    def _is_repeat(self, row: Row) -> bool:
        """Whether the very same record came before: a file that was appended to twice."""
        if row.ordinal is None:
            return False
        content = hash(row.raw)
        if self._ordinals.get(row.ordinal) == content:
            return True
        self._ordinals[row.ordinal] = content
        if len(self._ordinals) > _ORDINALS_KEPT:
            self._ordinals.popitem(last=False)
        return False

    def _gathered(self, row: Row) -> Iterator[Item]:
        """Rows of one answer are held until it is whole."""
        answer = self._answer
        if row.is_model_item:
            if answer is not None and (answer.closed or answer.is_full):
                yield from self._release()
                answer = None
            if answer is None:
                answer = self._answer = Answer()
            answer.add(row)
            return
        if row.kind == "token_usage_record":
            yield from self._usage_record(row)
            return
        if (
            row.kind == "event_msg"
            and row.sub == "token_count"
            and (usage := self._usage.count(row)) is not None
        ):
            if answer is not None and answer.usage is None:
                answer.usage = usage
                answer.add(row)
            else:
                yield from self._release()
                self._answer = Answer(usage=usage)
                self._answer.add(row)
            return
        if answer is None:
            yield from self._single(row)
            return
        answer.add(row)
        if row.kind in _CLOSING:
            answer.closed = True
        if row.kind == "compacted" and response_of(row) == answer.response_id:
            answer.purpose = "compaction"
        if answer.is_done_with(row):
            yield from self._release()

    def _usage_record(self, row: Row) -> Iterator[Item]:
        usage = self._usage.record(row)
        if self._answer is None or self._answer.by_record:
            yield from self._release()
            self._answer = Answer()
        answer = self._answer
        answer.usage, answer.by_record, answer.closed = usage, True, True
        answer.response_id = response_of(row)
        answer.add(row)

    def _release(self) -> Iterator[Item]:
        """Hand on the answer that was held, and the rows that came with it."""
        answer, self._answer = self._answer, None
        if answer is None:
            return
        first = answer.rows[0].line
        if not answer.requested:
            yield self._request_item(answer)
        if answer.known != answer.extent:
            key = f"answer:{answer.key}"
            cause = f"request:{answer.key}"
            yield Item(self.session, key, [self._requests.answered(answer)], first, cause=cause)
            self._last_key = key
        self._answered = (answer.response_id, Requests.call_id(answer))
        self._summing = answer.purpose == "compaction"
        for row in answer.rows:
            yield from self._single(row)
        self._summing = False

    def _cut(self, answer: Answer, number: int) -> Iterator[Item]:
        """The file ends, or once ended, inside this answer: what there is of it, to be revised later."""
        if not answer.requested:
            answer.requested = True
            yield self._request_item(answer)
        draft = self._requests.answered(answer)
        answer.revision += 1
        answer.known = answer.extent
        yield Item(
            self.session, f"cut:{number}", [draft], answer.rows[-1].line, cause=f"request:{answer.key}"
        )
        self._last_key = f"cut:{number}"

    def _request_item(self, answer: Answer) -> Item:
        self._scribe.turn = answer.rows[0].turn or self._scribe.turn
        draft = self._requests.requested(answer)
        return Item(self.session, f"request:{answer.key}", [draft], answer.rows[0].line, cause=self._last_key)

    def _single(self, row: Row) -> Iterator[Item]:
        """The item of one row. What a model wrote beside its calls is in the answer already."""
        if row.turn is not None:
            self._scribe.turn = row.turn
        cause = self._last_key
        if row.sub.endswith("_output"):
            cause = self._calls.key_of(row.payload.get("call_id"))
        drafts = list(self._drafts(row))
        if drafts:
            yield Item(self.session, row.key, drafts, row.line, row.raw, cause=cause)
            if row.kind == "response_item" and not row.is_model_item:
                self._last_key = row.key

    def _drafts(self, row: Row) -> Iterator[Draft]:
        if row.kind == "session_meta":
            if not self._opening.done:
                yield from self._opening.drafts(row)
                return
            if row.payload.get("id") == self.session:
                yield self._scribe.draft(row, SessionResumed(how="session_meta repeated"))
            yield self._kept(row)
        elif row.kind == "response_item":
            yield from self._response_item(row)
        elif row.kind == "event_msg":
            if row.sub in ("task_started", "turn_started"):
                self._prompt_in_turn = False
            if row.sub == "stream_error" or (row.sub == "error" and row.payload.get("codex_error_info")):
                yield from self._model_failed(row)
            yield from self._events.drafts(row)
        elif row.kind == "turn_context":
            yield from self._governance.turn_context(row)
            yield self._kept(row)
        elif row.kind == "world_state":
            yield from self._governance.world_state(row)
            yield self._kept(row)
        elif row.kind == "compacted":
            yield from self._compacted(row)
        else:
            known = row.kind in ("token_usage_record", "state", "inter_agent_communication_metadata")
            yield self._kept(row, recognized=known)

    def _kept(self, row: Row, *, recognized: bool = True, prefix: str = "") -> Draft:
        name = prefix + row.native_type
        if not recognized:
            self._desk.tally.unknown[name] += 1
        body = self._desk.keep.json(row.payload, name)
        return self._scribe.draft(row, SourceKept(native_type=name, recognized=recognized, body=body))

    def _inherited(self, row: Row) -> Item:
        """A row that a sub-agent's file repeats from its parent: context, but no act of this thread."""
        self._history.replay([row])
        return Item(self.session, row.key, [self._kept(row, prefix="inherited:")], row.line, row.raw)

    def _response_item(self, row: Row) -> Iterator[Draft]:
        payload, sub = row.payload, row.sub
        written = self._summing and row.is_model_item  # a summary's own answer never joins the history
        ref = None if written else self._history.add(payload, sub)
        if row.is_model_item:
            if sub.endswith("_call"):
                yield from self._calls.requested(row)
        elif sub == "message" and ref is not None:
            if starts_turn(payload):
                self._prompt_in_turn = True
                self._prompts.append(row.key)
                del self._prompts[:-_PROMPTS_KEPT]
            yield from self._message(row, ref)
        elif sub == "agent_message" and ref is not None:
            sender = text_or_none(payload.get("author"))
            event = MessageReceived(origin="agent", message=ref, sender=sender)
            yield self._scribe.draft(row, event, "agent", rest=row.payload.get("metadata"))
        elif sub == "ghost_snapshot":
            commit = payload.get("ghost_commit")
            name = commit.get("id") if isinstance(commit, dict) else commit
            files = self._desk.keep.json(payload, "snapshot")
            checkpoint = CheckpointTaken(
                checkpoint_id=text_or_none(name) or row.key, context=self._history.context.head, files=files
            )
            yield self._scribe.draft(row, checkpoint)
        elif sub.endswith("_output"):
            yield from self._calls.settled(row, ref)
        else:
            yield self._kept(
                row, recognized=sub in ("compaction", "compaction_summary", "context_compaction")
            )

    def _message(self, row: Row, whole: ContentRef) -> Iterator[Draft]:
        keep = self._desk.keep
        parts = parts_of(row.payload, in_subagent=self._requests.purpose == "sub-agent")
        rest: Any = {
            name: row.payload[name] for name in row.payload if name not in ("type", "role", "content", "id")
        }
        for part in parts:
            shown = whole if len(parts) == 1 else keep.json(part.block, "message")
            if part.provenance is None:
                actor = part.origin if part.origin != "unknown" else "system"
                received = MessageReceived(
                    origin=part.origin,
                    message=shown,
                    trust="trusted" if part.origin == "human" else "unknown",
                )
                yield self._scribe.draft(row, received, actor, rest=rest)
            else:
                injected = ContextInjected(provenance=part.provenance, message=shown, artifact=part.artifact)
                yield self._scribe.draft(row, injected, rest=rest)
                if part.artifact is not None and part.rules is not None:
                    yield from self._governance.rules(row, part.artifact, part.rules)
            rest = None

    def _compacted(self, row: Row) -> Iterator[Draft]:
        """The history is replaced; the log gives the new one whole, or (before 2025-11) only the summary."""
        payload, context = row.payload, self._history.context
        before, length = context.head, len(context)
        replacement = payload.get("replacement_history")
        message = text_or_none(payload.get("message"))
        summary = None
        if isinstance(replacement, list):
            summary = self._history.replace(replacement)
        if summary is None or not isinstance(replacement, list):
            made_up = {
                "type": "message",
                "role": "user",
                "content": [{"type": "input_text", "text": message or ""}],
            }
            summary = self._history.replace([made_up])
            self._history.missing = "what the compaction kept beside its summary"
        event = CompactionDone(
            compaction_id=row.key,
            trigger="auto" if self._prompt_in_turn else "unknown",
            evidence="logged",
            context_before=before,
            context_after=context.head,
            context_added=context.take_added(),
            messages_before=length,
            messages_after=len(context),
            summary=self._desk.keep.text(message, "summary") if message is not None else summary,
            model=self._governance.modes.get("model"),
            call_id=self._compaction_call(row),
            tokens_before=self._usage.last_total,
        )
        yield self._scribe.draft(row, event, rest=row.rest(("message", "replacement_history")))

    def _compaction_call(self, row: Row) -> str | None:
        """The model call that wrote the summary, where the row names its response."""
        response, call_id = self._answered
        return call_id if response is not None and response == response_of(row) else None

    def _roll_back(self, row: Row, turns: int) -> Iterator[Draft]:
        """Turns were taken back: the state before the first of their prompts counts again."""
        to_seq = None
        if 0 < turns <= len(self._prompts):
            known = self._desk.lookup(self.session, self._prompts[-turns])
            to_seq = known.seq - 1 if known is not None and known.seq > 1 else None
            del self._prompts[-turns:]
        self._history.roll_back(turns)
        yield self._scribe.draft(row, RolledBack(to_seq=to_seq, reason=f"{turns} turns rolled back"), "human")

    def _model_failed(self, row: Row) -> Iterator[Draft]:
        """A model call that broke off, as far as the log tells of it."""
        failed = Answer()
        failed.add(row)
        yield self._requests.requested(failed)
        info = row.payload.get("codex_error_info")
        kind = info if isinstance(info, str) else next(iter(info), None) if isinstance(info, dict) else None
        event = ModelCallFailed(
            call_id=Requests.call_id(failed),
            error=text_or_none(kind) or row.sub,
            detail=self._desk.keep.json(row.payload, "error"),
            will_retry=True if row.sub == "stream_error" else None,
        )
        yield self._scribe.draft(row, event)
