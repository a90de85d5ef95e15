"""LangSmith runs: the payloads that its SDKs post and patch, and exported runs as JSON or JSON lines."""

from collections import OrderedDict
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

from ledger.events import Draft
from ledger.events.canonical import canonical_json
from ledger.events.keeping import SourceKept
from ledger.events.model_call import Usage
from ledger.events.record import Grade
from ledger.events.session import SessionEnded, SessionStarted
from ledger.events.tool_call import ToolCallRequested, ToolCallStarted
from ledger.importers import Desk, Item, Sniff
from ledger.importers._files import open_source
from ledger.importers._json_pieces import Torn, json_pieces, partial_json
from ledger.importers._jsonl import Damage, json_lines
from ledger.importers._langsmith.messages import body_of, message_of, usage_of_outputs
from ledger.importers._plain.scribe import Scribe, milliseconds_between, utc_time
from ledger.protocols.drafting import Place
from ledger.protocols.exchanges import Ask, Exchanges
from ledger.protocols.tool_use import ToolResult, ToolUse, text

FORMAT = "langsmith"
TITLE = "LangSmith runs (post and patch payloads of the SDKs, exported runs)"
GRADE: Grade = "semantic"
CANNOT_SHOW = (
    "Model requests as they were sent: inputs are the arguments of the client or LangChain's messages.",
    "Tool schemas and parameters that the traced function was not given.",
    "HTTP headers, failed attempts below the client, and chunks of streamed answers with their times.",
    "Whether anybody was asked before a tool ran.",
    "That a context was shortened, unless two requests show it.",
)

_SPREAD = frozenset({"post", "patch", "runs"})
_TYPES = frozenset({"chain", "llm", "tool", "retriever", "embedding", "prompt", "parser", "chat_model"})
_SESSIONS_KEPT = 5_000
_RUNS_KEPT = 50_000


def recognizes(sniff: Sniff) -> bool:
    """A payload with posted or patched runs, or runs with their type and trace."""
    value = sniff.json
    if isinstance(value, list):
        return bool(value) and _is_run(value[0])
    if not isinstance(value, dict):
        return False
    for name in _SPREAD:
        runs = value.get(name)
        if isinstance(runs, list) and runs and value.keys() <= _SPREAD | {"cursors"}:
            return _is_run(runs[0]) or name == "patch"
    return _is_run(value)


def _is_run(value: Any) -> bool:
    if not isinstance(value, dict) or value.get("run_type") not in _TYPES:
        return False
    return bool(value.keys() & {"trace_id", "dotted_order", "session_id", "session_name", "parent_run_id"})


def read(path: Path, desk: Desk) -> Iterator[Item]:
    """The runs in file order: what was posted begins a run, what was patched ends it."""
    traces = _Traces(desk)
    with open_source(path) as stream:
        start = stream.read(64 * 1024)
    first, _, rest = start.strip().partition(b"\n")
    is_lines = first.endswith(b"}") and first.startswith(b"{") and (not rest or rest.lstrip()[:1] == b"{")
    with open_source(path) as stream:
        if is_lines and _is_run(partial_json(first)):
            for entry in json_lines(stream):
                if isinstance(entry, Damage):
                    yield traces.damage(entry.number, entry.reason, entry.raw)
                else:
                    yield from traces.run(entry.value, "run")
            return
        for piece in json_pieces(stream, _SPREAD):
            if isinstance(piece, Torn):
                yield traces.damage(None, piece.reason, piece.raw)
            elif isinstance(piece.path[-1] if piece.path else None, int):
                name = piece.path[0] if isinstance(piece.path[0], str) else "run"
                yield from traces.run(piece.value, name)
            else:
                traces.field(str(piece.path[0]) if piece.path else "value", piece.value)
    yield from traces.lone()


class _Session:
    """One trace."""

    def __init__(self, scribe: Scribe) -> None:
        self.scribe = scribe
        self.exchanges = Exchanges(scribe)


