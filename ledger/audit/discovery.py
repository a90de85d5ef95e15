"""Finds detectors: the files in `detectors`, those of packages under `loopledger.detectors`, a user's own folder.

A `.sql` file has its head in comment lines, a `.py` file as constants; both are described in `detectors/__init__.py`.
A `.yaml` file holds rules over sequences: see `rules`. A file that is no detector is found as one that is broken and
says why: it keeps no other from its work.
"""

import hashlib
import importlib
import importlib.util
import re
from collections.abc import Callable, Collection
from dataclasses import replace
from importlib.metadata import entry_points
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from types import ModuleType
from typing import cast, get_args

from ledger.audit.detector import Detector, Start
from ledger.audit.failure import BREAKS
from ledger.audit.finding import SEVERITIES, Level
from ledger.audit.rules import load_rules, read_rules, rules_detector
from ledger.errors import InputError, LedgerError
from ledger.events import BY_NAME
from ledger.events.review import Severity
from ledger.lake.head import HeadLine, head_of

GROUP = "loopledger.detectors"
"""Entry points that name a package with detectors, or one module that is one."""

FOLDER = "detectors"
"""Folder of a user's own detectors in the home: its `.sql` files are found there."""

RULES = "rules"
"""Folder of a user's own rules in the home: its `.yaml` files are found there."""

_WORDS = ("title", "severity", "why", "misses", "reads", "source")
_STATES = ("on", "experimental")
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")


def discover(
    home: Path | None = None, folder: Path | None = None, rules: Collection[Path] = ()
) -> dict[str, Detector]:
    """All detectors by name, the broken ones among them; what the user names goes before another of the same name.

    Of the home only SQL, which runs locked up, and rules are taken, and none that would stand for one of ours: a home
    may lie in a directory that came from somebody else. `folder` is one that the user names: its Python runs, too.
    `rules` are further files of rules.
    Raises InputError for a folder that is none, or for one of `rules` that is bad.
    """
    found: dict[str, Detector] = {}
    for point in sorted(entry_points(group=GROUP), reverse=True):
        _add(found, _of_package(point.name, point.value.partition(":")[0]))
    _add(found, [replace(one, is_shipped=True) for one in _of_package("detectors", "ledger.audit.detectors")])
    if home is not None:
        for own_files in (_of_folder(home / FOLDER, (".sql",)), _of_folder(home / RULES, (".yaml",))):
            _add(found, [_beside(found.get(one.name), one) for one in own_files])
    if folder is not None:
        if not folder.is_dir():
            raise InputError(
                f"{folder} is no folder: expected one with detectors, files named *.sql, *.py or *.yaml"
            )
        _add(found, _of_folder(folder, (".sql", ".py", ".yaml")))
    own: dict[str, Path] = {}
    for path in rules:
        if (other := own.setdefault(path.stem, path)) != path:
            raise InputError(
                f"{path}: expected a file of another name: findings of {other} are named by it, too"
            )
        found[path.stem] = rules_detector(load_rules(path), is_own=True)
    return dict(sorted(found.items()))


def chosen(detectors: dict[str, Detector], names: Collection[str], *, everything: bool) -> list[Detector]:
    """Those of the names (or of all that begin with a name and a dot), or those that are on. Raises InputError."""
    for name in names:
        if name.partition(".")[0] not in detectors:
            raise InputError(f"no detector is named {name!r}: expected one of {', '.join(detectors)}")
    if names:
        wanted = {name.partition(".")[0] for name in names}
        return [detector for detector in detectors.values() if detector.name in wanted]
    return [detector for detector in detectors.values() if everything or not detector.is_experimental]


def _beside(known: Detector | None, one: Detector) -> Detector:
    """One of the home, which may stand beside those of ours, not in place of one."""
    if known is None or not known.is_shipped or one.broken is not None:
        return one
    told = (
        f"{one.place}:1: expected a name of its own, found {one.name!r}, which is that of a shipped detector"
    )
    return Detector.unusable(one.name, one.place, f"{told}; --detectors and --rules take its place")


