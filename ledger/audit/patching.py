"""Files that a call changes, and those of a patch."""

import re
from collections.abc import Iterator
from typing import NamedTuple

from ledger.audit.scripts import normal

_LONGEST = 200_000
_PATCH_LINE = re.compile(r"^\*\*\* (Add|Update|Delete|Move to)(?: File)?: (.+)$")
_DIFF_LINE = re.compile(r"^\+\+\+ (?:b/)?(\S+)")
_DIFF_OLD = re.compile(r"^--- (?:a/)?(\S+)")


class Touch(NamedTuple):
    """A file that a call changes."""

    path: str
    """Its path, with slashes, as far as the call says it."""

    how: str
    """What is done to it: `write`, `delete`, `mode`, or `disarm` where it cannot be run any more."""

    content: str | None = None
    """What is written; None where the call does not say it."""

    replaced: str = ""
    """What stood in its place, where the call says it."""

    is_whole: bool = False
    """Whether the file has this content afterwards and no other."""

    source: str = ""
    """The file that it is a copy of, or a link to, where the call says that."""


def patched(text: str) -> Iterator[Touch]:
    """The files of a patch: one in the form of `apply_patch`, or a unified diff."""
    is_diff = "*** Begin Patch" not in text
    path, how, old, new = "", "write", list[str](), list[str]()
    before = ""
    for line in text[:_LONGEST].split("\n"):
        if is_diff and (gone := _DIFF_OLD.match(line)) is not None:
            before = gone[1]
            continue
        found = (_DIFF_LINE if is_diff else _PATCH_LINE).match(line)
        if found is not None:
            if path:
                yield _patch_of(path, how, old, new)
            old, new = [], []
            if is_diff:
                is_gone = found[1] == "/dev/null"
                path, how = normal(before if is_gone else found[1]), "delete" if is_gone else "write"
            else:
                path = normal(found[2])
                how = {"Delete": "delete", "Add": "whole"}.get(found[1], "write")
        elif path and line.startswith("-"):
            old.append(line[1:])
        elif path and line.startswith("+"):
            new.append(line[1:])
    if path:
        yield _patch_of(path, how, old, new)


def _patch_of(path: str, how: str, old: list[str], new: list[str]) -> Touch:
    is_whole = how in ("whole", "delete")
    return Touch(path, "write" if how == "whole" else how, "\n".join(new), "\n".join(old), is_whole)
