"""The command `replay`: proves that a session can be rebuilt, or runs its agent again on what was recorded."""

from collections.abc import Iterator
from contextlib import contextmanager
from enum import Enum
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from ledger.cli.settings import BAD_NEWS, JsonOption, SessionArgument, settings_of
from ledger.cli.terminal import amount, progress, say, show_json, visible
from ledger.errors import InputError
from ledger.events.replaying import AnswerSource
from ledger.home import Ledger
from replay.inprocess import Report as FunctionReport
from replay.inprocess import replay_function
from replay.inprocess.functions import load_function
from replay.keeping import keep_verdict
from replay.proving import prove_requests, prove_states
from replay.report import Report
from webui.rerun import Rerun, rerun
from webui.sandbox import SandboxUnavailableError
from webui.showing import show_function, show_rerun

_ERRORS = 2

EXAMPLE = "Example: loopledger replay 3f2a --level rerun -- claude -p 'fix the typo'"


class Level(Enum):
    """What is to be proved."""

    STATE = "state"
    REQUEST = "request"
    RERUN = "rerun"


class Matching(Enum):
    """The weakest match that is answered."""

    CANONICAL = "canonical"
    LANE = "lane"


ToolOption = Annotated[
    list[str] | None,
    typer.Option(
        "--tool",
        metavar="NAME=HOW",
        help="How a tool is treated: live, blocked, or recorded (only with --function); * names all others.",
        show_default=False,
    ),
]
FunctionOption = Annotated[
    str | None,
    typer.Option(
        "--function",
        metavar="MODULE:NAME",
        help="Run this function of yours, in this process, with the recorder as its argument.",
        show_default=False,
    ),
]
WorkspaceOption = Annotated[
    Path | None,
    typer.Option(
        "--workspace",
        metavar="DIR",
        help="Folder to run in a copy of, as it was before the run; the current one by default.",
        show_default=False,
    ),
]
AtRecordedPathOption = Annotated[
    bool, typer.Option("--at-recorded-path", help="Show the copy where the recorded run had its folder.")
]
KeepNetworkOption = Annotated[
    bool, typer.Option("--keep-network", help="Let the command reach more than loopback.")
]
NoSandboxOption = Annotated[
    bool, typer.Option("--no-sandbox", help="Run the command although the system cannot hold it back.")
]
PausesOption = Annotated[
    bool, typer.Option("--pauses", help="Answer with the pauses that were recorded, not at once.")
]
MatchingOption = Annotated[
    Matching,
    typer.Option(help="canonical: equal under named rules; lane: also what only stands at the same place."),
]
CommandArgument = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="-- COMMAND…", help="Command to run; the recorded one by default.", show_default=False
    ),
]


def add_replay_command(app: typer.Typer) -> None:
    """Add this file's command."""
    app.command("replay", epilog=EXAMPLE)(replay_command)


