"""The only writer: redacts, digests, stamps and appends. Live or imported, every record goes through here."""

from ledger.recorder.context import ContextChain
from ledger.recorder.keeper import Keeper
from ledger.recorder.recorder import Recorder, new_id, utc_now

__all__ = ["ContextChain", "Keeper", "Recorder", "new_id", "utc_now"]
