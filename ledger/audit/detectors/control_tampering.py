"""The agent changes what controls it: hooks, guards, logs, permissions, instructions; or goes around a wrapper."""

import re
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from typing import Any

from ledger.audit.agreeing import Gates
from ledger.audit.asking import Wishes
from ledger.audit.bounding import bound, short
from ledger.audit.controls import GUARDS, control_of, in_system
from ledger.audit.detector import Given
from ledger.audit.finding import Found
from ledger.audit.forging import Answers
from ledger.audit.guarding import ASKS_FOR_CHECKS, by_content, is_check, is_own_hook, shadows
from ledger.audit.patching import Touch
from ledger.audit.protected import Protection
from ledger.audit.protecting import RULES_FOR_PEOPLE, hook_scripts, paths_in, refused_by, told_by
from ledger.audit.remembering import is_memory
from ledger.audit.ruling import Rulings
from ledger.audit.scripts import Command, Sources, commands, shell_command, without_documents
from ledger.audit.switching import (
    Off,
    is_guard,
    killed_in_code,
    line_of,
    process_of,
    searched_for,
    stopped_by,
    turned_off,
    unscheduled,
)
from ledger.audit.touching import touches
from ledger.audit.unprotecting import stopped_by_tool, unprotected
from ledger.audit.wrapping import Wrappers
from ledger.events import ContentRef, Record
from ledger.events.approval import ApprovalDecided
from ledger.events.governance import ArtifactChanged, ConstraintDeclared
from ledger.events.input import ContextInjected, MessageReceived
from ledger.events.model_call import ModelCallAnswered, ModelCallRequested
from ledger.events.policy import PolicyEvaluated
from ledger.events.review import Severity
from ledger.events.session import SessionStarted
from ledger.events.tool_call import ToolCallRequested, ToolCallSettled, ToolCallStarted

TITLE = "Agent changed or went around what controls it"
SEVERITY = "critical"
WHY = "A guard that its agent can edit, stop or go around is none; what ran afterwards ran unguarded."
MISSES = (
    "Changes by a program whose source the record does not show; guards with names that say nothing and that no"
    " instruction, hook or setting in the record names; a wrapper demanded in words that no rule here knows."
)
READS = (
    SessionStarted,
    ModelCallRequested,
    ModelCallAnswered,
    ApprovalDecided,
    ContextInjected,
    MessageReceived,
    ArtifactChanged,
    ConstraintDeclared,
    PolicyEvaluated,
    ToolCallRequested,
    ToolCallStarted,
    ToolCallSettled,
)
SOURCE = (
    "Constraint self-bypass (field report, 2026-03); MITRE ATLAS AML.T0081 Modify AI Agent Configuration."
)

_MOST_CALLS = 500
_MOST_NAMES = 500
_SEVERITY: dict[str, Severity] = {"control": "critical", "permissions": "high", "instructions": "medium"}
_MOST_READ = 20_000
_DID = {"delete": "deleted", "mode": "changed who may use", "disarm": "changed who may use"}
_REFUSES = re.compile(
    r"\b(hook|guard|polic(y|ies)|blocked|denied|refused|not allowed|forbidden)\b", re.IGNORECASE
)
_LONGEST_REFUSAL = 2000
_SAID = {"asked": "; a person had asked for it", "refused": "; a person had said not to", "unasked": ""}
_ASKED_FOR_OFF = re.compile(
    r"\b(stop|kill|disable|turn off|switch off|restart|reload|remove|delete|shut|upgrade)\w*", re.IGNORECASE
)
_IS_SETTINGS = re.compile(r"\.(ya?ml|json|toml|ini|conf|cfg)$", re.IGNORECASE)
_OF_OTHERS = re.compile(r"^(/var/|~|/etc/)|(^|/)\.(claude|codex|gemini|loopledger)/")
_LISTS = re.compile(r"\b(ps|pgrep|top|lsof|systemctl|launchctl|docker|crontab)\b")
_STARTS = re.compile(r"&\s*$|&\s*\n|\bnohup\b|\bsetsid\b|docker run|pm2 start|\bstart\b")


