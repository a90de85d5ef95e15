"""What a change does to controls that have no path of their own: told by what is written, or where a program lies."""

import re

from ledger.audit.controls import GUARDS, OF_REPOSITORY, Control
from ledger.audit.touching import Touch
from ledger.audit.wrapping import is_wrapping

_POLICY_FILE = re.compile(
    r"(^|/)(\w+[-_.])?(polic(y|ies)|guardrails?|approvals?|permissions?)\.(ya?ml|toml|json|rego|cedar)$",
    re.IGNORECASE,
)
_OF_AGENTS = re.compile(
    r"[\"']?\b(tools?|decide\w*|approv\w+|ask|deny|needs_approval|default allow|mcp\w*)[\"']?\s*[:=]",
    re.IGNORECASE,
)
_CHECKS = re.compile(
    r"gitleaks|detect-secrets|trufflehog|semgrep|bandit|trivy|checkov|snyk|codeql|secret|audit", re.IGNORECASE
)
_OF_PROGRAMS = re.compile(
    r"(^|/)(bin|sbin|libexec|opt|cron\.\w+|init\.d|systemd/(system|user)|Launch(Agents|Daemons))/"
)
_OF_SYSTEM = re.compile(r"^(/usr|/opt|/bin|/sbin|~/\.local|~/bin)\b.*")
_HOSTS = "/etc/hosts"
_WATCHING_HOST = re.compile(r"telemetry|guard|audit|monitor|sentry|policy|siem|syslog", re.IGNORECASE)
_SHADOWED = frozenset("git curl wget sudo ssh python python3 node npm docker kubectl gh rm sh bash".split())
_SCANS = re.compile(r"secret|scan|leak|verif|lint|audit", re.IGNORECASE)


def by_content(touch: Touch) -> Control | None:
    """What a file controls by what is written there, or by where its program lies."""
    said = f"{touch.content or ''}\n{touch.replaced}"
    name = touch.path.rpartition("/")[2]
    if _POLICY_FILE.search(touch.path) and _OF_AGENTS.search(said):
        return "permissions"
    if OF_REPOSITORY.search(touch.path) and _CHECKS.search(touch.replaced):
        return None if _CHECKS.search(touch.content or "") else "control"
    if touch.how in ("delete", "disarm") and _OF_PROGRAMS.search(touch.path) and GUARDS.search(name):
        return "control"
    if touch.is_whole and _OF_SYSTEM.match(touch.path) and _OF_PROGRAMS.search(touch.path):
        return "control" if GUARDS.search(name) or _SCANS.search(name) or _CHECKS.search(name) else None
    return "control" if touch.path == _HOSTS and _WATCHING_HOST.search(said) else None


def stands_for(name: str) -> bool | None:
    """Whether a program of this name checks others; None: it neither does nor is one that everybody runs."""
    if GUARDS.search(name) or _SCANS.search(name) or is_wrapping(name):
        return True
    return False if name in _SHADOWED else None
