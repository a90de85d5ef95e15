"""A divergence: the first place where a replay is not what was recorded, as a value. Makes its text in one place.

Holds excerpts and references, never whole payloads: both sides may be megabytes.
"""

import re
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from itertools import islice
from typing import Any, Literal, NamedTuple

from ledger.events.canonical import canonical_json
from replay.pointer import pointer as pointer_of

Kind = Literal[
    "request",
    "effect_type",
    "effect_arguments",
    "order",
    "missing",
    "extra",
    "undeclared_input",
    "schema",
    "projector",
    "damaged_range",
]
"""Another model request; another tool; the tool with other arguments; another order; a step that did not come; one that
was never recorded; an input from outside that was not recorded; other tool schemas; another state from the same
records; records that cannot be read."""

_AROUND = 48
_MIDDLE = 160
_LISTED = 20
_ABSENT: Any = object()
_WORDS = {"effect_type": "tool", "effect_arguments": "tool arguments", "undeclared_input": "undeclared input"}

_DRAWS = (
    (
        "a time",
        re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:?\d\d)?|\d\d:\d\d:\d\d"),
    ),
    (
        "a date",
        re.compile(
            r"\d{4}[-/]\d\d[-/]\d\d|(?:(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]*,? )?"
            r"(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]* \d{1,2},? \d{4}"
        ),
    ),
    (
        "an identifier",
        re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}|(?=\S*\d)[0-9a-f]{8,64}"),
    ),
    ("a random number", re.compile(r"-?\d+\.\d{6,}(?:[eE][+-]?\d+)?")),
    ("a time in seconds or milliseconds", re.compile(r"1[5-9]\d{8}(?:\d{3}|\.\d+)?|2\d{9}(?:\d{3}|\.\d+)?")),
)
"""What an input that nobody recorded looks like, and its name."""


class Difference(NamedTuple):
    """One place where two documents differ."""

    pointer: str
    """JSON pointer of the place."""

    recorded: str | None
    """Excerpt of the recorded side around the difference; None where there is nothing."""

    replayed: str | None
    """Excerpt of the replay's side; None where there is nothing."""

    at: int | None = None
    """First character that differs, in texts."""

    draw: str | None = None
    """What kind of input the difference looks like (`a time`, `an identifier`, ...), where it looks like one."""


class Side(NamedTuple):
    """One side of a divergence, by reference."""

    session: str | None = None
    """Session."""

    seq: int | None = None
    """Record; None where there is none."""

    digest: str | None = None
    """Keyed digest of what stands there, where it is known."""

    excerpt: str | None = None
    """A short piece of it, for people."""


_NOTHING = Side()


class Candidate(NamedTuple):
    """A recorded request that was near, and why it did not fit."""

    seq: int
    """Its record."""

    why: str
    """Why it was not served."""

    pointer: str | None = None
    """First place that differs."""

    differences: int | None = None
    """How many places differ, up to a limit."""


@dataclass(frozen=True)
class Divergence:
    """The first place where a replay is not equal to its origin."""

    kind: Kind
    """What differs."""

    session: str
    """Session that was replayed."""

    seq: int | None
    """First record of it that the replay is not equal to."""

    pointer: str | None = None
    """JSON pointer of the first difference in what stands there."""

    recorded: Side = _NOTHING
    """The recorded side."""

    replayed: Side = _NOTHING
    """The side of the replay."""

    cause: str | None = None
    """Likely cause, in words."""

    differences: tuple[Difference, ...] = ()
    """The first places that differ."""

    candidates: tuple[Candidate, ...] = ()
    """The nearest recorded requests and why each failed."""

    def as_json(self) -> dict[str, Any]:
        """For `--json`, and for the event that keeps it."""
        form = asdict(self)
        form["recorded"] = self.recorded._asdict()
        form["replayed"] = self.replayed._asdict()
        form["differences"] = [difference._asdict() for difference in self.differences]
        form["candidates"] = [candidate._asdict() for candidate in self.candidates]
        return form

    def text(self) -> str:
        """What happened, for people, in a few lines."""
        where = self.session if self.seq is None else f"{self.session}#{self.seq}"
        lines = [f"{_WORDS.get(self.kind, self.kind.replace('_', ' '))} differs at {where}"]
        if self.kind in ("order", "missing", "extra", "damaged_range"):
            lines = [f"{self.kind.replace('_', ' ')} at {where}"]
        if self.pointer is not None:
            lines.append(f"  where     {self.pointer or '(the whole)'}")
        for name, side in (("recorded", self.recorded), ("replayed", self.replayed)):
            if side.excerpt is not None:
                lines.append(f"  {name}  {side.excerpt}")
        if self.cause:
            lines.append(f"  cause     {self.cause}")
        lines.extend(f"  near      #{one.seq}: {one.why}" for one in self.candidates)
        return "\n".join(lines)


