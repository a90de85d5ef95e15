"""Files that people give to be imported: taken in under harmless names, and what their import report says."""

import contextlib
import re
import shutil
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, BinaryIO

from pydantic import Field

from webui.page import Context

FOLDER = "uploads"
"""Folder of the home for files while they are imported."""

_DAY_S = 24 * 3600
_LONGEST = 100
_DEPTH = 4
_STRANGE = re.compile(r"[^\w. +@=,()\[\]{}~#-]")
_FILES = 50
_PLACES = 20
_NOTES = 20
_SESSIONS = 4


class Place(Context):
    """A part of a file that could not be read."""

    line: int | None
    """Its line."""
    reason: str
    """What is wrong with it."""


class FileTold(Context):
    """What came of one file."""

    name: str
    """Its name."""
    format: str | None
    """Its format; none: nobody knows it."""
    reason: str
    """Why it was not imported, or not to its end; empty otherwise."""
    grade: str = ""
    """How much it proves."""
    records: int = 0
    """Records added."""
    model_calls: int = 0
    """Calls of models."""
    tool_calls: int = 0
    """Calls of tools."""
    redacted: int = 0
    """Secrets taken out."""
    sessions: list[str] = Field(default_factory=list)
    """Sessions that it belongs to, the first of them."""
    damaged: int = 0
    """Parts that could not be read; their bytes are kept."""
    places: list[Place] = Field(default_factory=list)
    """The first of them."""


class Imported(Context):
    """What an import did."""

    records: int
    """Records added."""
    sessions: int
    """Sessions that they belong to."""
    files: list[FileTold]
    """The files, the first of them."""
    total: int
    """How many files there were."""
    notes: list[str] = Field(default_factory=list)
    """What importers say."""


def take_files(home: Path, files: Sequence[tuple[str, BinaryIO]]) -> tuple[Path, list[str]]:
    """Put them into a folder of their own; gives it, and the names that they have there."""
    (home / FOLDER).mkdir(parents=True, exist_ok=True, mode=0o700)
    _forget_old(home / FOLDER)
    folder = Path(tempfile.mkdtemp(dir=home / FOLDER))
    names: list[str] = []
    for given, source in files:
        name = _free(harmless_name(given), names)
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("xb") as target:
            shutil.copyfileobj(source, target, 1 << 20)
        names.append(name)
    return folder, names


def _forget_old(uploads: Path) -> None:
    """What a server left that was killed while it imported: the files as they came, with secrets and all."""
    for folder in uploads.iterdir():
        with contextlib.suppress(OSError):
            if time.time() - folder.stat().st_mtime > _DAY_S:
                shutil.rmtree(folder, ignore_errors=True)


def harmless_name(given: str) -> str:
    """A relative path that stays where it is put and looks like the one that was given."""
    steps = [_STRANGE.sub("_", step).strip(" .") for step in re.split(r"[/\\]", given)]
    kept = [_short(step) for step in steps if step]
    return "/".join(kept[-_DEPTH:]) or "file"


def _short(step: str) -> str:
    stem, dot, ending = step.rpartition(".")
    if len(step.encode()) <= _LONGEST:
        return step
    ending = ending.encode()[:20].decode(errors="ignore") if dot else ""
    head = (stem or step).encode()[: _LONGEST - 24].decode(errors="ignore")
    return f"{head}.{ending}" if ending else head


def _free(name: str, taken: Sequence[str]) -> str:
    number, free = 1, name
    folded = {one.casefold() for one in taken}
    while free.casefold() in folded:
        number += 1
        free = f"{number}/{name}"
    return free


def imported(report: dict[str, Any]) -> Imported:
    """An import report as the page shows it."""
    files = report["files"]
    notes = [f"{entry['path']}: {note}" for entry in files for note in entry.get("notes", ())]
    return Imported(
        records=report["records_added"],
        sessions=len(report["sessions"]),
        files=[_file(entry) for entry in files[:_FILES]],
        total=len(files),
        notes=[note[:300] for note in notes[:_NOTES]],
    )


def _file(entry: dict[str, Any]) -> FileTold:
    name, reason = str(entry["path"])[:200], str(entry.get("reason") or "")[:400]
    if entry["format"] is None:
        return FileTold(name=name, format=None, reason=reason)
    return FileTold(
        name=name,
        format=entry["format"],
        reason=reason,
        grade=str(entry["grade"]),
        records=entry["records"],
        model_calls=entry["model_calls"],
        tool_calls=entry["tool_calls"],
        redacted=entry["redacted"],
        sessions=[str(one) for one in entry["sessions"][:_SESSIONS]],
        damaged=len(entry["quarantined"]) + entry["quarantined_more"],
        places=[
            Place(line=place["line"], reason=str(place["reason"])[:200])
            for place in entry["quarantined"][:_PLACES]
        ],
    )
