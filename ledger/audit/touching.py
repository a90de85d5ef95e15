"""What a call touches: files that it writes, removes or makes unusable, by its name and arguments. In doubt it says
nothing.
"""

import posixpath
import re
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any

from ledger.audit.patching import Touch, patched
from ledger.audit.scripts import PATH_FIELDS, Command, commands, normal, shell_command, without_documents
from ledger.effects.shell import sql_class
from ledger.effects.words import words_of

_FOLDER_FIELDS = ("workdir", "cwd", "working_directory", "working_dir")
_WHOLE_FIELDS = ("content", "file_text")
_CONTENT_FIELDS = (
    *_WHOLE_FIELDS,
    *("new_string", "new_str", "newString", "newText", "new_text", "new_source", "text", "insert_text"),
)
_SOURCE_FIELDS = ("source", "src", "from", "old_path", "source_path", "oldPath")
_REPLACED_FIELDS = ("old_string", "old_str", "oldString", "oldText", "old_text")
_CHANGING = frozenset(
    "write edit create update replace insert append save patch delete remove rename move multi multiedit modify"
    " overwrite put apply str push upload commit".split()
)
_LOOKING = frozenset({"view", "read", "list", "search", "get", "undo_edit"})
_LONGEST = 200_000
_MOST_WORDS = 500
_IN_CODE = re.compile(
    r"open\(\s*[rbu]?['\"]([^'\"]+)['\"]\s*,\s*['\"][wax+]"
    r"|(?:writeFileSync|writeFile|appendFileSync|appendFile|unlinkSync|unlink|rmSync|remove|rmtree|rename|truncate"
    r"|chmod)\(\s*['\"]([^'\"]+)['\"]"
)
_WRITES_IN_CODE = re.compile(
    r"\.(write_text|write_bytes|write|writelines|unlink|rename|replace|touch|chmod|symlink_to|save)\("
    r"|shutil\.(copy\w*|move|rmtree)\(|os\.(remove|rename|replace|unlink|chmod|symlink)\(|(write|append)File(Sync)?\("
    r"|open\([^)]*,\s*['\"][wax+]|File\.write|fs\.(cp|rename|rm|unlink)"
)
_READ_IN_CODE = re.compile(
    r"(?:open\(\s*(['\"])([^'\"]+)\1\s*(?:,\s*['\"]r[bt]?['\"]\s*)?\)"
    r"|Path\(\s*(['\"])([^'\"]+)\3\s*\)\.read_\w+|read(?:File|FileSync)\(\s*(['\"])([^'\"]+)\5)"
)
_EXCHANGED = re.compile(
    r"\.?(?:replace|sub|replaceAll)\(\s*r?(['\"])(.{1,400}?)(?<!\\)\1\s*,\s*r?(['\"])(.{0,400}?)(?<!\\)\3",
    re.DOTALL,
)
_LITERAL = re.compile(r"['\"]([~\w./-]*[/.][\w./-]+)['\"]")
_SUBSTITUTES = re.compile(r"^(?:\d+|/[^/]*/)?s(.)(.*?)(?<!\\)\1(.*?)(?<!\\)\1[gimI0-9]*$", re.DOTALL)
_DELETES_LINES = re.compile(r"^/(.+)/d$")
_INSERTS = re.compile(r"^(?:\d+|\$|/[^/]*/)?\s*[aic](?:\\|\s)\s*(.+)$", re.DOTALL)
_TAKEN_AWAY = re.compile(r"-[rwxXst]+")
_NOT_TO_RUN = re.compile(r"[ugoa]*-[rwst]*x[rwst]*|0?[0246]{3}")
_CODE_RUNNERS = frozenset({"python", "python3", "node", "ruby", "perl", "deno", "bun", "osascript", "php"})
_DELETERS = frozenset({"rm", "unlink", "shred", "rmdir", "srm", "trash", "Remove-Item", "del"})
_EMPTIERS = frozenset({"truncate", "touch", "tee", "chattr", "sponge"})
_TO_LAST = frozenset({"cp", "install", "ln", "rsync", "scp"})
_EDITORS = frozenset({"ed", "ex", "vi", "vim", "nvim", "emacs"})
_IS_SCRIPTED = re.compile(r"(^|\s)(-es?s?|-c|\+\S|--cmd|--batch|-s)\b")
_EDITS = re.compile(r"-[a-zA-Z0-9]*i(\.\w+)?$|-i|--in-place")
_UNPACKS = {"tar": ("-C", "--directory"), "unzip": ("-d",), "bsdtar": ("-C",), "7z": ()}
_JOINED = re.compile(
    r"(?:Path|join)\(\s*((?:['\"][^'\"\n]{1,100}['\"]\s*,\s*){1,6}['\"][^'\"\n]{1,100}['\"])"
)
_IN_PLACE: dict[str, frozenset[str]] = {
    "yq": frozenset({"-i", "--inplace", "-iy", "-yi", "--in-place"}),
    "awk": frozenset({"inplace"}),
    "gawk": frozenset({"inplace"}),
    "ruby": frozenset({"-i", "-pi", "-i.bak"}),
    "jaq": frozenset({"-i"}),
    "dasel": frozenset({"put", "-f"}),
}
_SETTERS = frozenset(
    {
        "crudini",
        "toml",
        "plutil",
        "defaults",
        "augtool",
        "sd",
        "rpl",
        "Set-Content",
        "Out-File",
        "Add-Content",
    }
)
_DELETED_KEYS = re.compile(r"\bdel\(\s*(.{1,200}?)\s*\)")
_SAYS = frozenset({"echo", "printf", "cat"})
_SETTINGS_OF = {
    "claude": "~/.claude.json",
    "codex": "~/.codex/config.toml",
    "gemini": "~/.gemini/settings.json",
    "cursor-agent": "~/.cursor/mcp.json",
}
_SERVER_OPTIONS = frozenset({"-s", "--scope", "-t", "--transport", "-e", "--env", "-H", "--header", "--url"})


