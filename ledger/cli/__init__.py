"""The commands of this layer: import, look, verify, ask, audit, hook, tap, join. Wires, prints, decides nothing."""

from ledger.cli.approving import add_approval_commands
from ledger.cli.auditing import add_audit_commands
from ledger.cli.backtesting import add_backtest_command
from ledger.cli.decaying import add_decay_command
from ledger.cli.edging import add_edge_command
from ledger.cli.exporting import add_export_command
from ledger.cli.fleet import add_fleet_command
from ledger.cli.importing import add_import_commands
from ledger.cli.looking import add_look_commands
from ledger.cli.proving import add_proof_commands
from ledger.cli.querying import add_query_commands
from ledger.cli.reviewing import add_review_commands
from ledger.cli.searching import add_search_command
from ledger.cli.settings import LedgerGroup, Settings, global_options
from ledger.cli.tapping import add_tap_commands

__all__ = [
    "LedgerGroup",
    "Settings",
    "add_approval_commands",
    "add_audit_commands",
    "add_backtest_command",
    "add_decay_command",
    "add_edge_command",
    "add_export_command",
    "add_fleet_command",
    "add_import_commands",
    "add_look_commands",
    "add_proof_commands",
    "add_query_commands",
    "add_review_commands",
    "add_search_command",
    "add_tap_commands",
    "global_options",
]
