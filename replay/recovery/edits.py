"""What calls that edit files made of them, told from their arguments: so that a file they left is no foreign one."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from ledger.errors import ContentMissingError
from ledger.recorder import Keeper
from ledger.store import EventStore
from ledger.workspace import Entry
from replay.recovery.sources import ListSource

_LARGEST = 2_000_000
_TEXTS_KEPT = 20


class Edit(NamedTuple):
    """A call that returned."""

    tool: str
    """Its tool."""

    arguments: Any
    """Its arguments."""


def edited(
    store: EventStore, keeper: Keeper, source: ListSource, edits: list[Edit]
) -> dict[str, list[Entry]]:
    """What each listed path held after each edit of it, as far as the arguments of these tools tell.

    `Write`, `Edit` and `MultiEdit` of Claude Code. Edits begin from every content that the path was seen with.
    """
    texts = {path: _seen(store, entries) for path, entries in source.seen.items()}
    made: dict[str, list[Entry]] = {}
    for edit in edits:
        fields = edit.arguments if isinstance(edit.arguments, Mapping) else {}
        path = source.inside(str(fields.get("file_path", "")))
        if path is None:
            continue
        known = texts.setdefault(path, [""])
        for text in dict.fromkeys(_after(edit.tool, fields, before) for before in known):
            if text is None or len(content := text.encode("utf-8", "surrogateescape")) > _LARGEST:
                continue
            entry = Entry("file", 0, keeper.digest(keeper.cleaned(content)), len(content))
            made.setdefault(path, []).append(entry)
            known.append(text)
        del known[:-_TEXTS_KEPT]
    return made


def _seen(store: EventStore, entries: list[Entry | None]) -> list[str]:
    """The contents that a path was seen with; nothing where there was no file."""
    texts = [""]
    for entry in entries:
        if (
            entry is not None
            and entry.digest is not None
            and entry.not_kept is None
            and entry.size <= _LARGEST
        ):
            try:
                texts.append(store.content(entry.digest).decode("utf-8", "surrogateescape"))
            except ContentMissingError:
                continue
    return list(dict.fromkeys(texts))


def _after(tool: str, fields: Mapping[str, Any], before: str) -> str | None:
    """The text after a call; None where it does not fit, or the tool is another."""
    if tool == "Write":
        content = fields.get("content")
        return content if isinstance(content, str) else None
    steps = fields.get("edits") if tool == "MultiEdit" else [fields] if tool == "Edit" else None
    for step in steps if isinstance(steps, list) else ():
        old, new = (
            (step.get("old_string"), step.get("new_string")) if isinstance(step, Mapping) else (None, None)
        )
        if (
            not isinstance(old, str)
            or not isinstance(new, str)
            or (old not in before or (not old and before))
        ):
            return None
        before = before.replace(old, new, -1 if step.get("replace_all") is True else 1)
    return before if isinstance(steps, list) else None
