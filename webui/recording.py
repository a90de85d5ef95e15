"""What `record` does around a command: runs it behind the proxy, reads its log, joins both, checks the recording."""

import os
import platform
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

from ledger.capture.joining import SUFFIXES, join_sessions
from ledger.capture.proxy import About, Runs
from ledger.effects.loop_policy import LoopPolicy
from ledger.errors import InputError, LedgerError
from ledger.events.model_call import ModelCallAnswered, ModelCallFailed, ModelCallRequested
from ledger.events.tool_call import ToolCallRequested, ToolCallSettled
from ledger.home import Ledger
from ledger.importers._files import find_files
from ledger.importers._intake import import_paths
from replay.keeping import keep_verdict
from replay.proving import prove_requests
from replay.report import Report
from webui.listening import bound_socket, served
from webui.proxy import ProxyApp
from webui.surroundings import Surroundings, surroundings
from webui.upstreams import PUBLIC, Upstreams

_PASSED_ON = tuple(
    getattr(signal, name)
    for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2")
    if hasattr(signal, name)
)
_FROM_TERMINAL = frozenset({signal.SIGINT, signal.SIGQUIT})
_NOT_FOUND, _NOT_STARTED, _SIGNALLED = 127, 126, 128
_SHORTEST_ID = 8
_READ_AT_ONCE = 1 << 20
_SLACK_S = 2.0


@dataclass
class Recorded:
    """What came of it."""

    run: str
    """Id of the run, and of its session."""
    status: int = 0
    """Exit status of the command."""
    calls: int = 0
    """Model calls."""
    failed: int = 0
    """Of them, those that failed."""
    tokens: dict[str, int] = field(default_factory=lambda: {"input": 0, "output": 0})
    """Tokens, as the provider counted them."""
    tools: int = 0
    """Tool calls that the model asked for."""
    settled: int = 0
    """Of them, those whose result went back to it."""
    imported: list[str] = field(default_factory=list)
    """Sessions of the harness' own log."""
    tapped: list[str] = field(default_factory=list)
    """Sessions of hooks and taps."""
    matched: int = 0
    """Calls that the log tells of too."""
    tools_in_log: int = 0
    """Tool calls that the harness' own log tells of."""
    verdict: str | None = None
    """Of the check at level `request`; None when nothing was recorded."""
    verdict_session: str | None = None
    """Session that holds it."""
    check: Report | None = field(default=None, repr=False)
    """The check, whole."""
    notes: list[str] = field(default_factory=list)
    """What went wrong on the way."""

    def as_json(self) -> dict[str, Any]:
        """For `--json`."""
        found = {name: value for name, value in vars(self).items() if name != "check"}
        return found | {"divergence": self._divergence()}

    def _divergence(self) -> Any:
        found = None if self.check is None else self.check.divergence
        return None if found is None else found.as_json()


@dataclass(frozen=True)
class Recording:
    """What is to be recorded, and how."""

    command: Sequence[str]
    """The command."""
    run: str
    """Id of the run."""
    harness: str | None = None
    """Harness, where it is named."""
    upstreams: Sequence[str] = ()
    """Endpoints, as `--upstream` gives them."""
    upstream_ca: Path | None = None
    """Certificates to trust."""
    policy: LoopPolicy | None = None
    """Which calls wait for a person, and what may be spent."""
    environ: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))
    """Environment of the command."""
    cwd: Path = field(default_factory=Path.cwd)
    """Its working directory."""


