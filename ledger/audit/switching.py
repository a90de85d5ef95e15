"""Commands that stop a process, or turn a control off."""

import re
from collections.abc import Iterator

from ledger.audit.touching import Command
from ledger.events.review import Severity

KILLERS = frozenset("kill pkill killall taskkill".split())
"""Programs that stop processes."""

STOPPERS = {
    "systemctl": ("stop", "disable", "mask", "kill"),
    "service": ("stop",),
    "launchctl": ("unload", "bootout", "stop", "remove", "disable"),
    "docker": ("stop", "kill", "rm", "pause"),
    "podman": ("stop", "kill", "rm", "pause"),
    "supervisorctl": ("stop", "shutdown"),
    "pm2": ("stop", "delete", "kill"),
    "rc-service": ("stop",),
    "sc": ("stop", "delete"),
}
"""Programs that run services, and the words that stop one."""

_LONGEST_LINE = 2000
_OFF: tuple[tuple[re.Pattern[str], str, Severity], ...] = (
    (re.compile(r"\bauditctl\s+-(e\s*0|D)\b"), "turned kernel auditing off", "critical"),
    (re.compile(r"\bsetenforce\s+0\b"), "turned mandatory access control off", "critical"),
    (re.compile(r"\bgit\s+config\b.*\bcore\.hooksPath\b"), "pointed git's hooks elsewhere", "high"),
    (re.compile(r"\bchattr\s+-[a-z]*[ai]"), "made an append-only or fixed file writable", "high"),
    (
        re.compile(
            r"--dangerously-skip-permissions|--dangerously-bypass-approvals-and-sandbox|\bgemini\b.*\s--yolo\b"
            r"|\bcodex\b.*(--yolo\b|\bdanger-full-access\b)"
        ),
        "started an agent that asks nobody",
        "high",
    ),
    (
        re.compile(
            r"\bunset\s+(-v\s+)?\w*(HOOK|GUARD|AUDIT|LEDGER|POLICY|SANDBOX)\w*"
            r"|\bexport\s+\w*(HOOK|GUARD|AUDIT|LEDGER|POLICY|SANDBOX)\w*=(0|false|off|no|disabled)?(\s|$)"
        ),
        "turned a control off by its variable",
        "high",
    ),
    (
        re.compile(r"\biptables\s+(-F|--flush)\b|\bnft\s+flush\s+ruleset\b|\bufw\s+disable\b"),
        "took the firewall down",
        "high",
    ),
    (
        re.compile(r"\bgh\s+api\b(?=.*(-X|--method)[ =]?DELETE\b).*/(protection|rulesets/\d+)\b"),
        "took the protection off a branch",
        "high",
    ),
    (re.compile(r"\bgh\s+pr\s+merge\b.*\s--admin\b"), "merged past the required checks", "medium"),
    (
        re.compile(
            r"\bunset\s+(-v\s+)?(ANTHROPIC|OPENAI)_BASE_URL\b"
            r"|\b(ANTHROPIC_BASE_URL=https://api\.anthropic\.com|OPENAI_BASE_URL=https://api\.openai\.com)\b"
        ),
        "led model calls past what stood before the provider",
        "medium",
    ),
    (
        re.compile(r"(^|\s)(HUSKY=0|SKIP=\S+ .*\bgit\s+commit\b|LEFTHOOK=(0|false))(\s|$)"),
        "skipped git's hooks",
        "info",
    ),
)
_TALKING = frozenset("git gh echo printf grep rg".split())
"""Programs of which an argument with spaces in it is a text."""


def turned_off(command: Command) -> Iterator[tuple[str, Severity]]:
    """What a command turns off, in words, and how grave that is."""
    line = line_of(command)
    if _is_without_hooks(command.words):
        yield "skipped git's hooks", "info"
    for pattern, what, severity in _OFF:
        if pattern.search(line):
            yield what, severity


def line_of(command: Command) -> str:
    """A command as one line, without texts, such as the message of a commit, that only speak of commands."""
    words = command.whole
    if command.words and command.words[0].rpartition("/")[2] in _TALKING:
        words = [word for word in words if " " not in word]
    return " ".join(words)[:_LONGEST_LINE]


def _is_without_hooks(words: list[str]) -> bool:
    """Whether git is told to pass over its hooks; `-n` says so to a commit alone."""
    if not words or words[0].rpartition("/")[2] != "git":
        return False
    verbs = {"commit", "push", "merge", "rebase", "am"}.intersection(words[:6])
    is_short = "commit" in verbs and any(re.fullmatch(r"-[aensv]*n[aensvm]*", word) for word in words)
    return bool(verbs) and ("--no-verify" in words or is_short)
