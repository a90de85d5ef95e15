"""A tree of files by content: what it holds, how it is kept as blobs, how two of them differ. Touches no disk.

A folder is a JSON blob that lists its entries; the root blob names the folder on disk and the root folder's blob. So a
tree costs only the folders in which something changed.
"""

from collections.abc import Callable, Mapping
from typing import Any, Literal, NamedTuple

from ledger.errors import InputError
from ledger.events import ContentRef
from ledger.events.canonical import decode_json

FORMAT = "tree/1"
"""Mark of a root blob."""

HIDDEN_NAME = "its name holds a secret"
"""Why an entry is not kept whose path is not the one on disk."""

ContentOf = Callable[[str], bytes]
"""Gives a blob by its digest."""

Kind = Literal["file", "link", "folder", "other"]
"""What stands at a path; `other` is a socket, a pipe or a device."""

_KINDS: dict[str, Kind] = {"file": "file", "link": "link", "folder": "folder", "other": "other"}


class Entry(NamedTuple):
    """What stands at one path."""

    kind: Kind
    """File, link, folder, or something else."""

    mode: int
    """Permission bits; 0 for a link."""

    digest: str | None = None
    """Keyed digest of a file's bytes; where it is not kept, of its bytes without their secrets."""

    size: int = 0
    """Bytes of a file."""

    target: str | None = None
    """Where a link leads."""

    not_kept: str | None = None
    """Why its content is not in the ledger, so that it cannot be put back; None: it is."""


class Tree(NamedTuple):
    """All files of a workspace at one moment."""

    root: str
    """Folder on disk."""

    digest: str
    """Digest of the root folder's blob: equal for equal files, wherever they lie."""

    entries: Mapping[str, Entry]
    """Path below the root, with `/` -> what stands there."""

    ignored: tuple[str, ...] = ()
    """Names of files and folders that are left out."""

    gitignore: bool = False
    """Whether what git ignores is left out too."""

    commit: str | None = None
    """Commit that was checked out, where that was asked for."""


class Change(NamedTuple):
    """A path at which two trees differ."""

    path: str
    """Path below the root."""

    operation: Literal["create", "edit", "delete"]
    """What leads from the first to the second."""

    before: Entry | None
    """In the first."""

    after: Entry | None
    """In the second."""


def changes(before: Mapping[str, Entry], after: Mapping[str, Entry]) -> list[Change]:
    """What leads from one tree to another, by path."""
    found = []
    for path in sorted(before.keys() | after.keys()):
        old, new = before.get(path), after.get(path)
        if old == new:
            continue
        operation: Literal["create", "edit", "delete"] = (
            "create" if old is None else "delete" if new is None else "edit"
        )
        found.append(Change(path, operation, old, new))
    return found


def entry_json(name: str, entry: Entry, folder: str | None = None) -> dict[str, Any]:
    """An entry as its folder's blob has it; `folder` is the digest of a folder's own blob."""
    form: dict[str, Any] = {"name": name, "kind": entry.kind, "mode": entry.mode}
    if folder is not None:
        form["tree"] = folder
    for field in ("digest", "target", "not_kept"):
        if (value := getattr(entry, field)) is not None:
            form[field] = value
    if entry.kind == "file":
        form["size"] = entry.size
    return form


def is_tree(value: Any) -> bool:
    """Whether the content of a checkpoint's files is such a tree, and no map of a source's own."""
    return isinstance(value, dict) and value.get("format") == FORMAT


def load_tree(content: ContentOf, files: ContentRef | str) -> Tree | None:
    """A kept tree by its root blob; None where the content is no tree. Raises ContentMissingError, InputError."""
    value = decode_json(content(files if isinstance(files, str) else files.digest))
    if not is_tree(value):
        return None
    try:
        root, digest, ignored = str(value["root"]), str(value["tree"]), tuple(map(str, value["ignored"]))
        commit = value.get("commit")
        entries = load_files(content, digest)
        is_git = value.get("gitignore") is True
        return Tree(root, digest, entries, ignored, is_git, None if commit is None else str(commit))
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(
            f"a tree of files is damaged: expected {FORMAT}, found {type(error).__name__}: {error}"
        ) from error


def load_files(content: ContentOf, digest: str) -> dict[str, Entry]:
    """All paths below a folder's blob."""
    entries: dict[str, Entry] = {}
    waiting = [("", digest)]
    while waiting:
        above, digest = waiting.pop()
        for form in decode_json(content(digest)):
            name = form["name"]
            if not isinstance(name, str) or name in ("", ".", "..") or "/" in name or "\0" in name:
                raise ValueError(f"expected the name of a file, found {name!r}")
            path = f"{above}{name}"
            if path in entries:
                raise ValueError(f"{path!r} stands twice in its folder")
            entries[path] = Entry(
                _KINDS[form["kind"]],
                int(form["mode"]) & 0o7777,
                form.get("digest"),
                int(form.get("size", 0)),
                form.get("target"),
                form.get("not_kept"),
            )
            if "tree" in form:
                waiting.append((f"{path}/", form["tree"]))
    return entries
