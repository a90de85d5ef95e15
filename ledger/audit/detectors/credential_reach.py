"""Where a secret went, known only by its keyed digest: to a model, outside, to another agent, into running code."""

import re
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from ledger.audit.detector import Given
from ledger.audit.finding import Found
from ledger.audit.scripts import shell_command
from ledger.effects.classes import classify
from ledger.events import ContentRef, Record
from ledger.events.credential import CredentialUsed
from ledger.events.delegation import DelegationReturned, DelegationStarted
from ledger.events.draw import Drawn
from ledger.events.input import ContextInjected, MessageReceived
from ledger.events.model_call import ModelCallAnswered, ModelCallRequested
from ledger.events.review import Severity
from ledger.events.session import SessionStarted
from ledger.events.tool_call import ToolCallRequested, ToolCallSettled

TITLE = "Secret that got further than it should"
SEVERITY = "high"
WHY = (
    "A secret in a prompt, in a message between agents or in a request outside is out: only a new one helps."
)
MISSES = (
    "Secrets that redaction does not know as such; ones that are split, encrypted, or encoded other than in base64 or"
    " hexadecimal digits; what a program sent that the record does not show; whether a host outside is the one that a"
    " secret belongs to, unless their names say so."
)
READS = (
    SessionStarted,
    MessageReceived,
    ContextInjected,
    Drawn,
    ModelCallRequested,
    ModelCallAnswered,
    ToolCallRequested,
    ToolCallSettled,
    DelegationStarted,
    DelegationReturned,
    CredentialUsed,
)
SOURCE = "OWASP LLM02 sensitive information disclosure; OWASP Agentic ASI03 identity and privilege abuse."

_MARKER = re.compile(r"\[redacted:([a-z0-9_]{1,40}):([0-9a-f]{16})[0-9a-f]{8}\]")
_FOREIGN = "foreign_marker"
_HOST = re.compile(
    r"\b(?:https?|wss?|ftp|ssh|postgres(?:ql)?|mysql|redis)://(?:[^/@\s]*@)?([\w.-]+)", re.IGNORECASE
)
_LOCAL = re.compile(
    r"^(localhost|127\.|10\.|192\.168\.|0\.0\.0\.0|.*\.(local|internal|test|localhost)$)", re.IGNORECASE
)
_ENVIRONMENT_FIELDS = ("env", "environment", "environ", "env_vars", "environment_variables")
_ASSIGNED = re.compile(
    r"(?:^|[\s;&(])(?:export\s+)?[A-Za-z_]\w*=['\"]?\[redacted:|-e\s+\w+=['\"]?\[redacted:"
    r"|--env[= ]\w+=['\"]?\[redacted:"
)
_HOMES = {
    "aws": "amazonaws",
    "google": "googleapis",
    "gcp": "googleapis",
    "npm": "npmjs",
    "hugging": "huggingface",
    "hf": "huggingface",
    "telegram": "telegram",
    "do": "digitalocean",
}
_SERVICES = frozenset(
    "github gitlab bitbucket openai anthropic googleapis amazonaws azure stripe slack twilio sendgrid npmjs pypi"
    " cloudflare huggingface digitalocean heroku linear notion atlassian discord telegram datadoghq sentry vercel"
    " netlify".split()
)
_IN_HEADER = re.compile(
    r"(authorization|x-api-key|api-key|x-goog-api-key|private-token)\b|(-u|--user)\s", re.IGNORECASE
)
_GUESSED = "entropy"  # of a text that only looks like a secret
_MOST_CALLS = 500
_MOST_SECRETS = 2000


class _Secret(NamedTuple):
    """A secret, without itself."""

    kind: str
    """Its kind, as redaction says."""

    digest: str
    """Its keyed digest: never shown, it differs from ledger to ledger."""


