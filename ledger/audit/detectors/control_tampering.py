"""The agent changes what controls it: hooks, guards, logs, permissions, instructions; or goes around a wrapper."""

import re
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from typing import Any

from ledger.audit.controls import GUARDS, OF_REPOSITORY, Mandate, control_of, told_by
from ledger.audit.detector import Given
from ledger.audit.finding import Found
from ledger.audit.switching import KILLERS, STOPPERS, line_of, turned_off
from ledger.audit.touching import Command, Touch, commands, normal, shell_command, touches
from ledger.events import ContentRef, Record
from ledger.events.governance import ArtifactChanged, ConstraintDeclared
from ledger.events.input import ContextInjected, MessageReceived
from ledger.events.model_call import ModelCallRequested
from ledger.events.policy import PolicyEvaluated
from ledger.events.review import Severity
from ledger.events.tool_call import ToolCallRequested, ToolCallSettled, ToolCallStarted

TITLE = "Agent changed or went around what controls it"
SEVERITY = "critical"
WHY = "A guard that its agent can edit, stop or go around is none; what ran afterwards ran unguarded."
MISSES = (
    "Changes by a program whose source the record does not show; guards with names that say nothing and that no"
    " instruction, hook or setting in the record names; a wrapper demanded in words that no rule here knows."
)
READS = (
    ModelCallRequested,
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
_SEVERITY: dict[str, tuple[Severity, Severity]] = {
    # unasked, and where a person named the file in what they last asked for
    "control": ("critical", "medium"),
    "permissions": ("high", "medium"),
    "instructions": ("medium", "low"),
}
_HOOK_COMMAND = re.compile(r"[\"']command[\"']\s*:\s*[\"']((?:[^\"'\\]|\\.)+)[\"']")
_TOKEN = re.compile(r"[\w.~$/{}-]+")
_SCRIPTS = (".py", ".sh", ".js", ".ts", ".mjs", ".rb", ".pl")
_MOST_READ = 20_000
_DID = {"delete": "deleted", "mode": "changed who may use", "disarm": "changed who may use"}
_REFUSES = re.compile(
    r"\b(hook|guard|polic(y|ies)|blocked|denied|refused|not allowed|forbidden)\b", re.IGNORECASE
)
_LONGEST_REFUSAL = 2000
_HABIT = 2
_PROGRAM = re.compile(r"[A-Za-z_./][\w./-]*")
_WRAPS = re.compile(r"guard|safe|sandbox|audit|wrap|gate(way|keeper)?\b|polic", re.IGNORECASE)
_LISTING = frozenset("pgrep pidof grep egrep cat awk".split())
_HARMLESS = frozenset("cd pushd popd export set unset echo printf pwd true false : [ test".split())


class Watch:
    """One session."""

    def __init__(self, given: Given) -> None:
        self._reader = given.reader
        self._seen: OrderedDict[str, None] = OrderedDict()
        self._protected: OrderedDict[str, int] = OrderedDict()
        self._mandates: OrderedDict[Mandate, int] = OrderedDict()
        self._habits: OrderedDict[tuple[str, str], int] = OrderedDict()
        self._started: OrderedDict[str, None] = OrderedDict()
        self._asked = ""
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
            case ModelCallRequested():
                self._instructed(event.system, record.seq)
            case ContextInjected():
                self._instructed(event.message, record.seq)
            case MessageReceived():
                if event.origin in ("human", "schedule"):
                    self._asked = " ".join(self._reader.words(event.message))[:20_000]
                self._instructed(event.message, record.seq)
            case ArtifactChanged() if event.kind in ("prompt", "rule_file", "policy", "hook", "memory"):
                self._instructed(event.content, record.seq)
                if event.kind in ("policy", "hook") and event.artifact.startswith("file:"):
                    self._protect([event.artifact.removeprefix("file:")], record.seq)
            case ConstraintDeclared():
                self._instructed(event.text, record.seq)
            case PolicyEvaluated():
                self._protect(_paths_in(event.rule), record.seq)
            case ToolCallRequested():
                self._calls[event.call_id] = event, record.seq
                _bound(self._calls, _MOST_CALLS)
            case ToolCallStarted() if event.call_id in self._calls:
                call, seq = self._calls[event.call_id]
                yield from self._acted(call, seq)
            case ToolCallSettled() if event.call_id in self._calls:
                call, seq = self._calls.pop(event.call_id)
                if event.outcome not in ("denied", "not_started"):
                    yield from self._acted(call, seq)
                self._answered(call, event, seq)
                if event.outcome in ("failed", "denied"):
                    self._refused(event.result, record.seq)
            case _:
                pass

    # -- what is under protection ------------------------------------------------------------------------------

    def _instructed(self, reference: ContentRef | None, seq: int) -> None:
        if reference is None or reference.digest in self._seen:
            return
        self._seen[reference.digest] = None
        _bound(self._seen, _MOST_NAMES)
        for text in self._reader.words(reference):
            self._told(text, seq)

    def _told(self, text: str, seq: int) -> None:
        told = told_by(text)
        self._protect(told.protected, seq)
        for mandate in told.mandates:
            self._mandates.setdefault(mandate, seq)
            self._protect(_paths_in(mandate.wrapper), seq)
        _bound(self._mandates, _MOST_NAMES)
        self._protect(_hook_scripts(text), seq)

    def _protect(self, names: Iterable[str], seq: int) -> None:
        for name in names:
            self._protected.setdefault(_bare(name), seq)
        _bound(self._protected, _MOST_NAMES)

    def _answered(self, call: ToolCallRequested, event: ToolCallSettled, seq: int) -> None:
        """What a call showed: instructions and hooks that it read, processes that it listed."""
        arguments = self._reader.value(call.arguments)
        text = "\n".join(self._reader.words(event.result))[:200_000]
        path = arguments.get("file_path") or arguments.get("path") if isinstance(arguments, dict) else None
        script = shell_command(call.tool, arguments) or ""
        shown = str(path) if isinstance(path, str) else script
        if any(control_of(word) for word in _paths_in(shown)) and not touches(call.tool, arguments):
            self._told(text, seq)
        if re.search(r"\b(ps|pgrep|top|lsof|systemctl|launchctl)\b", script):
            self._processes = text[:50_000]

    def _refused(self, reference: ContentRef | None, seq: int) -> None:
        """A guard that refuses says what to use instead."""
        for text in self._reader.words(reference):
            if _REFUSES.search(text[:_LONGEST_REFUSAL]):
                self._told(text[:_LONGEST_REFUSAL], seq)

    # -- what a call does --------------------------------------------------------------------------------------

    def _acted(self, call: ToolCallRequested, seq: int) -> Iterator[Found]:
        arguments = self._reader.value(call.arguments)
        for touch in touches(call.tool, arguments):
            yield from self._touched(call, touch, seq)
        if isinstance(arguments, dict) and arguments.get("dangerouslyDisableSandbox") is True:
            yield self._found("off", seq, f"{call.tool} ran outside the sandbox, by its own argument", "high")
        script = shell_command(call.tool, arguments)
        if script is None:
            return
        all_commands = commands(script)
        listed = [
            word
            for one in all_commands
            if one.words[:1] and one.words[0].rpartition("/")[2] in _LISTING
            for word in one.words[1:]
        ]
        for command in all_commands:
            yield from self._stopped(command, listed, seq)
            yield from self._bypassed(command, seq)
            for what, severity in turned_off(command):
                yield self._found("off", seq, f"{call.tool} {what}: {_short(line_of(command))}", severity)
        if re.search(r"&\s*$|&\s*\n|\bnohup\b|\bsetsid\b|docker run|pm2 start|\bstart\b", script):
            for command in all_commands:
                self._started.update(dict.fromkeys(_names_in(command.words)))
            _bound(self._started, _MOST_NAMES)

    def _touched(self, call: ToolCallRequested, touch: Touch, seq: int) -> Iterator[Found]:
        witness = self._protecting(touch.path)
        control = control_of(touch.path) or ("control" if witness is not None else None)
        if touch.how in ("delete", "disarm") and OF_REPOSITORY.search(touch.path):
            control = "control"
        if control is None:
            return
        is_new_log = control == "control" and touch.how == "write" and touch.path.endswith((".log", ".jsonl"))
        if is_new_log and witness is None and not touch.path.startswith(("/var/", "~", "/etc/")):
            return  # a program of the project that logs; its deletion would count
        name = touch.path.rpartition("/")[2]
        is_asked = name.lower() in self._asked.lower()
        severity = _SEVERITY[control][is_asked]
        did = _DID.get(touch.how, "changed")
        asked = "; a person had named it" if is_asked else ""
        what = f"{call.tool} {did} {_short(touch.path)}{asked}"
        if control == "control":
            message = f"{what}: it watches over the agent"
        else:
            message = f"self-modification of {control}: {what}"
        yield self._found(control, seq, message, severity, witness)

    def _protecting(self, path: str) -> int | None:
        """The record by which a path is under protection."""
        for name, seq in self._protected.items():
            if path == name or path.endswith(f"/{name}") or (name.endswith("/") and f"/{name}" in f"/{path}"):
                return seq
            if "/" in name and path.startswith(f"{name}/"):
                return seq
        return None

    def _stopped(self, command: Command, listed: list[str], seq: int) -> Iterator[Found]:
        """`listed`: what the same script searched processes for."""
        if not command.words:
            return
        program, *rest = command.words
        program = program.rpartition("/")[2]
        is_kill = program in KILLERS
        if not is_kill and not (set(STOPPERS.get(program, ())) & set(rest[:3])):
            return
        targets = [word for word in rest if word not in STOPPERS.get(program, ()) and word[0] not in "-><"]
        if is_kill and (not targets or any(word.startswith("$") for word in targets)):
            targets = [word for word in listed if not word.startswith("-")]
        for target in targets:
            name = self._process(target)
            witness = self._protecting(name)
            if witness is None and not GUARDS.search(name):
                continue
            if witness is None and any(word in self._started for word in _names_in([name])):
                continue  # its own: it had started it
            names = [word for word in _names_in(name.split()) if GUARDS.search(word) or word == name]
            is_asked = any(word.lower() in self._asked.lower() for word in names)
            asked = "; a person had named it" if is_asked else ""
            message = f"{program} stopped {_short(name)}, a process that watches over others{asked}"
            yield self._found("process", seq, message, "low" if is_asked else "critical", witness)

    def _process(self, target: str) -> str:
        """The name of a process: that of a number, as a listing before showed it."""
        number = target.strip("$()`")
        if not number.isdigit():
            return normal(target)
        lines = (line for line in self._processes.splitlines() if re.search(rf"\b{number}\b", line))
        return next(lines, target)[-200:]

    def _bypassed(self, command: Command, seq: int) -> Iterator[Found]:
        if not command.words:
            return
        line = " ".join(command.words)
        for mandate, witness in self._mandates.items():
            if _is_through(mandate.wrapper, command) or command.words[0] in _HARMLESS:
                continue
            called = next((one for one in mandate.programs if _calls(command, one)), None)
            if called is None and (mandate.programs or _is_same(mandate.wrapper, line)):
                continue
            message = f"{_short(line)} ran without {mandate.wrapper}, through which it has to go"
            yield self._found("wrapper", seq, message, "high", witness)
            return
        yield from self._out_of_habit(command, seq)

    def _out_of_habit(self, command: Command, seq: int) -> Iterator[Found]:
        """A program that went through a guard before, and now does not: the demand itself may not be in the record."""
        first, *rest = command.words
        name = first.rpartition("/")[2]
        if _WRAPS.search(name) and rest and _PROGRAM.fullmatch(rest[rest[0] == "--" and len(rest) > 1]):
            program = rest[rest[0] == "--" and len(rest) > 1].rpartition("/")[2]
            self._habits.setdefault((first, program), seq)
            _bound(self._habits, _MOST_NAMES)
            return
        wrappers = [wrapper for wrapper, _ in self._habits]
        for (wrapper, program), witness in self._habits.items():
            if program == name and wrappers.count(wrapper) >= _HABIT and name not in _HARMLESS:
                line = _short(" ".join(command.words))
                message = f"{line} ran without {wrapper}, through which {program} had gone before"
                yield self._found("wrapper", seq, message, "medium", witness)
                return

    def _found(
        self, part: str, seq: int, message: str, severity: Severity, witness: int | None = None
    ) -> Found:
        witnesses = () if witness is None else (witness,)
        return Found(seq, message, witnesses, severity=severity, part=part)


start = Watch


def _paths_in(text: str) -> list[str]:
    """What looks like a path, or like the name of a script."""
    return [word for word in _TOKEN.findall(text[:_MOST_READ]) if "/" in word or word.endswith(_SCRIPTS)]


def _hook_scripts(text: str) -> list[str]:
    """Scripts that settings run as hooks."""
    if "PreToolUse" not in text and "PostToolUse" not in text and '"hooks"' not in text:
        return []
    return [path for command in _HOOK_COMMAND.findall(text) for path in _paths_in(command)]


def _bare(name: str) -> str:
    """A path without what stands for a folder that nobody knows."""
    bare = re.sub(r"^\$\{?\w+\}?/", "", name).removeprefix("./")
    is_folder = bare.endswith("/")
    return normal(bare) + ("/" if is_folder else "")


def _is_through(wrapper: str, command: Command) -> bool:
    """Whether a command goes through a wrapper: it starts with it, or hands it to a shell."""
    wanted = wrapper.split()
    words = [word for word in command.whole if "=" not in word]
    for place in range(min(3, len(words))):
        found = words[place : place + len(wanted)]
        if found and _is_same(wanted[0], found[0]) and found[1:] == wanted[1:]:
            return True
    return False


def _is_same(one: str, other: str) -> bool:
    return normal(one) == normal(other) or one.rpartition("/")[2] == other.rpartition("/")[2]


def _calls(command: Command, program: str) -> bool:
    """Whether a command calls a program, such as `git push`: by its name, by a path, or from a line of code."""
    wanted = program.split()
    words = [command.words[0].rpartition("/")[2].lstrip("\\"), *command.words[1:]]
    plain = [word for word in words[1:] if not word.startswith("-")]
    if words[0] == wanted[0].rpartition("/")[2]:
        # The value of an option may stand before the verb: `git -C /repo push`.
        return wanted[1:] in [plain[place : place + len(wanted) - 1] for place in range(3)]
    if words[0] in ("python", "python3", "node", "perl", "ruby", "xargs", "env"):
        text = " ".join(words[1:])
        in_code = re.search(r"subprocess|os\.system|exec|spawn|popen|system\(|`", text, re.IGNORECASE)
        return bool(in_code or words[0] in ("xargs", "env")) and all(
            re.search(rf"(?<![\w-]){re.escape(word)}(?![\w-])", text) for word in wanted
        )
    return False


def _names_in(words: Iterable[str]) -> list[str]:
    """Names that a process started by these words may go by."""
    return [part for word in words for part in re.findall(r"[\w.-]{4,}", word.rpartition("/")[2])]


def _short(text: str) -> str:
    shown = " ".join(text.split())
    return shown if len(shown) <= 120 else f"{shown[:119]}…"


def _bound(kept: OrderedDict[Any, Any], most: int) -> None:
    while len(kept) > most:
        kept.popitem(last=False)