def record(ledger: Ledger, recording: Recording, tell: Callable[[str], None]) -> Recorded:
    """Run the command and record it. Raises InputError before it runs; what fails after it is told in the notes."""
    if ledger.store.head(recording.run).seq:
        raise InputError(
            f"there is a session {recording.run} already: expected a new --name, as a run is one session"
        )
    recorded = Recorded(recording.run)
    lost: list[str] = []
    began = time.time()
    with (
        tempfile.TemporaryDirectory(prefix="loopledger-") as folder,
        bound_socket("127.0.0.1", 0) as listening,
    ):
        base = f"http://127.0.0.1:{listening.getsockname()[1]}/run/{recording.run}"
        around = surroundings(
            recording.command,
            base,
            Path(folder),
            environ=recording.environ,
            cwd=recording.cwd,
            harness=recording.harness,
        )
        upstreams = _upstreams(recording.upstreams, around.upstreams)
        runs = Runs(ledger.recorder, lost=lambda error: lost.append(str(error)), policy=recording.policy)
        try:
            runs.describe(recording.run, About(around.harness, str(recording.cwd), _told(recording, around)))
            application = ProxyApp(
                runs, upstreams, default_run=recording.run, upstream_ca=recording.upstream_ca
            )
            with served(application, listening, grace_s=5):
                recorded.status = run_command(around.command, around.environment, recording.cwd, tell=tell)
            reason = f"the command exited with status {recorded.status}"
            runs.end(recording.run, reason, "failed" if recorded.status else "completed")
        finally:
            runs.close()
    recorded.notes += [f"an answer could not be recorded: {text}" for text in lost]
    names = _count(ledger, recorded)
    if recorded.calls:
        try:
            _import(ledger, recorded, around.logs, began, names)
        except (LedgerError, OSError) as error:
            recorded.notes.append(f"its own log was not imported: {error}")
        recorded.check = prove_requests(ledger.store, recorded.run)
        recorded.verdict = recorded.check.verdict
        recorded.verdict_session = keep_verdict(ledger, recorded.check)
    return recorded


def run_command(
    command: Sequence[str],
    environment: Mapping[str, str],
    cwd: Path,
    *,
    tell: Callable[[str], None] = lambda text: None,
) -> int:
    """Run a command as if it were started itself: same terminal, same signals. Gives its status as a shell does."""
    try:
        child = subprocess.Popen(list(command), env=dict(environment), cwd=cwd)
    except FileNotFoundError:
        tell(f"{command[0]}: there is no such command")
        return _NOT_FOUND
    except OSError as error:
        tell(f"{command[0]}: cannot be started: {error.strerror}")
        return _NOT_STARTED
    with _signals_to(child):
        status = child.wait()
    return _SIGNALLED - status if status < 0 else status


@contextmanager
def _signals_to(child: "subprocess.Popen[bytes]") -> Iterator[None]:
    """Signals go to the command, and it decides; those of the terminal's keys reach it without us."""

    def pass_on(number: int, frame: FrameType | None) -> None:
        if not (number in _FROM_TERMINAL and _is_in_foreground()):
            child.send_signal(number)

    before = {number: signal.signal(number, pass_on) for number in _PASSED_ON}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _is_in_foreground() -> bool:
    try:
        terminal = os.open("/dev/tty", os.O_RDONLY)
    except OSError:
        return False
    try:
        return os.tcgetpgrp(terminal) == os.getpgrp()
    except OSError:
        return False
    finally:
        os.close(terminal)


def _upstreams(given: Sequence[str], found: Sequence[str]) -> Upstreams:
    """The user's word first, then what the harness was set to, then the public endpoints."""
    named = {text.partition("=")[0] for text in given}
    if any(text.partition("=")[0] not in PUBLIC for text in given):
        return Upstreams(given)  # one for all
    open_ones = [text for text in found if text.partition("=")[0] not in named]
    for provider in PUBLIC:
        urls = [text for text in open_ones if text.startswith(f"{provider}=")]
        if len(urls) > 1:
            raise InputError(
                f"the configuration names several endpoints ({', '.join(urls)}): expected --upstream {provider}=URL "
                "to say which one is meant"
            )
    return Upstreams([*open_ones, *given])


def _told(recording: Recording, around: Surroundings) -> dict[str, Any]:
    """The surroundings, without the values of variables."""
    return {
        "command": list(recording.command),
        "environment": sorted(recording.environ),
        "git": _git(recording.cwd),
        "harness": around.harness,
        "home": recording.environ.get("HOME"),
        "platform": platform.platform(),
    }


