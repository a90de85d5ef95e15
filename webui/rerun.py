"""Runs a command again: on recorded answers, in a room of its own. Prints nothing."""

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from ledger.errors import ContentMissingError, InputError
from ledger.events.canonical import decode_json
from ledger.events.model_call import ModelCallRequested
from ledger.events.replaying import ReplayStarted, ToolTreatment
from ledger.events.session import SessionEnded, SessionLinked, SessionStarted
from ledger.home import Ledger
from replay.matching import Folders
from replay.player import GATE_TIMEOUT_S, Player
from replay.recordings import sessions_of_run
from replay.report import Report
from webui.listening import served
from webui.playing import PlayerApp
from webui.sandbox import Room, open_room
from webui.surroundings import Surroundings, surroundings

_EXITED = "the command exited with status "


@dataclass(frozen=True)
class RecordedRun:
    """What a session tells of the run that it recorded."""

    command: Sequence[str] = ()
    """Command that ran."""
    cwd: Path | None = None
    """Its working directory."""
    home: str | None = None
    """Its home."""
    harness: str | None = None
    """Harness, as `record` found it."""
    status: int = 0
    """Exit status of the command; 0 where it is not known."""


@dataclass(frozen=True)
class Rerun:
    """How a command is to run again."""

    command: Sequence[str] = ()
    """Command; the recorded one where none is given."""
    workspace: Path | None = None
    """Folder to run in a copy of; the current one where none is given."""
    at_recorded_path: bool = False
    """Whether the copy is to be seen where the recorded run had its working directory."""
    sandboxed: bool = True
    """Whether the system must hold the command back."""
    keeps_network: bool = False
    """Whether the command may reach more than loopback."""
    with_pauses: bool = False
    """Whether answers take the time that they took."""
    matching: Literal["canonical", "lane"] = "canonical"
    """Weakest match that is answered."""
    tools: Mapping[str, Literal["live", "blocked"]] = field(default_factory=dict)
    """Treatment of tools by name."""
    gate_timeout_s: float = GATE_TIMEOUT_S
    """Longest wait for an answer that ended earlier when it was recorded."""
    output: int | None = None
    """File descriptor in the place of the command's standard output."""


def rerun(ledger: Ledger, session: str, how: Rerun) -> Report:
    """Run a command again on the answers of a session. Raises InputError, SandboxUnavailableError."""
    origin = wire_session(ledger, session)
    known = recorded_run(ledger, origin)
    last = ledger.store.record(origin, ledger.store.head(origin).seq)
    with room_for(ledger, known, how) as (command, room):
        started = ReplayStarted(
            origin=origin,
            origin_seq=last.seq,
            origin_hash=last.hash,
            level="rerun",
            mode="wire",
            matching=how.matching,
            tools=treatments(how.tools),
            frozen=not room.has_network,
        )
        recorded, replayed = folders(known, how, room)
        player = Player(
            ledger,
            sessions_of_run(ledger.store, origin),
            recorded=recorded,
            replayed=replayed,
            matching=how.matching,
            is_blocked=lambda tool: how.tools.get(tool, how.tools.get("*")) == "blocked",
            gate_timeout_s=how.gate_timeout_s,
            started=started,
        )
        prepared = prepare(room, command, known, is_replay=True)
        with served(PlayerApp(player, with_pauses=how.with_pauses), room.listening):
            status = room.run(prepared.command, prepared.environment)
        return finished(player, room, command, status, known.status)


@contextlib.contextmanager
def room_for(ledger: Ledger, known: RecordedRun, how: Rerun) -> Iterator[tuple[list[str], Room]]:
    """The command and its room."""
    command = list(how.command or known.command)
    if not command:
        raise InputError("the session does not tell which command it recorded: expected one after --")
    if how.at_recorded_path and known.cwd is None:
        raise InputError("the session does not tell its working directory: run without --at-recorded-path")
    with open_room(
        (how.workspace or Path.cwd()).absolute(),
        at=known.cwd if how.at_recorded_path else None,
        sandboxed=how.sandboxed,
        keeps_network=how.keeps_network,
        leave_out=ledger.home,
        output=how.output,
        command=command,
    ) as room:
        yield command, room


