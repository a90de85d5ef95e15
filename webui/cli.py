"""The program `loopledger`: puts the commands of all layers together. Holds `demo` and no other logic."""

import typer

from ledger.cli import (
    LedgerGroup,
    add_approval_commands,
    add_import_commands,
    add_look_commands,
    add_proof_commands,
    add_query_commands,
    add_tap_commands,
    global_options,
)
from replay.commands import add_replay_commands
from replay.recovery.commands import add_recovery_commands
from webui.branch_command import add_branch_command
from webui.demo import add_demo_command
from webui.proxy_command import add_proxy_command
from webui.record_command import add_record_command
from webui.replay_command import add_replay_command
from webui.serve import add_serve_command

app = typer.Typer(
    name="loopledger",
    cls=LedgerGroup,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    epilog="Example: loopledger import ~/.claude/projects && loopledger sessions",
)
app.callback()(global_options)
add_demo_command(app)
add_import_commands(app)
add_look_commands(app)
add_replay_commands(app)
add_replay_command(app)
add_branch_command(app)
add_recovery_commands(app)
add_proof_commands(app)
add_approval_commands(app)
add_query_commands(app)
add_tap_commands(app)
add_proxy_command(app)
add_record_command(app)
add_serve_command(app)


def main() -> None:
    """Entry point of the console script."""
    app()