def replay_command(
    context: typer.Context,
    session: SessionArgument,
    command: CommandArgument = None,
    level: Annotated[
        Level | None,
        typer.Option(
            "--level",
            help="state: every state, folded anew; request: every model request, rebuilt; rerun: the agent runs again."
            " Without it: rerun where a command or a function is given, else request.",
            show_default=False,
        ),
    ] = None,
    function: FunctionOption = None,
    matching: MatchingOption = Matching.CANONICAL,
    tool: ToolOption = None,
    workspace: WorkspaceOption = None,
    at_recorded_path: AtRecordedPathOption = False,
    keep_network: KeepNetworkOption = False,
    no_sandbox: NoSandboxOption = False,
    pauses: PausesOption = False,
    keep: Annotated[
        bool,
        typer.Option("--keep", help="Write the verdict of state or request as a session, as rerun does."),
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Prove that a session can be rebuilt, or run its agent again; exit with 1 where it is not what was recorded."""
    tools = treatments_of(tool, by_wire=function is None)
    runs = command is not None or function is not None
    if runs and level not in (None, Level.RERUN):
        raise InputError("a command or a function runs at level rerun only")
    if command and function:
        raise InputError("expected a command or --function, found both")
    with settings_of(context).open_existing() as ledger:
        if function is not None:
            ended = replay_function(ledger, session, load_function(function), tools=tools)
            show_json(ended.as_json()) if as_json else show_function(ended)
            leave(ended)
        elif runs or level is Level.RERUN:
            how = Rerun(
                command or (),
                workspace,
                at_recorded_path=at_recorded_path,
                sandboxed=not no_sandbox,
                keeps_network=keep_network,
                with_pauses=pauses,
                matching="lane" if matching is Matching.LANE else "canonical",
                tools=wire_treatments(tools),
                output=output_for(as_json=as_json),
            )
            with refusal_shown(as_json=as_json):
                report = rerun(ledger, session, how)
            show_json(report.as_json()) if as_json else show_rerun(report)
            leave(report)
        else:
            _prove(ledger, session, level, keep=keep, as_json=as_json)


def treatments_of(given: list[str] | None, *, by_wire: bool) -> dict[str, AnswerSource]:
    """The treatments that a user asks for. Raises InputError for anything else."""
    found: dict[str, AnswerSource] = {}
    for text in given or ():
        name, separator, how = text.rpartition("=")
        match how:
            case "live" | "blocked" | "recorded" if separator and name:
                found[name] = how
            case _:
                raise InputError(f"--tool {text!r}: expected NAME=live, NAME=blocked or NAME=recorded")
        if how == "recorded" and by_wire:
            raise InputError(
                f"--tool {text!r}: by wire the agent runs its tools itself, so that a result cannot come from the"
                " record: expected live or blocked"
            )
    return found


def wire_treatments(tools: dict[str, AnswerSource]) -> dict[str, Literal["live", "blocked"]]:
    """The same without `recorded`, which does not exist by wire."""
    return {name: how for name, how in tools.items() if how != "recorded"}


def output_for(*, as_json: bool) -> int | None:
    """Where a command's own words go: to standard error where our JSON has the standard output."""
    return _ERRORS if as_json else None


@contextmanager
def refusal_shown(*, as_json: bool) -> Iterator[None]:
    """Where the system cannot hold a command back, say so in JSON too."""
    try:
        yield
    except SandboxUnavailableError as error:
        if as_json:
            show_json({"verdict": None, "sandbox": {"held_back": False, "reason": str(error)}})
        raise


def leave(report: Report | FunctionReport) -> None:
    """Exit with 1 where a replay was not equal."""
    if report.verdict != "equal":
        raise typer.Exit(BAD_NEWS)


def _prove(ledger: Ledger, session: str, level: Level | None, *, keep: bool, as_json: bool) -> None:
    store = ledger.store
    name = store.resolve(session)
    with progress(f"replaying {visible(name)[:20]}", store.head(name).seq) as bar:
        proved = prove_states if level is Level.STATE else prove_requests
        report = proved(store, name, lambda seq: bar.move(seq) if seq % 500 == 0 else None)
    if keep:
        report.facts["replay_session"] = keep_verdict(ledger, report)
    if as_json:
        show_json(report.as_json())
    else:
        _show(report)
    leave(report)


def _show(report: Report) -> None:
    facts: dict[str, Any] = report.facts
    if report.divergence is not None:
        say("diverged", bold=True, color="red")
        say(visible(report.divergence.text(), keep_lines=True))
    elif report.level == "state":
        say(
            f"equal: {amount(facts['states'])} states, folded twice and over {amount(facts['snapshots'])} snapshots"
        )
        say(f"  digest {facts['digest']}")
    else:
        say(
            f"equal: {amount(len(report.requests))} model requests rebuilt: {amount(facts['bodies_equal'])} whole"
            f" bodies, {amount(facts['messages_equal'])} message by message, {amount(facts['raw_bytes_equal'])} to the"
            " byte"
        )
        for reason, count in facts["not_checked"].items():
            say(f"  {amount(count)} not checked: {visible(reason)}")
    if "replay_session" in facts:
        say(f"  kept as session {facts['replay_session']}")