def touches(tool: str, arguments: Any, script: str | None = None) -> list[Touch]:
    """The files that a call changes; `script` is what it runs, where more of that is known than the call says."""
    if isinstance(arguments, str):
        return list(patched(arguments))
    if not isinstance(arguments, Mapping):
        return []
    found = list(_by_fields(tool, arguments))
    for value in arguments.values():
        for text in value if isinstance(value, list) else (value,):
            if isinstance(text, str) and "*** Begin Patch" in text:
                found += patched(text)
    if (command := script or shell_command(tool, arguments)) is not None:
        found += _by_command(command)
    folder = next((one for name in _FOLDER_FIELDS if isinstance(one := arguments.get(name), str)), "")
    if folder:
        found = [
            one._replace(path=posixpath.normpath(posixpath.join(normal(folder), one.path))) for one in found
        ]
    return list({(one.path, one.how, one.replaced): one for one in reversed(found)}.values())[::-1]


def _by_fields(tool: str, arguments: Mapping[str, Any]) -> Iterator[Touch]:
    name = tool.rpartition("__")[2] if tool.startswith("mcp__") else tool
    words = set(words_of(name))
    action = arguments.get("command", arguments.get("action"))
    if isinstance(action, str) and (action in _LOOKING or not _CHANGING & (words | set(words_of(action)))):
        return
    if not words & _CHANGING:
        return
    how = "delete" if words & {"delete", "remove"} else "write"
    for one in _list(arguments.get("files")):
        if isinstance(one, Mapping) and isinstance(path := one.get("path"), str):
            content = one.get("content")
            yield Touch(normal(path), "write", content if isinstance(content, str) else None, is_whole=True)
    parts = [arguments, *(one for one in _list(arguments.get("edits")) if isinstance(one, Mapping))]
    written = list(_texts(parts, _CONTENT_FIELDS))
    content = "\n".join(written) if written or how == "delete" else None
    replaced = "\n".join(_texts(parts, _REPLACED_FIELDS))
    is_whole = not replaced and any(isinstance(arguments.get(field), str) for field in _WHOLE_FIELDS)
    for field in _SOURCE_FIELDS if words & {"move", "rename"} else ():
        if isinstance(value := arguments.get(field), str) and value:
            yield Touch(normal(value), "delete", is_whole=True)
    for field in PATH_FIELDS:
        value = arguments.get(field)
        if isinstance(value, str) and value:
            yield Touch(normal(value), how, content, replaced, is_whole or how == "delete")


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _texts(parts: list[Mapping[str, Any]], fields: tuple[str, ...]) -> Iterator[str]:
    for part in parts:
        for field in fields:
            if isinstance(text := part.get(field), str) and len(text) < _LONGEST:
                yield text