# -- where they lie -----------------------------------------------------------------------------------------


def _add(found: dict[str, Detector], more: Collection[Detector]) -> None:
    """Put detectors before others of the same name; a broken one takes it from none that works: its file names it."""
    for one in more:
        before = found.get(one.name)
        if before is None or (before.broken is None) == (one.broken is None):
            found[one.name] = one
            continue
        works, broken = (one, before) if one.broken is None else (before, one)
        found[one.name] = works
        name = Path(broken.place).name
        found[name] = replace(broken, name=name)


def _of_package(name: str, module_name: str) -> list[Detector]:
    """Those of a package, or the one that a module is; `name` tells of a package that cannot be imported."""
    found: list[Detector] = []
    try:
        package = importlib.import_module(module_name)
        is_package = package.__spec__ is None or package.__spec__.submodule_search_locations is not None
        for file in sorted(files(module_name).iterdir(), key=lambda file: file.name) if is_package else ():
            stem, _, suffix = file.name.rpartition(".")
            if suffix in ("sql", "yaml") or (suffix == "py" and not stem.startswith("_")):
                found.append(_guarded(stem, str(file), _in_package(module_name, stem, suffix, file)))
        if not is_package:
            path = Path(package.__file__ or module_name)
            found.append(_guarded(path.stem, str(path), lambda: _python(path.stem, package, path)))
    except BREAKS as error:
        told = f"{module_name}: detectors that are installed cannot be imported: {error!r}"
        found.append(Detector.unusable(name, module_name, told))
    return found


def _in_package(module_name: str, stem: str, suffix: str, file: Traversable) -> Callable[[], Detector]:
    def make() -> Detector:
        match suffix:
            case "sql":
                return sql_detector(stem, _text(file), str(file))
            case "yaml":
                return rules_detector(read_rules(stem, _text(file), str(file)))
            case _:
                return _python(stem, importlib.import_module(f"{module_name}.{stem}"), file)

    return make


def _of_folder(folder: Path, suffixes: tuple[str, ...]) -> list[Detector]:
    try:
        paths = sorted(folder.iterdir()) if folder.is_dir() else []
    except OSError as error:
        return [Detector.unusable(folder.name, str(folder), f"{folder} cannot be read: {error.strerror}")]
    return [
        _guarded(path.stem, str(path), _in_folder(path))
        for path in paths
        if path.suffix in suffixes and not path.name.startswith(("_", "."))
    ]


def _in_folder(path: Path) -> Callable[[], Detector]:
    def make() -> Detector:
        if not _NAME.fullmatch(path.stem):
            raise InputError(
                f"{path}:1: expected a file named with letters, digits, _ and -, found {path.name!r}"
            )
        match path.suffix:
            case ".sql":
                return sql_detector(path.stem, _text(path), str(path), is_own=True)
            case ".yaml":
                return rules_detector(load_rules(path), is_own=True)
            case _:
                return _python(path.stem, _loaded(path), path, is_own=True)

    return make


def _guarded(name: str, place: str, make: Callable[[], Detector]) -> Detector:
    """The detector of a file, or what says why it is none."""
    try:
        return make()
    except LedgerError as error:
        return Detector.unusable(name, place, str(error))
    except BREAKS as error:
        return Detector.unusable(name, place, f"{place}:1: the detector cannot be loaded: {error!r}")


def _text(file: Traversable) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{file}:1: the detector cannot be read: {error}") from error


