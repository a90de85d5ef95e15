"""What governs the agent changed and nobody authorised it: by whose act, which way, what it let through afterwards."""

import re
from collections import OrderedDict
from collections.abc import Iterator
from typing import Any

from ledger.audit.asking import Wishes
from ledger.audit.bounding import bound
from ledger.audit.controls import control_of
from ledger.audit.detector import Given
from ledger.audit.finding import Found
from ledger.audit.modes import relaxes
from ledger.audit.mutation import Mutation, compared
from ledger.audit.patching import Touch
from ledger.audit.reader import texts_in
from ledger.audit.remembering import Memory, is_local, is_memory
from ledger.audit.rewriting import Texts, content_of, same_file, shown
from ledger.audit.scripts import Sources, shell_command
from ledger.audit.touching import touches
from ledger.audit.weakening import Change, compare, likeness
from ledger.events import ContentRef, Record
from ledger.events.approval import ApprovalDecided
from ledger.events.capability import CapabilityLoaded
from ledger.events.compaction import CompactionDone
from ledger.events.governance import ArtifactChanged, ModeChanged
from ledger.events.input import ContextInjected, MessageReceived
from ledger.events.model_call import ModelCallAnswered, ModelCallRequested
from ledger.events.session import SessionStarted
from ledger.events.tool_call import ToolCallRequested, ToolCallSettled

TITLE = "Ungoverned change of what governs the agent"
SEVERITY = "high"
WHY = "An agent that rewrites its own rules, tools or memory is no longer the one that was approved."
MISSES = (
    "Artifacts that a program changes, where the source gives no digests of them; changes between sessions; requests of"
    " people in words that no rule here knows; whether a rule in words that neither names nor quotes anything covers a"
    " later call; memory that is rephrased before it instructs, or whose writing is in another session."
)
READS = (
    SessionStarted,
    ArtifactChanged,
    ModeChanged,
    ApprovalDecided,
    CapabilityLoaded,
    ModelCallRequested,
    ModelCallAnswered,
    MessageReceived,
    ContextInjected,
    CompactionDone,
    ToolCallRequested,
    ToolCallSettled,
)
SOURCE = "Misevolution (arXiv 2509.26354); MITRE ATLAS AML.T0080 context poisoning, AML.T0081; OWASP Agentic ASI06."

_MOST = 500
_MOST_CHANGES = 100
_VERSIONS = 20
_ALIKE = 0.5
_VOLATILE = ("tool_schema",)
_LONGEST = 20_000
_GOVERNS = re.compile(r"/hooks(/|\.json$)|polic|permission|sudoers", re.IGNORECASE)
_NOTES = {"asked": "", "unasked": "", "refused": "; a person had said not to"}
_FINDS_TOOLS = re.compile(r"tool|capabilit|skill|plugin|mcp|server|load|discover", re.IGNORECASE)


