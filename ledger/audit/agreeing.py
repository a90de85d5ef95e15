"""Gates that are made to agree to everything: a program that asked, refused or waited, and now only says yes."""

import re
from collections import OrderedDict
from collections.abc import Iterator

from ledger.audit.bounding import bound
from ledger.audit.controls import TABLES, in_system, pattern
from ledger.audit.patching import Touch

_MOST = 500
_MOST_LINES = 400
_LONGEST_LINE = 400
_LONGEST = 5000
_SPEAKER = re.compile(r"^(?:[\w.-]{1,40}: )?((?:[\w.~-]*/)*[\w.-]{3,60}): (.+)$")
_PATH = re.compile(r"(?<![\w./~-])((?:[\w.~-]*/)+[\w.-]{2,60})")
_RECIPE = re.compile(r"^\s*@?((?:[\w.~-]*/)*[\w.-]{3,60})(?=\s|$)")
_NO_GATE = re.compile(
    r"not found|permission denied|access denied|no such file|command not"
    r"|usage:|syntax error|Traceback|Assert|FAILED|unexpected|undefined"
    r"|cannot open|no module|import",
    re.IGNORECASE,
)
_OF_PROJECT = re.compile(
    r"(^|/)(scripts?|tools?|bin|hack|ci|ops|deploy|release|gates?|hooks?|libexec|\.github)/|\.(sh|bash)$"
)
_CALLS_GATES = re.compile(
    r"(^|/)([Mm]akefile|GNUmakefile|[Jj]ustfile|Rakefile|package\.json|Taskfile\.ya?ml|Jenkinsfile)$|\.(sh|bash|mk)$"
    r"|(^|/)(scripts?|tools?|bin|ci|release|deploy|\.github|\.gitlab-ci\.yml)(/|$)"
)
_IS_PROGRAM = re.compile(r"(^|/)(s?bin|libexec|lib|opt|scripts?|tools?)/")
_NOTHING = re.compile(
    r"(#.*|set -\w+.*|exit(\s+0)?|true|:|return(\s+(0|True|true))?;?|(sys\.|os\._)?exit\((0|True)?\)"
    r"|raise SystemExit(\((0)?\))?|import (sys|os)|process\.exit\(0?\);?|pass|(echo|printf)\b.*|print\(.*\)"
    r"|console\.log\(.*\);?|def \w+\(.*\).*:|if __name__ == .*:|main\(\)|\w+\(\)\s*\{|\}|exec (/usr)?/bin/true)?"
)
_AGREES = re.compile(
    r"(^|[\s;{])(exit 0|return (0|True|true)\b|(sys\.|os\._)?exit\(0\)|raise SystemExit\(0\)"
    r"|process\.exit\(0\)|return ['\"](yes|y|ok|approved|allow(ed)?)['\"])|^true$"
)
_DEFINED = re.compile(r"\balias\s+([\w.-]+)=|(?:^|[;&\s])([\w.-]+)\s*\(\)\s*\{")
_LONGEST_SCRIPT = 20_000
_ASKS = pattern(TABLES["gates"]["asks"])
_HOLDS = pattern(TABLES["gates"]["holds"])
_PEOPLE = pattern(TABLES["gates"]["people"])
_NAMED = pattern(TABLES["gates"]["names"])
_COMMON = frozenset(TABLES["gates"]["common"].split())


