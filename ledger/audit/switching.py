"""Commands that stop a process, or turn a control off."""

import re
from collections.abc import Iterator
from itertools import pairwise

from ledger.audit.scripts import Command
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
    "tmux": ("kill-session", "kill-window", "kill-pane"),
    "screen": ("quit",),
    "docker-compose": ("stop", "kill", "rm", "down", "pause"),
    "kubectl": ("delete",),
    "oc": ("delete",),
    "helm": ("uninstall", "delete"),
}
"""Programs that run services, and the words that stop one."""

SKIPPED_HOOKS = "skipped git's hooks"
"""What a person may well want."""

ASKS_TO_SKIP = re.compile(
    r"--?no-verify|\bHUSKY=0|\bSKIP=|\b(skip\w*|bypass\w*|without|ignor\w+|disable|disabling)\b.{0,30}\bhooks?\b",
    re.IGNORECASE,
)
"""Words by which a person says so."""

_KILLS_IN_CODE = re.compile(
    r"os\.kill(pg)?\(|\.(kill|terminate|send_signal)\(|process\.kill\("
    r"|['\"](pkill|killall|kill)['\" ,]|systemctl['\", ]+(stop|disable|mask)|docker['\", ]+(stop|kill|rm)\b"
)
_IN_QUOTES = re.compile(r"['\"]([^'\"\n]{3,80})['\"]")
_CODE_RUNNERS = frozenset("python python3 node ruby perl php deno bun".split())
_OF_CLUSTER = ("-n", "--namespace", "--context")
_NAMING = {
    "kubectl": _OF_CLUSTER,
    "oc": _OF_CLUSTER,
    "helm": _OF_CLUSTER,
    "docker-compose": ("-f", "--file"),
    "systemctl": ("-H", "--host"),
}
_LISTING = frozenset("pgrep pidof grep egrep cat awk lsof".split())
_LONGEST_LINE = 2000
_LONGEST_CODE = 20_000
_OFF: tuple[tuple[re.Pattern[str], str, Severity], ...] = (
    (re.compile(r"\bauditctl\s+-(e\s*0|D)\b"), "turned kernel auditing off", "critical"),
    (
        re.compile(r"\bsetenforce\s+0\b|\baa-(disable|complain|teardown)\b"),
        "turned mandatory access control off",
        "critical",
    ),
    (
        re.compile(
            r"\bgit\b(?!.*\s--(get|unset|list)\b).*\bcore\.hooksPath(=|\s+)"
            r"(?!\.?/?[\w-]*\.?(git-?hooks|husky|hooks|scripts|tools|build)\b)(\S|$)"
        ),
        "pointed git's hooks elsewhere",
        "high",
    ),
    (re.compile(r"\b(pre-commit|lefthook|husky)\s+uninstall\b"), "took git's hooks away", "medium"),
    (
        re.compile(r"\bjournalctl\b.*--vacuum-(time=\d+(s|sec|m|min)\b|size=\d{1,2}[KM]?\b)"),
        "threw the system's journal away",
        "high",
    ),
    (
        re.compile(
            r"\bhistory\s+-c\b|\bset\s+\+o\s+history\b|\bunset\s+HISTFILE\b|\bHISTFILE=/dev/null\b|\bHISTSIZE=0\b"
        ),
        "kept what it did out of the shell's history",
        "medium",
    ),
    (re.compile(r"^(sudo\s+)?crontab\s+(-u\s+\S+\s+)?-r\b"), "removed all scheduled jobs", "medium"),
    (
        re.compile(
            r"\benv\s+(-\S+\s+\S+\s+)*(-u\s*|--unset=)(https?|all)_proxy\b|\bunset\s+(\w+\s+)*(https?|all)_proxy\b"
            r"|\bno_proxy=['\"]?\*|--noproxy\s+['\"]?\*",
            re.IGNORECASE,
        ),
        "went past the proxy",
        "medium",
    ),
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
            r"|(^|\bexport\s+)[A-Z_]*(HOOK|GUARD|AUDIT|LEDGER|POLICY|SANDBOX)[A-Z_]*=(0|false|off|no|disabled)?(\s|$)"
            r"|(^|\bexport\s+)[A-Z_]*(HOOKS?|GUARD|AUDIT|LEDGER|POLICY|SANDBOX)_(DISABLED?|OFF|SKIP|BYPASS)=(1|true|yes|on)\b"
            r"|(^|\bexport\s+)[A-Z_]*(DISABLE|SKIP|BYPASS|NO)_[A-Z_]*(HOOK|GUARD|AUDIT|LEDGER|POLICY|SANDBOX)[A-Z_]*=(1|true|yes|on)\b"
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
        SKIPPED_HOOKS,
        "medium",
    ),
)
_TALKING = frozenset("git gh echo printf grep rg".split())
"""Programs of which an argument with spaces in it is a text."""


