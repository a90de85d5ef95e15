"""Files that a tool changed, told from its name and arguments where the harness says no more."""

from typing import Any

from ledger.events.effect import EffectDone
from ledger.events.tool_call import EffectClass
from ledger.importers._harness.values import record, words

_CLASSES: dict[str, EffectClass] = {
    "read": "read",
    "ls": "read",
    "list": "read",
    "find": "read",
    "grep": "read",
    "glob": "read",
    "read_file": "read",
    "read_many_files": "read",
    "list_directory": "read",
    "search_file_content": "read",
    "grep_search": "read",
    "todoread": "read",
    "todowrite": "read",
    "edit": "write",
    "write": "write",
    "replace": "write",
    "write_file": "write",
    "patch": "write",
    "apply_patch": "write",
    "webfetch": "external",
    "websearch": "external",
    "web_fetch": "external",
    "google_web_search": "external",
}
_PATHS = ("path", "file_path", "filePath", "absolute_path")


def effect_class(tool: str | None) -> EffectClass | None:
    """What a tool of this name may do outside; None when its name does not tell."""
    return _CLASSES.get(tool or "")


def written(call_id: str, tool: str | None, arguments: Any) -> EffectDone | None:
    """The file that a successful call of a writing tool changed."""
    if effect_class(tool) != "write":
        return None
    given = record(arguments)
    path = next((path for name in _PATHS if (path := words(given.get(name)))), None)
    if path is None:
        return None
    operation = "write" if tool in ("write", "write_file") else "edit"
    return EffectDone(
        effect_id=f"{call_id}:0", call_id=call_id, target=path, operation=operation, effect_class="write"
    )
