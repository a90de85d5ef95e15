"""Looks at records for what single actions hide. Takes records or a DuckDB connection, never a store.

May import events, effects and lake alone. How to add a detector: see `detectors`.
"""

from ledger.audit.approvals import CANNOT_SEE, ApprovalCheck
from ledger.audit.detector import Detector, Fold, Given
from ledger.audit.discovery import chosen, discover
from ledger.audit.finding import SEVERITIES, Finding, Found, Level
from ledger.audit.reader import Reader
from ledger.audit.report import Report
from ledger.audit.running import SessionFolds, fold_session, query

__all__ = [
    "CANNOT_SEE",
    "SEVERITIES",
    "ApprovalCheck",
    "Detector",
    "Finding",
    "Fold",
    "Found",
    "Given",
    "Level",
    "Reader",
    "Report",
    "SessionFolds",
    "chosen",
    "discover",
    "fold_session",
    "query",
]
