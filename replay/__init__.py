"""Rebuild, re-run, branch, roll back. Stands on `ledger`; only `webui` may import it."""

from replay.context import RebuiltRequest, rebuild_request
from replay.difference import difference
from replay.fold import Past, fold
from replay.pointer import Change, apply_changes
from replay.state import FOLD_VERSION, State
from replay.timeline import Timeline, session_timeline

__all__ = [
    "FOLD_VERSION",
    "Change",
    "Past",
    "RebuiltRequest",
    "State",
    "Timeline",
    "apply_changes",
    "difference",
    "fold",
    "rebuild_request",
    "session_timeline",
]