def differences(recorded: Any, replayed: Any, limit: int = _LISTED) -> list[Difference]:
    """The first places where two JSON values differ, in the order of their canonical form."""
    return [_difference(path, old, new) for path, old, new in islice(_unequal(recorded, replayed), limit)]


def count_differences(recorded: Any, replayed: Any, limit: int = 1000) -> int:
    """In how many places two JSON values differ, counted up to a limit."""
    return sum(1 for _ in islice(_unequal(recorded, replayed), limit))


def excerpt(value: Any, at: int = 0, length: int = _MIDDLE) -> str | None:
    """A readable piece of a value."""
    if value is _ABSENT:
        return None
    text = value if isinstance(value, str) else canonical_json(value).decode()
    start = max(0, at - _AROUND)
    shown = text[start : at + length]
    return f"{'…' if start else ''}{shown}{'…' if at + length < len(text) else ''}"


def _unequal(recorded: Any, replayed: Any) -> Iterator[tuple[tuple[str | int, ...], Any, Any]]:
    """Paths of the smallest values that differ, first place first."""
    stack: list[tuple[tuple[str | int, ...], Any, Any]] = [((), recorded, replayed)]
    while stack:
        path, old, new = stack.pop()
        if isinstance(old, dict) and isinstance(new, dict):
            names = sorted(old.keys() | new.keys(), reverse=True)
            stack.extend(((*path, name), old.get(name, _ABSENT), new.get(name, _ABSENT)) for name in names)
        elif isinstance(old, list) and isinstance(new, list):
            pairs = [
                ((*path, index), _item(old, index), _item(new, index))
                for index in range(max(len(old), len(new)))
            ]
            stack.extend(pair for pair in reversed(pairs) if pair[1] is not pair[2])
        elif type(old) is not type(new) or old != new:
            yield path, old, new


def _item(values: list[Any], index: int) -> Any:
    return values[index] if index < len(values) else _ABSENT


def _difference(path: tuple[str | int, ...], old: Any, new: Any) -> Difference:
    if not (isinstance(old, str) and isinstance(new, str)):
        return Difference(pointer_of(path), excerpt(old), excerpt(new), None, draw_in(str(old), str(new)))
    start = _common_start(old, new)
    end = _common_start(old[start:][::-1], new[start:][::-1])
    begin = _word_start(old, start)
    return Difference(
        pointer_of(path),
        excerpt(old, begin, max(_AROUND, min(len(old) - end - begin, _MIDDLE) + _AROUND)),
        excerpt(new, begin, max(_AROUND, min(len(new) - end - begin, _MIDDLE) + _AROUND)),
        start,
        draw_in(old, new),
    )


def draw_in(recorded: str, replayed: str) -> str | None:
    """What kind of input two texts differ in, when they differ in nothing but such inputs."""
    if len(recorded) > 2_000_000 or len(replayed) > 2_000_000:
        return None
    for name, pattern in _DRAWS:
        found, other = pattern.findall(recorded), pattern.findall(replayed)
        is_other = found and len(found) == len(other) and found != other
        if is_other and pattern.sub("\0", recorded) == pattern.sub("\0", replayed):
            return name
    return None


def _common_start(old: str, new: str) -> int:
    low, high = 0, min(len(old), len(new))
    while low < high:
        middle = (low + high + 1) // 2
        if old[low:middle] == new[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def _word_start(text: str, at: int) -> int:
    while at > 0 and text[at - 1 : at].isalnum():
        at -= 1
    return at
