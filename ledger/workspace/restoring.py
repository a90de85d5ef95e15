"""Puts the files of a workspace back to an earlier tree: each one whole or not at all. Follows no link.

Every path is opened folder by folder from the root without following links, so that a link that the agent has put in a
folder's place leads nowhere. It can be called again after a crash: what is right already is left alone.
"""

import contextlib
import errno
import os
import stat
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from ledger.errors import InputError
from ledger.workspace.looking import TEMPORARY
from ledger.workspace.tree import HIDDEN_NAME, Change, ContentOf, Entry, changes

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def restore(
    root: Path,
    now: Mapping[str, Entry],
    wanted: Mapping[str, Entry],
    content: ContentOf,
    progress: Callable[[str], None] = lambda path: None,
) -> int:
    """Lead the workspace from the entries that it has `now` to those `wanted`; give how many paths were changed.

    What is not kept stays as it is. Raises InputError when the system refuses; the call may be repeated.
    """
    todo = [change for change in changes(now, wanted) if is_restorable(change)]
    try:
        top = os.open(root, _FOLDER)
    except OSError as error:
        raise InputError(f"{root} cannot be opened: {error.strerror}") from error
    try:
        for change in reversed(todo):  # what lies in a folder goes before the folder
            if change.before is not None and (
                change.after is None or change.after.kind != change.before.kind
            ):
                progress(change.path)
                _remove(top, change.path, change.before)
        for change in todo:
            if change.after is not None:
                progress(change.path)
                _make(top, change.path, change.after, content)
        for change in reversed(todo):
            if change.after is not None and change.after.kind == "folder":
                with _parent(top, change.path) as (parent, name):
                    _set_mode(parent, name, change.after.mode)
    except OSError as error:
        raise InputError(
            f"{root}: files could not be put back: {error}; call the rollback again when that is mended"
        ) from error
    finally:
        os.close(top)
    return len(todo)


def is_restorable(change: Change) -> bool:
    """Whether the ledger has what is needed to take a change back, in the direction before -> after."""
    for entry in (change.before, change.after):
        if entry is not None and (entry.kind == "other" or entry.not_kept == HIDDEN_NAME):
            return False
    return change.after is None or change.after.not_kept is None


@contextlib.contextmanager
def _parent(top: int, path: str) -> Iterator[tuple[int, str]]:
    """The opened folder of a path, and its name there."""
    *folders, name = path.split("/")
    current = os.dup(top)
    try:
        for folder in folders:
            below = _open_folder(folder, current)
            os.close(current)
            current = below
        mode = stat.S_IMODE(os.fstat(current).st_mode)
        if mode & 0o300 != 0o300:
            os.fchmod(current, mode | 0o300)
            try:
                yield current, name
            finally:
                os.fchmod(current, mode)
        else:
            yield current, name
    finally:
        os.close(current)


def _open_folder(name: str, parent: int) -> int:
    """A folder, also one that its owner may not read any more: the agent may have taken that right away."""
    with contextlib.suppress(PermissionError):
        return os.open(name, _FOLDER, dir_fd=parent)
    place = os.open(name, os.O_PATH | _FOLDER, dir_fd=parent)  # needs no right to read, and follows no link
    try:
        Path(f"/proc/self/fd/{place}").chmod(0o700)  # the mode that is wanted is set at the end
    finally:
        os.close(place)
    return os.open(name, _FOLDER, dir_fd=parent)


def _remove(top: int, path: str, entry: Entry) -> None:
    with _parent(top, path) as (parent, name), contextlib.suppress(FileNotFoundError):
        if entry.kind != "folder":
            os.unlink(name, dir_fd=parent)
            return
        try:
            os.rmdir(name, dir_fd=parent)
        except OSError as error:
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                raise
            # What it still holds is left out of trees, or not kept: not ours to remove.


def _make(top: int, path: str, entry: Entry, content: ContentOf) -> None:
    with _parent(top, path) as (parent, name):
        if entry.kind == "folder":
            with contextlib.suppress(FileExistsError):
                os.mkdir(name, 0o700, dir_fd=parent)
            return
        with contextlib.suppress(FileNotFoundError):
            os.unlink(TEMPORARY, dir_fd=parent)
        if entry.kind == "link":
            os.symlink(entry.target or "", TEMPORARY, dir_fd=parent)
        else:
            assert entry.digest is not None
            _write(parent, content(entry.digest), entry.mode)
        os.replace(TEMPORARY, name, src_dir_fd=parent, dst_dir_fd=parent)
        os.fsync(parent)


def _write(parent: int, content: bytes, mode: int) -> None:
    """The temporary file with all bytes and its mode, on the disk."""
    descriptor = os.open(
        TEMPORARY, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600, dir_fd=parent
    )
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
        file.flush()
        os.fchmod(file.fileno(), mode)
        os.fsync(file.fileno())


def _set_mode(parent: int, name: str, mode: int) -> None:
    descriptor = _open_folder(name, parent)
    try:
        os.fchmod(descriptor, mode)
    finally:
        os.close(descriptor)
