"""How far one rule has come in one session: its beginnings, what they are waiting for, and what they counted."""

from collections import OrderedDict, deque
from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from itertools import islice
from typing import Any

from ledger.audit.rules.expressions import Field
from ledger.audit.rules.facts import Call
from ledger.audit.rules.places import Place, is_within
from ledger.audit.rules.plan import Plan, Stage
from ledger.audit.rules.words import Span

_MOST_GROUPS = 1000
_MOST_COUNTED = 1000
_SHOWN = 50


class Bound(dict[str, Any]):
    """What steps gave a name to: a call is shown as it is known now, its result included."""

    def __init__(self, known: Mapping[str, Any] | None = None) -> None:
        super().__init__(known or {})
        self._fields: dict[Field, Any] = {}

    def at(self, field: Field) -> Any:
        """A field of a step's record; ABSENT where there is none."""
        known = self._fields.get(field)
        if known is not None:
            return known
        found = self[field.root]
        if not isinstance(found, Call):
            value = field.of(found)
        elif len(field.path) <= field.is_tested:
            return field.of(found.parts())
        else:
            value = field.of(found.part(field.path[0]), 1)
            if field.path[0] == "result":  # may still come
                return value
        self._fields[field] = value
        return value

    def call(self, name: str) -> Call | None:
        """The call of a step."""
        found = self.get(name)
        return found if isinstance(found, Call) else None


Amount = int | Fraction
"""What is added up: exactly, so that what leaves the window takes away what it brought."""


class Window:
    """What was counted or added up, of one group."""

    def __init__(self) -> None:
        self._kept: deque[tuple[Place, Amount]] = deque()
        self._total: Amount = 0
        self._first = 0

    def add(self, place: Place, amount: Amount, stage: Stage) -> tuple[int, tuple[int, ...]] | None:
        """One more; the first of them and the last ones, when they are too many or too much now.

        The first stays the same until they no longer are.
        """
        step = stage.step
        self._kept.append((place, amount))
        self._total += amount
        while is_within(step.within, self._kept[0][0], place) is False:
            self._total -= self._kept.popleft()[1]
        if len(self._kept) > max(step.times, _MOST_COUNTED):
            self._merge()
        if stage.over is None:
            is_full = len(self._kept) >= step.times
        else:
            is_full = self._total > stage.over
        if not is_full:
            self._first = 0
            return None
        self._first = self._first or self._kept[0][0].seq
        shown = [kept.seq for kept, _ in islice(reversed(self._kept), _SHOWN)]
        return self._first, tuple(reversed(shown))

    def _merge(self) -> None:
        """The oldest two become one: it leaves the window with the younger, so that no sum comes out too small."""
        (_, one), (place, two) = self._kept.popleft(), self._kept.popleft()
        self._kept.appendleft((place, one + two))


class Track:
    """A beginning of a rule: the records so far, and what waits for the next step."""

    __slots__ = ("bound", "first", "groups", "place", "seqs", "tools")

    def __init__(
        self, place: Place, first: int = 0, seqs: tuple[int, ...] = (), bound: Bound | None = None
    ) -> None:
        self.place = place
        self.first = first
        self.seqs = seqs
        self.bound = bound if bound is not None else Bound()
        self.groups: OrderedDict[str, Window] = OrderedDict()
        self.tools: tuple[tuple[str, int], ...] = ()

    def window(self, group: str) -> Window:
        """What was counted of a group."""
        found = self.groups.get(group)
        if found is None:
            found = self.groups[group] = Window()
            if len(self.groups) > _MOST_GROUPS:
                self.groups.popitem(last=False)
        else:
            self.groups.move_to_end(group)
        return found

    def gone_on(
        self, place: Place, first: int, seqs: tuple[int, ...], name: str | None, what: Any, tool: str
    ) -> "Track":
        """The same, one step further."""
        bound = self.bound
        if name is not None:
            bound = Bound(self.bound)
            bound[name] = what
        track = Track(place, self.first or first, (*self.seqs, *seqs), bound)
        track.tools = (*self.tools, (tool, place.seq))
        return track


class Progress:
    """One rule in one session."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.root = Track(Place(0, 0, 0, None))
        """What the first step goes out from."""
        self.tracks: list[deque[Track]] = [deque(maxlen=plan.keeps) for _ in plan.stages]
        """Beginnings by the step that they wait for; the first is empty."""
        self.versions = [0] * len(plan.stages)
        """How often the beginnings of each step have changed."""
        self.waiting: deque[Track] = deque(maxlen=max(64, plan.keeps))
        """Beginnings whose last step has come, and which wait for what must not be absent."""
        self.shut: Place | None = None
        """Where something came last that must not come before the first step."""
        self.is_shut_for_good = False
        """Whether nothing that comes can begin the rule any more."""

    def shut_at(self, place: Place) -> None:
        """Something came that must not come before the first step."""
        self.shut = place
        self.is_shut_for_good = self.plan.stages[0].guards_reach is None

    def wait(self, stage: int, track: Track) -> None:
        """One more beginning waits for a step."""
        self.tracks[stage].append(track)
        self.versions[stage] += 1

    def prune(self, stage: int, now: Place, since: Span | None) -> None:
        """The oldest beginnings go where the window no longer reaches."""
        tracks = self.tracks[stage]
        while tracks and is_within(since, tracks[0].place, now) is False:
            tracks.popleft()
            self.versions[stage] += 1

    def drop(self, stage: int, is_over: Callable[[Track], bool]) -> None:
        """Beginnings that wait for a step no longer."""
        tracks = self.tracks[stage]
        kept = [track for track in tracks if not is_over(track)]
        if len(kept) < len(tracks):
            tracks.clear()
            tracks.extend(kept)
            self.versions[stage] += 1

    def fulfil(self, is_over: Callable[[Track], bool]) -> None:
        """What must not be absent came."""
        kept = [track for track in self.waiting if not is_over(track)]
        self.waiting.clear()
        self.waiting.extend(kept)

    def candidates(self, stage: int, now: Place, since: Span | None) -> Iterator[tuple[Track, bool | None]]:
        """The beginnings that a step may carry on, with whether the window still reaches; dead ones go."""
        if stage == 0:
            reach = self.plan.stages[0].guards_reach
            if self.shut is None or is_within(reach, self.shut, now) is False:
                yield self.root, True
            return
        tracks = self.tracks[stage]
        is_counted = self.plan.stages[stage].step.counts
        for track in list(tracks):
            inside = True if is_counted else is_within(since, track.place, now)
            if inside is False:
                tracks.remove(track)
                self.versions[stage] += 1
            else:
                yield track, inside
