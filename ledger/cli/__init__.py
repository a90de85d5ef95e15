"""The commands of this layer: import, formats, sessions, events, show, verify. Wires, prints, decides nothing."""

from ledger.cli.importing import add_import_commands
from ledger.cli.looking import add_look_commands
from ledger.cli.proving import add_proof_commands
from ledger.cli.settings import LedgerGroup, Settings, global_options

__all__ = [
    "LedgerGroup",
    "Settings",
    "add_import_commands",
    "add_look_commands",
    "add_proof_commands",
    "global_options",
]