# -- shell --------------------------------------------------------------------------------------------------


def _by_command(script: str) -> Iterator[Touch]:
    bodies = " ".join(without_documents(script)[1])
    if "*** Begin Patch" in bodies:
        yield from patched(bodies)
    before: Command | None = None
    for command in commands(script):
        for touch in _of_command(command, bodies, before):
            path = posixpath.join(command.folder, touch.path) if command.folder else touch.path
            yield touch._replace(path=posixpath.normpath(path))
        before = command


def _of_command(command: Command, bodies: str, before: Command | None) -> Iterator[Touch]:
    said = _said_by(command, bodies)
    for word, after in pairwise(command.whole[:_MOST_WORDS]):
        if word in (">", ">>", ">|", "&>", "&>>") and not after.startswith(("&", "/dev/")):
            content = said if command.words and command.words[0] != word else ""
            yield Touch(normal(after), "write", content, is_whole=word not in (">>", "&>>"))
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
    if "xargs" in command.whole[:2] and before is not None:
        plain += _listed(before)
    if program in _DELETERS:
        yield from (Touch(normal(path), "delete", "", is_whole=True) for path in plain)
    elif program in _EMPTIERS:
        is_fed = bodies if any(word.startswith("<<") for word in command.whole) else None
        yield from _emptied(
            program, rest, plain, is_fed or (None if before is None else _said_by(before, bodies))
        )
    elif program in _TO_LAST and len(plain) > 1:
        yield Touch(normal(plain[-1]), "write", _of_yes(plain[:-1]), is_whole=True, source=normal(plain[-2]))
    elif program == "mv" and len(plain) > 1:
        yield from (Touch(normal(path), "delete", is_whole=True) for path in plain[:-1])
        yield Touch(normal(plain[-1]), "write", is_whole=True, source=normal(plain[-2]))
    elif program in ("chmod", "chown", "setfacl"):
        files = plain if rest and _TAKEN_AWAY.fullmatch(rest[0]) else plain[1:]
        is_disarmed = program == "chmod" and rest and _NOT_TO_RUN.fullmatch(rest[0])
        yield from (Touch(normal(path), "disarm" if is_disarmed else "mode") for path in files)
    elif program in ("sed", "perl") and any(_EDITS.match(word) for word in rest):
        plain = [word for word in plain if word]  # `sed -i ''` of a Mac
        old, new = _substituted(plain[0]) if plain else ("", None)
        yield from (Touch(normal(path), "write", new, old) for path in plain[1:] or plain)
    elif program in _IN_PLACE and set(rest) & _IN_PLACE[program]:
        expression, *paths = [word for word in plain if word] or [""]
        yield from (Touch(normal(path), "write", *_queried(expression)) for path in paths or [expression])
    elif program == "mount" and any("remount" in word for word in rest):
        yield from (Touch(normal(path), "mode") for path in plain if path.startswith("/"))
    elif program == "setcap" and "-r" in rest:
        yield from (Touch(normal(path), "disarm") for path in plain)
    elif (
        program == "mount" and len(plain) > 1 and {"--bind", "-B", "--rbind", "tmpfs", "overlay"} & set(rest)
    ):
        yield Touch(normal(plain[-1]), "write", is_whole=True)
    elif program in _SETTERS and len(plain) > 1:
        yield from (
            Touch(normal(path), "write", " ".join(plain)) for path in plain if "/" in path or "." in path
        )
    elif program in _UNPACKS:
        yield from (
            Touch(normal(path), "write") for flag, path in pairwise(rest) if flag in _UNPACKS[program]
        )
    elif program == "dd":
        yield from (
            Touch(normal(word[3:]), "write", is_whole=True) for word in rest if word.startswith("of=")
        )
    elif program in ("curl", "wget"):
        for flag, path in pairwise(rest):
            if re.fullmatch(r"-[a-zA-Z]*[oO]|--output|--output-document", flag) and not path.startswith("-"):
                yield Touch(normal(path), "write", is_whole=True)
    elif program == "find":
        yield from _found_and_changed(rest, plain)
    else:
        yield from _by_program(program, rest, plain, bodies)


