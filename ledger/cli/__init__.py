"""The commands of this layer: import, look, verify, export and ask, hook, tap, join. Wires, prints, decides nothing."""

from ledger.cli.approving import add_approval_commands
from ledger.cli.importing import add_import_commands
from ledger.cli.looking import add_look_commands
from ledger.cli.proving import add_proof_commands
from ledger.cli.querying import add_query_commands
from ledger.cli.settings import LedgerGroup, Settings, global_options
from ledger.cli.tapping import add_tap_commands

__all__ = [
    "LedgerGroup",
    "Settings",
    "add_approval_commands",
    "add_import_commands",
    "add_look_commands",
    "add_proof_commands",
    "add_query_commands",
    "add_tap_commands",
    "global_options",
]
