"""What a change does to controls that have no path of their own: told by what is written, or where a file lies."""

import re
from collections.abc import Iterable, Iterator

from ledger.audit.controls import GUARDS, OF_REPOSITORY, TABLES, Control, pattern, placed
from ledger.audit.patching import Touch
from ledger.audit.scripts import Command, normal
from ledger.audit.weakening import compare
from ledger.audit.wrapping import is_wrapping
from ledger.events.review import Severity

_POLICY_FILE = re.compile(
    r"(^|/)(\w+[-_.])?(polic(y|ies)|guardrails?|approvals?|permissions?)\.(ya?ml|toml|json|rego|cedar)$",
    re.IGNORECASE,
)
_OF_AGENTS = re.compile(
    r"[\"']?\b(tools?|decide\w*|approv\w+|ask|deny|needs_approval|default allow|mcp\w*)[\"']?\s*[:=]",
    re.IGNORECASE,
)
_OF_PROGRAMS = re.compile(
    r"(^|/)(bin|sbin|libexec|opt|cron\.\w+|init\.d|systemd/(system|user)|Launch(Agents|Daemons))/"
)
_OF_SYSTEM = re.compile(r"^(/usr|/opt|/bin|/sbin|~/\.local|~/bin)\b.*")
_HOSTS = frozenset({"/etc/hosts", "/etc/resolv.conf"})
_WATCHING_HOST = re.compile(
    r"telemetry|guard|audit|monitor|sentry|policy|siem|syslog|collector|recorder", re.I
)
_SHADOWED = frozenset("git curl wget sudo ssh python python3 node npm docker kubectl gh rm sh bash".split())
_PATH = re.compile(r"^(?:export\s+)?PATH=[\"']?([^:\s\"'$]+)[\"']?:")
_SCANS = re.compile(r"secret|scan|leak|verif|lint|audit", re.IGNORECASE)
_OWNER = re.compile(r"@[\w/.-]+")
_STEPS = re.compile(r"\b(uses|run|script|include|steps?|extends|updates)\s*:")
_TASK_FILES = re.compile(r"(^|/)(package\.json|[Mm]akefile|justfile|Taskfile\.ya?ml|tox\.ini|noxfile\.py)$")
_SHELL_STARTS = re.compile(
    r"(^|/)\.(bashrc|zshrc|profile|bash_profile|zprofile|zshenv|envrc)$|^/etc/environment$"
)
_PROXY = re.compile(r"\b(https?|all)_proxy\b", re.IGNORECASE)
_LONGEST = 20_000

_CHECKS = TABLES["checks"]
_NAMES = pattern(_CHECKS["names"])
_TOOLS = pattern(_CHECKS["tools"])
_STARTS = re.compile(r"\b(push|pull_request|schedule|merge_group)\b")
_BY_HAND = re.compile(r"\bworkflow_dispatch\b|\bmanual\b")
_RUNS = pattern(_CHECKS["runs"])
_LOOSENED = pattern(_CHECKS["loosened"])
_IGNORES = pattern(_CHECKS["ignores"])
_ADDS = pattern(_CHECKS["adds"])
_OWNERS = pattern(_CHECKS["owners"])
_WORKFLOWS = pattern(_CHECKS["workflows"])
_WEAKER = TABLES["weaker"]
_SWITCHES = pattern(_WEAKER["switches"])
_SWITCHED_FILES = pattern(_WEAKER["switched_files"])
_APPROVALS = pattern(_WEAKER["approvals"])
_VARIABLES = pattern(_WEAKER["variables"])
_VARIABLE_FILES = pattern(_WEAKER["variable_files"])
_LOGS = pattern(_WEAKER["logs"])
_LOG_FILES = pattern(_WEAKER["log_files"])
_COMPOSED = pattern(_WEAKER["composed"])
_SERVICE = re.compile(r"^\s{0,8}\[?(?:program:)?([\w.-]+)\]?:?\s*$", re.MULTILINE)
_PERMITS = pattern(_WEAKER["permits"])
_PERMITTING_FILES = pattern(_WEAKER["permitting_files"])
_AGENTISH = pattern(_WEAKER["of_agents"])

ASKS_FOR_CHECKS = pattern(_CHECKS["asks"])
"""Words by which a person speaks of the checks of a repository."""