def _by_program(program: str, rest: list[str], plain: list[str], bodies: str) -> Iterator[Touch]:
    """Programs with verbs of their own, and those that run code."""
    if program == "git" and plain[:1] in (["checkout"], ["restore"], ["rm"], ["mv"]):
        how = "delete" if plain[0] in ("rm", "mv") else "write"
        if "--cached" not in rest:
            yield from (Touch(normal(path), how) for path in plain[1:])
    elif (program == "git" and "apply" in plain[:1] and "--check" not in rest) or program == "patch":
        yield from patched(bodies)
    elif (
        program in _SETTINGS_OF
        and plain
        and plain[0] in ("mcp", "config", "plugin", "plugins", "extensions")
        and len(plain) > 1
    ):
        yield from _settings_by_command(program, rest, plain)
    elif program in _EDITORS and plain and (program == "ed" or _IS_SCRIPTED.search(" ".join(rest))):
        yield Touch(normal(plain[-1]), "write")
    elif program == "sqlite3" and len(plain) > 1 and sql_class(" ".join(plain[1:])) != "read":
        yield Touch(normal(plain[0]), "write")
    elif program in _CODE_RUNNERS:
        yield from by_code(bodies + " ".join(rest))


def by_code(text: str) -> Iterator[Touch]:
    """Files that a program in the open changes: those that it writes by name, and those that it names where it writes
    by a variable and does not only read.
    """
    text = text[:_LONGEST]
    named = [normal(found[1] or found[2]) for found in _IN_CODE.finditer(text)]
    exchanged = [(found[2], found[4]) for found in _EXCHANGED.finditer(text)]
    if _WRITES_IN_CODE.search(text):
        read = {one for found in _READ_IN_CODE.finditer(text) if (one := found[2] or found[4] or found[6])}
        named += ["/".join(re.findall(r"['\"]([^'\"]+)['\"]", found[1])) for found in _JOINED.finditer(text)]
        named += [normal(found[1]) for found in _LITERAL.finditer(text) if found[1] not in read]
    old = "\n".join(one for one, _ in exchanged)
    new = "\n".join(other for _, other in exchanged) if exchanged else text
    yield from (Touch(path, "write", new, old) for path in dict.fromkeys(named))


def _said_by(command: Command, bodies: str) -> str | None:
    """What a command puts out, where it is one that says what it is told."""
    if not command.words or command.words[0].rpartition("/")[2] not in _SAYS:
        return None
    words = command.words[1:_MOST_WORDS]
    if command.words[0].endswith("cat"):
        return bodies or None
    cut = next((place for place, word in enumerate(words) if word.startswith((">", "<"))), len(words))
    said = " ".join(word for word in words[:cut] if word not in ("-n", "-e", "%s\\n", "%s"))[:_LONGEST]
    return said.replace("\\n", "\n") if command.words[0].endswith("printf") or "-e" in words[:2] else said


