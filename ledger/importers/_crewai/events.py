"""Events of CrewAI's bus, from a dump or from a checkpoint. Tells one run; knows no file."""

from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import Any

from ledger.events import Draft
from ledger.events.canonical import canonical_json
from ledger.events.model_call import Usage
from ledger.events.recovery import CheckpointTaken
from ledger.events.session import SessionEnded, SessionStarted
from ledger.importers import Desk, Item
from ledger.importers._frameworks.document import Loop
from ledger.importers._frameworks.printed import calls_of, is_mangled, unprinted
from ledger.importers._harness.values import number, record, rest, words
from ledger.importers._plain.scribe import milliseconds_between, utc_time
from ledger.protocols.drafting import Place
from ledger.protocols.exchanges import Ask
from ledger.protocols.tool_use import ToolResult

FORMAT = "crewai"
"""The importer's name."""

_BUS = (
    "source_fingerprint",
    "source_type",
    "fingerprint_metadata",
    "parent_event_id",
    "previous_event_id",
    "triggered_by_event_id",
    "started_event_id",
    "emission_sequence",
    "task_id",
    "task_name",
    "agent_id",
)
_PARAMETERS = ("temperature", "top_p", "max_tokens", "stream", "seed", "stop_sequences", "frequency_penalty")
_KEPT = 50_000
_KNOWN = frozenset(
    {
        "default_env",
        "agent_execution_started",
        "agent_execution_completed",
        "agent_execution_error",
        "agent_logs_started",
        "agent_logs_execution",
        "task_started",
        "task_completed",
        "task_failed",
        "flow_created",
        "flow_started",
        "flow_finished",
        "method_execution_started",
        "method_execution_finished",
        "llm_stream_chunk",
        "checkpoint_started",
        "checkpoint_failed",
        "checkpoint_fork_started",
        "checkpoint_fork_completed",
        "checkpoint_restore_started",
        "checkpoint_restore_completed",
        "checkpoint_pruned",
        "tool_failure_detected",
        "hook_dispatched",
        "llm_thinking_chunk",
    }
)