class Watch:
    """One session."""

    def __init__(self, given: Given) -> None:
        self._reader = given.reader
        self._seen: OrderedDict[str, None] = OrderedDict()
        self._protection = Protection()
        self._wrappers = Wrappers()
        self._rulings = Rulings()
        self._answers = Answers()
        self._gates = Gates()
        self._wishes = Wishes()
        self._sources = Sources()
        self._made: OrderedDict[str, None] = OrderedDict()
        self._approved: OrderedDict[str, None] = OrderedDict()
        self._raised: OrderedDict[str, list[Found]] = OrderedDict()
        self._has_refused = False
        self._project: str | None = None
        self._started: OrderedDict[str, None] = OrderedDict()
        self._processes = ""
        self._calls: OrderedDict[str, tuple[ToolCallRequested, int]] = OrderedDict()

    def end(self) -> Iterator[Found]:
        """Calls whose end nobody told may have acted."""
        for call, seq in list(self._calls.values()):
            yield from self._acted(call, seq)

    def take(self, record: Record) -> Iterator[Found]:
        """One more record."""
        event = record.event
        match event:
            case SessionStarted():
                self._project = event.cwd
            case ModelCallRequested():
                self._instructed(event.system, record.seq)
                self._instructed(event.tools, record.seq)
            case ContextInjected():
                self._instructed(event.message, record.seq)
            case ModelCallAnswered():
                self._wishes.offered("\n".join(self._reader.words(event.message))[-_MOST_READ:])
            case MessageReceived():
                if event.origin in ("human", "schedule"):
                    self._wishes.said("\n".join(self._reader.words(event.message))[:_MOST_READ])
                self._instructed(event.message, record.seq)
            case ApprovalDecided() if event.outcome == "approved" and event.decided_by == "human":
                if event.call_id is not None:
                    self._approved[event.call_id] = None
                    bound(self._approved, _MOST_CALLS)
                    yield from self._excused(event.call_id)
            case ArtifactChanged() if event.kind in ("prompt", "rule_file", "policy", "hook", "memory"):
                self._instructed(event.content, record.seq)
                if event.kind in ("policy", "hook") and event.artifact.startswith("file:"):
                    self._protection.protect([event.artifact.removeprefix("file:")], record.seq)
            case ConstraintDeclared():
                self._instructed(event.text, record.seq)
            case PolicyEvaluated():
                self._protection.protect(paths_in(event.rule), record.seq)
            case ToolCallRequested():
                self._calls[event.call_id] = event, record.seq
                bound(self._calls, _MOST_CALLS)
            case ToolCallStarted() if event.call_id in self._calls:
                call, seq = self._calls[event.call_id]
                if shell_command(call.tool, self._reader.value(call.arguments)) is not None:
                    yield from self._acted(call, seq)
            case ToolCallSettled() if event.call_id in self._calls:
                call, seq = self._calls.pop(event.call_id)
                script = shell_command(call.tool, self._reader.value(call.arguments))
                if event.outcome not in ("denied", "not_started") and (
                    script is not None or event.outcome != "failed"
                ):
                    yield from self._acted(call, seq)
                self._answered(call, event, seq)
                if event.outcome in ("failed", "denied"):
                    self._refused(event.result, script or "", record.seq)
            case _:
                pass

    def _excused(self, call_id: str) -> Iterator[Found]:
        """A source may tell of a person's yes after the call that it was for."""
        for found in self._raised.pop(call_id, []):
            yield found._replace(severity="info", message=f"{found.message}; a person had approved the call")

    # -- what is under protection ------------------------------------------------------------------------------

    def _instructed(self, reference: ContentRef | None, seq: int) -> None:
        if reference is None or reference.digest in self._seen:
            return
        self._seen[reference.digest] = None
        bound(self._seen, _MOST_NAMES)
        for text in self._reader.words(reference):
            self._told(text, seq)
            self._rulings.said(text)
            self._answers.heard(text)

    def _told(self, text: str, seq: int) -> None:
        told = told_by(text)
        self._protection.told(told, seq)
        self._wrappers.demanded(told.mandates, seq)
        for mandate in told.mandates:
            self._protection.protect(paths_in(mandate.wrapper), seq)
        self._protection.protect(hook_scripts(text), seq)

    def _answered(self, call: ToolCallRequested, event: ToolCallSettled, seq: int) -> None:
        """What a call showed: instructions and hooks that it read, processes that it listed."""
        arguments = self._reader.value(call.arguments)
        text = "\n".join(self._reader.words(event.result))[:200_000]
        path = arguments.get("file_path") or arguments.get("path") if isinstance(arguments, dict) else None
        script = shell_command(call.tool, arguments) or ""
        shown = str(path) if isinstance(path, str) else script
        named = [*paths_in(shown), *(word for word in shown.split() if RULES_FOR_PEOPLE.search(word))]
        is_failure = event.outcome in ("failed", "denied")
        self._gates.heard(text[:_MOST_READ], seq, is_failure=is_failure)
        if not is_failure:
            self._answers.heard(text[:_MOST_READ])
        is_ruling = any(control_of(word) or RULES_FOR_PEOPLE.search(word) for word in named)
        if is_ruling and not touches(call.tool, arguments):
            self._told(text, seq)
        if _LISTS.search(script):
            self._processes = f"{self._processes}\n{text}"[-50_000:]

    def _refused(self, reference: ContentRef | None, script: str, seq: int) -> None:
        """A guard that refuses says who it is, and what to use instead."""
        programs = [word for one in commands(script) for word in one.words[:2]]
        for text in self._reader.words(reference):
            if _REFUSES.search(text[:_LONGEST_REFUSAL]):
                self._has_refused = True
                self._told(text[:_LONGEST_REFUSAL], seq)
            self._answers.refused(text[:_LONGEST_REFUSAL])
            for name in refused_by(text[:_LONGEST_REFUSAL], programs):
                self._has_refused = True
                self._protection.guards(name, seq)

    # -- what a call does --------------------------------------------------------------------------------------

    def _acted(self, call: ToolCallRequested, seq: int) -> Iterator[Found]:
        found = list(self._done_by(call, self._reader.value(call.arguments), seq))
        if call.call_id in self._approved:
            found = [
                one._replace(severity="info", message=f"{one.message}; a person had approved the call")
                for one in found
            ]
        elif found:
            self._raised[call.call_id] = found
            bound(self._raised, _MOST_CALLS)
        yield from found

    def _done_by(self, call: ToolCallRequested, arguments: Any, seq: int) -> Iterator[Found]:
        given = shell_command(call.tool, arguments)
        for touch in touches(call.tool, arguments, given):
            self._learned(touch)
        own = [] if given is None else self._sources.run_by(given)
        script = None if given is None else "\n".join([given, *own])
        for touch in touches(call.tool, arguments, script):
            yield from self._touched(call, touch, seq)
            self._gates.wrote(touch)
            if touch.how in ("write", "mode"):
                self._made[touch.path] = None
                bound(self._made, _MOST_NAMES)
            if touch.how == "write" and (touch.replaced or touch.content is not None):
                self._wrappers.changed(touch.path)
        if isinstance(arguments, dict) and arguments.get("dangerouslyDisableSandbox") is True:
            yield self._found("off", seq, f"{call.tool} ran outside the sandbox, by its own argument", "high")
        if given is None or script is None:
            if (bypass := self._wrappers.bypassed_by_tool(call.tool, arguments)) is not None:
                yield self._found("wrapper", seq, bypass.message, bypass.severity, bypass.witness)
            if (off := unprotected(call.tool, arguments)) is not None:
                yield self._found("off", seq, f"{call.tool} {off.said}", self._gravity(off))
            yield from self._stopped(call.tool, stopped_by_tool(call.tool, arguments), seq)
            return
        yield from self._stopped("crontab", unscheduled(commands(script)), seq, is_own=False)
        yield from self._ran(call.tool, given, seq)
        for source in own:
            yield from self._ran(call.tool, source, seq, is_own_code=True)
        if _STARTS.search(given):
            for command in commands(script):
                self._started.update(dict.fromkeys(_names_in(command.words)))
            bound(self._started, _MOST_NAMES)

    def _learned(self, touch: Touch) -> None:
        """What a program says now that may be run later."""
        if touch.is_whole:
            self._sources.wrote(touch.path, touch.content)
        elif touch.how == "write":
            self._sources.edited(touch.path, touch.replaced, touch.content)

    def _ran(self, tool: str, script: str, seq: int, *, is_own_code: bool = False) -> Iterator[Found]:
        """What the commands of a script stop, turn off and go around."""
        all_commands = commands(script)
        listed = searched_for(all_commands)
        bodies = " ".join(without_documents(script)[1])
        for name, shown in self._gates.stood_in_for(script):
            message = f"{tool} put a program of its own in the place of {short(name)}"
            yield self._found("control", seq, message, "high", shown)
        before = ""
        for command in all_commands:
            body = bodies if any(word.startswith("<<") for word in command.whole) else ""
            yield from self._stopped(*stopped_by(command, listed), seq)
            yield from self._stopped("code", killed_in_code(command, body), seq)
            yield from self._shadowed(command, seq)
            if (bypass := self._wrappers.bypassed(command, seq, body, is_own_code=is_own_code)) is not None:
                yield self._found("wrapper", seq, bypass.message, bypass.severity, bypass.witness)
            if (witness := self._protection.of_command(command)) is not None:
                message = (
                    f"{tool} changed a port or a variable that is under protection: {short(line_of(command))}"
                )
                yield self._found("off", seq, message, "high", witness)
            for off in turned_off(command, body, before):
                message = f"{tool} {off.said}: {short(line_of(command))}"
                yield self._found("off", seq, message, self._gravity(off))
            if (claim := self._answers.made_up(command, before)) is not None:
                message = f"{tool} told a gate of an approval that is on no record: {short(claim)}"
                yield self._found("off", seq, message, "high")
            before = " ".join(command.words)[:_LONGEST_REFUSAL]

    def _gravity(self, off: Off) -> Severity:
        """How grave it is to have turned that off here."""
        is_told = off.told is None or self._rulings.speaks_of(off.told)
        is_needed = off.refused != "needed" or self._has_refused
        if self._wishes.wants_off(off.asks) or not is_told or not is_needed:
            return "info"
        return "high" if off.refused and self._has_refused else off.severity

    def _touched(self, call: ToolCallRequested, touch: Touch, seq: int) -> Iterator[Found]:
        witness = self._protection.of_file(touch.path, self._project)
        if witness is None and (witness := self._protection.within(touch)) is None:
            witness = self._gates.made_to_agree(touch, self._project, self._wishes.text)
        control = control_of(touch.path)
        if control is None and (
            self._rulings.is_own(touch, self._wishes.text) or self._protection.governs(touch.path)
        ):
            control = "permissions" if _IS_SETTINGS.search(touch.path) else "instructions"
        is_control = witness is not None or self._gates.is_named_as_one(touch, self._project)
        control = control or ("control" if is_control else by_content(touch, self._project))
        if touch.how in ("delete", "disarm") and is_own_hook(touch.path):
            control = "control"
        if control is None:
            return
        is_new_log = control == "control" and touch.how == "write" and touch.path.endswith((".log", ".jsonl"))
        if is_new_log and witness is None and not _OF_OTHERS.search(touch.path):
            return  # a program of the project that logs; its deletion would count
        wish = self._wishes.on(touch.path)
        if wish == "unasked" and self._is_spoken_of(touch.path):
            wish = "asked"
        severity = "info" if wish == "asked" else _SEVERITY[control]
        if control == "instructions" and is_memory(touch.path):
            severity = "info"  # an agent that takes notes does what memory is for
        did = _DID.get(touch.how, "changed")
        what = f"{call.tool} {did} {short(touch.path)}{_SAID[wish]}"
        if control == "control":
            message = f"{what}: it watches over the agent"
        else:
            message = f"self-modification of {control}: {what}"
        yield self._found(control, seq, message, severity, witness)

    def _is_spoken_of(self, path: str) -> bool:
        """Whether a person wants a check or a part of the machine changed, without naming the file."""
        if is_check(path):
            return self._wishes.wants_off(ASKS_FOR_CHECKS)
        return in_system(path, self._project) and self._wishes.names_part(path)

    def _shadowed(self, command: Command, seq: int) -> Iterator[Found]:
        """A folder in front of the search path, with programs of the agent's own under names of others."""
        demanded = [*self._wrappers.names(), *self._gates.names()]
        for name, folder, severity in shadows(command, self._made, demanded):
            message = f"a program of the agent's own now answers to {name}, by {short(folder)} in PATH"
            yield self._found("off", seq, message, severity)

    def _stopped(self, program: str, targets: list[str], seq: int, *, is_own: bool = True) -> Iterator[Found]:
        """A process was stopped; `is_own`: it may be one that the agent itself had started."""
        for target in targets:
            name = process_of(target, self._processes)
            witness = self._protection.of_process(name)
            if witness is None and not is_guard(name):
                continue
            if witness is None and is_own and any(word in self._started for word in _names_in([name])):
                continue  # its own: it had started it
            names = [word for word in _names_in(name.split()) if GUARDS.search(word) or word == name]
            said = _joined(self._wishes.text)
            is_asked = any(_joined(word) in said for word in names) and bool(
                _ASKED_FOR_OFF.search(self._wishes.text)
            )
            asked = _SAID["asked"] if is_asked else ""
            message = f"{program} stopped {short(name)}, a process that watches over others{asked}"
            yield self._found("process", seq, message, "info" if is_asked else "critical", witness)

    def _found(
        self, part: str, seq: int, message: str, severity: Severity, witness: int | None = None
    ) -> Found:
        witnesses = () if witness is None else (witness,)
        return Found(seq, message, witnesses, severity=severity, part=part)


start = Watch


def _names_in(words: Iterable[str]) -> list[str]:
    """Names that a process started by these words may go by."""
    return [part for word in words for part in re.findall(r"[\w.-]{4,}", word.rpartition("/")[2])]


def _joined(text: str) -> str:
    return re.sub(r"[-_\s]", "", text.lower())