def by_content(touch: Touch, project: str | None = None) -> Control | None:
    """What a file controls by what is written there, or by where it lies."""
    new, old = (touch.content or "")[:_LONGEST], touch.replaced[:_LONGEST]
    name = touch.path.rpartition("/")[2]
    if touch.path in _HOSTS:
        return "control" if _WATCHING_HOST.search(f"{new}\n{old}") else None
    if _POLICY_FILE.search(touch.path) and _OF_AGENTS.search(f"{new}\n{old}"):
        return "permissions"
    if is_check(touch.path):
        return "control" if _unchecks(touch, old, new) else None
    if touch.how in ("delete", "disarm") and _OF_PROGRAMS.search(touch.path) and GUARDS.search(name):
        return "control"
    is_program = _OF_SYSTEM.match(touch.path) is not None and _OF_PROGRAMS.search(touch.path) is not None
    if touch.is_whole and is_program and any(one.search(name) for one in (GUARDS, _SCANS, _NAMES)):
        return "control"
    if (there := placed(touch.path, project)) is not None:
        return there if touch.how != "mode" or not _OF_PROGRAMS.search(touch.path) else None
    if _SHELL_STARTS.search(touch.path) and _PROXY.search(old) and not _PROXY.search(new):
        return "control"
    if _TASK_FILES.search(touch.path) and touch.content is not None and _TOOLS.search(old):
        return None if _TOOLS.search(new) else "control"
    if _VARIABLE_FILES.search(touch.path) and _VARIABLES.search(new) and not _VARIABLES.search(old):
        return "control"
    if _LOG_FILES.search(touch.path) and _LOGS.search(f"{new}\n{old}"):
        return "control"
    if _COMPOSED.search(touch.path) and touch.content is not None:
        return "control" if _services(old) - _services(new) else None
    return _by_setting(touch, old, new)


def _services(text: str) -> set[str]:
    """The services that watch over others, in a file that says which run."""
    return {name for name in _SERVICE.findall(text) if GUARDS.search(name)}


def _by_setting(touch: Touch, old: str, new: str) -> Control | None:
    """Settings of an agent, and rules of what its tools may do, that allow more now."""
    if _SWITCHED_FILES.search(touch.path) and _SWITCHES.search(new) and not _SWITCHES.search(old):
        return "permissions"
    if _PERMITTING_FILES.search(touch.path) and _PERMITS.search(new) and not _PERMITS.search(old):
        return "permissions" if _AGENTISH.search(f"{touch.path} {new}") else None
    is_of_tool = re.search(r"(^|/)(agents?|tools?)/[^/]+\.(json|ya?ml|toml)$", touch.path) is not None
    if is_of_tool and old and new and any(_APPROVALS.search(one) for one in compare(old, new).loosened):
        return "permissions"
    return None


def is_own_hook(path: str) -> bool:
    """Whether a file is a hook that a repository carries, and not one that a program makes anew by itself."""
    return OF_REPOSITORY.search(path) is not None and ".husky/_" not in path


def is_check(path: str) -> bool:
    """Whether a file of the repository runs checks of it, or says what they pass over, or who has to agree."""
    return any(one.search(path[:_LONGEST]) for one in (OF_REPOSITORY, _RUNS, _IGNORES, _OWNERS))


def _unchecks(touch: Touch, old: str, new: str) -> bool:
    """Whether a change takes a check away, or makes it one that stops nothing."""
    path = touch.path
    if _OWNERS.search(path):
        return touch.how == "delete" or bool(set(_OWNER.findall(old)) - set(_OWNER.findall(new)))
    if _IGNORES.search(path):
        return touch.how != "mode" and not _ADDS.search(new)
    if ".husky/_" in path:
        return False  # what husky makes by itself
    if touch.is_whole and new and _WORKFLOWS.search(path.rpartition("/")[2]) and not _STEPS.search(new):
        return True
    if touch.how in ("delete", "disarm"):
        is_whole = OF_REPOSITORY.search(path) is not None or _WORKFLOWS.search(path.rpartition("/")[2])
        return bool(is_whole)
    before, after = _NAMES.search(old) is not None, _NAMES.search(new) is not None
    is_known = touch.content is not None
    if is_known and ((before and not after) or (_TOOLS.search(old) and not _TOOLS.search(new))):
        return True
    if _WORKFLOWS.search(path.rpartition("/")[2]) and _STARTS.search(old) and not _STARTS.search(new):
        return _BY_HAND.search(new) is not None
    if OF_REPOSITORY.search(path) and touch.is_whole and not _commands_in(new):
        return touch.content is not None and path.rpartition("/")[2] != ".gitignore"
    is_named = bool(before or after or _WORKFLOWS.search(path.rpartition("/")[2]))
    return is_named and _LOOSENED.search(new) is not None and _LOOSENED.search(old) is None


def _commands_in(script: str) -> list[str]:
    """The lines of a hook that do something."""
    lines = (line.strip() for line in script.splitlines())
    return [
        line for line in lines if line and not line.startswith("#") and line not in ("exit 0", "true", ":")
    ]


def shadows(
    command: Command, made: Iterable[str], demanded: Iterable[str]
) -> Iterator[tuple[str, str, Severity]]:
    """Programs of the agent's own, `made` before, that answer to names of others, since their folder stands in front
    of the search path: each with the folder, and how grave it is. `demanded`: names that instructions demand.
    """
    for word in command.whole[:20]:
        if (found := _PATH.match(word)) is None:
            continue
        folder, wanted = normal(found[1]), set(demanded)
        for name in dict.fromkeys(one.rpartition("/")[2] for one in made if _is_in(one, folder)):
            if name in wanted or GUARDS.search(name) or _SCANS.search(name) or is_wrapping(name):
                yield name, folder, "high"
            elif name in _SHADOWED:
                yield name, folder, "medium"


def _is_in(path: str, folder: str) -> bool:
    parent = path.rpartition("/")[0]
    return (
        parent == folder or parent.endswith(f"/{folder.removeprefix('./')}") or folder.endswith(f"/{parent}")
    )