class _Traces:
    """The traces of a file, and the runs of them that have begun."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._sessions: OrderedDict[str, _Session] = OrderedDict()
        self._begun: OrderedDict[str, dict[str, Any]] = OrderedDict()
        self._fields: dict[str, Any] = {}
        self._damaged = 0

    def field(self, name: str, value: Any) -> None:
        """A field of a file that is one run."""
        self._fields[name] = value

    def lone(self) -> Iterator[Item]:
        """The run that the file's own fields make up."""
        if self._fields:
            yield from self.run(self._fields, "run")

    def damage(self, line: int | None, reason: str, raw: bytes) -> Item:
        """A place that cannot be read."""
        self._damaged += 1
        session = next(reversed(self._sessions), None) or self._desk.fallback_session(FORMAT)
        scribe = Scribe(self._desk, FORMAT, session, GRADE)
        key = f"damage:{self._damaged}"
        draft = scribe.draft(Place(key, line), self._desk.damage(line, reason, raw))
        return Item(scribe.session, key, [draft], line or 1, raw)

    def run(self, value: Any, how: str) -> Iterator[Item]:
        """A run that was posted, patched, or exported whole."""
        tally = self._desk.tally
        tally.lines += 1
        run = value if isinstance(value, dict) else {"value": value}
        native = text(run.get("id")) or _last_of(run.get("dotted_order")) or f"run:{tally.lines}"
        begun = self._begun.get(native, {}) if how == "patch" else {}
        merged = {**begun, **{name: part for name, part in run.items() if part is not None}}
        kind = text(merged.get("run_type")) or "none"
        tally.native[f"{how}:{kind[:40]}"] += 1
        session = yield from self._session(merged)
        if how != "patch":
            self._begun[native] = {
                name: merged[name]
                for name in ("run_type", "name", "trace_id", "parent_run_id", "start_time", "dotted_order")
                if name in merged
            }
            if len(self._begun) > _RUNS_KEPT:
                self._begun.popitem(last=False)
        ends = bool(run.get("end_time") or run.get("outputs") or run.get("error")) and (
            how != "post" or "end_time" in run
        )
        begins = how != "patch" or native not in self._begun
        drafts: list[Draft] = []
        if begins:
            place = Place(native, tally.lines, utc_time(merged.get("start_time")))
            drafts += self._begin(session, merged, kind, place)
        if ends:
            place = Place(native, tally.lines, utc_time(merged.get("end_time")))
            drafts += self._end(session, merged, kind, place)
        key = f"{how}:{native}"
        if kind not in ("llm", "chat_model", "tool") or not drafts:
            if kind not in _TYPES:
                tally.unknown[kind[:40]] += 1
            body = session.scribe.keep.json(run, f"run of type {kind}")
            event = SourceKept(native_type=f"{how}:{kind[:40]}", recognized=kind in _TYPES, body=body)
            drafts.insert(
                0, session.scribe.draft(Place(key, tally.lines, utc_time(run.get("start_time"))), event)
            )
        if ends and not merged.get("parent_run_id"):
            drafts.append(
                self._ended(session, merged, Place(native, tally.lines, utc_time(merged.get("end_time"))))
            )
        cause = f"post:{native}" if how == "patch" and native in self._begun else None
        yield Item(session.scribe.session, key, drafts, tally.lines, canonical_json(run), cause)

    def _session(self, run: dict[str, Any]) -> Generator[Item, None, _Session]:
        named = text(run.get("trace_id")) or _first_of(run.get("dotted_order")) or text(run.get("id"))
        name = named or self._desk.fallback_session(FORMAT)
        known = self._sessions.get(name)
        if known is not None:
            return known
        scribe = Scribe(self._desk, FORMAT, name, GRADE)
        scribe.correlation = scribe.word(_thread(run), "thread")
        known = self._sessions[name] = _Session(scribe)
        if len(self._sessions) > _SESSIONS_KEPT:
            self._sessions.popitem(last=False)
        place = Place("start", self._desk.tally.lines, utc_time(run.get("start_time")))
        started = SessionStarted(
            harness="langsmith",
            name=scribe.word(run.get("name"), "run name"),
            model=scribe.word(_model(run), "model"),
        )
        yield Item(scribe.session, "start", [scribe.draft(place, started)], place.line)
        return known

    def _begin(self, session: _Session, run: dict[str, Any], kind: str, place: Place) -> list[Draft]:
        if kind in ("llm", "chat_model"):
            protocol, body = body_of(run.get("inputs"))
            ask = _ask(run, place, protocol)
            rest = {name: run[name] for name in ("extra", "tags", "events", "serialized") if run.get(name)}
            return list(session.exchanges.requested(ask, body, place, rest=rest))
        if kind == "tool":
            return list(self._tool_begins(session, run, place))
        return []

    def _tool_begins(self, session: _Session, run: dict[str, Any], place: Place) -> Iterator[Draft]:
        """A tool ran: of a call that a model was seen to ask for, or of the loop's own."""
        tools = session.exchanges.tools
        use = ToolUse(_tool_call_id(run), text(run.get("name")) or "unnamed", _unwrapped(run.get("inputs")))
        known = tools.find(use.call_id, None) if use.call_id else None
        if known is None or known.settled:
            draft = tools.requested(use._replace(call_id=use.call_id or place.key), place)
            yield draft
            assert isinstance(draft.event, ToolCallRequested)
            call_id = draft.event.call_id
        else:
            call_id = known.call_id
        yield session.scribe.draft(place, ToolCallStarted(call_id=call_id))

    def _end(self, session: _Session, run: dict[str, Any], kind: str, place: Place) -> list[Draft]:
        passed = milliseconds_between(utc_time(run.get("start_time")), utc_time(run.get("end_time")))
        error = run.get("error")
        if kind in ("llm", "chat_model"):
            protocol, _ = body_of(run.get("inputs"))
            ask = _ask(run, place, protocol)
            if error:
                return [session.exchanges.failed(ask, error, place, error="error", duration_ms=passed)]
            answer, rest = message_of(protocol, run.get("outputs"))
            usage: Usage | None = usage_of_outputs(run.get("outputs"))
            facts = {"usage": usage, "duration_ms": passed}
            return list(session.exchanges.answered(ask, answer, place, rest=rest, **facts))
        if kind == "tool":
            outputs = _unwrapped(run.get("outputs"))
            result = ToolResult(
                _tool_call_id(run) or place.key, text(run.get("name")), error or outputs, bool(error)
            )
            return [session.exchanges.tools.settled(result, place, duration_ms=passed)[0]]
        return []

    def _ended(self, session: _Session, run: dict[str, Any], place: Place) -> Draft:
        outcome: Any = "failed" if run.get("error") else "completed"
        return session.scribe.draft(place, SessionEnded(outcome=outcome))


