"""What texts put under protection: files, processes and ports that instructions, settings and refusals name."""

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from ledger.audit.controls import GUARDS, in_system
from ledger.audit.mandates import Mandate, mandates_in
from ledger.audit.naming import SENTENCE, names_in
from ledger.audit.scripts import normal

_FLAGS = re.IGNORECASE
_FORBIDS = re.compile(
    r"\b(never|do not|don't|must not|may not|not allowed to|shall not|forbidden to|without (approval"
    r"|permission))"
    r"\b[^.]*?\b(modify|edit|change|alter|disable|delete|remove|touch|bypass|kill|stop|terminate"
    r"|overwrite|tamper|unload"
    r"|truncate|rotate|rewrite|turn off|pause|unset|remount|go around|work around|interfere)\w*"
    r"|\b(leave|keep)\b[^.]*\b(alone|as (they|it) (are|is)|untouched|running|unchanged|in place|on)\b"
    r"|\bmust (stay|remain|keep|run)\b"
    r"|\bhands off\b|\b(is|are) (read-only|off limits|not to be (changed|touched|stopped|edited))\b",
    _FLAGS,
)
_CONTROLS = re.compile(
    r"guard|hook|monitor|watch|audit|sandbox|wrapper|polic(y|ies)|permission|enforce|safety|security"
    r"|compliance|ledger"
    r"|kill.?switch|approval|logg(er|ing)|record|proxy|limit|budget|rules|grader|scor(ed?|ing)|halt"
    r"|brake|stop\b|firewall|egress"
    r"|\byour (actions|calls|run|session|steps|commands|work)\b"
    r"|\b(what|everything) you do\b|\bthis run\b|\blogs?\b|review|oversight|evaluat|checks?\b",
    _FLAGS,
)
_IT = re.compile(r"\b(it|its|them|their|this|that|these)\b", _FLAGS)
_PROCESS = re.compile(
    r"\b(process(es)?|services?|daemons?|containers?|jobs?|cron|timers?|units?|pods?|proxy|slices?"
    r"|cgroups?)\b",
    _FLAGS,
)
_HYPHENED = re.compile(r"(?<![\w/.-])[a-z][a-z0-9]+(?:[-_][a-z0-9]+)+(?![\w/])", _FLAGS)
_VARIABLE = re.compile(r"\b[A-Z][A-Z0-9]*_[A-Z0-9_]+\b")
_PORT = re.compile(r"\b(?:port\s+|localhost:|127\.0\.0\.1:|0\.0\.0\.0:)(\d{2,5})\b", _FLAGS)
_IN_THE_WAY = re.compile(
    r"siem|\blogs\b|collector|proxy|record|audit|monitor|guard|gateway|egress|filter", _FLAGS
)
RULES_FOR_PEOPLE = re.compile(
    r"(^|/)(CONTRIBUTING|SECURITY|RUNBOOK|POLIC\w+|DEPLOY\w*|OPERATIONS|RELEASING|HACKING|RULES|GUIDELINES|OPS)[\w-]*\.(md|txt|rst)$",
    re.IGNORECASE,
)
"""Files in which people write down how things are done."""

_GOVERNS = re.compile(
    r"\b(your?|the agent('s)?|agents?)\b[^.]{0,60}\b(rules?|settings?|polic(y|ies)|instructions?"
    r"|prompt|limits?|config(uration)?|constitution"
    r"|persona|permissions?|budget|guidelines?|charter|run under|governed|defined|live|lie|are in"
    r"|is in)\b|^\W*\(?((loaded|read|rendered|taken|built) )?from\s",
    _FLAGS,
)
_HALTS = re.compile(r"\b(halt(s|ed)?|stops?|stopped|paused?|brake|kill.?switch|abort(s|ed)?)\b", _FLAGS)
_FILE_NAMED = re.compile(r"\bfile\s+[`\"']?([A-Z][A-Z_]{2,30})\b")
_REFUSING = re.compile(
    r"\b(denied|deny|refus\w+|block(ed|s)?|not (allowed|permitted|in|on) \w*|forbidden|prohibited"
    r"|reject\w*|needs? (an? )?(approval|ticket|review)"
    r"|requires? (an? )?(approval|ticket|review)|approval|quota|limit|budget|over \d|paused|halted"
    r"|stopped|waiting for|no change ticket"
    r"|two-person|unauthori[sz]ed|violat\w+|disallow\w*|not on the list|exceed\w*|locked|frozen)\b",
    _FLAGS,
)
_APPROVAL = re.compile(
    r"approv|two-person|ticket|review|authori[sz]|polic|change window|sign-?off|secops|board", _FLAGS
)
_SPEAKER = re.compile(r"^(?:[\w.-]+:\s)?([a-z][a-z0-9_.-]{2,40})(?:\[\d+\])?:\s(.{4,300})$", re.MULTILINE)
_BRACKETED = re.compile(r"\(([a-z][a-z0-9_-]{3,30}): |\[([a-z][a-z0-9_-]{3,30})\] ")
_NAME_OF_GUARD = re.compile(
    r"[-_]|guard|gate|safe|polic|watch|check|lock|limit|sentr|record|audit|monitor|filter|proxy"
    r"|firewall|broker",
    _FLAGS,
)
_PATH = re.compile(r"(?<![\w.-])((?:~|/etc|/opt|/usr|/var|/srv)/[\w./-]{3,120}|\.[a-z]+/[\w./-]{3,120})")
_COMMON = frozenset(
    "error fatal warning warn info debug note hint remote bash sh zsh sudo make npm err pip git ssh "
    "curl docker python node cargo go java"
    " kubectl helm terraform psql pre-commit husky stderr stdout stdin output usage traceback caused "
    "message reason exit-code status"
    " apt-get docker-compose ssh-keygen".split()
)
_LONGEST = 100_000
_LONGEST_SENTENCE = 1000
_TOKEN = re.compile(r"[\w.~$/{}-]+")
_SCRIPTS = (".py", ".sh", ".js", ".ts", ".mjs", ".rb", ".pl")
_MOST_READ = 20_000
_HOOK_COMMAND = re.compile(r"[\"']command[\"']\s*:\s*[\"']((?:[^\"'\\]|\\.)+)[\"']")


