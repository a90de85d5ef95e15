"""The command `record`: runs an agent behind the recording proxy, with everything set that it needs for that."""

from typing import Annotated

import orjson
import typer

from ledger.cli.settings import BAD_NEWS, settings_of
from ledger.cli.terminal import amount, visible
from ledger.effects.loop_policy import load_loop_policy
from ledger.errors import InputError
from ledger.recorder import new_id
from webui.proxy_command import PolicyOption, UpstreamCaOption, UpstreamOption
from webui.recording import Recorded, Recording, record

_NOTHING = (
    "NOTHING WAS RECORDED: no model call came through the proxy. The command may take its endpoint from a "
    "configuration of its own; --harness names what it starts, `loopledger proxy` shows what to set by hand"
)


def add_record_command(app: typer.Typer) -> None:
    """Add this file's command."""
    app.command(
        "record",
        epilog='Example: loopledger record -- claude -p "fix the typo"',
        context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
    )(record_command)


def record_command(
    context: typer.Context,
    command: Annotated[
        list[str],
        typer.Argument(metavar="COMMAND...", help="The command and its arguments.", show_default=False),
    ],
    name: Annotated[
        str | None,
        typer.Option("--name", metavar="NAME", help="Id of the session; a new one by default."),
    ] = None,
    harness: Annotated[
        str | None,
        typer.Option(
            "--harness", metavar="NAME", help="Harness that the command starts; recognised by its name."
        ),
    ] = None,
    upstream: UpstreamOption = None,
    upstream_ca: UpstreamCaOption = None,
    policy: PolicyOption = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the report as JSON, on standard error.")
    ] = False,
) -> None:
    """Run an agent and record it: every model call, its own session log, and a check of the recording.

    Its input, output and signals pass through, and its exit status is ours; 1 where nothing was recorded. What there is
    to say comes on standard error when it has ended.
    """
    recording = Recording(
        command=command,
        run=name or new_id(),
        harness=harness,
        upstreams=upstream or (),
        upstream_ca=upstream_ca,
        policy=None if policy is None else load_loop_policy(policy),
    )
    if not recording.command:
        raise InputError("expected a command to record: loopledger record -- COMMAND…")
    with settings_of(context).open() as ledger:
        recorded = record(ledger, recording, _tell)
    if as_json:
        typer.echo(orjson.dumps(recorded.as_json()).decode(), err=True)
    else:
        for line in _lines(recorded):
            _tell(line)
    status = recorded.status if recorded.calls or recorded.status else BAD_NEWS
    if status:
        raise typer.Exit(status)


def _tell(text: str) -> None:
    typer.echo(f"loopledger: {visible(text)}", err=True)


def _lines(recorded: Recorded) -> list[str]:
    lines = list(recorded.notes)
    if not recorded.calls:
        return [*lines, _NOTHING]
    failed = f" ({amount(recorded.failed)} failed)" if recorded.failed else ""
    tokens = recorded.tokens
    lines.append(
        f"recorded {recorded.run}: {_many(recorded.calls, 'model call')}{failed}, "
        f"{amount(tokens['input'])} tokens in, {amount(tokens['output'])} out, {_many(recorded.tools, 'tool call')}"
    )
    if recorded.imported:
        lines.append(
            f"its own log: {_many(len(recorded.imported), 'session')} with "
            f"{_many(recorded.tools_in_log, 'tool call')}; {_many(recorded.matched, 'call')} in both"
        )
    check = recorded.check
    if check is not None and check.divergence is not None:
        lines.append(f"SELF-CHECK FAILED: {check.divergence.text()}")
    elif check is not None:
        lines.append(
            f"self-check: {amount(len(check.requests))} of {amount(recorded.calls)} requests rebuilt from the record "
            "as they were sent"
        )
    return lines


def _many(count: int, what: str) -> str:
    return f"{amount(count)} {what}" if count == 1 else f"{amount(count)} {what}s"
