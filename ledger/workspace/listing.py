"""Files that a source kept one by one, by path: no whole tree, but what each of them was before it was changed."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from ledger.workspace.tree import Entry

FORMAT = "files/1"
"""Mark of a list."""

NO_BACKUP = "its backup was not there when the session was imported"
"""Why a file of a list is not kept."""

FIRST_VERSION = 1
"""Version of a file as it was before the session changed it for the first time."""


class Listing(NamedTuple):
    """Files by path."""

    name: str
    """What names the list in its source."""

    files: Mapping[str, Entry | None]
    """Path, absolute or below the working directory -> the file; None: there was none."""

    first: frozenset[str]
    """Paths that are listed as they were before the session changed them."""


def listing_json(name: str, files: Mapping[str, tuple[Entry | None, int | None]]) -> dict[str, Any]:
    """A list as it is kept: each file with its version."""
    listed = []
    for path, (entry, version) in sorted(files.items()):
        form: dict[str, Any] = {"path": path, "version": version}
        if entry is not None:
            form |= {"mode": entry.mode, "size": entry.size}
            form |= {} if entry.digest is None else {"digest": entry.digest}
            form |= {} if entry.not_kept is None else {"not_kept": entry.not_kept}
        listed.append(form)
    return {"format": FORMAT, "name": name, "files": listed}


def load_listing(value: Any) -> Listing | None:
    """The list that a kept value holds; None where it is none."""
    if not isinstance(value, dict) or value.get("format") != FORMAT:
        return None
    try:
        files = {str(form["path"]): _entry(form) for form in value["files"]}
        first = frozenset(
            str(form["path"]) for form in value["files"] if form.get("version") == FIRST_VERSION
        )
        return Listing(str(value["name"]), files, first)
    except (KeyError, TypeError, ValueError, AttributeError):
        return None


def _entry(form: Mapping[str, Any]) -> Entry | None:
    if "mode" not in form:
        return None
    mode, size = int(form["mode"]) & 0o7777, int(form["size"])
    return Entry("file", mode, form.get("digest"), size, not_kept=form.get("not_kept"))
