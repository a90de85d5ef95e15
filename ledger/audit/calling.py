"""Whether a command calls a program: by name, by path, through what only starts others, in a line of code, by another
that does the same.
"""

import re
from collections.abc import Iterator
from functools import lru_cache
from itertools import pairwise
from typing import Any, NamedTuple

from ledger.audit.controls import TABLES, pattern
from ledger.audit.scripts import CONTAINERS, Command, commands
from ledger.effects.words import words_of

_SKIP = frozenset(TABLES["mandates"]["launchers"]["skip"].split())
_OTHER_VERBS = frozenset("run exec tool x dlx -m -- sh bash -c".split())
_RUNNERS = frozenset("python python3 node perl ruby php deno bun tsx ts-node".split())
_INNER = frozenset(
    "ssh script su watch tmux screen wsl cmd pwsh powershell parallel flock at expect trap".split()
)
_EXECUTES = frozenset("-exec -execdir -ok -okdir -x -X --exec --exec-batch".split())
_REMOTE = re.compile(r"^([\w.-]+@)?[\w.-]{2,}:(?!//|\\)|^rsync://")
_STARTS = re.compile(
    r"subprocess|os\.system|os\.exec|exec|spawn|popen|system\(|`|\bsh\b|run\(|\$\(", re.IGNORECASE
)
_HTTP = frozenset("curl wget http https httpie xh aria2c".split())
_URL = re.compile(r"https?://(\[[^\]]*\]|[\w.-]+)", re.IGNORECASE)
_HERE = re.compile(r"localhost|127\.|0\.0\.0\.0|\[::1\]", re.IGNORECASE)
_ASKS_NOTHING = frozenset("--help --version version help -V completion".split())
_LOOKS = frozenset(
    "get list ls describe show logs log status diff plan fmt validate version top explain "
    "api-resources view history current heads"
    " graph output providers state config cluster-info auth whoami lint template search info inspect "
    "ps images check".split()
)
_READS_SQL = re.compile(
    r"^\s*(select|show|explain|\\d|with\b(?!.*\b(insert|update|delete)\b))", re.IGNORECASE
)
_CHANGES_SQL = re.compile(r"\b(insert|update|delete|drop|alter|create|truncate|grant|merge)\b", re.IGNORECASE)
_LONGEST = 20_000
_MOST_WORDS = 200
_NESTED = 3


class _Alike(NamedTuple):
    """Programs that do the same."""

    programs: frozenset[str]
    code: re.Pattern[str] | None
    urls: re.Pattern[str] | None
    servers: frozenset[str]


def _alike(said: dict[str, Any]) -> _Alike:
    code, urls = said.get("code"), said.get("urls")
    return _Alike(
        frozenset(said.get("programs", "").split()),
        None if code is None else re.compile(code),
        None if urls is None else pattern(urls),
        frozenset(said.get("servers", "").split()),
    )


_ALIKE = tuple(_alike(said) for said in TABLES["mandates"]["alike"])
_PUSH = _alike(TABLES["mandates"]["git_push"])
_PUSH_VERBS = frozenset(TABLES["mandates"]["git_push"]["verbs"].split())


@lru_cache(maxsize=256)
def _family(program: str) -> _Alike:
    """What does the same as a program."""
    if program == "git push":
        return _PUSH._replace(programs=frozenset({"git", "hub"}))
    name = program.split()[0].rpartition("/")[2]
    return next(
        (one for one in _ALIKE if name in one.programs), _Alike(frozenset({name}), None, None, frozenset())
    )


def calls(command: Command, body: str, program: str, *, is_own_code: bool = False) -> bool:
    """Whether a command calls a program, such as `git push`; `body`: a here-document that goes with it, of the command
    line, or `is_own_code`, of a program that the session wrote.
    """
    wanted = program.split()
    family = _family(program)
    if "sudo" in family.programs:
        return any(word.rpartition("/")[2] in family.programs for word in command.whole[:6])
    if "curl" in family.programs and _is_at_home([*command.words, body]):
        return False
    for words in cores(command.words):
        if _is_call(words, wanted, family):
            return True
        if (
            words[0].rpartition("/")[2] in _HTTP
            and family.urls is not None
            and family.urls.search(" ".join(words))
        ):
            return True
    first = command.words[0].rpartition("/")[2]
    if first == "rsync" and wanted == ["ssh"] and any(_REMOTE.match(word) for word in command.words[1:]):
        return True
    if first == "find" and wanted == ["rm"] and "-delete" in command.words:
        return True
    if first in ("gh", "glab") and wanted == ["git", "push"]:
        return _PUSH.urls is not None and _PUSH.urls.search(" ".join(command.words)) is not None
    return first in _RUNNERS and _in_code(command, body, wanted, family, is_own_code)


def _in_code(command: Command, body: str, wanted: list[str], family: _Alike, is_own_code: bool) -> bool:
    rest = " ".join(command.words[1:])
    is_line = any(word in ("-c", "-e", "-pe", "-ne", "--eval", "-r", "eval") for word in command.words[1:4])
    text = f"{rest if is_line else ''}\n{body}"[:_LONGEST]
    if not text.strip():
        return False
    if not is_own_code and family.code is not None and family.code.search(text):
        return True
    if _STARTS.search(text) is None:
        return False
    name = wanted[0].rpartition("/")[2]
    parts = (name, *wanted[1:])
    joined = r"['\"]?[\s,'\"]+(?:[\w./=:-]+['\"]?[\s,'\"]+){0,4}?['\"]?".join(
        re.escape(part) for part in parts
    )
    return re.search(rf"(?:['\"`(\s/]){joined}(?![\w.-])", text) is not None


