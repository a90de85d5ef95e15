"""Commands that stop a process, or turn a control off. What they are is in controls.toml."""

import re
from collections.abc import Iterator
from itertools import pairwise
from typing import Any, NamedTuple

from ledger.audit.controls import GUARDS, TABLES, pattern
from ledger.audit.scripts import CONTAINERS, Command, normal
from ledger.events.review import Severity

KILLERS = frozenset("kill pkill killall taskkill xkill skill snice fuser killall5".split())
"""Programs that stop processes."""

_STOPS_ANY = KILLERS | {"Stop-Service", "Stop-Process", "rmmod"}

SKIPPED_HOOKS = "skipped git's hooks"
"""What a person may well want."""

_STOPPERS = {name: tuple(verbs.split()) for name, verbs in TABLES["processes"]["stoppers"].items()}
_GROUPS = {name: frozenset(said.split()) for name, said in TABLES["groups"].items()}
_KILLS_IN_CODE = re.compile(
    r"os\.kill(pg)?\(|\.(kill|terminate|send_signal|suspend)\(|process\.kill\("
    r"|['\" ](pkill|killall|kill)['\" ,]|systemctl['\", ]+(stop|disable|mask)|docker['\", ]+(stop|kill|rm)\b"
)
_IN_QUOTES = re.compile(r"['\"]([^'\"\n]{3,80})['\"]")
_OF_CLUSTER = ("-n", "--namespace", "--context")
_NAMING = {
    "kubectl": _OF_CLUSTER,
    "oc": _OF_CLUSTER,
    "helm": _OF_CLUSTER,
    "systemctl": ("-H", "--host", "-s", "--signal"),
    "kill": ("-s", "-n"),
    "docker": ("-H", "--host", "--context", "-c", "--config"),
    "nerdctl": ("-n", "--namespace", "-a", "--address"),
}
_COMPOSERS = frozenset({"docker", "podman", "nerdctl", "docker-compose", "podman-compose"})
_MOST_WORDS = 200
_LEAVES_JOBS = frozenset({"-l", "-e", "-r", "crontab"})
_LISTING = frozenset("pgrep pidof grep egrep rg cat awk lsof ss fuser".split())
_TALKING = frozenset("echo printf grep rg egrep fgrep".split())
_TEXT_OPTIONS = frozenset("-m --message -am -sm -asm -b --body -t --title -nm -anm --notes".split())
_SCALED_TO_NOTHING = re.compile(r"^([\w.-]+)=0$")
_OF_PORT = re.compile(r"^-\w*i\w*:(\d+)$")
_NO_REPLICAS = re.compile(r"--replicas[= ]0\b|\bsuspend[\"']?\s*[:=]\s*true|\breplicas[\"']?\s*:\s*0\b")
_NUMBER = re.compile(r"(?=[a-f]*\d)[0-9a-f]{1,64}")
_WATCHES = pattern(TABLES["processes"]["watches"])
_LONGEST_NAME = 200
_LONGEST_LINE = 2000
_LONGEST_CODE = 20_000


class Off(NamedTuple):
    """A way to turn a control off."""

    said: str
    """What it did, in words."""

    severity: Severity
    """How grave it is."""

    programs: frozenset[str]
    """Programs whose arguments say so; none: the assignments and words of any command."""

    patterns: tuple[re.Pattern[str], ...]
    """What all of them find there."""

    asks: re.Pattern[str]
    """How a person speaks of it who wants it."""

    told: re.Pattern[str] | None
    """What instructions have to speak of, for it to be more than a hint."""

    not_with: re.Pattern[str] | None
    """What the command does not say."""

    refused: str
    """`graver` where it is that after a refusal, `needed` where it is nothing before one."""


