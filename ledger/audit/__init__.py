"""Looks at records for what single actions hide. Takes records, never a store; may import events and effects alone."""

from ledger.audit.approvals import CANNOT_SEE, ApprovalCheck
from ledger.audit.finding import Finding

__all__ = ["CANNOT_SEE", "ApprovalCheck", "Finding"]