def _git(cwd: Path) -> dict[str, Any] | None:
    """Commit and branch of the workspace, and whether it differs; None outside of a repository."""
    git = shutil.which("git")
    if git is None:
        return None

    def asked(*words: str) -> str | None:
        try:
            done = subprocess.run(
                [git, "--no-optional-locks", *words], cwd=cwd, capture_output=True, timeout=10, check=False
            )
        except (OSError, subprocess.TimeoutExpired):
            return None
        return done.stdout.decode("utf-8", "replace").strip() if done.returncode == 0 else None

    commit = asked("rev-parse", "HEAD")
    if commit is None:
        return None
    branch, changed = asked("branch", "--show-current"), asked("status", "--porcelain")
    return {
        "commit": commit,
        "branch": branch or None,
        "changed": bool(changed) if changed is not None else None,
    }


# -- after the command -----------------------------------------------------------------------------------------------


def _count(ledger: Ledger, recorded: Recorded) -> set[bytes]:
    """Count what was recorded; gives the ids by which the harness' own log tells of the same."""
    names: set[str | None] = set()
    for record in ledger.store.read(recorded.run):
        match record.event:
            case ModelCallRequested() as event:
                recorded.calls += 1
                names.update((event.lane or "").split("/"))
            case ModelCallAnswered(revision=0) as event:
                names.add(event.response_id)
                if event.usage is not None:
                    recorded.tokens["input"] += event.usage.input_tokens or 0
                    recorded.tokens["output"] += event.usage.output_tokens or 0
            case ModelCallFailed():
                recorded.failed += 1
            case ToolCallRequested() as event:
                recorded.tools += 1
                names.add(event.call_id)
            case ToolCallSettled():
                recorded.settled += 1
            case _:
                pass
    return {name.encode("utf-8", "replace") for name in names if name and len(name) >= _SHORTEST_ID}


def _import(
    ledger: Ledger, recorded: Recorded, logs: Sequence[Path], began: float, names: set[bytes]
) -> None:
    """Import the harness' own log of this run, and link its sessions to the run."""
    there = [path for path in logs if path.exists()]
    mine = [path for path in find_files(there) if _is_of_run(path, began, names)]
    if not mine:
        if logs:
            recorded.notes.append(f"no session log of this run in {', '.join(map(str, logs))}")
        return
    report = import_paths(ledger.recorder, mine, survive=True)
    # What a hook or a tap kept of the same sessions belongs to the run as well.
    tapped = [f"{session}{suffix}" for session in report.sessions for suffix in SUFFIXES]
    tapped = [session for session in tapped if ledger.store.head(session).seq]
    links = join_sessions(ledger.recorder, recorded.run, [*report.sessions, *tapped])
    recorded.tapped = [link.other for link in links if link.other in tapped]
    own = [link for link in links if link.other not in tapped]
    recorded.imported = [link.other for link in own]
    recorded.matched = sum(link.matched for link in own)
    for session in recorded.imported:
        for record in ledger.store.read(session):
            recorded.tools_in_log += isinstance(record.event, ToolCallRequested)
    if not links:
        recorded.notes.append("the session log that was imported tells of no call of this run")


def _is_of_run(path: Path, began: float, names: set[bytes]) -> bool:
    """Whether a file was written during the run, and tells of it; what is packed is not looked into."""
    try:
        if path.stat().st_mtime < began - _SLACK_S:
            return False
        with path.open("rb") as file:
            tail = b""
            while piece := file.read(_READ_AT_ONCE):
                if not tail and piece[:4] in (b"SQLi", b"\x28\xb5\x2f\xfd"):
                    return True
                text = tail + piece
                if any(name in text for name in names):
                    return True
                tail = text[-200:]
    except OSError:
        return False
    return False
