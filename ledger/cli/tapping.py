"""The commands `hook`, `tap` and `join`."""

import contextlib
import json
import os
import shlex
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Annotated, Any

import typer

from ledger.capture.joining import Link, join_sessions
from ledger.capture.taps.claude_code import EVENTS
from ledger.capture.taps.codex import CodexTap
from ledger.capture.taps.mcp import McpTap
from ledger.capture.taps.mcp_http import McpEndpoint
from ledger.capture.taps.stdio import Recording, run_tapped
from ledger.cli.settings import JsonOption, SessionArgument, Settings, settings_of
from ledger.cli.terminal import say, show_json, visible
from ledger.errors import InputError
from ledger.hook import read_event, record_event

_HARNESSES = ("claude-code",)
_WAITS_S = 30


def add_tap_commands(app: typer.Typer) -> None:
    """Add this file's commands."""
    app.command("hook", epilog="Example: loopledger hook claude-code --settings")(hook_command)
    app.command("tap", epilog="Example: loopledger tap mcp --server files -- python my_server.py")(
        tap_command
    )
    app.command("join", epilog="Example: loopledger join 793ad518")(join_command)


def hook_command(
    context: typer.Context,
    harness: Annotated[str, typer.Argument(help="The harness: claude-code.", show_default=False)],
    settings: Annotated[
        bool, typer.Option("--settings", help="Print the settings that install the hook, and record nothing.")
    ] = False,
    fail_closed: Annotated[
        bool,
        typer.Option("--fail-closed", help="Stop what the harness is about to do when it is not recorded."),
    ] = False,
) -> None:
    """Record one event of a harness's hook from standard input; --settings prints what installs it."""
    if harness not in _HARNESSES:
        raise InputError(f"{harness!r} has no hook here: expected {', '.join(_HARNESSES)}")
    given = settings_of(context)
    if settings:
        typer.echo(json.dumps(_settings(given, fail_closed), indent=2))
        return
    raise typer.Exit(record_event(read_event(), home=given.home, store=given.store, fail_closed=fail_closed))


def _settings(given: Settings, fail_closed: bool) -> dict[str, Any]:
    """What goes into settings.json. Paths are absolute: hooks run wherever the harness works."""
    home = Path(given.home or os.environ.get("LOOPLEDGER_HOME") or ".loopledger").absolute()
    # -P: the harness's working directory must not offer modules in our place.
    parts = [sys.executable, "-P", "-m", "ledger.hook", "claude-code", "--home", str(home)]
    if store := given.store or os.environ.get("LOOPLEDGER_STORE"):
        parts += ["--store", store]
    if fail_closed:
        parts.append("--fail-closed")
    hook = {"type": "command", "command": shlex.join(parts), "timeout": _WAITS_S}
    return {"hooks": {event: [{"hooks": [hook]}] for event in EVENTS}}


def tap_command(
    context: typer.Context,
    protocol: Annotated[str, typer.Argument(help="What passes: codex or mcp.", show_default=False)],
    command: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[-- COMMAND...]", help="Program to start behind the tap.", show_default=False
        ),
    ] = None,
    server: Annotated[
        str | None, typer.Option(metavar="NAME", help="mcp: name of the server in the records.")
    ] = None,
    url: Annotated[
        str | None, typer.Option(metavar="URL", help="mcp: server behind HTTP, in place of a command.")
    ] = None,
    port: Annotated[
        int, typer.Option(help="mcp with --url: port to listen on; any free one by default.")
    ] = 0,
    fail_open: Annotated[
        bool,
        typer.Option("--fail-open", help="Pass messages on unrecorded when the ledger cannot be written."),
    ] = False,
) -> None:
    """Start a program and record what passes between it and the one that started this tap."""
    if protocol not in ("codex", "mcp"):
        raise InputError(f"{protocol!r} has no tap here: expected codex or mcp")
    if (url is None) == (not command) or (url is not None and protocol != "mcp"):
        raise InputError("expected either a command behind `--`, or with mcp --url")
    run = os.environ.get("LOOPLEDGER_RUN")
    with settings_of(context).open() as ledger:
        if url is not None:
            with _until_stopped(
                McpEndpoint(
                    ledger.recorder, url, port=port, server=server, run=run, fail_open=fail_open, warn=_warn
                )
            ) as endpoint:
                endpoint.serve_forever()
            return
        assert command is not None
        tap: Recording = CodexTap(ledger.recorder, run=run)
        if protocol == "mcp":
            name = server or Path(command[-1] if len(command) > 1 else command[0]).stem
            tap = McpTap(ledger.recorder, server=name, run=run, about={"command": command})
        status = run_tapped(command, tap, fail_open=fail_open)
    if status < 0:
        # Whoever started the tap must see the same end as without it.
        signal.signal(-status, signal.SIG_DFL)
        os.kill(os.getpid(), -status)
    raise typer.Exit(status)


@contextlib.contextmanager
def _until_stopped(endpoint: McpEndpoint) -> Iterator[McpEndpoint]:
    """Around the serving: SIGTERM and SIGINT end it in order."""

    def stop(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, stop)
    _warn(f"give {endpoint.address} to the client in the server's place; Ctrl-C ends the tap")
    try:
        with contextlib.suppress(KeyboardInterrupt):
            yield endpoint
    finally:
        signal.signal(signal.SIGTERM, before)
        endpoint.close()


def _warn(text: str) -> None:
    typer.echo(f"loopledger: {visible(text)}", err=True)


def join_command(
    context: typer.Context,
    session: SessionArgument,
    others: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[OTHER]...",
            help="Sessions to compare it with; all others by default.",
            show_default=False,
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Link sessions that tell of the same run: by ids of responses, calls, sessions, traces and runs."""
    with settings_of(context).open_existing() as ledger:
        name = ledger.store.resolve(session)
        named = [ledger.store.resolve(other) for other in others] if others else None
        links = join_sessions(ledger.recorder, name, named)
    if as_json:
        show_json({"session": name, "links": [link._asdict() for link in links]})
        return
    for link in links:
        say(_line(link))
    if not links:
        say(f"no session tells of the same run as {visible(name)}")


def _line(link: Link) -> str:
    news = "linked" if link.is_new else "known"
    return (
        f"{news}  {visible(link.other)}  by {', '.join(link.how)}: {link.matched} calls in both,"
        f" {link.only_here} only here, {link.only_there} only there"
    )
