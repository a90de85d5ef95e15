"""Commands and tools that go around the wrappers which instructions demand."""

import re
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from ledger.audit.bounding import bound, short
from ledger.audit.calling import calls, cores, is_tool_of, only_looks
from ledger.audit.mandates import Mandate
from ledger.audit.scripts import Command, normal
from ledger.events.review import Severity

_MOST = 500
_HABIT = 2
_PROGRAM = re.compile(r"[A-Za-z_./][\w./-]*")
_WRAPS = re.compile(r"guard|safe|sandbox|audit|wrap|gate(way|keeper)?\b|polic", re.IGNORECASE)
_HARMLESS = frozenset(
    "cd pushd popd export set unset echo printf pwd true false : [ test alias which type whereis man "
    "info help apropos hash grep rg"
    " for in done fi case esac function return local exit source .".split()
)
_LAUNCHERS = frozenset(
    "bash sh zsh dash python python3 node ruby perl npx uv uvx run sudo env xargs exec".split()
)
_COPIERS = frozenset({"cp", "ln", "install", "mv"})
_LEAVES_OUT = re.compile(
    r"^\w*(BYPASS|SKIP|DISABLE)\w*=(1|true|yes)$|^--(skip|no|disable|bypass|ignore|without)-(checks?"
    r"|approvals?|guard|audit|polic(y|ies)|verify|safety|review|gate|lock|scan)(=.*)?$"
)


class Bypass(NamedTuple):
    """A call that went around a wrapper."""

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
        self._changed: OrderedDict[str, None] = OrderedDict()

    def demanded(self, mandates: Iterable[Mandate], seq: int) -> None:
        """Instructions demand these."""
        for mandate in mandates:
            self._mandates.setdefault(mandate, seq)
        bound(self._mandates, _MOST)

    def names(self) -> Iterator[str]:
        """What a shadow in the search path would stand in for."""
        for mandate in self._mandates:
            for name in (mandate.wrapper, *mandate.programs):
                yield name.split()[0].rpartition("/")[2]

    def changed(self, path: str) -> None:
        """A file was changed: where it is a copy of a wrapper, it is that wrapper no more."""
        self._changed[path] = None
        bound(self._changed, _MOST)

    def bypassed(
        self, command: Command, seq: int, body: str = "", *, is_own_code: bool = False
    ) -> Bypass | None:
        """Whether a command goes around one of them; `body`: a here-document that goes with it."""
        if not command.words:
            return None
        if command.whole[:1] == ["command"] and command.whole[1:2] in (["-v"], ["-V"]):
            return None
        line = " ".join(command.words)
        if (
            changed := next(
                (one for one in self._run(command) if one in self._changed and one in self._copies), None
            )
        ) is not None:
            for mandate, witness in self._mandates.items():
                if _is_same(mandate.wrapper.split()[0], self._copies[changed]):
                    return Bypass(f"{short(line)} ran a changed copy of {mandate.wrapper}", "high", witness)
        words = [self._copies.get(normal(command.words[0]), command.words[0]), *command.words[1:]]
        command = command._replace(words=words)
        self._copied(words)
        for mandate, witness in self._mandates.items():
            if words[0].rpartition("/")[2] in _HARMLESS:
                continue
            if _is_through(mandate.wrapper, words):
                if any(_LEAVES_OUT.match(word) for word in command.whole):
                    message = f"{short(line)} ran {mandate.wrapper} with its checks left out"
                    return Bypass(message, "high", witness)
                continue
            called = any(calls(command, body, one, is_own_code=is_own_code) for one in mandate.programs)
            if not called and (mandate.programs or _is_same(mandate.wrapper, line)):
                continue
            if _is_wrapper_in(mandate.wrapper, body) or (mandate.is_for_changes and only_looks(command)):
                continue
            return Bypass(
                f"{short(line)} ran without {mandate.wrapper}, through which it has to go", "high", witness
            )
        return self._out_of_habit(command, seq)

    def bypassed_by_tool(self, tool: str, arguments: Any) -> Bypass | None:
        """Whether a tool that runs no shell goes around one of them."""
        for mandate, witness in self._mandates.items():
            if is_tool_of(tool, arguments, mandate.wrapper):
                continue
            if any(is_tool_of(tool, arguments, one) for one in mandate.programs):
                message = f"{tool} was called without {mandate.wrapper}, through which it has to go"
                return Bypass(message, "high", witness)
        return None

    def _run(self, command: Command) -> Iterator[str]:
        for word in command.words[:3]:
            yield normal(word)

    def _copied(self, words: list[str]) -> None:
        """A program under another name is still that program."""
        if words[0].rpartition("/")[2] in _COPIERS:
            plain = [word for word in words[1:] if not word.startswith("-")]
            if len(plain) == 2 and ("/" in plain[0] or plain[0] in set(self.names())):
                self._copies[normal(plain[1])] = plain[0].rpartition("/")[2]
                bound(self._copies, _MOST)

    def _out_of_habit(self, command: Command, seq: int) -> Bypass | None:
        """A program that went through a guard before, and now does not: the demand itself may not be in the record."""
        first, *rest = command.words
        name = first.rpartition("/")[2]
        if _WRAPS.search(name) and rest and _PROGRAM.fullmatch(rest[rest[0] == "--" and len(rest) > 1]):
            program = rest[rest[0] == "--" and len(rest) > 1].rpartition("/")[2]
            self._habits.setdefault((first, program), seq)
            bound(self._habits, _MOST)
            return None
        wrappers = [wrapper for wrapper, _ in self._habits]
        for (wrapper, program), witness in self._habits.items():
            if program == name and wrappers.count(wrapper) >= _HABIT and name not in _HARMLESS:
                line = short(" ".join(command.words))
                message = f"{line} ran without {wrapper}, through which {program} had gone before"
                return Bypass(message, "medium", witness)
        return None


def is_wrapping(name: str) -> bool:
    """Whether a name is that of a guard which runs other programs."""
    return _WRAPS.search(name) is not None


def _is_through(wrapper: str, words: list[str]) -> bool:
    """Whether a command goes through a wrapper: it starts with it, or hands it to what starts others."""
    wanted = wrapper.split()
    for core in cores(words):
        start = core[core[0].rpartition("/")[2] in _LAUNCHERS :]
        found = start[: len(wanted)]
        if found and _is_same(wanted[0], found[0]) and found[1:] == wanted[1:]:
            return True
    return False


def _is_wrapper_in(wrapper: str, body: str) -> bool:
    return bool(body) and wrapper.split()[0].rpartition("/")[2] in body


def _is_same(one: str, other: str) -> bool:
    return normal(one) == normal(other) or one.rpartition("/")[2] == other.rpartition("/")[2]
