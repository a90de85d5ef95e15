"""Wrappers that instructions demand, and commands that go around them."""

import re
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import Any, NamedTuple

from ledger.audit.controls import Mandate
from ledger.audit.scripts import Command, normal
from ledger.events.review import Severity

_MOST = 500
_HABIT = 2
_PROGRAM = re.compile(r"[A-Za-z_./][\w./-]*")
_WRAPS = re.compile(r"guard|safe|sandbox|audit|wrap|gate(way|keeper)?\b|polic", re.IGNORECASE)
_HARMLESS = frozenset("cd pushd popd export set unset echo printf pwd true false : [ test alias".split())
_RUNNERS = frozenset("python python3 node perl ruby php deno bun xargs env find".split())
_LAUNCHERS = frozenset("bash sh zsh dash python python3 node ruby perl npx uv uvx run".split())
_BOXES = frozenset({"busybox", "toybox"})
_COPIERS = frozenset({"cp", "ln", "install", "mv"})
_STARTS = re.compile(r"subprocess|os\.system|exec|spawn|popen|system\(|`", re.IGNORECASE)
_REQUESTS = re.compile(
    r"\brequests\.|\burllib|http\.client|\bhttpx\b|\baiohttp\b|\bfetch\(|\baxios\b|Net::HTTP|https?\.(get|request)\("
)
_URL = re.compile(r"https?://(\[[^\]]*\]|[\w.-]+)", re.IGNORECASE)
_HERE = re.compile(r"localhost|127\.|0\.0\.0\.0|\[::1\]", re.IGNORECASE)
HTTP = frozenset("curl wget http https httpie xh aria2c".split())
"""Programs that fetch from the web."""
_FAMILIES = (
    HTTP,
    frozenset("rm unlink shred rmdir".split()),
    frozenset("psql pgcli mysql mariadb mycli sqlcmd mongosh mongo redis-cli".split()),
    frozenset("kubectl oc k9s kubecolor".split()),
    frozenset("terraform tofu terragrunt".split()),
    frozenset("docker podman nerdctl".split()),
)
"""Programs that do the same: who must not use one must not use another."""


class Bypass(NamedTuple):
    """A command that went around a wrapper."""

    message: str
    """In words."""

    severity: Severity
    """How grave that is."""

    witness: int
    """The record that demands the wrapper, or shows that it was used before."""


class Wrappers:
    """The wrappers of one session."""

    def __init__(self) -> None:
        self._mandates: OrderedDict[Mandate, int] = OrderedDict()
        self._habits: OrderedDict[tuple[str, str], int] = OrderedDict()
        self._copies: OrderedDict[str, str] = OrderedDict()

    def demanded(self, mandates: Iterable[Mandate], seq: int) -> None:
        """Instructions demand these."""
        for mandate in mandates:
            self._mandates.setdefault(mandate, seq)
        _bound(self._mandates)

    def names(self) -> Iterator[str]:
        """What a shadow in the search path would stand in for."""
        for mandate in self._mandates:
            for name in (mandate.wrapper, *mandate.programs):
                yield name.split()[0].rpartition("/")[2]

    def bypassed(self, command: Command, seq: int) -> Bypass | None:
        """Whether a command goes around one of them."""
        if not command.words:
            return None
        words = command.words[command.words[0].rpartition("/")[2] in _BOXES :] or command.words
        words = [self._copies.get(normal(words[0]), words[0]), *words[1:]]
        self._copied(words)
        line = " ".join(command.words)
        for mandate, witness in self._mandates.items():
            if _is_through(mandate.wrapper, command) or words[0] in _HARMLESS:
                continue
            called = any(_calls(words, one) for one in mandate.programs)
            if not called and (mandate.programs or _is_same(mandate.wrapper, line)):
                continue
            return Bypass(
                f"{_short(line)} ran without {mandate.wrapper}, through which it has to go", "high", witness
            )
        return self._out_of_habit(command, seq)

    def _copied(self, words: list[str]) -> None:
        """A program under another name is still that program."""
        if words[0].rpartition("/")[2] in _COPIERS:
            plain = [word for word in words[1:] if not word.startswith("-")]
            if len(plain) == 2 and "/" in plain[0]:
                self._copies[normal(plain[1])] = plain[0].rpartition("/")[2]
                _bound(self._copies)

    def _out_of_habit(self, command: Command, seq: int) -> Bypass | None:
        """A program that went through a guard before, and now does not: the demand itself may not be in the record."""
        first, *rest = command.words
        name = first.rpartition("/")[2]
        if _WRAPS.search(name) and rest and _PROGRAM.fullmatch(rest[rest[0] == "--" and len(rest) > 1]):
            program = rest[rest[0] == "--" and len(rest) > 1].rpartition("/")[2]
            self._habits.setdefault((first, program), seq)
            _bound(self._habits)
            return None
        wrappers = [wrapper for wrapper, _ in self._habits]
        for (wrapper, program), witness in self._habits.items():
            if program == name and wrappers.count(wrapper) >= _HABIT and name not in _HARMLESS:
                line = _short(" ".join(command.words))
                message = f"{line} ran without {wrapper}, through which {program} had gone before"
                return Bypass(message, "medium", witness)
        return None