def _loaded(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"loopledger_detector_{path.stem}", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except SyntaxError as error:
        raise InputError(f"{path}:{error.lineno or 1}: the detector is no Python: {error.msg}") from error
    except BREAKS as error:
        raise InputError(
            f"{path}:{_line_of(error, path)}: the detector cannot be loaded: {error!r}"
        ) from error
    return module


def _line_of(error: BaseException, path: Path) -> int:
    """The line of a file in which an error arose, 1 where it is none of its own."""
    line, trace = 1, error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == str(path):
            line = trace.tb_lineno
        trace = trace.tb_next
    return line


# -- what they say ------------------------------------------------------------------------------------------


def sql_detector(name: str, text: str, place: str, *, is_own: bool = False) -> Detector:
    """A detector from the text of a `.sql` file. Raises InputError that names file and line."""
    head = head_of(text)
    for word in _WORDS:
        if word not in head:
            raise InputError(f"{place}:1: the head lacks a line `-- {word}: ...`")
    told = {word: " ".join(line.text for line in lines) for word, lines in head.items()}
    for word in told:
        if word not in (*_WORDS, "level", "state", "live"):
            raise InputError(f"{place}:{head[word][0].line}: {word!r} is no word of a detector's head")
    severity = _one_of(place, head["severity"][0], SEVERITIES)
    level = _one_of(place, head.get("level", [HeadLine("trajectory", 1)])[0], get_args(Level))
    state = _one_of(place, head.get("state", [HeadLine("on", 1)])[0], _STATES)
    live = _one_of(place, head.get("live", [HeadLine("yes", 1)])[0], ("yes", "no"))
    return Detector(
        name,
        told["title"],
        cast(Severity, severity),
        told["why"],
        told["misses"],
        tuple(told["reads"].replace(",", " ").split()),
        told["source"],
        cast(Level, level),
        state == "experimental",
        digest_of(text),
        place,
        sql=text,
        is_own=is_own,
        is_live=live == "yes",
    )


def _one_of(place: str, line: HeadLine, expected: Collection[str]) -> str:
    if line.text not in expected:
        raise InputError(f"{place}:{line.line}: expected one of {', '.join(expected)}, found {line.text!r}")
    return line.text


def _python(name: str, module: ModuleType, file: Traversable, *, is_own: bool = False) -> Detector:
    text, place = _text(file), str(file)
    words: dict[str, str] = {}
    for word in ("TITLE", "SEVERITY", "WHY", "MISSES", "SOURCE"):
        value = getattr(module, word, None)
        if not isinstance(value, str) or not value:
            raise InputError(f"{place}:{_defined(text, word)}: expected a text {word} = ..., found {value!r}")
        words[word] = value
    start = getattr(module, "start", None)
    if not callable(start):
        raise InputError(
            f"{place}:{_defined(text, 'start')}: expected a function start(given), found {start!r}"
        )
    reads = getattr(module, "READS", ())
    names = tuple(getattr(event, "TYPE", event) for event in reads)
    if unknown := [one for one in names if one not in BY_NAME]:
        raise InputError(f"{place}:{_defined(text, 'READS')}: READS names no event {unknown[0]!r}")
    level, severity = getattr(module, "LEVEL", "trajectory"), words["SEVERITY"]
    for word, value, expected in (("SEVERITY", severity, SEVERITIES), ("LEVEL", level, get_args(Level))):
        _one_of(place, HeadLine(value, _defined(text, word)), expected)
    return Detector(
        name,
        words["TITLE"],
        cast(Severity, severity),
        words["WHY"],
        words["MISSES"],
        names,
        words["SOURCE"],
        cast(Level, level),
        bool(getattr(module, "EXPERIMENTAL", False)),
        digest_of(text),
        place,
        start=cast(Start, start),
        is_own=is_own,
    )


def _defined(text: str, word: str) -> int:
    """The line in which a file gives a name its value; 1 where it does not."""
    lines = enumerate(text.splitlines(), 1)
    return next(
        (number for number, line in lines if line.startswith((f"{word} ", f"{word}:", f"{word}="))), 1
    )


def digest_of(text: str) -> str:
    """What tells one text of a detector from another."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]
