"""The files of a workspace: looked at, kept by content, put back byte for byte. Never follows a link out of it."""

from ledger.workspace.looking import Limits, Look, Workspace
from ledger.workspace.restoring import restore
from ledger.workspace.tree import Change, Entry, Tree, changes, load_files, load_tree

__all__ = [
    "Change",
    "Entry",
    "Limits",
    "Look",
    "Tree",
    "Workspace",
    "changes",
    "load_files",
    "load_tree",
    "restore",
]
