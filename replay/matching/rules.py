"""Rules of canonicalising: each has a name and works on one named place of a body. Knows no protocol or harness.

A rule must change nothing the second time, and must keep every message and block at its index, so that pointers
into the canonical body lead to the same place of the body as sent (`Work.moved` tells where one put lists in order).
"""

import re
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from replay.matching.places import Kind, Place, places, strings
from replay.matching.request import ModelRequest

MASK = "\u2039{}\u203a"
"""What stands in the place of what was masked: a name in angle quotes."""


class Folders(NamedTuple):
    """Folders of one run, and what a canonical request shows in their place. Longest first."""

    names: tuple[tuple[str, str], ...] = ()
    """(path, name) pairs."""

    @staticmethod
    def of(*, home: Iterable[str | None] = (), cwd: Iterable[str | None] = ()) -> "Folders":
        """Home and working folders; those of the recording and of the replay alike, where they differ."""
        found: dict[str, str] = {}
        for path in cwd:
            if path and len(path) > 1:
                found[path.rstrip("/")] = "folder"
                found[slug_of(path)] = "folder-slug"
        for path in home:
            if path and len(path) > 1:
                found.setdefault(path.rstrip("/"), "home")
        return Folders(tuple(sorted(found.items(), key=lambda pair: (-len(pair[0]), pair[0]))))


def slug_of(path: str) -> str:
    """The name that Claude Code gives a project folder: everything but letters and digits as a dash."""
    return re.sub(r"[^A-Za-z0-9]", "-", path.rstrip("/"))


class Work:
    """A body on its way to its canonical form."""

    def __init__(self, request: ModelRequest, body: dict[str, Any], folders: Folders) -> None:
        self.request = request
        self.body = body
        """A copy of the request's body, to be changed."""
        self.folders = folders
        self.ids: list[str] = []
        """Random ids, by first appearance."""
        self.moved: dict[tuple[str | int, ...], list[int]] = {}
        """Path of a list that was put in order -> the index that each of its items was sent at."""

    def places(self, *kinds: Kind) -> list[Place]:
        """The texts of these kinds; all where none is named."""
        return [
            place for place in places(self.request.protocol, self.body) if not kinds or place.kind in kinds
        ]

    def note_ids(self, found: Iterable[str]) -> None:
        """Take note of random ids, in the order of their appearance."""
        for one in found:
            if one and one not in self.ids:
                self.ids.append(one)

    def as_sent(self, steps: list[str]) -> list[str]:
        """The way to a place in the body as sent, from the way in the canonical body."""
        way: list[str | int] = []
        sent: list[str] = []
        for step in steps:
            order = self.moved.get(tuple(way))
            at = int(step) if step.isdigit() else None
            sent.append(str(order[at]) if order is not None and at is not None and at < len(order) else step)
            way.append(step if at is None else at)
        return sent


class Rule(NamedTuple):
    """One named difference that does not count."""

    name: str
    """Its name in reports."""

    place: str
    """Where in the body it works."""

    apply: Callable[[Work], bool]
    """Takes the difference away; tells whether there was one."""


def dropped(name: str, *fields: str) -> Rule:
    """A rule that drops top-level fields."""

    def apply(work: Work) -> bool:
        return sum(work.body.pop(field, None) is not None for field in fields) > 0

    return Rule(name, ", ".join(f"/{field}" for field in fields), apply)


def masked(name: str, where: str, pattern: str, mask: str, *kinds: Kind, inside: str | None = None) -> Rule:
    """A rule that masks the group `value` of a pattern in texts of some kinds, of those that hold `inside`."""
    compiled = re.compile(pattern)
    shown = MASK.format(mask)

    def replace(found: re.Match[str]) -> str:
        start, end = found.start("value") - found.start(), found.end("value") - found.start()
        return f"{found[0][:start]}{shown}{found[0][end:]}"

    def apply(work: Work) -> bool:
        changed = False
        for place in work.places(*kinds):
            if inside is None or inside in place.text:
                changed |= place.put(compiled.sub(replace, place.text))
        return changed

    return Rule(name, where, apply)


def _map_folders(work: Work) -> bool:
    names = dict(work.folders.names)
    if not names:
        return False
    alternatives = "|".join(re.escape(path) for path in names)
    pattern = re.compile(rf"(?<![\w.-])(?:{alternatives})(?![\w-]|\.\w)")
    changed = False
    for place in work.places("system", "user", "result", "tool"):
        if any(path in place.text for path in names):
            changed |= place.put(pattern.sub(lambda found: MASK.format(names[found[0]]), place.text))
    return changed


FOLDERS = Rule("folders", "texts of system, user, tool results and tools", _map_folders)
"""Home, working folder and its slug; not in what the model wrote, since that comes from the record on both sides."""


def _rename_ids(work: Work) -> bool:
    if not work.ids:
        return False
    numbers = {one: MASK.format(f"id {number}") for number, one in enumerate(work.ids, 1)}
    pattern = re.compile("|".join(re.escape(one) for one in sorted(numbers, key=len, reverse=True)))
    changed = False
    for place in strings("user", work.body, -1):
        changed |= place.put(pattern.sub(lambda found: numbers[found[0]], place.text))
    return changed


RENAME_IDS = Rule("random-ids", "ids found by the rules before, wherever they stand", _rename_ids)
"""By first appearance: two ids that were equal stay equal, two that differed stay different."""


def collected(name: str, where: str, pattern: str, *kinds: Kind) -> Rule:
    """A rule that finds random ids by the group `value` of a pattern; `random-ids` renames them."""
    compiled = re.compile(pattern)

    def apply(work: Work) -> bool:
        for place in work.places(*kinds):
            work.note_ids(found["value"] for found in compiled.finditer(place.text))
        return False

    return Rule(name, where, apply)