def prepare(room: Room, command: list[str], known: RecordedRun, *, is_replay: bool) -> Surroundings:
    """The command and the environment that point it at the room's front."""
    return surroundings(
        command,
        room.url,
        room.settings,
        environ=room.environment(),
        cwd=room.cwd,
        harness=known.harness if command == list(known.command) else None,
        is_replay=is_replay,
        settings_of=Path.home(),
    )


def finished(player: Player, room: Room, command: Sequence[str], status: int, recorded_status: int) -> Report:
    """The report of a run that has ended."""
    report = player.report
    if room.has_network:  # else what the tools did has stayed in the room, which is thrown away
        report.effects = sum(report.tools.values())
    report.outside_calls += sum(room.attempts.values())
    report.facts |= {
        "command": {"command": list(command), "status": status, "recorded_status": recorded_status},
        "sandbox": room.as_json(),
    }
    if status != recorded_status:
        report.reason = f"the command ended with status {status}, when it was recorded with {recorded_status}"
    if player.journal is not None:
        report.facts["replay_session"] = player.journal.session
    return player.finish()


def folders(known: RecordedRun, how: Rerun, room: Room) -> tuple[Folders, Folders]:
    """The folders of the recorded run, and those of this one."""
    home = known.home or str(Path.home())
    cwd = known.cwd or (how.workspace or Path.cwd()).absolute()
    return (
        Folders.of(home=[home], cwd=[str(cwd)]),
        Folders.of(home=[str(room.home)], cwd=[str(room.cwd)]),
    )


def treatments(tools: Mapping[str, Literal["live", "blocked"]]) -> tuple[ToolTreatment, ...]:
    """By wire the harness runs its tools itself, unless they are blocked."""
    told = {**tools, "*": tools.get("*", "live")}
    return tuple(ToolTreatment(tool=tool, treatment=how) for tool, how in sorted(told.items()))


def wire_session(ledger: Ledger, name: str) -> str:
    """The session, or the one of the same run that the proxy recorded, where only that one holds whole requests."""
    origin = ledger.store.resolve(name)
    others: list[str] = []
    for record in ledger.store.read(origin):
        event = record.event
        if isinstance(event, ModelCallRequested) and event.body_digest is not None:
            return origin
        if isinstance(event, SessionLinked):
            others.append(event.other)
    return next((other for other in others if _holds_requests(ledger, other)), origin)


def _holds_requests(ledger: Ledger, session: str) -> bool:
    for record in ledger.store.read(session):
        if isinstance(record.event, ModelCallRequested):
            return record.event.body_digest is not None
    return False


def recorded_run(ledger: Ledger, session: str) -> RecordedRun:
    """What a session tells of its run, by its first and its last record."""
    store = ledger.store
    first = store.record(session, 1).event
    last = store.record(session, store.head(session).seq).event
    status = 0
    if isinstance(last, SessionEnded) and (last.reason or "").startswith(_EXITED):
        told = (last.reason or "").removeprefix(_EXITED)
        status = int(told) if told.isdecimal() else 0
    if not isinstance(first, SessionStarted):
        return RecordedRun(status=status)
    about: Any = None
    if first.environment is not None:
        with contextlib.suppress(ContentMissingError, ValueError):
            about = decode_json(store.content(first.environment.digest))
    about = about if isinstance(about, dict) else {}
    command, home, harness = about.get("command"), about.get("home"), about.get("harness")
    return RecordedRun(
        [str(word) for word in command] if isinstance(command, list) else (),
        Path(first.cwd) if first.cwd else None,
        home if isinstance(home, str) else None,
        harness if isinstance(harness, str) else None,
        status,
    )