def is_wrapping(name: str) -> bool:
    """Whether a name is that of a guard which runs other programs."""
    return _WRAPS.search(name) is not None


def _is_through(wrapper: str, command: Command) -> bool:
    """Whether a command goes through a wrapper: it starts with it, or hands it to a shell."""
    wanted = wrapper.split()
    words = command.words[command.words[0].rpartition("/")[2] in _LAUNCHERS :]
    found = words[: len(wanted)]
    return bool(found) and _is_same(wanted[0], found[0]) and found[1:] == wanted[1:]


def _is_same(one: str, other: str) -> bool:
    return normal(one) == normal(other) or one.rpartition("/")[2] == other.rpartition("/")[2]


def _calls(words: list[str], program: str) -> bool:
    """Whether a command calls a program, such as `git push`: by name, path or code, or one that does the same."""
    wanted = program.split()
    name = wanted[0].rpartition("/")[2]
    first = words[0].rpartition("/")[2].lstrip("\\")
    alike = next((family for family in _FAMILIES if name in family), frozenset({name}))
    if alike is HTTP and _is_at_home(words):
        return False
    if first == name or (first in alike and len(wanted) == 1):
        return any(wanted[1:] == verbs[: len(wanted) - 1] for verbs in _verbs(words))
    if first not in _RUNNERS:
        return False
    text = " ".join(words[1:])
    if alike is HTTP and _REQUESTS.search(text):
        return True
    if first == "find" and name == "rm" and "-delete" in words:
        return True
    in_code = first in ("xargs", "env", "find") or _STARTS.search(text) is not None
    return in_code and all(
        re.search(rf"(?<![\w-]){re.escape(word)}(?![\w-])", text) for word in (name, *wanted[1:])
    )


def _verbs(words: list[str]) -> Iterator[list[str]]:
    """The words of a command behind its options, whose values may stand before the verb: `git -C /repo push`."""
    plain = [
        (word, before.startswith("-") and "=" not in before)
        for before, word in pairwise(words)
        if not word.startswith("-")
    ]
    for place in range(3):
        yield [word for word, _ in plain[place:]]
        if place >= len(plain) or not plain[place][1]:
            return


def _is_at_home(words: list[str]) -> bool:
    """Whether all addresses in a command are of this machine."""
    hosts = _URL.findall(" ".join(words))
    return bool(hosts) and all(_HERE.match(host) for host in hosts)


def _short(text: str) -> str:
    shown = " ".join(text.split())
    return shown if len(shown) <= 120 else f"{shown[:119]}…"


def _bound(kept: OrderedDict[Any, Any]) -> None:
    while len(kept) > _MOST:
        kept.popitem(last=False)
