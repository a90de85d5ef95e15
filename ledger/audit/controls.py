"""What controls an agent: files by their paths, processes by their names. The tables are in controls.toml."""

import re
import tomllib
from collections.abc import Mapping
from importlib.resources import files
from typing import Any, Literal

Control = Literal["control", "permissions", "instructions"]
"""`control`: hooks, guards, audit logs; `permissions`: what may be done unasked; `instructions`: what it is told."""

TABLES: Mapping[str, Any] = tomllib.loads(
    files(__package__).joinpath("controls.toml").read_text(encoding="utf-8")
)
"""All that controls.toml says."""

_LONGEST = 1000
_LONGEST_PATH = 4096


def pattern(said: str | list[str], around: str = "{}") -> re.Pattern[str]:
    """One pattern of a table, or several of which one has to match."""
    parts = [said] if isinstance(said, str) else said
    return re.compile(around.format("|".join(f"(?:{part})" for part in parts)), re.IGNORECASE | re.MULTILINE)


_FILES: tuple[tuple[Control, re.Pattern[str]], ...] = (
    ("control", pattern(TABLES["files"]["control"])),
    ("permissions", pattern(TABLES["files"]["permissions"])),
    ("instructions", pattern(TABLES["files"]["instructions"])),
)
NOT_LIVE = pattern(TABLES["files"]["not_live"])
"""Fixtures and examples, which control nothing."""

GUARDS = pattern(TABLES["processes"]["guards"], r"(?:^|[^a-z])(?:{})(?:[^a-z]|$)")
"""Names of processes that watch over others."""

OF_REPOSITORY = pattern(TABLES["checks"]["hooks"])
"""Hooks that a repository carries: work on it may well change them, but not take them away."""

_PLACES = {name: pattern(said) for name, said in TABLES["places"].items()}


def control_of(path: str) -> Control | None:
    """What a file controls by its path; None: nothing that is known. Fixtures and examples control nothing."""
    path = path[:_LONGEST]
    if NOT_LIVE.search(path) and not path.startswith(("/etc/", "/var/log")):
        return None
    return next((control for control, files_of in _FILES if files_of.search(path)), None)


def in_system(path: str, project: str | None) -> bool:
    """Whether a file lies where the settings and programs of a machine lie, and not in the project."""
    path = path[:_LONGEST_PATH]
    if project and len(project) > 1 and (path == project or path.startswith(f"{project.rstrip('/')}/")):
        return False
    return _PLACES["system"].match(path) is not None


def placed(path: str, project: str | None) -> Control | None:
    """What a file of the machine controls by the names in its path; None: nothing, or it is one of the project."""
    if not in_system(path, project) or _PLACES["ordinary"].search(path[:_LONGEST]):
        return None
    *folders, name = path[:_LONGEST].strip("/").split("/")
    if any(_PLACES["guarding"].search(one) or GUARDS.search(one) for one in (*folders[1:], name)):
        return "control"
    if _PLACES["limiting"].search(name):
        return "control"
    is_agents = _PLACES["of_agents"].search(path[:_LONGEST]) is not None
    return "permissions" if is_agents and _PLACES["limiting_agents"].search(name) else None