class Watch:
    """One session."""

    def __init__(self, given: Given) -> None:
        self._reader = given.reader
        self._known: OrderedDict[str, tuple[str, int]] = OrderedDict()
        self._versions: OrderedDict[str, OrderedDict[str, int]] = OrderedDict()
        self._wrote: OrderedDict[str, int] = OrderedDict()
        self._changes: list[Mutation] = []
        self._open: OrderedDict[str, tuple[ToolCallRequested, int]] = OrderedDict()
        self._approved: OrderedDict[str, None] = OrderedDict()
        self._compacted: int | None = None
        self._memory = Memory()
        self._texts = Texts()
        self._wishes = Wishes()
        self._sources = Sources()
        self._governed: OrderedDict[str, bool] = OrderedDict()
        self._tools: set[str] = set()
        self._is_loading = False
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
                if event.decided_by not in ("policy", "judge", "system"):
                    self._approved[event.call_id] = None
                    bound(self._approved, _MOST)
                    yield from self._approved_late(event.call_id)
            case CapabilityLoaded():
                self._is_loading = True
            case CompactionDone():
                self._compacted = seq
            case ModelCallRequested() if event.purpose in ("main", "sub-agent", "unknown"):
                yield from self._in_force(event, seq)
                yield from self._instructed(event.system, seq)
            case ModelCallAnswered():
                self._wishes.offered("\n".join(self._reader.words(event.message))[-_LONGEST:])
            case ContextInjected():
                yield from self._instructed(event.message, seq)
            case MessageReceived() if event.origin == "human":
                self._said(event.message)
            case MessageReceived() if event.origin in ("file", "schedule"):
                if event.origin == "schedule":
                    self._said(event.message)
                yield from self._instructed(event.message, seq)
            case ToolCallRequested():
                self._open[event.call_id] = event, seq
                bound(self._open, _MOST)
            case ToolCallSettled() if event.call_id in self._open:
                call, at = self._open.pop(event.call_id)
                yield from self._settled(call, event, at, seq)
            case _:
                pass

    def _said(self, message: ContentRef) -> None:
        text = "\n".join(self._reader.words(message))[:_LONGEST]
        self._wishes.said(text)
        self._memory.said(text)

    def end(self) -> Iterator[Found]:
        """Each change with all that it let through."""
        return (made.found() for made in self._changes)

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
        name = event.artifact.removeprefix("file:")
        if event.kind == "memory" and event.content is not None:
            yield from self._memory.wrote(self._reader.words(event.content), seq)
        wish = self._wishes.on(name)
        if wish == "asked" or self._is_asked_for(name):
            return
        cause, by = self._cause(event.artifact)
        if event.cause == "agent":
            cause = "the agent itself"
        if cause == "nobody can say what" and event.kind in _VOLATILE:
            return  # a server that offers other tools than before is no act of the agent
        change = compare(content_of(self._reader, old), self._reader.value(event.content))
        if self._is_known_act(event.artifact, change, seq):
            return
        before = None if known is None else known[1]
        made = Mutation(event.artifact, seq, cause, change, (before, by), _NOTES[wish])
        if event.kind == "memory":
            made.most = "info" if change.direction != "weaker" else "high"
        yield from self._raise(made)

    def _in_force(self, event: ModelCallRequested, seq: int) -> Iterator[Found]:
        for part in event.artifacts:
            versions = OrderedDict(self._versions.get(part.artifact, {}))
            known = self._known.get(part.artifact)
            self._know(part.artifact, part.digest, seq)
            if known is None or known[0] == part.digest or part.digest in versions:
                continue  # the first, the same, or one of before: several agents take turns
            new = content_of(self._reader, part.digest)
            old, before = self._most_like(versions, new) if new is not None else (known[0], known[1])
            if old is None:
                continue  # so little in common that it is another agent's
            cause, by = self._cause(part.artifact)
            change = Change("unknown") if new is None else compare(content_of(self._reader, old), new)
            if part.artifact.startswith("tool:") and change.direction == "neutral":
                continue
            if self._is_known_act(part.artifact, change, seq) or self._is_asked_for(part.artifact):
                continue
            yield from self._raise(Mutation(part.artifact, seq, cause, change, (before, by)))
        yield from self._more_tools(event, seq)

    def _is_known_act(self, artifact: str, change: Change, seq: int) -> bool:
        """Whether a call that changed this was told already; what shows now tells more of it."""
        name = artifact.partition(":")[2] or artifact
        for made in reversed(self._changes):
            is_open = made.change.direction == "unknown"
            is_same = same_file(made.artifact.removeprefix("file:"), name) or (
                artifact == "system_prompt"
                and (is_open or bool(set(made.change.loosened) & set(change.loosened)))
            )
            if made.call_id is not None and is_same:
                if is_open or change.loosened:
                    made.change = change
                made.seen = (*made.seen, seq)
                return True
        return False

    def _is_asked_for(self, artifact: str) -> bool:
        """Whether the last call that changed it did so at a person's word."""
        name = artifact.partition(":")[2] or artifact
        for path, is_asked in reversed(self._governed.items()):
            if same_file(path, name) or artifact == "system_prompt":
                return is_asked
        return False

    def _more_tools(self, event: ModelCallRequested, seq: int) -> Iterator[Found]:
        """Tools that the model is offered now and was not before, by the same prompt, and that nothing had loaded."""
        names = {part.artifact for part in event.artifacts if part.artifact.startswith("tool:")}
        new = sorted(one.removeprefix("tool:") for one in names - self._tools)
        is_same_agent = "system_prompt" in self._known and not any(
            part.artifact == "system_prompt" for part in event.artifacts
        )
        is_grown = bool(self._tools) and bool(new) and is_same_agent and not self._is_loading
        self._tools |= set(list(names)[:_MOST])
        self._is_loading = False
        if is_grown:
            change = Change("weaker", tuple(new))
            yield from self._raise(Mutation("tools", seq, "nobody can say what", change, most="low"))

    def _most_like(self, versions: OrderedDict[str, int], new: Any) -> tuple[str | None, int]:
        """The version of before that a new one was made from."""
        best: tuple[float, str | None, int] = (_ALIKE, None, 0)
        for digest, seq in versions.items():
            alike = likeness(content_of(self._reader, digest), new)
            if alike >= best[0]:
                best = alike, digest, seq
        return best[1], best[2]

    def _know(self, artifact: str, digest: str | None, seq: int) -> None:
        if digest is None:
            self._known.pop(artifact, None)
            return
        self._known[artifact] = digest, seq
        bound(self._known, _MOST)
        versions = self._versions.setdefault(artifact, OrderedDict())
        bound(self._versions, _MOST)
        versions[digest] = seq
        bound(versions, _VERSIONS)

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

    def _raise(self, made: Mutation) -> Iterator[Found]:
        if len(self._changes) < _MOST_CHANGES:
            self._changes.append(made)
        yield made.found()

    def _mode(self, event: ModeChanged, seq: int) -> Iterator[Found]:
        if event.cause == "agent" and relaxes(event):
            change = Change("weaker", (f"mode {event.new}",))
            yield from self._raise(Mutation(f"mode:{event.mode}", seq, "the agent itself", change))

    # -- what happens afterwards ---------------------------------------------------------------------------------

    def _settled(
        self, call: ToolCallRequested, event: ToolCallSettled, seq: int, ended: int
    ) -> Iterator[Found]:
        arguments = self._reader.value(call.arguments)
        texts = self._reader.words(event.result)[:200]
        text = self._reader.text(call.arguments)[:_LONGEST]
        script = shell_command(call.tool, arguments)
        is_file_tool = script is None
        is_done = event.outcome not in ("denied", "not_started") and not (
            event.outcome == "failed" and is_file_tool
        )
        script = None if script is None else self._sources.opened(script)
        changed = touches(call.tool, arguments, script) if is_done else []
        if is_done:
            yield from self._memory.acted(call.tool, text, seq)
        for made in self._changes if is_done and call.call_id not in self._approved else ():
            made.passes(call, seq, arguments, text)
        for touch in changed:
            yield from self._touched(call, touch, event, seq)
            self._sources.wrote(touch.path, touch.content if touch.is_whole else None)
        if is_memory(call.tool) and is_done:
            yield from self._memory.wrote(texts_in(arguments), seq)
        said = shown(call.tool, arguments, max(texts, key=len, default="")) if not changed else None
        if said is not None and control_of(said[0]) is not None:
            self._texts.seen(*said)
            self._completed(*said, ended)
        if is_memory(call.tool) or (said is not None and is_memory(said[0])):
            self._memory.recalled(texts, ended)
        else:
            self._memory.heard(texts, ended, is_local=is_local(call.tool, arguments))
        if _FINDS_TOOLS.search(call.tool):
            self._is_loading = True  # what it found is offered from now on

    def _touched(
        self, call: ToolCallRequested, touch: Touch, event: ToolCallSettled, seq: int
    ) -> Iterator[Found]:
        """A call changed a file; one that governs the agent, and that no person had asked to change, is a mutation."""
        self._wrote.pop(touch.path, None)
        self._wrote[touch.path] = seq
        bound(self._wrote, _MOST)
        control = control_of(touch.path)
        is_note = is_memory(touch.path)
        if control == "instructions" or is_note:
            yield from self._memory.wrote([touch.content or ""], seq)
        if control is None or (control == "control" and not _GOVERNS.search(touch.path)):
            return
        old, new = self._texts.rewritten(touch, self._reader.value(event.details))
        if old is None:
            old = self._in_ledger(touch.path)
        wish = self._wishes.on(touch.path)
        is_asked = wish == "asked" or call.call_id in self._approved
        self._governed.pop(touch.path, None)
        self._governed[touch.path] = is_asked
        bound(self._governed, _MOST)
        if old == new and touch.how == "write" and new is not None:
            return
        change = compared(old, new)
        is_beyond = (
            wish == "asked"
            and control == "instructions"
            and self._wishes.is_only_to_add()
            and any(rule in str(old) for rule in change.loosened)
        )
        if is_asked and (not is_beyond or call.call_id in self._approved):
            return
        if touch.how in ("delete", "disarm") and change.direction != "weaker":
            change = Change("weaker", (f"{touch.path} itself",))
        cause = f"the agent's own {call.tool}"
        made = Mutation(f"file:{touch.path}", seq, cause, change, (), _NOTES[wish], call_id=call.call_id)
        if is_beyond:
            made.most, made.note = "medium", "; a person had asked to add to it"
        elif is_note and change.direction != "weaker":
            made.most = "info"
        yield from self._raise(made)

    def _approved_late(self, call_id: str) -> Iterator[Found]:
        """A source may tell of a person's yes after the call that it was for."""
        for made in [one for one in self._changes if one.call_id == call_id]:
            self._changes.remove(made)
            self._governed[made.artifact.removeprefix("file:")] = True
            made.most, made.note, made.count = "info", "; a person had approved the call", 0
            yield made.found()

    def _in_ledger(self, path: str) -> Any:
        """What a governing artifact of this path said, by its digest."""
        for artifact, (digest, _) in reversed(self._known.items()):
            if same_file(artifact.partition(":")[2] or artifact, path):
                return content_of(self._reader, digest)
        return None

    def _completed(self, path: str, text: str, seq: int) -> None:
        """What a file says after a change of which the call did not tell."""
        for made in reversed(self._changes):
            if (
                made.call_id is not None
                and made.change.direction == "unknown"
                and made.artifact == f"file:{path}"
            ):
                made.change = compared(None, text)
                made.seen = (*made.seen, seq)

    # -- memory --------------------------------------------------------------------------------------------------

    def _instructed(self, reference: ContentRef | None, seq: int) -> Iterator[Found]:
        """What the agent had written down comes back as an instruction."""
        if reference is None or reference.digest in self._shown:
            return
        self._shown[reference.digest] = None
        bound(self._shown, _MOST)
        yield from self._memory.instructed(self._reader.words(reference), seq)


start = Watch
