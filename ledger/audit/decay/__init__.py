"""Governance decay: which rules a model still saw at each call, which compaction lost them, what was broken then."""

from ledger.audit.decay.outcome import SessionDecay
from ledger.audit.decay.report import DecayReport, decay_report
from ledger.audit.decay.watching import DecayWatch

__all__ = ["DecayReport", "DecayWatch", "SessionDecay", "decay_report"]