def _is_call(words: list[str], wanted: list[str], family: _Alike) -> bool:
    """Whether these words are a call, which does more than ask for help."""
    name = wanted[0].rpartition("/")[2]
    first = words[0].rpartition("/")[2].lstrip("\\").removesuffix(".exe")
    is_alike = first in family.programs and (len(wanted) == 1 or name == "git")
    if first != name and not is_alike:
        return wanted[1:2] == ["push"] and first == "git" and bool(_PUSH_VERBS & set(words[1:6]))
    if (len(words) > 1 and words[1] in _ASKS_NOTHING and len(wanted) == 1) or "--help" in words:
        return False
    if wanted == ["git", "push"] and _PUSH_VERBS & set(words[1:6]):
        return True
    if "--dry-run" in words and name == "git":
        return False
    plain = [word for word in wanted[1:] if not word.startswith("-")]
    if any(word not in words for word in wanted if word.startswith("-")):
        return False
    return any(plain == verbs[: len(plain)] for verbs in _verbs(words))


def only_looks(command: Command, body: str = "") -> bool:
    """Whether a command changes nothing, by its verb or its statement."""
    for words in cores(command.words):
        plain = [word for word in words[1:] if not word.startswith("-")]
        if any(word in _LOOKS for word in plain[:3]):
            return True
        statements = [word for word in words[1:] if " " in word]
        if (
            statements
            and any(_READS_SQL.match(one) for one in statements)
            and not _CHANGES_SQL.search(" ".join(statements))
        ):
            return True
    return False


def cores(words: list[str]) -> Iterator[list[str]]:
    """A command, and what it starts: without launchers, in containers, on other hosts, in quotes."""
    yield from _cores(words[:_MOST_WORDS], 0)


def _cores(words: list[str], depth: int) -> Iterator[list[str]]:
    if not words:
        return
    yield words
    first = words[0].rpartition("/")[2].lstrip("\\")
    if first in ("make", "gmake") and depth < _NESTED:
        for word in words[1:]:
            if word.startswith("SHELL="):
                yield from _cores(word.removeprefix("SHELL=").split(), depth + 1)
    if first not in _SKIP or depth >= _NESTED:
        return
    if first in CONTAINERS:
        yield from _contained(first, words[1:], depth)
        return
    rest = words[1:]
    if first in _INNER or first == "find":
        for word in rest:
            if " " in word:
                for inner in commands(word):
                    yield from _cores(inner.words, depth + 1)
    if first in ("find", "fd"):
        place = next((at for at, word in enumerate(rest) if word in _EXECUTES), None)
        if place is not None:
            yield from _cores(rest[place + 1 :], depth + 1)
        return
    if first == "parallel":  # what stands behind `:::` is given to it
        end = next((at for at, word in enumerate(rest) if word.startswith(":::")), len(rest))
        rest = rest[:end]
    if first in ("python", "python3"):
        if "-m" in rest[:4]:
            yield from _cores(rest[rest.index("-m") + 1 :], depth + 1)
        elif rest and rest[0].endswith(".py"):
            yield rest
        return
    for place in range(min(len(rest), 6)):
        word = rest[place]
        if (
            word.startswith("-")
            or word in _OTHER_VERBS
            or ("=" in word and word.partition("=")[0].isidentifier())
        ):
            continue
        yield from _cores(rest[place:], depth + 1)
        if (
            not (place and rest[place - 1].startswith("-"))
            and (first not in _INNER or first == "parallel")
            and first not in ("timeout", "flock", "chroot")
        ):
            return


def _contained(first: str, rest: list[str], depth: int) -> Iterator[list[str]]:
    """What runs in a container: behind `--`, behind its name, or as the image itself."""
    verbs = [word for word in rest[:4] if not word.startswith("-")]
    if "compose" in verbs:
        rest = rest[rest.index("compose") + 1 :]
        verbs = [word for word in rest[:4] if not word.startswith("-")]
    if not {"exec", "run"} & set(verbs):
        return
    if "--" in rest:
        yield from _cores(rest[rest.index("--") + 1 :], depth + 1)
        return
    start = next(at for at, word in enumerate(rest) if word in ("exec", "run"))
    plain = rest[start + 1 :]
    for place, word in enumerate(plain[:14]):
        if word.startswith("-"):
            continue
        image = word.rpartition("/")[2].partition(":")[0].partition("@")[0]
        if "run" in verbs and image:
            yield [image, *plain[place + 1 :]]
        if plain[place + 1 :]:
            yield plain[place + 1 :]


def is_tool_of(tool: str, arguments: Any, program: str) -> bool:
    """Whether a tool that runs no shell is the program itself, or does what it does."""
    if (
        tool == program
        or tool.rpartition("__")[2] == program
        or tool.replace(".", "__") == program.replace(".", "__")
    ):
        return True
    if not tool.startswith("mcp__") and "." not in tool and "__" not in tool:
        return False
    words = set(words_of(tool)) | {tool.rpartition("__")[2].rpartition(".")[2]}
    family = _family(program)
    if not words & (family.servers | ({program} if " " not in program else set())):
        return False
    return not words & _LOOKS


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
