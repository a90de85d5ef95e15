"""The command `branch`: a recorded beginning, then another answer, another model, another prompt."""

import getpass
from enum import Enum
from pathlib import Path
from typing import Annotated, Any

import typer

from ledger.cli.settings import JsonOption, SessionArgument, settings_of
from ledger.cli.terminal import say, show_json
from ledger.errors import InputError
from ledger.events.canonical import decode_json
from replay.branching import Branch
from replay.forking import fork_session
from replay.inprocess import branch_loop
from replay.inprocess.answers import view
from replay.inprocess.functions import load_function
from replay.resume.resuming import prepare
from replay.resume.showing import IntoOption, RuntimeOption, show_resumption
from webui.branching import run_branch
from webui.proxy_command import UpstreamCaOption, UpstreamOption
from webui.replay_command import (
    CommandArgument,
    FunctionOption,
    KeepNetworkOption,
    NoSandboxOption,
    ToolOption,
    WorkspaceOption,
    leave,
    output_for,
    refusal_shown,
    treatments_of,
)
from webui.rerun import Rerun
from webui.showing import show_function, show_rerun

EXAMPLE = "Example: loopledger branch 3f2a --at 120 --answer 97=other.json -- claude -p 'fix the typo'"


class Models(Enum):
    """Whether models are asked after the branch."""

    LIVE = "live"
    BLOCKED = "blocked"


def add_branch_command(app: typer.Typer) -> None:
    """Add this file's command."""

    @app.command("branch", epilog=EXAMPLE)
    def branch(
        context: typer.Context,
        session: SessionArgument,
        at: Annotated[
            int,
            typer.Option("--at", metavar="SEQ", min=1, help="Last record that counts.", show_default=False),
        ],
        command: CommandArgument = None,
        answer: Annotated[
            list[str] | None,
            typer.Option(
                "--answer",
                metavar="SEQ=FILE",
                help="Give this body in the place of the answer to the model request SEQ: JSON, or an event stream"
                " where the agent asks for one. With --function: the value (JSON) of a call of a model or a tool.",
                show_default=False,
            ),
        ] = None,
        message: Annotated[
            str | None,
            typer.Option(
                "--message",
                metavar="TEXT",
                help="Open the branch with these words of a person, and run nothing: a loop goes on from there.",
                show_default=False,
            ),
        ] = None,
        models: Annotated[
            Models, typer.Option(help="live: ask the model where the recording was left.")
        ] = Models.LIVE,
        function: FunctionOption = None,
        tool: ToolOption = None,
        upstream: UpstreamOption = None,
        upstream_ca: UpstreamCaOption = None,
        workspace: WorkspaceOption = None,
        keep_network: KeepNetworkOption = False,
        no_sandbox: NoSandboxOption = False,
        into: IntoOption = None,
        runtime: RuntimeOption = None,
        as_json: JsonOption = False,
    ) -> None:
        """Run an agent on the beginning of a session and live on from there, in a session of its own."""
        answers = _answers(answer)
        if command and function:
            raise InputError("expected a command or --function, found both")
        if into is not None and (command or function or answer):
            raise InputError("--into runs nothing: expected it without a command, --function and --answer")
        if runtime is not None and into is None:
            raise InputError("--as goes with --into")
        if message is not None and (command or function or answer or into is not None):
            raise InputError(
                "--message runs nothing: expected it without a command, --function, --answer and --into"
            )
        with settings_of(context).open_existing() as ledger:
            if message is not None:
                made = fork_session(ledger, session, at, message, person=getpass.getuser())
                show_json({"session": made, "at": at}) if as_json else say(f"opened the branch {made}")
                return
            if into is not None:
                written = prepare(ledger, ledger.store.resolve(session), at, into, runtime).write()
                show_json(written) if as_json else show_resumption(written)
                return
            if function is not None:
                tools = treatments_of(tool, by_wire=False)
                given = {seq: view(_json(path)) for seq, path in answers.items()}
                run = load_function(function)
                with branch_loop(
                    ledger, session, at=at, answers=given, models=models.value, tools=tools
                ) as loop:
                    run(loop)
                show_json(loop.report.as_json()) if as_json else show_function(loop.report)
                leave(loop.report)
                return
            if tool:
                raise InputError("--tool goes with --function: by wire the agent runs its tools itself")
            with refusal_shown(as_json=as_json):
                report = run_branch(
                    ledger,
                    session,
                    Branch(at, {seq: _bytes(path) for seq, path in answers.items()}, models.value),
                    Rerun(
                        command or (),
                        workspace,
                        sandboxed=not no_sandbox,
                        keeps_network=keep_network,
                        output=output_for(as_json=as_json),
                    ),
                    upstream=upstream or (),
                    upstream_ca=upstream_ca,
                )
            show_json(report.as_json()) if as_json else show_rerun(report)
            leave(report)


def _answers(given: list[str] | None) -> dict[int, Path]:
    found: dict[int, Path] = {}
    for text in given or ():
        seq, separator, path = text.partition("=")
        if not separator or not seq.isdecimal() or not path:
            raise InputError(f"--answer {text!r}: expected SEQ=FILE")
        found[int(seq)] = Path(path)
    return found


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}") from error


def _json(path: Path) -> Any:
    try:
        return decode_json(_bytes(path))
    except ValueError as error:
        raise InputError(f"{path} is not JSON: {error}") from error