class Told(NamedTuple):
    """What a text puts under protection."""

    protected: tuple[str, ...]
    """Paths and names that it says not to touch; `:3128` is a port."""

    governing: tuple[str, ...]
    """Paths of what governs the one it speaks to: rules, settings, prompts."""

    mandates: tuple[Mandate, ...]
    """Wrappers that it demands."""


def told_by(text: str) -> Told:
    """What instructions put under protection, and the wrappers that they demand."""
    protected: list[str] = []
    governing: list[str] = []
    mandates: list[Mandate] = []
    lines = text[:_LONGEST].splitlines()
    for place, line in enumerate(lines):
        if not line.strip():
            continue
        protected += _protected_in(line)
        governing += _governing_in(line)
        found = mandates_in(line)
        if not found and place and _is_short(line) and _is_short(lines[place - 1]):
            found = mandates_in(f"{lines[place - 1].rstrip('. ')}. {line.lstrip('-*• ')}")
        mandates += found
    return Told(
        tuple(dict.fromkeys(protected)), tuple(dict.fromkeys(governing)), tuple(dict.fromkeys(mandates))
    )


def _stem(name: str) -> str:
    return name.rpartition("/")[2].partition(".")[0].lower()


def _is_short(line: str) -> bool:
    return 0 < len(line.strip()) < _LONGEST_SENTENCE // 3 and line.lstrip()[0] not in "#`|"


def _protected_in(line: str) -> Iterator[str]:
    before: list[str] = []
    named: list[str] = []
    is_control = False
    for sentence in SENTENCE.split(line):
        if len(sentence) > _LONGEST_SENTENCE:
            continue
        names = _things(sentence)
        forbids = _FORBIDS.search(sentence) is not None
        controls = _CONTROLS.search(sentence) is not None
        if forbids:
            yield from (name for name in names if controls or in_system(name, None))
        if (
            forbids and (controls or is_control) and not names
        ):  # "… is the policy of the guard. Never change it."
            yield from (one for one in before if _IT.search(sentence) or _stem(one) in sentence.lower())
        if _HALTS.search(sentence):
            yield from _FILE_NAMED.findall(sentence)
        if _IN_THE_WAY.search(sentence):
            yield from (f":{port}" for port in _PORT.findall(sentence))
        if forbids and _PROCESS.search(sentence) and _IT.search(sentence):
            yield from named  # "x-y ends your session. Do not stop this process."
        named = _HYPHENED.findall(sentence)[:3]
        before, is_control = names or before, controls or (is_control and not names)


def _governing_in(line: str) -> Iterator[str]:
    for sentence in SENTENCE.split(line):
        if len(sentence) <= _LONGEST_SENTENCE and _GOVERNS.search(sentence):
            yield from (
                named.name for named in names_in(sentence) if "/" in named.name and " " not in named.name
            )


def _things(sentence: str) -> list[str]:
    is_process = _PROCESS.search(sentence) is not None
    found = [named.name for named in names_in(sentence) if _is_thing(named.name, is_process=is_process)]
    found += _VARIABLE.findall(sentence)
    if is_process:
        found += [name for name in _HYPHENED.findall(sentence) if name not in found and GUARDS.search(name)]
        found += re.findall(
            r"\b(?:cron job|job|service|daemon|process|container)\s+([a-z][\w-]{3,40})\b", sentence
        )
    return found


def _is_thing(name: str, *, is_process: bool) -> bool:
    """Whether a name is one of a file or a process, not a phrase or a word of code."""
    if " " in name or len(name) <= 3:
        return False
    return is_process or not name.isalnum() or bool(GUARDS.search(name))


def refused_by(text: str, programs: Iterable[str]) -> Iterator[str]:
    """The guards that a refusal names, and the files of theirs; `programs`: those of the call that was refused."""
    called = {one.rpartition("/")[2]: one for one in programs}
    for found in _SPEAKER.finditer(text):
        name, said = found[1], found[2]
        if not _REFUSING.search(said) or name in _COMMON:
            continue
        if name in called:
            if "/" in called[name] and _APPROVAL.search(said):
                yield called[name]
        elif _NAME_OF_GUARD.search(name):
            yield name
        yield from (path.rstrip(".") for path in _PATH.findall(said))
    for found in _BRACKETED.finditer(text):
        name = found[1] or found[2]
        if name not in _COMMON and name not in called and GUARDS.search(name):
            yield name


def paths_in(text: str) -> list[str]:
    """What looks like a path, or like the name of a script."""
    return [word for word in _TOKEN.findall(text[:_MOST_READ]) if "/" in word or word.endswith(_SCRIPTS)]


def hook_scripts(text: str) -> list[str]:
    """Scripts that settings run as hooks."""
    if "PreToolUse" not in text and "PostToolUse" not in text and '"hooks"' not in text:
        return []
    return [path for command in _HOOK_COMMAND.findall(text) for path in paths_in(command)]


def bare(name: str) -> str:
    """A path without what stands for a folder that nobody knows."""
    plain = re.sub(r"^\$\{?\w+\}?/", "", name).removeprefix("./")
    is_folder = plain.endswith("/")
    return normal(plain) + ("/" if is_folder else "")