class Run:
    """One run of a crew."""

    def __init__(self, desk: Desk, session: str) -> None:
        self.loop = Loop(desk, FORMAT, session)
        self.tokens = 0
        """Tokens of the calls seen: of prompts and answers."""
        self._seen: OrderedDict[str, None] = OrderedDict()
        self._running: dict[str, str] = {}
        self._asks: dict[str, Ask] = {}
        self._failed_calls: dict[str, None] = {}
        self._tellers: dict[str, Callable[[dict[str, Any], Place], Iterator[Draft]]] = {
            "crew_kickoff_started": self._started,
            "crew_kickoff_completed": self._completed,
            "crew_kickoff_failed": self._failed,
            "llm_call_started": self._asked,
            "llm_call_completed": self._answered,
            "llm_call_failed": self._unanswered,
            "tool_usage_started": self._tool_runs,
            "tool_usage_finished": self._tool_returned,
            "tool_usage_error": self._tool_failed,
            "checkpoint_completed": self._saved,
        }

    def event(self, value: Any, line: int) -> Item:
        """One event."""
        fields = record(value)
        kind = words(fields.get("type")) or "none"
        tally, scribe = self.loop.desk.tally, self.loop.scribe
        tally.lines += 1
        tally.native[kind[:60]] += 1
        key = words(fields.get("event_id")) or f"event:{line}"
        place = Place(key, line, utc_time(fields.get("timestamp")))
        scribe.agent = scribe.word(fields.get("agent_role"), "agent")
        scribe.correlation = scribe.word(fields.get("task_id"), "task")
        teller = self._tellers.get(kind)
        drafts = list(teller(fields, place)) if teller is not None else []
        if not drafts:
            is_known = teller is not None or kind in _KNOWN
            drafts = [self.loop.kept(kind, value, place, recognized=is_known)]
        cause = self._cause(fields)
        self._seen[key] = None
        for kept in (self._seen, self._running, self._asks, self._failed_calls):
            if len(kept) > _KEPT:
                del kept[next(iter(kept))]
        return Item(self.loop.session, key, drafts, line, canonical_json(value), cause)

    def _cause(self, fields: dict[str, Any]) -> str | None:
        """The event that led to this one, where it stands before it: handlers run in threads, and may swap two."""
        for name in ("started_event_id", "triggered_by_event_id", "previous_event_id", "parent_event_id"):
            key = words(fields.get(name))
            if key is not None and key in self._seen:
                return key
        return None

    def _started(self, fields: dict[str, Any], place: Place) -> Iterator[Draft]:
        name = self.loop.scribe.word(fields.get("crew_name"), "crew")
        beside = rest(fields, "type", "event_id", "timestamp", "crew_name")
        yield self.loop.scribe.draft(place, SessionStarted(harness=FORMAT, name=name), rest=beside)

    def _completed(self, fields: dict[str, Any], place: Place) -> Iterator[Draft]:
        total = number(fields.get("total_tokens"))
        if total is not None and total != self.tokens:
            self.loop.desk.tally.notes.append(
                f"the crew reports {total} tokens, its model calls add up to {self.tokens}: agents that share "
                "an LLM are counted once for each; the calls count here"
            )
        yield self.loop.scribe.draft(place, SessionEnded(outcome="completed"), rest=fields)

    def _failed(self, fields: dict[str, Any], place: Place) -> Iterator[Draft]:
        reason = self.loop.scribe.word(fields.get("error"), "error")
        yield self.loop.scribe.draft(place, SessionEnded(outcome="failed", reason=reason), rest=fields)

    def _asked(self, fields: dict[str, Any], place: Place) -> Iterator[Draft]:
        given = fields.get("messages")
        listed = [{"role": "user", "content": given}] if isinstance(given, str) else given
        messages = listed if isinstance(listed, list) else []
        body: dict[str, Any] = {"messages": messages}
        model = words(fields.get("model"))
        if model is not None:
            body["model"] = model
        for name in _PARAMETERS:
            if fields.get(name) is not None:
                body[name] = fields[name]
        mangled = is_mangled(messages)
        name = words(fields.get("call_id")) or place.key
        tools = "tools: as CrewAI printed them, not as they were sent" if fields.get("tools") else "tools"
        ask = Ask(
            self.loop.keep.scalar(name, "call id"),
            "openai.chat",
            completeness="none" if not messages else "partial" if mangled else "messages",
            not_seen=(tools, *(("messages: tool calls in them were printed",) if mangled else ())),
        )
        self._asks[name] = ask
        beside = rest(
            fields, *_BUS, *_PARAMETERS, "type", "event_id", "timestamp", "messages", "model", "call_id"
        )
        yield from self.loop.exchanges.requested(ask, body, place, rest=beside)

    def _ask(self, fields: dict[str, Any], place: Place) -> Ask:
        name = words(fields.get("call_id")) or words(fields.get("started_event_id")) or place.key
        return self._asks.pop(name, None) or Ask(self.loop.keep.scalar(name, "call id"), "openai.chat")

    def _answered(self, fields: dict[str, Any], place: Place) -> Iterator[Draft]:
        loop, response = self.loop, fields.get("response")
        calls = calls_of(response)
        message = (
            {"role": "assistant", "tool_calls": calls}
            if calls
            else {"role": "assistant", "content": response}
        )
        usage = self._usage(record(fields.get("usage")))
        beside = rest(
            fields,
            *_BUS,
            "type",
            "event_id",
            "timestamp",
            "response",
            "usage",
            "model",
            "messages",
            "call_id",
        )
        yield from loop.note_calls(
            loop.exchanges.answered(
                self._ask(fields, place),
                message,
                place,
                rest=beside,
                usage=usage,
                model=words(fields.get("model")),
                response_id=words(fields.get("response_id")),
                stop_reason=words(fields.get("finish_reason")),
            )
        )

    def _usage(self, fields: dict[str, Any]) -> Usage | None:
        given, written = number(fields.get("prompt_tokens")), number(fields.get("completion_tokens"))
        if given is None and written is None:
            return None
        self.tokens += (given or 0) + (written or 0)
        cached = number(fields.get("cached_prompt_tokens"))
        return Usage(
            input_tokens=None if given is None else max(0, given - (cached or 0)),
            output_tokens=written,
            cache_read_tokens=cached,
            cache_write_tokens=number(fields.get("cache_creation_tokens")),
            reasoning_tokens=number(fields.get("reasoning_tokens")),
        )

    def _unanswered(self, fields: dict[str, Any], place: Place) -> Iterator[Draft]:
        name = words(fields.get("call_id"))
        if name is not None and name in self._failed_calls:
            return  # CrewAI tells of it once in the client, and once more around it
        if name is not None:
            self._failed_calls[name] = None
        ask, error = self._ask(fields, place), words(fields.get("error"))
        yield self.loop.exchanges.failed(ask, fields.get("error"), place, error=error or "error")

    def _tool_runs(self, fields: dict[str, Any], place: Place) -> Iterator[Draft]:
        tool = words(fields.get("tool_name")) or "unnamed"
        call_id, drafts = self.loop.runs(tool, _arguments(fields), place)
        self._running[place.key] = call_id
        yield from drafts

    def _tool_returned(self, fields: dict[str, Any], place: Place) -> Iterator[Draft]:
        yield from self._tool_ended(fields, place, fields.get("output"), failed=False)

    def _tool_failed(self, fields: dict[str, Any], place: Place) -> Iterator[Draft]:
        yield from self._tool_ended(fields, place, fields.get("error"), failed=True)

    def _tool_ended(
        self, fields: dict[str, Any], place: Place, content: Any, *, failed: bool
    ) -> Iterator[Draft]:
        tool = words(fields.get("tool_name")) or "unnamed"
        call_id = self._running.pop(words(fields.get("started_event_id")) or "", None)
        if call_id is None:
            call_id, drafts = self.loop.runs(tool, _arguments(fields), place)
            yield from drafts
        passed = milliseconds_between(utc_time(fields.get("started_at")), utc_time(fields.get("finished_at")))
        beside = {name: fields[name] for name in ("from_cache", "run_attempts") if name in fields}
        yield from self.loop.settle(
            ToolResult(call_id, tool, content, failed),
            place,
            error=words(fields.get("error")) if failed else None,
            duration_ms=passed,
            rest=beside,
        )

    def _saved(self, fields: dict[str, Any], place: Place) -> Iterator[Draft]:
        scribe = self.loop.scribe
        name = scribe.word(fields.get("checkpoint_id"), "checkpoint") or place.key
        label = scribe.word(fields.get("trigger"), "trigger")
        yield scribe.draft(place, CheckpointTaken(checkpoint_id=name, label=label), rest=fields)


def _arguments(fields: dict[str, Any]) -> Any:
    return unprinted(fields.get("tool_args"))