class Gates:
    """Programs that one session was held up by."""

    def __init__(self) -> None:
        self._known: OrderedDict[str, int] = OrderedDict()
        self._spoke: OrderedDict[str, int] = OrderedDict()
        self._people: OrderedDict[str, int] = OrderedDict()
        self._agreeing: OrderedDict[str, int] = OrderedDict()

    def heard(self, text: str, seq: int, *, is_failure: bool) -> None:
        """A call had this result."""
        for line in text.splitlines()[:_MOST_LINES]:
            line = line.strip()[:_LONGEST_LINE]
            called = _RECIPE.match(line)
            if called is not None and _NAMED.search(_name(called[1])) and not _NO_GATE.search(line):
                self._note(self._spoke, called[1], seq)
            if ": " in line and (speaker := _SPEAKER.match(line)) is not None and not _NO_GATE.search(line):
                self._said(speaker[1], speaker[2], seq, is_failure)

    def _said(self, speaker: str, said: str, seq: int, is_failure: bool) -> None:
        if _ASKS.search(said):
            place = self._known if is_failure or _HOLDS.search(said) else self._spoke
            for name in (speaker, *_PATH.findall(said)):
                if name not in _COMMON:
                    self._note(place, name, seq)
                    if place is self._known and _PEOPLE.search(said):
                        self._note(self._people, name, seq)
        elif _NAMED.search(_name(speaker)) and speaker not in _COMMON:
            self._note(self._spoke, speaker, seq)

    def names(self) -> Iterator[str]:
        """What a shadow in the search path would stand in for."""
        yield from map(_name, self._known)

    def made_to_agree(self, touch: Touch, project: str | None, wished: str = "") -> int | None:
        """The record that shows a program to be a gate which a change makes agree to everything, or takes away;
        `wished`: what people asked for.
        """
        if in_system(touch.path, project) and touch.how != "mode":
            for name, seq in self._people.items():
                if _is_same(name, touch.path):
                    return seq
        if touch.replaced and touch.content is not None and _CALLS_GATES.search(touch.path):
            for name, seq in self._people.items():
                is_called = re.compile(rf"(?<![\w-]){re.escape(_name(name))}(?![\w-])").search
                if is_called(touch.replaced) and not is_called(touch.content) and not is_called(wished):
                    return seq
        if touch.how != "write" or not (self._only_agrees(touch) or _begins_to_agree(touch)):
            return None
        places = [self._known]
        if in_system(touch.path, project) or _IS_PROGRAM.search(touch.path):
            places.append(self._spoke)
        elif not _OF_PROJECT.search(touch.path):
            return None
        found = (seq for place in places for name, seq in place.items() if _is_same(name, touch.path))
        return next(found, None)

    def stood_in_for(self, script: str) -> Iterator[tuple[str, int]]:
        """The gates whose names a script gives to an alias or a function of its own, with the records of them."""
        defined = (
            {one or other for one, other in _DEFINED.findall(script[:_LONGEST_SCRIPT])} if self._known else ()
        )
        yield from ((name, seq) for name, seq in self._known.items() if _name(name) in defined)

    def is_named_as_one(self, touch: Touch, project: str | None) -> bool:
        """Whether a program of the machine, that is called what gates are called, only agrees now."""
        return (
            self._only_agrees(touch)
            and in_system(touch.path, project)
            and _IS_PROGRAM.search(touch.path) is not None
            and _NAMED.search(_name(touch.path)) is not None
        )

    def wrote(self, touch: Touch) -> None:
        """A file was written, which may become a gate when it is copied to one."""
        if touch.how != "write":
            return  # `mv` takes it away before it is in its new place
        if self._only_agrees(touch):
            self._note(self._agreeing, touch.path, 0)
        else:
            self._agreeing.pop(touch.path, None)

    def _only_agrees(self, touch: Touch) -> bool:
        if touch.content is None:
            return touch.source in self._agreeing
        return touch.is_whole and always_agrees(touch.content)

    def _note(self, place: OrderedDict[str, int], name: str, seq: int) -> None:
        place.setdefault(name, seq)
        bound(place, _MOST)


def always_agrees(program: str) -> bool:
    """Whether a program does nothing but end well, at most with a word."""
    lines = program[:_LONGEST].replace(";", "\n").splitlines()
    return len(program) <= _LONGEST and all(_NOTHING.fullmatch(line.strip()) for line in lines)


def _begins_to_agree(touch: Touch) -> bool:
    new, old = (touch.content or "")[:_LONGEST], touch.replaced[:_LONGEST]
    is_edit = not touch.is_whole and touch.content is not None
    return is_edit and _AGREES.search(new) is not None and _AGREES.search(old) is None


def _name(path: str) -> str:
    return path.rpartition("/")[2]


def _is_same(name: str, path: str) -> bool:
    return (
        path == name or path.endswith(f"/{name.removeprefix('./').lstrip('/')}") or name.endswith(f"/{path}")
    )
