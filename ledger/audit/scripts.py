"""Shell scripts as the simple commands that they run, with variables filled in as far as the script tells them."""

import base64
import posixpath
import re
import shlex
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from functools import lru_cache
from itertools import pairwise
from typing import Any, NamedTuple

from ledger.effects.classes import command_in
from ledger.effects.shell import simple_commands, unwrapped

PATH_FIELDS = (
    "file_path",
    "path",
    "notebook_path",
    "filename",
    "filepath",
    "target_file",
    "file",
    "uri",
    "dest",
    "filePath",
    "absolute_path",
    "target_path",
    "relative_path",
    "destination",
)
"""Arguments that name the file of a file tool."""

CONTAINERS = frozenset({"docker", "podman", "nerdctl", "kubectl", "oc"})
"""Programs that run others in containers."""

_PATH_SET = frozenset(PATH_FIELDS)
_LONGEST = 200_000
_LONGEST_PATH = 4096
_LONGEST_VALUE = 500
_MOST_VARIABLES = 100
_NESTED = 3
_HERE = re.compile(r"<<-?\s*(['\"]?)(\w+)\1")
_WHICH = re.compile(r"\$\(\s*(?:which|command\s+-v|type\s+-p)\s+([\w.-]+)\s*\)|`\s*which\s+([\w.-]+)\s*`")
_VARIABLE = re.compile(r"\$\{(\w+)\}|\$(\w+)")
_OF_CODE = (".go", ".php", ".lua", ".sh", ".py", ".js", ".mjs", ".cjs", ".rb", ".pl", ".ts")
_OF_SHELL = re.compile(r"#!\s*\S*(/env\s+)?\S*\b(ba|z|da|k)?sh\b")
_LONGEST_SOURCE = 20_000
_RECIPE = re.compile(r"^([\w.-]+):[^=\n]*\n((?:\t[^\n]*(?:\n|\Z))+)", re.MULTILINE)
_NPM_SCRIPT = re.compile(r'"([\w:.-]+)"\s*:\s*"((?:[^"\\\n]|\\.)*)"')
_LITERALS = re.compile(r'"([^"\n]{1,400})"')
_PUT_IN = re.compile(r"\bs([/|#,])\^?[^/|#,]{0,100}\$?\1([^/|#,]{1,400})\1")
_KEYWORDS = frozenset("if while until elif then else do ! { time coproc".split())
_SUBSTITUTED = re.compile(r"\"[^\"\n]*?\$\(([^()\n]{3,400})\)|(?<!\\)`([^`\n]{3,400})(?<!\\)`")
_IN_SINGLE_QUOTES = re.compile(r"(?<![\w\\])'[^'\n]*'")
_SHELLS = frozenset({"bash", "sh", "zsh", "dash", "ksh", "fish"})
_ELSEWHERE = frozenset("ssh su script watch wsl pwsh powershell cmd at flock lxc multipass".split())
_CONTAINERS = frozenset("docker podman nerdctl kubectl oc docker-compose".split())
_SETTERS = frozenset({"export", "declare", "local", "readonly", "typeset"})


def shell_command(tool: str, arguments: Any) -> str | None:
    """The shell command that a call runs; None when it runs none."""
    if not isinstance(arguments, Mapping):
        return None
    command = command_in(tool, arguments)
    if command is None and {"command", "cmd"} & arguments.keys() and not _PATH_SET & arguments.keys():
        command = command_in("shell", arguments)  # a tool of another name with a command and no file
    return None if command is None else command[:_LONGEST]


class Command(NamedTuple):
    """One simple command of a script."""

    words: list[str]
    """Its words, without assignments and what only starts another program."""

    whole: list[str]
    """All of its words."""

    folder: str
    """Folder that the script had gone to before it; empty when it had not."""


@lru_cache(maxsize=512)
def commands(script: str) -> tuple[Command, ...]:
    """The simple commands of a script, those of an inner `sh -c` too. The text of here-documents is no command."""
    return tuple(_commands(script, 0))


