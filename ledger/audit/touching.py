"""What a tool call changes in files and runs as programs, by its name and arguments. In doubt it says nothing."""

import posixpath
import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from itertools import pairwise
from typing import Any, NamedTuple

from ledger.effects.classes import command_in
from ledger.effects.shell import simple_commands, unwrapped
from ledger.effects.words import words_of

_PATH_FIELDS = (
    "file_path",
    "path",
    "notebook_path",
    "filename",
    "filepath",
    "target_file",
    "file",
    "uri",
    "dest",
)
_FOLDER_FIELDS = ("workdir", "cwd", "working_directory", "working_dir")
_CONTENT_FIELDS = (
    "content",
    "new_string",
    "new_str",
    "file_text",
    "new_source",
    "text",
    "insert_text",
    "edits",
)
_CHANGING = frozenset(
    "write edit create update replace insert append save patch delete remove rename move multi multiedit modify"
    " overwrite put apply str".split()
)
_LOOKING = frozenset({"view", "read", "list", "search", "get", "undo_edit"})
_LONGEST = 200_000
_LONGEST_PATH = 4096
_MOST_WORDS = 500
_HERE = re.compile(r"<<-?\s*(['\"]?)(\w+)\1")
_PATCH_LINE = re.compile(r"^\*\*\* (Add|Update|Delete|Move to)(?: File)?: (.+)$", re.MULTILINE)
_DIFF_LINE = re.compile(r"^\+\+\+ (?:b/)?(\S+)", re.MULTILINE)
_IN_CODE = re.compile(
    r"open\(\s*[rbu]?['\"]([^'\"]+)['\"]\s*,\s*['\"][wax+]"
    r"|(?:Path|writeFileSync|writeFile|appendFileSync|appendFile|unlinkSync|unlink|rmSync|remove|rmtree|rename|truncate"
    r"|chmod)\(\s*['\"]([^'\"]+)['\"]"
)
_TAKEN_AWAY = re.compile(r"-[rwxXst]+")
_NOT_TO_RUN = re.compile(r"[ugoa]*-[rwst]*x[rwst]*|0?[0246]{3}")
_CODE_RUNNERS = frozenset({"python", "python3", "node", "ruby", "perl", "deno", "bun", "osascript", "php"})
_SHELLS = frozenset({"bash", "sh", "zsh", "dash", "ksh", "fish"})
_TO_ALL = frozenset({"rm", "unlink", "shred", "truncate", "touch", "tee", "rmdir", "chattr"})
_TO_LAST = frozenset({"cp", "install", "ln", "rsync", "scp"})
_NESTED = 3


class Touch(NamedTuple):
    """A file that a call changes."""

    path: str
    """Its path, with slashes, as far as the call says it."""

    how: str
    """What is done to it: `write`, `delete`, `mode`, or `disarm` where it cannot be run any more."""

    content: str = ""
    """What is written, where the call says it."""


def touches(tool: str, arguments: Any) -> list[Touch]:
    """The files that a call changes."""
    if isinstance(arguments, str):
        return list(_patched(arguments))
    if not isinstance(arguments, Mapping):
        return []
    found = list(_by_fields(tool, arguments))
    for value in arguments.values():
        for text in value if isinstance(value, list) else (value,):
            if isinstance(text, str) and "*** Begin Patch" in text:
                found += _patched(text)
    if (command := shell_command(tool, arguments)) is not None:
        found += _by_command(command)
    folder = next((one for name in _FOLDER_FIELDS if isinstance(one := arguments.get(name), str)), "")
    if folder:
        found = [
            one._replace(path=posixpath.normpath(posixpath.join(normal(folder), one.path))) for one in found
        ]
    return list(dict.fromkeys(found))


def shell_command(tool: str, arguments: Any) -> str | None:
    """The shell command that a call runs; None when it runs none."""
    if not isinstance(arguments, Mapping):
        return None
    command = command_in(tool, arguments)
    if command is None and {"command", "cmd"} & arguments.keys() and not _PATH_SET & arguments.keys():
        command = command_in("shell", arguments)  # a tool of another name with a command and no file
    return None if command is None else command[:_LONGEST]


_PATH_SET = frozenset(_PATH_FIELDS)


def _by_fields(tool: str, arguments: Mapping[str, Any]) -> Iterator[Touch]:
    name = tool.rpartition("__")[2] if tool.startswith("mcp__") else tool
    words = set(words_of(name))
    action = arguments.get("command", arguments.get("action"))
    if isinstance(action, str) and (action in _LOOKING or not _CHANGING & (words | set(words_of(action)))):
        return
    if not words & _CHANGING:
        return
    how = "delete" if words & {"delete", "remove"} else "write"
    content = " ".join(
        text for field in _CONTENT_FIELDS for text in _texts(arguments.get(field)) if len(text) < _LONGEST
    )
    for field in _PATH_FIELDS:
        value = arguments.get(field)
        if isinstance(value, str) and value:
            yield Touch(normal(value), how, content)


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for one in value:
            if isinstance(one, Mapping):
                yield from (text for text in one.values() if isinstance(text, str))


