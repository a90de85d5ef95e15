"""Runs of real agent harnesses against the scripted model, for those who remake fixtures: no test imports it."""

import json
import re
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from tests.ledger.importers.fixtures import FIXTURES, promise
from tests.scripted_model import Lane, Script, ScriptedModel

_LONGEST_WORDS = 90


class Lab(NamedTuple):
    """Where one run takes place."""

    folder: Path
    """Everything of the run, the harness's home included."""
    repo: Path
    """Where the agent works."""
    url: str
    """The scripted model."""


@contextmanager
def lab(folder: Path, lanes: Iterable[Lane]) -> Iterator[Lab]:
    """A fresh folder with a small project, and a model that says what the lanes say."""
    shutil.rmtree(folder, ignore_errors=True)
    repo = folder / "repo"
    repo.mkdir(parents=True)
    (repo / "greeting.txt").write_text("Hello, wrold!\n", encoding="utf-8")
    (repo / "notes.md").write_text("# Notes\n\n- one\n- two\n", encoding="utf-8")
    with ScriptedModel(Script(list(lanes)), log=folder / "wire.jsonl") as model:
        yield Lab(folder, repo, model.url)
        used = [(one.lane, one.step) for one in model.exchanges]
        print(folder.name, "exchanges:", used, "unused:", model.unused, file=sys.stderr)


def scrub(value: Any, folder: Path, keep: Callable[[tuple[str, ...], str], bool]) -> Any:
    """A JSON value with the lab's folder renamed, and long texts of the vendor replaced by our words.

    `keep(path, text)` tells which long texts are ours and stay.
    """

    def clean(path: tuple[str, ...], one: Any) -> Any:
        if isinstance(one, dict):
            return {name: clean((*path, name), part) for name, part in one.items()}
        if isinstance(one, list):
            return [clean((*path, "*"), part) for part in one]
        if isinstance(one, str):
            text = one.replace(str(folder), "/home/dev").replace(
                re.sub("[/.]", "-", str(folder)), "-home-dev"
            )
            if len(text) > _LONGEST_WORDS and not keep(path, text):
                return f"(our words stand here for {path[-1]} of the vendor)"
            return text
        return one

    return clean((), value)


def jsonl(values: Iterable[Any]) -> bytes:
    """JSON lines."""
    return b"".join(
        json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode() + b"\n" for value in values
    )


def case_folder(source: str, case: str) -> Path:
    """The emptied folder of a case."""
    folder = FIXTURES / source / case
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder


def write_promise(folder: Path, home: Path) -> None:
    """`expected.json`: what the importer makes of the case now. Read it before you commit it."""
    shutil.rmtree(home, ignore_errors=True)
    text = json.dumps(promise(folder, home), indent=1, sort_keys=True, ensure_ascii=False)
    (folder / "expected.json").write_text(text + "\n", encoding="utf-8")
