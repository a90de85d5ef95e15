"""The command `replay`: proves that a session can be rebuilt, state by state or request by request."""

from enum import Enum
from typing import Annotated, Any

import typer

from ledger.cli.settings import BAD_NEWS, JsonOption, SessionArgument, settings_of
from ledger.cli.terminal import amount, progress, say, show_json, visible
from replay.proving import prove_requests, prove_states
from replay.report import Report


class ProvedLevel(Enum):
    """What can be proved from the ledger alone."""

    STATE = "state"
    REQUEST = "request"


def add_replay_command(app: typer.Typer) -> None:
    """Add this file's command."""
    app.command("replay", epilog="Example: loopledger replay 3f2a --level state")(replay_command)


def replay_command(
    context: typer.Context,
    session: SessionArgument,
    level: Annotated[
        ProvedLevel,
        typer.Option(
            "--level", help="state: every state, folded anew; request: every model request, rebuilt."
        ),
    ] = ProvedLevel.REQUEST,
    as_json: JsonOption = False,
) -> None:
    """Prove that a session can be rebuilt from its records; exit with 1 where it is not what was recorded."""
    with settings_of(context).open_existing() as ledger:
        store = ledger.store
        name = store.resolve(session)
        with progress(f"replaying {visible(name)[:20]}", store.head(name).seq) as bar:
            proved = prove_states if level is ProvedLevel.STATE else prove_requests
            report = proved(store, name, lambda seq: bar.move(seq) if seq % 500 == 0 else None)
    if as_json:
        show_json(report.as_json())
    else:
        _show(report)
    if report.divergence is not None:
        raise typer.Exit(BAD_NEWS)


def _show(report: Report) -> None:
    facts: dict[str, Any] = report.facts
    if report.divergence is not None:
        say("diverged", bold=True, color="red")
        say(visible(report.divergence.text(), keep_lines=True))
        return
    if report.level == "state":
        say(
            f"equal: {amount(facts['states'])} states, folded twice and over {amount(facts['snapshots'])} snapshots"
        )
        say(f"  digest {facts['digest']}")
        return
    say(
        f"equal: {amount(len(report.requests))} model requests rebuilt: {amount(facts['bodies_equal'])} whole bodies, "
        f"{amount(facts['messages_equal'])} message by message, {amount(facts['raw_bytes_equal'])} to the byte"
    )
    for reason, count in facts["not_checked"].items():
        say(f"  {amount(count)} not checked: {visible(reason)}")
