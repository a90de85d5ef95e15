"""What a shell command does outside, by its programs. Runs nothing; in doubt it is a `write`."""

import re
import shlex
from collections.abc import Iterator
from itertools import pairwise

from ledger.events.tool_call import EffectClass

_READS = frozenset(
    "ls cat head tail less more grep rg egrep fgrep find fd stat file wc sort uniq cut tr awk diff cmp tree du df"
    " pwd echo printf date whoami id hostname uname env printenv which type test [ true false ps top lsof history"
    " jq yq xxd od hexdump strings md5sum sha256sum sha1sum basename dirname realpath readlink seq sleep cd pushd"
    " popd man help nproc free uptime export set unset source . : column nl tac rev ping dig nslookup host".split()
)
_WRITES = frozenset(
    "touch mkdir cp mv ln chmod chown tee sed patch tar zip unzip gzip gunzip make cmake cargo go npm yarn pnpm pip"
    " pip3 uv poetry pytest tox python python3 node ruby perl java javac gcc cc clang rustc black ruff prettier"
    " install rsync".split()
)
_IRREVERSIBLE = frozenset(
    "rm rmdir shred dd mkfs fdisk kill killall pkill shutdown reboot truncate unlink".split()
)
_EXTERNAL = frozenset(
    "ssh scp sftp ftp telnet nc netcat mail sendmail mutt aws gcloud az kubectl helm terraform docker podman twine"
    " gh glab heroku fly vercel psql mysql sqlite3 mongosh redis-cli".split()
)
_CREDENTIAL = frozenset("su passwd ssh-add ssh-keygen gpg openssl vault op pass security htpasswd".split())
_WRAPPERS = frozenset("env nohup time nice timeout stdbuf xargs exec command builtin then do else".split())
_GIT_READS = frozenset(
    "status log diff show blame ls-files rev-parse describe grep remote branch reflog".split()
)
_GIT_EXTERNAL = frozenset({"push", "fetch", "pull", "clone"})
_DESTROYING = frozenset(
    {"delete", "destroy", "rm", "drop", "terminate", "purge", "uninstall", "prune", "kill"}
)
_LOOKING = frozenset(
    {"get", "describe", "list", "ls", "logs", "status", "view", "show", "ps", "plan", "version"}
)
_SENDS = (
    "-d",
    "--data",
    "-F",
    "--form",
    "-T",
    "--upload-file",
    "--json",
    "--post-data",
    "--post-file",
    "--data-",
)
_METHODS = frozenset({"POST", "PUT", "PATCH", "DELETE"})
_SQL_DESTROYS = (" DROP ", " DELETE ", " TRUNCATE ")
_SQL_WRITES = (" INSERT ", " UPDATE ", " CREATE ", " ALTER ", " MERGE ", " REPLACE ", " GRANT ", " REVOKE ")
_PLAIN = re.compile(r"""[^'"\\#\x0b\x0c\x1c-\x1f\x80-\U0010ffff]*""")
_WORD = re.compile(r"[();<>|&]+|[^\s();<>|&]+")
_SEPARATORS = frozenset({"\n", "{", "}", "!"})
_SEPARATES = frozenset(";&|()")
_TAKING_VALUES = {
    "xargs": frozenset(
        "-a -I -n -P -L -d -s -E --arg-file --max-args --max-procs --delimiter --replace".split()
    ),
    "timeout": frozenset({"-s", "-k", "--signal", "--kill-after"}),
    "nice": frozenset({"-n", "--adjustment"}),
    "stdbuf": frozenset({"-i", "-o", "-e"}),
    "exec": frozenset({"-a"}),
    "time": frozenset({"-f", "-o", "--format", "--output"}),
}
"""Options of programs that start others, whose value is the next word."""


def shell_effects(command: str) -> Iterator[tuple[EffectClass, str, str | None]]:
    """For each simple command: its class, its operation (`git push`), and its target where it has one."""
    for words in simple_commands(command):
        yield _effect(words)


def sql_class(statement: str) -> EffectClass:
    """What SQL text does."""
    text = f" {' '.join(statement.upper().split())} "
    if any(word in text for word in _SQL_DESTROYS):
        return "irreversible"
    return "write" if any(word in text for word in _SQL_WRITES) else "read"


def simple_commands(command: str) -> Iterator[list[str]]:
    """The simple commands of a script, each as its words; a redirection stays in it as a word of its own."""
    for line in command.replace("\\\n", " ").split("\n"):
        if _PLAIN.fullmatch(line):  # nothing to unquote: what the lexer would find, ten times as fast
            yield from _commands(_WORD.findall(line))
            continue
        lexer = shlex.shlex(line, posix=True, punctuation_chars="();<>|&\n")
        lexer.whitespace_split, lexer.commenters = True, "#"
        words: list[str] = []
        try:
            for word in lexer:
                if _is_separator(word):
                    if words:
                        yield words
                    words = []
                else:
                    words.append(word)
        except ValueError:  # an open quote: the rest of the line belongs together
            words = words or line.split()
        if words:
            yield words