def _commands(script: str, depth: int) -> Iterator[Command]:
    folder = ""
    variables: dict[str, str] = {}
    aliases: dict[str, str] = {}
    said = ""
    plain, bodies = without_documents(script)
    plain = _WHICH.sub(lambda found: found[1] or found[2], plain)
    for given in simple_commands(plain):
        while len(given) > 1 and given[0] in _KEYWORDS:
            given = given[1:]
        if given[0] == "for" and len(given) > 3 and given[2] == "in":
            variables[given[1]] = given[3][:_LONGEST_VALUE]  # what is done to the first is done to all
        whole = [_filled_in(word, variables) for word in given] if variables else given
        words = unwrapped(_without_unset(whole))
        while words and words[0].rpartition("/")[2] in ("sudo", "doas"):
            words = unwrapped(_after_options(words[1:]))
        if not words or words[0] in _SETTERS:
            _assign(whole, variables)
        if not words:
            yield Command([], whole, folder)
            continue
        if words[0] == "alias":
            _assign(words[1:], aliases)
        elif words[:2] == ["git", "config"]:
            _alias_of_git(words, aliases)
        elif words[0] == "git" and len(words) > 1 and f"git {words[1]}" in aliases:
            words = ["git", *aliases[f"git {words[1]}"].split(), *words[2:]]
        elif words[0] in aliases:
            words = [*aliases[words[0]].split(), *words[1:]] or words
        program = words[0].rpartition("/")[2]
        inner = _inner(program, words, said) if depth < _NESTED else None
        if inner is None and program in _SHELLS | {"ssh"} and "<<" in words and depth < _NESTED:
            inner = "\n".join(bodies)
        if inner is not None:
            yield from _commands(inner, depth + 1)
            continue
        if depth < _NESTED and (within := _within(program, words)):
            yield Command(words, whole, folder)
            yield from _commands(within, depth + 1)
            continue
        said = _put_out(program, words, said)
        if program in ("cd", "pushd") and len(words) > 1:
            folder = posixpath.join(folder, normal(words[1]))
        yield Command(words, whole, folder)
    if depth < _NESTED and ("$(" in plain or "`" in plain):
        for found in _SUBSTITUTED.finditer(_IN_SINGLE_QUOTES.sub("''", plain)):
            yield from _commands(found[1] or found[2], depth + 1)


def _inner(program: str, words: list[str], said: str) -> str | None:
    """The script that a command runs, where it stands there; `said`: what the command before it put out."""
    if program == "eval":
        return " ".join(words[1:])
    if program not in _SHELLS:
        return None
    place = next((at for at, word in enumerate(words) if word in ("-c", "-lc", "-ic")), None)
    if place is not None:
        return words[place + 1] if place + 1 < len(words) else None
    return said or None if all(word.startswith("-") for word in words[1:]) else None


def _within(program: str, words: list[str]) -> str:
    """The script that a command runs somewhere else: on another host, in a container, in another shell."""
    rest = words[1:]
    if program in _ELSEWHERE:
        return "\n".join(word for word in rest if " " in word)
    if program not in _CONTAINERS or "exec" not in rest[:4]:
        return ""
    if "--" in rest:
        return shlex.join(rest[rest.index("--") + 1 :])
    start = rest.index("exec") + 1
    place = next((at for at in range(start, len(rest)) if _is_container(rest, at)), len(rest))
    return shlex.join(rest[place + 1 :])


def _is_container(words: list[str], at: int) -> bool:
    return not words[at].startswith("-") and words[at - 1] not in (
        "-u",
        "-e",
        "-w",
        "--user",
        "--env",
        "--workdir",
        "-n",
    )


def _put_out(program: str, words: list[str], before: str) -> str:
    """What a command puts out, as far as it stands there."""
    if program in ("echo", "printf"):
        return " ".join(word for word in words[1:] if word not in ("-n", "-e", "%s", "%s\n"))[:_LONGEST_PATH]
    if program == "awk":
        return " ".join(one for word in words[1:] for one in _LITERALS.findall(word))[:_LONGEST_PATH]
    if program == "sed":
        return " ".join(one for word in words[1:] for _, one in _PUT_IN.findall(word))[:_LONGEST_PATH]
    if program == "base64" and {"-d", "-D", "--decode"} & set(words):
        try:
            return base64.b64decode(before.strip(), validate=True).decode()
        except ValueError:
            return ""
    return ""


def _without_unset(words: list[str]) -> list[str]:
    """A command without `-u NAME` of an `env` in front, whose name is no program."""
    if "env" not in words[:4]:
        return words
    return [
        word
        for before, word in pairwise(["", *words])
        if word not in ("-u", "--unset") and before not in ("-u", "--unset")
    ]


def _alias_of_git(words: list[str], aliases: dict[str, str]) -> None:
    place = next((at for at, word in enumerate(words) if word.startswith("alias.")), None)
    if place is not None and place + 1 < len(words) and len(aliases) < _MOST_VARIABLES:
        aliases[f"git {words[place].removeprefix('alias.')}"] = words[place + 1]