def _off(said: dict[str, Any]) -> Off:
    programs = [
        one for name in said.get("programs", "").split() for one in _GROUPS.get(name, frozenset({name}))
    ]
    found = said["pattern"]
    told, without = said.get("told"), said.get("not_with")
    return Off(
        said["said"],
        said["severity"],
        frozenset(programs),
        tuple(pattern(one) for one in ([found] if isinstance(found, str) else found)),
        pattern(rf"(?<![a-z])(?:{said['asks']})"),
        None if told is None else pattern(told),
        None if without is None else pattern(without),
        said.get("refused", ""),
    )


_OFF = tuple(_off(said) for said in TABLES["off"])
_SKIPPED = next(one for one in _OFF if one.said == SKIPPED_HOOKS)


def turned_off(command: Command, body: str = "", before: str = "") -> Iterator[Off]:
    """What a command turns off; `body`: a here-document that goes with it, `before`: the command that feeds it."""
    if not command.words and not command.whole:
        return
    program = command.words[0].rpartition("/")[2] if command.words else ""
    if program in _TALKING:
        return
    if _is_without_hooks(command.words):
        yield _SKIPPED
    line = line_of(command)
    rest = _spoken(command.words[1:], program)
    if program in _GROUPS["code"]:
        rest = " ".join([*command.words[1:], body])[:_LONGEST_CODE]
    elif "xargs" in command.whole[:3]:
        rest = f"{rest} {before}"
    seen: set[str] = set()
    for one in _OFF:
        if one.programs and program not in one.programs:
            continue
        text = rest if one.programs else line
        if one.said in seen or (one.not_with is not None and one.not_with.search(line)):
            continue
        if all(found.search(text) for found in one.patterns):
            seen.add(one.said)
            yield one


def killed_in_code(command: Command, body: str) -> list[str]:
    """What a line of code that stops processes names; `body`: a here-document that goes with it."""
    if not command.words or command.words[0].rpartition("/")[2] not in _GROUPS["code"]:
        return []
    text = " ".join([*command.words[1:], body])[:_LONGEST_CODE]
    return _IN_QUOTES.findall(text) if _KILLS_IN_CODE.search(text) else []