def _is_separator(word: str) -> bool:
    """Whether a word ends a command; several such stand together in `$(cat hosts); do`."""
    return word in _SEPARATORS or (bool(word) and _SEPARATES.issuperset(word))


def _commands(found: list[str]) -> Iterator[list[str]]:
    words: list[str] = []
    for word in found:
        if not _is_separator(word):
            words.append(word)
        elif words:
            yield words
            words = []
    if words:
        yield words


def _effect(words: list[str]) -> tuple[EffectClass, str, str | None]:
    written = next(
        (after for word, after in pairwise(words) if word.startswith(">") and "&" not in word),
        None,
    )
    rest = unwrapped(words)
    if not rest:
        return "read", "", None
    program = rest[0].rpartition("/")[2]
    effect_class, operation = _program(program, rest[1:])
    if written is not None and not written.startswith("/dev/") and effect_class == "read":
        return "write", program, written
    target = next(
        (word for word in rest[1:] if not word.startswith(("-", ">", "<")) and word != operation), None
    )
    return effect_class, f"{program} {operation}".strip(), written or target


def unwrapped(words: list[str]) -> list[str]:
    """The words from the program on: without assignments and what only starts another program."""
    rest = list(words)
    while rest and (("=" in rest[0] and rest[0].partition("=")[0].isidentifier()) or rest[0] in _WRAPPERS):
        wrapper = rest.pop(0)
        while wrapper in _WRAPPERS and rest and (rest[0].startswith("-") or rest[0].rstrip("smh").isdigit()):
            option = rest.pop(0)
            if option in _TAKING_VALUES.get(wrapper, ()) and rest:
                rest.pop(0)
    return rest


def _program(program: str, words: list[str]) -> tuple[EffectClass, str]:
    first = next((word for word in words if not word.startswith("-")), "")
    if program in ("sudo", "doas"):
        wrapped = _effect(words)[0]
        return ("credential" if _RANK[wrapped] < _RANK["credential"] else wrapped), first
    if program == "git":
        return _git(first, words), first
    if program in ("curl", "wget", "http", "https"):
        upper = {word.upper() for word in words} | {
            word[2:].upper() for word in words if word.startswith("-X")
        }
        if "DELETE" in upper:
            return "irreversible", "DELETE"
        sends = upper & _METHODS or any(word.startswith(_SENDS) for word in words)
        return ("external", "POST") if sends else ("read", "GET")
    if program in ("psql", "mysql", "sqlite3"):
        return max((sql_class(word) for word in words), key=_RANK.__getitem__, default="external"), ""
    if program in ("bash", "sh", "zsh", "dash") and "-c" in words[:-1]:
        inner = list(shell_effects(words[words.index("-c") + 1]))
        return max((one[0] for one in inner), key=_RANK.__getitem__, default="write"), "-c"
    if program == "find" and any(word in ("-delete", "-exec", "-execdir") for word in words):
        return "irreversible", "-delete" if "-delete" in words else "-exec"
    if program == "sed":
        return ("write" if any(word.startswith(("-i", "--in-place")) for word in words) else "read"), ""
    if program in _EXTERNAL:
        if _DESTROYING & set(words):
            return "irreversible", first
        return ("read" if _LOOKING & set(words[:2]) else "external"), first
    for group, effect_class in _GROUPS:
        if program in group:
            return effect_class, ""
    return "write", ""


def _git(verb: str, words: list[str]) -> EffectClass:
    if verb == "push":
        return "irreversible" if {"--force", "-f", "--delete", "--mirror"} & set(words) else "external"
    if verb in ("reset", "clean") and {"--hard", "-f", "-fd", "-fdx", "-xdf", "--force"} & set(words):
        return "irreversible"
    if verb == "branch" and {"-D", "-d", "--delete"} & set(words):
        return "irreversible"
    if verb in _GIT_EXTERNAL:
        return "write"
    return "read" if verb in _GIT_READS else "write"


_RANK: dict[EffectClass, int] = {"read": 0, "write": 1, "external": 2, "credential": 3, "irreversible": 4}
_GROUPS: tuple[tuple[frozenset[str], EffectClass], ...] = (
    (_IRREVERSIBLE, "irreversible"),
    (_CREDENTIAL, "credential"),
    (_WRITES, "write"),
    (_READS, "read"),
)
