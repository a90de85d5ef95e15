"""The other half of an export: traces and logs of one run lie in two files, and belong together.

A call's content may stand in its log records alone. So a file of traces takes it from the logs file beside it, and
the logs file leaves these calls to the traces file: in whatever order they are imported, each call is recorded once.
"""

import re
from collections.abc import Iterator
from pathlib import Path

from ledger.importers._otlp.reading import Broken, Other, entries
from ledger.otlp.beside import Beside

_NAME = re.compile(
    r"(?P<before>.*?)(?P<kind>traces?|spans?|logs?)(?P<after>(?:\.otlp)?(?:\.(?:pb|bin|json|jsonl|ndjson))?(?:\.(?:gz|zst))?)",
    re.DOTALL,
)
_OTHER = {"traces": ("logs",), "trace": ("log", "logs"), "spans": ("logs",), "span": ("log", "logs")}
_BACK = {"logs": ("traces", "spans", "trace"), "log": ("trace", "span", "traces")}
_ENDS = ("pb", "otlp.json", "json", "jsonl", "ndjson", "bin", "otlp.pb")
_LARGEST = 64 * 1024 * 1024


def companion_of(path: Path) -> Path | None:
    """The file with the other half; None when there is none, or one of them is too large to hold."""
    found = _NAME.fullmatch(path.name)
    if found is None or path.stat().st_size > _LARGEST:
        return None
    for kind in (_OTHER | _BACK)[found["kind"]]:
        for end in dict.fromkeys((found["after"], *_ends(found["after"]))):
            other = path.with_name(f"{found['before']}{kind}{end}")
            if other.is_file() and other.stat().st_size <= _LARGEST:
                return other
    return None


def sender_of(path: Path) -> str:
    """A name for who wrote a file, the same for both halves and all encodings of an export."""
    name = _NAME.fullmatch(path.name)
    stem = name["before"] if name else path.name.split(".")[0]
    return f"{path.parent.name}/{stem}"


def _ends(own: str) -> Iterator[str]:
    packed = [".gz", ".zst", ""] if own.endswith((".gz", ".zst")) else ["", ".gz", ".zst"]
    for end in _ENDS:
        for pack in packed:
            yield f".{end}{pack}"


def beside(path: Path | None) -> Beside:
    """What the file beside holds. Damage in it is reported when it is imported itself."""
    found = Beside()
    if path is not None:
        found.add(entry for entry in entries(path) if not isinstance(entry, Broken | Other))
    return found