def unscheduled(script: tuple[Command, ...]) -> list[str]:
    """What a script filters out of the scheduled jobs: `crontab -l | grep -v NAME | crontab -`."""
    if not any(one.words[:1] == ["crontab"] and one.words[-1] not in _LEAVES_JOBS for one in script):
        return []
    return [
        word
        for one in script
        if one.words[:1] in (["grep"], ["awk"])
        and (
            one.words[0] == "awk" or any(re.fullmatch(r"-\w*v\w*|--invert-match", flag) for flag in one.words)
        )
        for word in one.words[1:]
        if not word.startswith("-")
    ] + [
        word
        for one in script
        if one.words[:1] in (["sed"], ["perl"])
        for text in one.words[1:]
        for word in re.findall(r"[\w-][\w.-]{3,}", text[:_LONGEST_LINE])
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
    verbs = _STOPPERS.get(program, ())
    verbs = tuple(verb.lower() for verb in verbs)
    is_injected = program in ("strace", "gdb") and any("inject=" in word for word in rest)
    is_kill = program in _STOPS_ANY or is_injected
    is_scaled = (
        program in ("kubectl", "oc")
        and bool({"scale", "patch", "edit", "set"} & set(rest))
        and _NO_REPLICAS.search(" ".join(rest)) is not None
    )
    nothing = [found[1] for word in rest if (found := _SCALED_TO_NOTHING.match(word)) and "--scale" in rest]
    is_kept_down = program in ("docker", "podman") and "update" in rest[:1] and "--restart" in " ".join(rest)
    if program in CONTAINERS and "exec" in rest[:3] and KILLERS & set(rest):
        return program, [word for word in rest[:6] if not word.startswith("-")]
    is_service = program == "service" and rest[-1:] == ["stop"]
    plain = [word for word in rest[:_MOST_WORDS] if not word.startswith("-")]
    said = {word.lower() for word in [*rest[:6], *plain[:6]]}
    is_stop = bool(set(verbs) & said) or is_service or is_kept_down
    if not is_kill and not is_scaled and not is_stop:
        return program, nothing
    if program in _COMPOSERS and (composed := _composed(rest, verbs)) is not None:
        rest = composed
    options = _NAMING.get(program, ())
    targets = [
        word
        for before, word in pairwise(["", *rest])
        if word and word[0] not in "-><" and word.lower() not in verbs and before not in options
    ]
    if program == "wazuh-control":
        targets = [program]
    if (is_kill and not targets) or any(word.startswith(("$", "`")) for word in targets):
        targets += [word for word in listed if not word.startswith("-")]
    return program, [*targets, *nothing]


def _composed(words: list[str], verbs: tuple[str, ...]) -> list[str] | None:
    """What `compose` stops: the services behind its verb, or the whole of the project that its options name."""
    if "compose" in words[:8]:
        words = words[words.index("compose") + 1 :]
    elif not any(word in ("-f", "-p", "--file", "--project-name") for word in words):
        return None
    place = next((at for at, word in enumerate(words) if word in verbs), None)
    if place is None:
        return None
    behind = words[place + 1 :]
    if any(not word.startswith("-") for word in behind):
        return behind
    names = {"-p", "--project-name"}
    return [after for option, after in pairwise(words[:place]) if option in names] or [
        word
        for word in words[:place]
        if word.startswith(("/", "~"))  # others are the project's own
    ]


def searched_for(script: tuple[Command, ...]) -> list[str]:
    """What a script searches processes and containers for."""
    found = [
        word
        for one in script
        if one.words[:1] and one.words[0].rpartition("/")[2] in _LISTING
        for word in one.words[1:]
    ]
    found += [f":{port[1]}" for word in found if (port := _OF_PORT.search(word)) is not None]
    return found + [
        word.partition("name=")[2]
        for one in script
        if one.words[1:2] == ["ps"]
        for word in one.words
        if "name=" in word
    ]


def process_of(target: str, listing: str) -> str:
    """The name of a process or service: that of a number as a listing showed it, with what the listing says of it
    where it is said to watch.
    """
    number = target.strip("$()`")
    if not _NUMBER.fullmatch(number):
        name = normal(target.replace(".*", "-"))
        told = (line for line in listing.splitlines() if name in line.split() and _WATCHES.search(line))
        return f"{name} {next(told, '')}".strip()[:_LONGEST_NAME]
    listed = re.compile(rf"\s*(\S+\s+)?{number}")
    return next((line for line in listing.splitlines() if listed.match(line)), target)[-_LONGEST_NAME:]


def is_guard(name: str) -> bool:
    """Whether a process of this name, or of which this is said, watches over others."""
    return GUARDS.search(name) is not None or _WATCHES.search(name) is not None


def line_of(command: Command) -> str:
    """A command as one line, without texts, such as the message of a commit, that only speak of commands."""
    program = command.words[0].rpartition("/")[2] if command.words else ""
    return _spoken(command.whole, program)


def _spoken(words: list[str], program: str) -> str:
    if program in _TALKING:
        words = [word for word in words if " " not in word]
    elif program in ("git", "gh", "glab"):
        words = [word for before, word in pairwise(["", *words]) if before not in _TEXT_OPTIONS]
    elif program in ("sed", "perl", "awk"):
        words = [word for word in words if not _is_expression(word)]
    return " ".join(words)[:_LONGEST_LINE]


def _is_expression(word: str) -> bool:
    return " " in word or word[:2] in ("s/", "s#", "s|", "s,") or (word[:1] == "/" and word[-2:] == "/d")


def _is_without_hooks(words: list[str]) -> bool:
    """Whether git is told to pass over its hooks; `-n` says so to a commit alone."""
    if not words or words[0].rpartition("/")[2] != "git":
        return False
    verbs = {"commit", "push", "merge", "rebase", "am"}.intersection(words[:6])
    is_short = "commit" in verbs and any(re.fullmatch(r"-[aensv]*n[aensvm]*", word) for word in words)
    return bool(verbs) and ("--no-verify" in words or is_short)