def _assign(words: list[str], variables: dict[str, str]) -> None:
    """Variables that are set to a value that stands there."""
    for word in words:
        name, equals, value = word.partition("=")
        is_plain = bool(value) and len(value) <= _LONGEST_VALUE and "$" not in value
        if equals and name.isidentifier() and is_plain and len(variables) < _MOST_VARIABLES:
            variables[name] = value


def _filled_in(word: str, variables: Mapping[str, str]) -> str:
    if "$" not in word or len(word) > _LONGEST_VALUE:
        return word
    return _VARIABLE.sub(lambda found: variables.get(found[1] or found[2], found[0]), word)


def _after_options(words: list[str]) -> list[str]:
    """The words behind the options of `sudo`."""
    rest = list(words)
    while rest and rest[0].startswith("-"):
        takes_value = rest.pop(0) in ("-u", "-g", "-h", "-p", "-C", "--user", "--group")
        if takes_value and rest:
            rest.pop(0)
    return rest


def without_documents(script: str) -> tuple[str, list[str]]:
    """A script without the bodies of its here-documents, and these bodies."""
    kept: list[str] = []
    bodies: list[str] = []
    until: str | None = None
    for line in script.split("\n"):
        if until is not None:
            if line.strip() == until:
                until = None
            else:
                bodies[-1] += line + "\n"
            continue
        kept.append(line)
        if (found := _HERE.search(line)) is not None and "<<<" not in line:
            until = found[2]
            bodies.append("")
    return "\n".join(kept), bodies


class Sources:
    """Programs that a session wrote itself: what they do when they are run stands in the record."""

    def __init__(self) -> None:
        self._texts: OrderedDict[str, str] = OrderedDict()

    def wrote(self, path: str, text: str | None) -> None:
        """A file has this text now."""
        self._texts.pop(path, None)
        is_program = path.endswith((*_OF_CODE, "akefile", "package.json")) or (text or "").startswith("#!")
        if text and len(text) <= _LONGEST_SOURCE and is_program:
            self._texts[path] = text
            if len(self._texts) > _MOST_VARIABLES:
                self._texts.popitem(last=False)

    def edited(self, path: str, old: str, new: str | None) -> None:
        """A part of a file is another now."""
        text = self._texts.get(path, "")
        if new is not None:
            self.wrote(path, text.replace(old, new, 1) if old and old in text else f"{text}\n{new}")

    def opened(self, script: str) -> str:
        """A script, and after it the text of those programs that it runs."""
        return "\n".join([script, *self.run_by(script)])[:_LONGEST]

    def run_by(self, script: str) -> list[str]:
        """The text of those programs that a script runs, each as a script."""
        found: list[str] = []
        for command in commands(script) if self._texts else ():
            for word in command.words[:3]:
                path = posixpath.normpath(posixpath.join(command.folder, normal(word)))
                text = next((one for known, one in self._texts.items() if _is_file(known, path)), None)
                if text is not None:
                    is_code = not path.endswith(".sh") and not _OF_SHELL.match(text)
                    found.append(f"python3 - <<'END_OF_SOURCE'\n{text}\nEND_OF_SOURCE" if is_code else text)
                    break
            found += self._targets(command)
        return found

    def _targets(self, command: Command) -> Iterator[str]:
        """What `make TARGET` and `npm run NAME` run, where the session wrote their file."""
        program = command.words[0].rpartition("/")[2] if command.words else ""
        names = [word for word in command.words[1:] if word[:1] not in ("", "-") and word != "run"]
        for path, text in self._texts.items():
            file = path.rpartition("/")[2]
            if program in ("make", "gmake") and file in ("Makefile", "makefile", "GNUmakefile"):
                for found in _RECIPE.finditer(text):
                    if found[1] in names or not names:
                        yield "\n".join(line.strip().lstrip("@-") for line in found[2].splitlines())
            elif program in ("npm", "pnpm", "yarn", "bun") and file == "package.json":
                for found in _NPM_SCRIPT.finditer(text):
                    if found[1] in names:
                        yield found[2].replace('\\"', '"')


def _is_file(known: str, path: str) -> bool:
    return "." in path and (known == path or known.endswith(f"/{path}") or path.endswith(f"/{known}"))


def normal(path: str) -> str:
    """A path with slashes, without quotes, a scheme, or steps that lead nowhere."""
    plain = path[:_LONGEST_PATH].strip().strip("'\"").removeprefix("file://").replace("\\", "/")
    for home in ("$HOME", "${HOME}"):
        plain = plain.replace(home, "~")
    return posixpath.normpath(plain) if plain else plain