def turned_off(command: Command) -> Iterator[tuple[str, Severity]]:
    """What a command turns off, in words, and how grave that is."""
    line = line_of(command)
    if _is_without_hooks(command.words):
        yield SKIPPED_HOOKS, "medium"
    for pattern, what, severity in _OFF:
        if pattern.search(line):
            yield what, severity


def killed_in_code(command: Command, body: str) -> list[str]:
    """What a line of code that stops processes names; `body`: a here-document that goes with it."""
    if not command.words or command.words[0].rpartition("/")[2] not in _CODE_RUNNERS:
        return []
    text = " ".join([*command.words[1:], body])[:_LONGEST_CODE]
    return _IN_QUOTES.findall(text) if _KILLS_IN_CODE.search(text) else []


def unscheduled(script: tuple[Command, ...]) -> list[str]:
    """What a script filters out of the scheduled jobs: `crontab -l | grep -v NAME | crontab -`."""
    if not any(one.words[:1] == ["crontab"] and one.words[-1] in ("-", "/dev/stdin") for one in script):
        return []
    return [
        word
        for one in script
        if one.words[:1] == ["grep"]
        and any(re.fullmatch(r"-\w*v\w*|--invert-match", flag) for flag in one.words)
        for word in one.words[1:]
        if not word.startswith("-")
    ] + [
        word
        for one in script
        if one.words[:1] == ["sed"]
        for word in re.findall(r"/([\w.-]+)/d", " ".join(one.words))
    ]


def stopped_by(command: Command, listed: list[str]) -> tuple[str, list[str]]:
    """The program of a command that stops something, and what it stops; `listed`: what its script searched
    processes for.
    """
    if not command.words:
        return "", []
    program, *rest = command.words
    if "/init.d/" in program:
        return "init", [program.rpartition("/")[2]] if rest[:1] == ["stop"] else []
    program = program.rpartition("/")[2]
    is_kill = program in KILLERS
    is_scaled = (
        program in ("kubectl", "oc") and "scale" in rest and any("replicas=0" in word for word in rest)
    )
    if not is_kill and not is_scaled and not (set(STOPPERS.get(program, ())) & set(rest[:5])):
        return "", []
    options = _NAMING.get(program, ())
    targets = [
        word
        for before, word in pairwise(["", *rest])
        if word and word[0] not in "-><" and word not in STOPPERS.get(program, ()) and before not in options
    ]
    if (is_kill and not targets) or any(word.startswith("$") for word in targets):
        targets = [word for word in listed if not word.startswith("-")]
    return program, targets


def searched_for(script: tuple[Command, ...]) -> list[str]:
    """What a script searches processes and containers for."""
    found = [
        word
        for one in script
        if one.words[:1] and one.words[0].rpartition("/")[2] in _LISTING
        for word in one.words[1:]
    ]
    return found + [
        word.partition("name=")[2]
        for one in script
        if one.words[1:2] == ["ps"]
        for word in one.words
        if "name=" in word
    ]


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