def _emptied(program: str, rest: list[str], plain: list[str], said: str | None) -> Iterator[Touch]:
    for path in plain:
        if program == "truncate" and path != plain[-1] and path[:1].isdigit():
            continue
        if program == "tee":
            yield Touch(normal(path), "write", said, is_whole="-a" not in rest and "--append" not in rest)
        else:
            yield Touch(normal(path), "write", "" if program == "truncate" else None, is_whole=True)


def _of_yes(sources: list[str]) -> str | None:
    """The text of a program that only ends well, where a link or a copy leads to it."""
    return "exit 0" if any(re.fullmatch(r"(/usr)?(/bin/)?(true|echo|yes)", one) for one in sources) else None


def _listed(command: Command) -> list[str]:
    """The files that a command in front of `xargs` names."""
    program, *rest = command.words or [""]
    named = [word.partition("=")[2] for word in rest if word.startswith("--include=")]
    named += [word for flag, word in pairwise(rest) if flag in ("-name", "-iname", "-path", "--include")]
    if program.rpartition("/")[2] in ("ls", "echo", "printf"):
        named += [word for word in rest if not word.startswith("-")]
    return named


def _found_and_changed(rest: list[str], plain: list[str]) -> Iterator[Touch]:
    """What `find` removes, or hands to a program that changes it."""
    act = next((after for flag, after in pairwise(rest) if flag in ("-exec", "-execdir", "-ok")), "")
    is_gone = "-delete" in rest or act in _DELETERS
    if not is_gone and not (act in ("sed", "perl") and any(word.startswith(("-i", "-pi")) for word in rest)):
        return
    names = [word for flag, word in pairwise(rest) if flag in ("-name", "-iname", "-path")]
    folder = plain[0] if plain and plain[0] not in names else "."
    for name in names or [""]:
        yield Touch(normal(posixpath.join(folder, name)), "delete" if is_gone else "write", is_whole=is_gone)


def _substituted(expression: str) -> tuple[str, str | None]:
    """What a `sed` expression takes out, and what it puts there."""
    if (found := _SUBSTITUTES.match(expression)) is not None:
        return found[2].replace("\\", ""), found[3].replace("\\", "")
    if (found := _DELETES_LINES.match(expression)) is not None:
        return found[1].replace("\\", ""), ""
    if (found := _INSERTS.match(expression)) is not None:
        return "", found[1].replace("\\", "")
    return "", None


def _queried(expression: str) -> tuple[str, str]:
    """What a query that rewrites a file puts there, and what it takes away."""
    gone = " ".join(_DELETED_KEYS.findall(expression))
    return ("" if gone and _DELETED_KEYS.sub("", expression).strip() == "" else expression), gone


def _settings_by_command(program: str, rest: list[str], plain: list[str]) -> Iterator[Touch]:
    """Settings of a harness that its own command line changes: `claude mcp add NAME`."""
    verb = plain[1]
    if verb not in (
        "add",
        "add-json",
        "remove",
        "set",
        "rm",
        "import",
        "install",
        "enable",
        "disable",
        "link",
    ):
        return
    values = {after for flag, after in pairwise(rest) if flag in _SERVER_OPTIONS}
    names = [word for word in plain[2:] if word not in values]
    path = ".mcp.json" if "project" in values else _SETTINGS_OF[program]
    if plain[0] == "mcp":
        said = f'{{"mcpServers": {{"{names[0]}": {{}}}}}}' if names else ""
        yield Touch(path, "write", *(("", said) if verb in ("remove", "rm") else (said, "")))
    elif names:
        value = (
            f'"{names[0]}": ["{" ".join(names[1:])}"]'
            if verb == "add"
            else f'"{names[0]}": "{" ".join(names[1:])}"'
        )
        yield Touch(path, "write", f"{{{value}}}")
