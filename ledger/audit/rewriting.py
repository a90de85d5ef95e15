"""What files that govern an agent said before a call and after it, as far as the record shows them."""

import re
from collections import OrderedDict
from collections.abc import Mapping
from typing import Any, NamedTuple

from ledger.audit.patching import Touch
from ledger.audit.reader import Reader
from ledger.audit.scripts import PATH_FIELDS, commands, normal, shell_command
from ledger.events import ContentRef

_MOST_FILES = 100
_LONGEST = 100_000
_NUMBERED = re.compile(r"^\s*\d+(?:\t|→|: )", re.MULTILINE)
_HEAD_OF_OUTPUT = re.compile(r"\A(?:Chunk ID|Exit code|Wall time)[^\n]*\n(?:[^\n]*\n){0,5}?Output:\n")
_SHOWING = frozenset({"cat", "bat", "less", "more"})


class Versions(NamedTuple):
    """A file before a call and after it: whole, or the part that the call speaks of. None: it is on no record."""

    old: str | None
    new: str | None


class Texts:
    """The texts of files as they were last seen."""

    def __init__(self) -> None:
        self._texts: OrderedDict[str, str] = OrderedDict()

    def seen(self, path: str, text: str) -> None:
        """A file says this now."""
        if len(text) <= _LONGEST:
            self._texts.pop(path, None)
            self._texts[path] = text
            if len(self._texts) > _MOST_FILES:
                self._texts.popitem(last=False)

    def of(self, path: str) -> str | None:
        """What a file said last."""
        for known, text in reversed(self._texts.items()):
            if same_file(known, path):
                return text
        return None

    def rewritten(self, touch: Touch, details: Any) -> Versions:
        """What a call made of a file; `details` are those of its result, which may hold the file as it was."""
        old = self.of(touch.path)
        if isinstance(details, Mapping):
            if isinstance(whole := details.get("originalFile"), str):
                old = whole
            elif details.get("type") == "create" and old is None:
                old = ""
        new = touch.content
        if touch.is_whole:
            pass
        elif old is not None and touch.replaced and touch.replaced in old and new is not None:
            new = old.replace(touch.replaced, new, 1)
        elif not touch.replaced and new is not None:
            new = f"{old or ''}\n{new}"
            old = old or ""
        elif touch.replaced:
            old = touch.replaced
        if touch.how in ("mode", "disarm"):
            return Versions(old, old)
        if touch.is_whole and new is not None:
            self.seen(touch.path, new)
        else:
            self._texts.pop(touch.path, None)
        return Versions(old, new)


def content_of(reader: Reader, digest: str | None) -> Any:
    """Content by its digest alone: as JSON where it is such."""
    content = None if digest is None else reader.content(digest)
    if digest is None or content is None:
        return None
    text = content.decode("utf-8", "replace")
    if text[:1] in '{["':
        value = reader.value(ContentRef(digest=digest, size=len(content), kind="json"))
        return text if value is None else value
    return text


def same_file(one: str, other: str) -> bool:
    """Whether two paths may name the same file: one may be told from another folder than the other."""
    one, other = one.removeprefix("~/"), other.removeprefix("~/")
    return one == other or one.endswith(f"/{other}") or other.endswith(f"/{one}")


def shown(tool: str, arguments: Any, result: str) -> tuple[str, str] | None:
    """The file that a call showed, and its text; None where it shows no file, or several."""
    if not isinstance(arguments, Mapping) or len(result) > 2 * _LONGEST:
        return None
    script = shell_command(tool, arguments)
    if script is None:
        path = next((one for name in PATH_FIELDS if isinstance(one := arguments.get(name), str)), None)
        if path is None or "offset" in arguments or "limit" in arguments:
            return None
        return normal(path), _without_numbers(result)
    found = commands(script)
    words = found[0].words if len(found) == 1 else []
    if len(words) != 2 or words[0].rpartition("/")[2] not in _SHOWING:
        return None
    return normal(words[1]), _HEAD_OF_OUTPUT.sub("", result)


def _without_numbers(text: str) -> str:
    lines = text.split("\n")
    is_numbered = all(_NUMBERED.match(line) for line in lines if line.strip())
    return "\n".join(_NUMBERED.sub("", line) for line in lines) if is_numbered else text
