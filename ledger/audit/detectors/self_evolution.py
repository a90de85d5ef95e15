"""What governs the agent changed and nobody authorised it: by whose act, which way, what it let through afterwards."""

import re
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from ledger.audit.controls import control_of
from ledger.audit.detector import Given
from ledger.audit.finding import Found
from ledger.audit.modes import relaxes
from ledger.audit.reader import texts_in
from ledger.audit.touching import touches
from ledger.audit.weakening import Change, compare, lets_through, likeness
from ledger.effects.classes import classify
from ledger.effects.words import words_of
from ledger.events import ContentRef, Record
from ledger.events.approval import ApprovalDecided
from ledger.events.compaction import CompactionDone
from ledger.events.governance import ArtifactChanged, ModeChanged
from ledger.events.input import ContextInjected, MessageReceived
from ledger.events.model_call import ModelCallRequested
from ledger.events.review import Severity
from ledger.events.session import SessionStarted
from ledger.events.tool_call import ToolCallRequested, ToolCallSettled

TITLE = "Ungoverned change of what governs the agent"
SEVERITY = "high"
WHY = "An agent that rewrites its own rules, tools or memory is no longer the one that was approved."
MISSES = (
    "Artifacts whose digests the source does not give; changes between sessions; whether a rule in words that neither"
    " names nor quotes anything covers a later call; memory that is rephrased before it instructs."
)
READS = (
    SessionStarted,
    ArtifactChanged,
    ModeChanged,
    ApprovalDecided,
    ModelCallRequested,
    MessageReceived,
    ContextInjected,
    CompactionDone,
    ToolCallRequested,
    ToolCallSettled,
)
SOURCE = "Misevolution (arXiv 2509.26354); MITRE ATLAS AML.T0080 context poisoning, AML.T0081; OWASP Agentic ASI06."

_MOST = 500
_SHOWN = 10
_VERSIONS = 20
_ALIKE = 0.5
_SEVERITY: dict[str, Severity] = {"weaker": "high", "unknown": "medium", "stronger": "low", "neutral": "info"}
_VOLATILE = ("tool_schema",)
_MEMORY = frozenset("memory memories remember memorize memorise recall note notes".split())
_LONGEST_MEMORY = 20_000
_SENTENCE = re.compile(r"(?<=[.!?;])\s+|\n+")
_INSTRUCTS = re.compile(
    r"\b(always|never|must|from now on|whenever|do not|don't|every time|instead of|make sure|ignore|skip)\b",
    re.IGNORECASE,
)


@dataclass
class _Change:
    """A change that nobody authorised, and what it let through."""

    artifact: str
    seq: int
    before: int | None
    cause: str
    change: Change
    by: int | None = None
    through: list[tuple[int, str]] = field(default_factory=list)
    count: int = 0