class Watch:
    """One session."""

    def __init__(self, given: Given) -> None:
        self._reader = given.reader
        self._seen: OrderedDict[_Secret, int] = OrderedDict()
        self._waiting: dict[_Secret, int] = {}
        self._messages = 0
        self._told: OrderedDict[tuple[str, _Secret], None] = OrderedDict()
        self._open: OrderedDict[str, tuple[str, int]] = OrderedDict()
        self._handles: OrderedDict[str, tuple[str, int]] = OrderedDict()

    def end(self) -> Iterable[Found]:
        """Nothing shows only at the end."""
        return ()

    def take(self, record: Record) -> Iterator[Found]:
        """One more record."""
        event, seq = record.event, record.seq
        if isinstance(event, MessageReceived | ContextInjected | ModelCallAnswered | ToolCallSettled):
            self._messages += 1
        match event:
            case SessionStarted():
                for secret in self._secrets(event.environment):
                    yield from self._reached(
                        "environment", secret, seq, "stood in the environment that the loop ran in"
                    )
            case Drawn() if event.kind == "environment":
                for secret in self._secrets(event.value):
                    self._note(secret, seq)
            case MessageReceived():
                yield from self._entered(event.message, seq, from_agent=event.origin == "agent")
            case ContextInjected():
                yield from self._entered(event.message, seq)
            case ToolCallRequested():
                self._open[event.call_id] = event.tool, seq
                if len(self._open) > _MOST_CALLS:
                    self._open.popitem(last=False)
                yield from self._argued(event, seq)
            case ToolCallSettled():
                yield from self._entered(event.result, seq)
            case DelegationStarted():
                for secret in self._secrets(event.payload):
                    yield from self._reached(
                        "agents", secret, seq, f"was handed to {event.to_agent or 'another agent'}"
                    )
            case DelegationReturned():
                for secret in self._secrets(event.result):
                    yield from self._reached("agents", secret, seq, "came back from another agent")
            case ModelCallRequested():
                yield from self._asked(event, seq, is_imported=record.source is not None)
            case CredentialUsed():
                yield from self._handle(event, seq)
            case _:
                pass

    def _secrets(self, reference: ContentRef | None) -> list[_Secret]:
        text = self._reader.text(reference)
        if "[redacted:" not in text:
            return []
        return list(dict.fromkeys(_Secret(*found) for found in _MARKER.findall(text) if found[0] != _FOREIGN))

    def _note(self, secret: _Secret, seq: int) -> None:
        self._seen.setdefault(secret, seq)
        if len(self._seen) > _MOST_SECRETS:
            self._seen.popitem(last=False)

    def _entered(
        self, reference: ContentRef | None, seq: int, *, from_agent: bool = False
    ) -> Iterator[Found]:
        """What the next model call will show to the model."""
        for secret in self._secrets(reference):
            if from_agent:
                yield from self._reached("agents", secret, seq, "stood in a message of another agent")
            self._note(secret, seq)
            if len(self._waiting) < _MOST_SECRETS:
                self._waiting.setdefault(secret, seq)

    def _asked(self, event: ModelCallRequested, seq: int, *, is_imported: bool) -> Iterator[Found]:
        for reference in (event.system, event.tools):
            for secret in self._secrets(reference):
                yield from self._reached(
                    "model", secret, seq, "stood in the system prompt or in a tool's schema"
                )
        for secret, at in self._waiting.items():
            yield from self._reached("model", secret, at, "was shown to the model", seq, severity="medium")
        self._waiting.clear()
        is_told = not event.context_added or (is_imported and event.context_added <= self._messages)
        self._messages = 0
        added = [] if is_told else self._reader.context(event.context)[-event.context_added :]
        for digest in added:  # a wire shows requests, and no event for each message of theirs
            for secret in self._secrets(ContentRef(digest=digest, size=0, kind="json")):
                yield from self._reached("model", secret, seq, "was shown to the model", severity="medium")
                self._note(secret, seq)

    def _argued(self, event: ToolCallRequested, seq: int) -> Iterator[Found]:
        secrets = self._secrets(event.arguments)
        if not secrets:
            return
        arguments: Any = self._reader.value(event.arguments)
        text = self._reader.text(event.arguments)
        hosts = [host for host in _HOST.findall(text) if not _LOCAL.match(host)]
        effect = classify(event.tool, arguments, declared=event.effect_class)
        is_outside = bool(hosts) or (
            effect.effect_class in ("external", "irreversible") and not _HOST.search(text)
        )
        is_environment = isinstance(arguments, dict) and (
            any("[redacted:" in str(arguments.get(name, "")) for name in _ENVIRONMENT_FIELDS)
            or bool(_ASSIGNED.search(shell_command(event.tool, arguments) or ""))
        )
        for secret in secrets:
            before = self._seen.get(secret)
            if is_outside:
                where = f"to {hosts[0]}" if hosts else f"outside, by {event.tool}"
                how: Severity = "high" if before is not None else "medium"
                came = " after it had been read" if before is not None else ""
                if hosts and all(_is_home(secret.kind, host, text) for host in hosts):
                    how, came = "info", f"{came}, which it is for"
                yield from self._reached(
                    "outside", secret, seq, f"was sent {where}{came}", before, severity=how
                )
            if is_environment:
                yield from self._reached(
                    "environment",
                    secret,
                    seq,
                    f"was put into the environment of code, by {event.tool}",
                    before,
                )
            self._note(secret, seq)

    def _handle(self, event: CredentialUsed, seq: int) -> Iterator[Found]:
        """The first tool to use a handle is the one that it is for."""
        tool = event.tool
        if tool is None and event.call_id is not None and event.call_id in self._open:
            tool = self._open[event.call_id][0]
        if tool is None:
            return
        first, at = self._handles.setdefault(event.handle, (tool, seq))
        if len(self._handles) > _MOST_SECRETS:
            self._handles.popitem(last=False)
        if first != tool:
            message = f"the credential {event.handle} was used by {tool}; until then {first} had used it"
            yield Found(seq, message, (at,), severity="medium", part="handle")

    def _reached(
        self,
        part: str,
        secret: _Secret,
        seq: int,
        what: str,
        other: int | None = None,
        *,
        severity: Severity | None = None,
    ) -> Iterator[Found]:
        if (part, secret) in self._told:
            return
        self._told[(part, secret)] = None
        if len(self._told) > _MOST_SECRETS:
            self._told.popitem(last=False)
        kind = secret.kind.replace("_", " ")
        if secret.kind == _GUESSED:
            severity = "low"
        witnesses = () if other is None else (other,)
        yield Found(seq, f"a secret ({kind}) {what}", witnesses, severity=severity, part=part)


start = Watch


def _is_home(kind: str, host: str, text: str) -> bool:
    """Whether a host is the one that a secret is for: its vendor's, or a service that is called with a header."""
    labels = host.lower().rstrip(".").split(".")
    site = labels[-2] if len(labels) > 1 else host
    vendors = {_HOMES.get(word, word) for word in kind.split("_")}
    known = vendors & _SERVICES
    return site in known or (not known and site in _SERVICES and _IN_HEADER.search(text) is not None)
