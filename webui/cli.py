"""The program `loopledger`: puts the commands of all layers together. Holds `demo` and no other logic."""

import typer

from ledger.cli import (
    LedgerGroup,
    add_approval_commands,
    add_audit_commands,
    add_backtest_command,
    add_decay_command,
    add_edge_command,
    add_export_command,
    add_fleet_command,
    add_import_commands,
    add_look_commands,
    add_proof_commands,
    add_query_commands,
    add_review_commands,
    add_search_command,
    add_tap_commands,
    global_options,
)
from replay.commands import add_replay_commands
from replay.comparing.commands import add_comparing_commands
from replay.recovery.commands import add_recovery_commands
from replay.scorecard.commands import add_scorecard_command
from webui.branch_command import add_branch_command
from webui.demo import add_demo_command
from webui.mcp_command import add_mcp_command
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
add_search_command(app)
add_replay_commands(app)
add_replay_command(app)
add_branch_command(app)
add_comparing_commands(app)
add_recovery_commands(app)
add_proof_commands(app)
add_approval_commands(app)
add_export_command(app)
add_query_commands(app)
add_mcp_command(app)
add_audit_commands(app)
add_decay_command(app)
add_backtest_command(app)
add_review_commands(app)
add_edge_command(app)
add_fleet_command(app)
add_scorecard_command(app)
add_tap_commands(app)
add_proxy_command(app)
add_record_command(app)
add_serve_command(app)


def main() -> None:
    """Entry point of the console script."""
    app()