def _patched(text: str) -> Iterator[Touch]:
    for found in _PATCH_LINE.finditer(text):
        yield Touch(normal(found[2]), "delete" if found[1] == "Delete" else "write", text)
    if "*** Begin Patch" not in text:
        for diff in _DIFF_LINE.finditer(text):
            yield Touch(normal(diff[1]), "write", text)


# -- shell --------------------------------------------------------------------------------------------------


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
    for whole in simple_commands(without_documents(script)[0]):
        words = unwrapped(whole)
        while words and words[0].rpartition("/")[2] in ("sudo", "doas"):
            words = unwrapped(_after_options(words[1:]))
        if not words:
            yield Command([], whole, folder)
            continue
        program = words[0].rpartition("/")[2]
        if program in _SHELLS and depth < _NESTED:
            place = next((at for at, word in enumerate(words) if word in ("-c", "-lc", "-ic")), None)
            if place is not None and place + 1 < len(words):
                yield from _commands(words[place + 1], depth + 1)
                continue
        if program in ("cd", "pushd") and len(words) > 1:
            folder = posixpath.join(folder, normal(words[1]))
        yield Command(words, whole, folder)


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


def _by_command(script: str) -> Iterator[Touch]:
    bodies = " ".join(without_documents(script)[1])
    if "*** Begin Patch" in bodies:
        yield from _patched(bodies)
    for command in commands(script):
        for touch in _of_command(command, bodies):
            path = posixpath.join(command.folder, touch.path) if command.folder else touch.path
            yield touch._replace(path=posixpath.normpath(path))


def _of_command(command: Command, bodies: str) -> Iterator[Touch]:
    said = f"{' '.join(command.words[1:_MOST_WORDS])} {bodies}"[:_LONGEST]
    for word, after in pairwise(command.whole[:_MOST_WORDS]):
        if word in (">", ">>", ">|", "&>", "&>>") and not after.startswith(("&", "/dev/")):
            yield Touch(normal(after), "write", said)
    if not command.words:
        return
    program, *rest = command.words[:_MOST_WORDS]
    program = program.rpartition("/")[2]
    plain = [
        word
        for place, word in enumerate(rest)
        if not word.startswith(("-", ">", "<", "&"))
        and not (place and rest[place - 1].startswith((">", "<")))
    ]
    if program in _TO_ALL:
        how = "delete" if program in ("rm", "unlink", "shred", "rmdir") else "write"
        yield from (Touch(normal(path), how, bodies) for path in plain)
    elif program in _TO_LAST and len(plain) > 1:
        yield Touch(normal(plain[-1]), "write", bodies)
    elif program == "mv" and len(plain) > 1:
        yield from (Touch(normal(path), "delete") for path in plain[:-1])
        yield Touch(normal(plain[-1]), "write")
    elif program in ("chmod", "chown", "setfacl"):
        files = plain if rest and _TAKEN_AWAY.fullmatch(rest[0]) else plain[1:]
        is_disarmed = program == "chmod" and rest and _NOT_TO_RUN.fullmatch(rest[0])
        yield from (Touch(normal(path), "disarm" if is_disarmed else "mode") for path in files)
    elif program in ("sed", "perl") and any(word.startswith(("-i", "--in-place", "-pi")) for word in rest):
        yield from (Touch(normal(path), "write", " ".join(rest)) for path in plain[1:] or plain)
    elif program == "dd":
        yield from (Touch(normal(word[3:]), "write") for word in rest if word.startswith("of="))
    elif program in ("curl", "wget"):
        for flag, path in pairwise(rest):
            if flag in ("-o", "-O", "--output", "--output-document") and not path.startswith("-"):
                yield Touch(normal(path), "write")
    elif program == "git" and rest[:1] in (["checkout"], ["restore"], ["rm"], ["mv"]):
        how = "delete" if rest[0] in ("rm", "mv") else "write"
        yield from (Touch(normal(path), how) for path in plain[1:])
    elif program == "find" and ("-delete" in rest or "rm" in rest):
        yield from (Touch(normal(path), "delete") for path in plain[:1])
    elif program in _CODE_RUNNERS:
        text = bodies + " ".join(rest)
        for found in _IN_CODE.finditer(text):
            yield Touch(normal(found[1] or found[2]), "write", text)


def normal(path: str) -> str:
    """A path with slashes, without quotes, a scheme, or steps that lead nowhere."""
    plain = path[:_LONGEST_PATH].strip().strip("'\"").removeprefix("file://").replace("\\", "/")
    for home in ("$HOME", "${HOME}"):
        plain = plain.replace(home, "~")
    return posixpath.normpath(plain) if plain else plain