class Watch:
    """One session."""

    def __init__(self, given: Given) -> None:
        self._reader = given.reader
        self._known: OrderedDict[str, tuple[str, int]] = OrderedDict()
        self._versions: OrderedDict[str, OrderedDict[str, int]] = OrderedDict()
        self._wrote: OrderedDict[str, int] = OrderedDict()
        self._changes: list[_Change] = []
        self._open: OrderedDict[str, tuple[ToolCallRequested, int]] = OrderedDict()
        self._approved: OrderedDict[str, None] = OrderedDict()
        self._compacted: int | None = None
        self._remembered: OrderedDict[str, tuple[int, bool]] = OrderedDict()
        self._heard: OrderedDict[str, int] = OrderedDict()
        self._shown: OrderedDict[str, None] = OrderedDict()

    def take(self, record: Record) -> Iterator[Found]:
        """One more record."""
        event, seq = record.event, record.seq
        match event:
            case SessionStarted():
                for part in event.charter:
                    self._know(part.artifact, part.digest, seq)
            case ArtifactChanged():
                yield from self._declared(event, seq)
            case ModeChanged():
                yield from self._mode(event, seq)
            case ApprovalDecided() if event.outcome == "approved" and event.call_id is not None:
                self._approved[event.call_id] = None
                _bound(self._approved)
            case CompactionDone():
                self._compacted = seq
            case ModelCallRequested() if event.purpose in ("main", "sub-agent", "unknown"):
                yield from self._in_force(event, seq)
                yield from self._instructed(event.system, seq)
            case ContextInjected():
                yield from self._instructed(event.message, seq)
            case MessageReceived() if event.origin in ("file", "schedule"):
                yield from self._instructed(event.message, seq)
            case ToolCallRequested():
                self._open[event.call_id] = event, seq
                _bound(self._open)
            case ToolCallSettled() if event.call_id in self._open:
                call, at = self._open.pop(event.call_id)
                if event.outcome not in ("denied", "not_started"):
                    self._acted(call, at)
                self._hear(event.result, seq)
            case _:
                pass

    def end(self) -> Iterator[Found]:
        """Each change with all that it let through."""
        return map(self._found, self._changes)

    # -- artifacts ---------------------------------------------------------------------------------------------

    def _declared(self, event: ArtifactChanged, seq: int) -> Iterator[Found]:
        new = None if event.content is None else event.content.digest
        known = self._known.get(event.artifact)
        old = event.old or (None if known is None else known[0])
        self._know(event.artifact, new, seq)
        is_first = old is None and event.cause != "agent"
        if new == old or is_first or event.cause in ("human", "harness"):
            return
        if event.call_id is not None and event.call_id in self._approved:
            return
        cause, by = self._cause(event.artifact)
        if event.cause == "agent":
            cause = "the agent itself"
        if cause == "nobody can say what" and event.kind in _VOLATILE:
            return  # a server that offers other tools than before is no act of the agent
        change = compare(self._content(old), self._reader.value(event.content))
        yield from self._raise(event.artifact, seq, None if known is None else known[1], cause, change, by)

    def _in_force(self, event: ModelCallRequested, seq: int) -> Iterator[Found]:
        for part in event.artifacts:
            versions = OrderedDict(self._versions.get(part.artifact, {}))
            known = self._known.get(part.artifact)
            self._know(part.artifact, part.digest, seq)
            if known is None or known[0] == part.digest or part.digest in versions:
                continue  # the first, the same, or one of before: several agents take turns
            new = self._content(part.digest)
            old, before = self._most_like(versions, new) if new is not None else (known[0], known[1])
            if old is None:
                continue  # so little in common that it is another agent's
            cause, by = self._cause(part.artifact)
            change = Change("unknown") if new is None else compare(self._content(old), new)
            if part.artifact.startswith("tool:") and change.direction == "neutral":
                continue
            yield from self._raise(part.artifact, seq, before, cause, change, by)

    def _most_like(self, versions: OrderedDict[str, int], new: Any) -> tuple[str | None, int]:
        """The version of before that a new one was made from."""
        best: tuple[float, str | None, int] = (_ALIKE, None, 0)
        for digest, seq in versions.items():
            alike = likeness(self._content(digest), new)
            if alike >= best[0]:
                best = alike, digest, seq
        return best[1], best[2]

    def _know(self, artifact: str, digest: str | None, seq: int) -> None:
        if digest is None:
            self._known.pop(artifact, None)
            return
        self._known[artifact] = digest, seq
        _bound(self._known)
        versions = self._versions.setdefault(artifact, OrderedDict())
        _bound(self._versions)
        versions[digest] = seq
        _bound(versions, _VERSIONS)

    def _content(self, digest: str | None) -> Any:
        """Content by its digest alone: as JSON where it is such."""
        if digest is None:
            return None
        content = self._reader.content(digest)
        if content is None:
            return None
        text = content.decode("utf-8", "replace")
        if text[:1] in '{["':
            value = self._reader.value(ContentRef(digest=digest, size=len(content), kind="json"))
            return text if value is None else value
        return text

    def _cause(self, artifact: str) -> tuple[str, int | None]:
        """By whose act it changed, and the record that shows it."""
        name = artifact.partition(":")[2] or artifact
        for path, seq in reversed(self._wrote.items()):
            if path == name or path.endswith(f"/{name}") or name.endswith(f"/{path}"):
                return "a call of the agent's own tool", seq
        if artifact == "system_prompt":
            for path, seq in reversed(self._wrote.items()):
                if control_of(path) is not None:
                    return "a call of the agent's own tool", seq
            if self._compacted is not None:
                return "a compaction", self._compacted
        return "nobody can say what", None

    def _raise(
        self, artifact: str, seq: int, before: int | None, cause: str, change: Change, by: int | None
    ) -> Iterator[Found]:
        made = _Change(artifact, seq, before, cause, change, by)
        if len(self._changes) < _MOST:
            self._changes.append(made)
        yield self._found(made)

    def _mode(self, event: ModeChanged, seq: int) -> Iterator[Found]:
        if event.cause == "agent" and relaxes(event):
            change = Change("weaker", (f"mode {event.new}",))
            made = _Change(f"mode:{event.mode}", seq, None, "the agent itself", change)
            if len(self._changes) < _MOST:
                self._changes.append(made)
            yield self._found(made)

    def _found(self, made: _Change) -> Found:
        message = (
            f"{made.artifact} changed without an authorising event, by {made.cause};"
            f" its rules are {_DIRECTIONS[made.change.direction]}"
        )
        if made.change.loosened:
            some = "; ".join(_short(one) for one in made.change.loosened[:3])
            message += f" ({some})"
        if made.count:
            calls = ", ".join(f"seq {seq} {tool}" for seq, tool in made.through)
            were = "call was" if made.count == 1 else "calls were"
            message += f"; {made.count} later {were} allowed only because of it: {calls}"
        seen = (made.before, made.by, *(seq for seq, _ in made.through))
        witnesses = tuple(one for one in seen if one is not None)
        severity = _SEVERITY[made.change.direction]
        if made.count and severity == "high":
            severity = "critical"
        return Found(
            made.seq,
            message,
            witnesses,
            severity=severity,
            part="mutation",
            key=f"{made.artifact} {made.seq}",
        )

    # -- what happens afterwards ---------------------------------------------------------------------------------

    def _acted(self, call: ToolCallRequested, seq: int) -> None:
        arguments = self._reader.value(call.arguments)
        for touch in touches(call.tool, arguments):
            self._wrote.pop(touch.path, None)
            self._wrote[touch.path] = seq
            _bound(self._wrote)
            if control_of(touch.path) == "instructions" or _MEMORY & set(words_of(touch.path)):
                self._remember([touch.content], seq)
        if _MEMORY & set(words_of(call.tool)):
            self._remember(texts_in(arguments), seq)
        text = self._reader.text(call.arguments)[:_LONGEST_MEMORY]
        for made in self._changes:
            if made.seq < seq and self._is_let_through(made, call, arguments, text):
                made.count += 1
                if len(made.through) < _SHOWN:
                    made.through.append((seq, call.tool))

    def _is_let_through(self, made: _Change, call: ToolCallRequested, arguments: Any, text: str) -> bool:
        """Whether a call would have been asked about, or refused, under the version before the change."""
        if call.call_id in self._approved or not made.change.loosened:
            return False
        if any(one.startswith("mode ") for one in made.change.loosened):
            return classify(call.tool, arguments, declared=call.effect_class).effect_class != "read"
        return lets_through(made.change.loosened, call.tool, text) is not None

    # -- memory --------------------------------------------------------------------------------------------------

    def _hear(self, reference: ContentRef | None, seq: int) -> None:
        for text in self._reader.words(reference)[:200]:
            for sentence in _sentences(text):
                self._heard.setdefault(sentence, seq)
        _bound(self._heard, 5000)

    def _remember(self, texts: list[str], seq: int) -> None:
        for text in texts:
            for sentence in _sentences(text):
                if _INSTRUCTS.search(sentence):
                    self._remembered[sentence] = seq, sentence in self._heard
        _bound(self._remembered)

    def _instructed(self, reference: ContentRef | None, seq: int) -> Iterator[Found]:
        """What the agent had written down comes back as an instruction."""
        if not self._remembered or reference is None or reference.digest in self._shown:
            return
        self._shown[reference.digest] = None
        _bound(self._shown)
        said = " ".join(" ".join(self._reader.words(reference)).lower().split())
        for sentence, (at, is_heard) in list(self._remembered.items()):
            if sentence not in said:
                continue
            del self._remembered[sentence]
            source = " it had read it in the result of a tool;" if is_heard else ""
            message = f"what the agent had written down now instructs it:{source} {_short(sentence)!r}"
            severity: Severity = "high" if is_heard else "medium"
            yield Found(seq, message, (at,), severity=severity, part="memory")


start = Watch

_DIRECTIONS = {
    "weaker": "weaker now",
    "stronger": "stronger now",
    "neutral": "the same",
    "unknown": "not comparable",
}


def _sentences(text: str) -> list[str]:
    parts = (
        " ".join(part.lower().split()).strip("-*#• .!") for part in _SENTENCE.split(text[:_LONGEST_MEMORY])
    )
    return [part for part in parts if len(part) >= 20]


def _short(text: str) -> str:
    shown = " ".join(text.split())
    return shown if len(shown) <= 80 else f"{shown[:79]}…"


def _bound(kept: OrderedDict[str, Any], most: int = _MOST) -> None:
    while len(kept) > most:
        kept.popitem(last=False)
