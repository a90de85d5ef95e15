"""Records live loops: what a user's own agent loop calls. May import recorder and below; never an importer."""

from ledger.capture.approvals import Approval
from ledger.capture.loop import RecordedLoop, record_loop
from ledger.capture.streams import AsyncRecordedStream, RecordedStream
from ledger.capture.watching import CheckpointRules

__all__ = [
    "Approval",
    "AsyncRecordedStream",
    "CheckpointRules",
    "RecordedLoop",
    "RecordedStream",
    "record_loop",
]