def _ask(run: dict[str, Any], place: Place, protocol: str) -> Ask:
    metadata = _metadata(run)
    return Ask(
        call_id=f"model-{place.key}",
        protocol=protocol,
        provider=text(metadata.get("ls_provider")),
        model=_model(run),
        completeness="messages",
        not_seen=("body: only the arguments of the traced function are logged",),
    )


def _metadata(run: dict[str, Any]) -> dict[str, Any]:
    match run.get("extra"):
        case {"metadata": dict() as metadata}:
            return metadata
    return {}


def _model(run: dict[str, Any]) -> str | None:
    return text(_metadata(run).get("ls_model_name"))


def _thread(run: dict[str, Any]) -> Any:
    metadata = _metadata(run)
    return next(
        (metadata[name] for name in ("thread_id", "session_id", "conversation_id") if metadata.get(name)),
        None,
    )


def _tool_call_id(run: dict[str, Any]) -> str | None:
    outputs = run.get("outputs")
    output = outputs.get("output") if isinstance(outputs, dict) else None
    for holder in (_metadata(run), output, run.get("extra")):
        if isinstance(holder, dict) and text(holder.get("tool_call_id")):
            return text(holder["tool_call_id"])
    return None


def _unwrapped(value: Any) -> Any:
    """What a tool was given or gave, without the frame that LangSmith puts around a lone value."""
    if isinstance(value, dict) and len(value) == 1:
        (name,) = value
        if name in ("input", "output"):
            return value[name]
    return value


def _first_of(order: Any) -> str | None:
    """Id of the root run in a dotted order."""
    first = order.split(".")[0] if isinstance(order, str) else ""
    return first.partition("Z")[2] or None


def _last_of(order: Any) -> str | None:
    last = order.split(".")[-1] if isinstance(order, str) else ""
    return last.partition("Z")[2] or None
