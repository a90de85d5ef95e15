"""A layered layout of a directed graph: names and arrows in, places and paths out. Makes no markup.

Cycles are broken at the arrows that lead back, ranks are longest paths, arrows over several ranks get places of their
own, and eight sweeps by barycentre order each rank. The same graph gives the same layout.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

NODE_WIDTH, NODE_HEIGHT = 156, 32
_RANK_GAP, _ROW_GAP, _EDGE = 120, 16, 12
_SWEEPS = 8

_Ranks = dict[str, int]


class Node(NamedTuple):
    """A node in its place."""

    name: str
    """Its name."""

    x: float
    """Left."""

    y: float
    """Top."""


class Arrow(NamedTuple):
    """An arrow in its place."""

    source: str
    """Where it begins."""

    target: str
    """Where it ends."""

    d: str
    """The `d` of an SVG path."""

    x: float
    """Middle of its label."""

    y: float
    """Ground line of its label."""


class Layout(NamedTuple):
    """A graph in its places."""

    width: float
    """Width of all."""

    height: float
    """Height of all."""

    nodes: list[Node]
    """The nodes."""

    arrows: list[Arrow]
    """The arrows, in the order in which they were given, each pair of names once."""


class _Slot(NamedTuple):
    """A place in a rank: of a node, or of an arrow on its way over the rank."""

    name: str
    arrow: int | None = None


def layout(names: Sequence[str], arrows: Iterable[tuple[str, str]]) -> Layout:
    """Places for all names, ranks from left to right."""
    nodes = list(dict.fromkeys(names))
    known = set(nodes)
    pairs = [pair for pair in dict.fromkeys(arrows) if known.issuperset(pair)]
    onward = _without_cycles(nodes, [pair for pair in pairs if pair[0] != pair[1]])
    ranks = _ranked(nodes, onward.values())
    columns, chains = _columns(nodes, ranks, onward)
    _sort(columns, chains)
    places = {slot: (column, row) for column, slots in enumerate(columns) for row, slot in enumerate(slots)}
    most = max((len(slots) for slots in columns), default=0)
    step = NODE_HEIGHT + _ROW_GAP

    def corner(slot: _Slot) -> tuple[float, float]:
        column, row = places[slot]
        free = (most - len(columns[column])) * step / 2
        return _EDGE + column * (NODE_WIDTH + _RANK_GAP), _EDGE + free + row * step

    drawn = []
    for pair in pairs:
        if pair[0] == pair[1]:
            drawn.append(_loop(pair, corner(_Slot(pair[0]))))
        else:
            corners = [corner(slot) for slot in chains[pair]]
            drawn.append(_arrow(pair, corners, is_back=onward[pair] != pair))
    return Layout(
        width=2 * _EDGE + len(columns) * NODE_WIDTH + max(0, len(columns) - 1) * _RANK_GAP,
        height=2 * _EDGE + most * step - (_ROW_GAP if most else 0),
        nodes=[Node(name, *corner(_Slot(name))) for name in nodes],
        arrows=drawn,
    )


def _without_cycles(
    nodes: Sequence[str], pairs: Sequence[tuple[str, str]]
) -> dict[tuple[str, str], tuple[str, str]]:
    """Each arrow with its direction in the layout: one that leads back to where its walk came from is turned round."""
    after: dict[str, list[str]] = {name: [] for name in nodes}
    for source, target in pairs:
        after[source].append(target)
    turned: set[tuple[str, str]] = set()
    seen: set[str] = set()
    for start in nodes:
        if start in seen:
            continue
        path, walk = {start}, [(start, iter(after[start]))]
        seen.add(start)
        while walk:
            name, rest = walk[-1]
            following = next(rest, None)
            if following is None:
                path.discard(name)
                walk.pop()
            elif following in path:
                turned.add((name, following))
            elif following not in seen:
                seen.add(following)
                path.add(following)
                walk.append((following, iter(after[following])))
    return {pair: (pair[1], pair[0]) if pair in turned else pair for pair in pairs}


def _ranked(nodes: Sequence[str], onward: Iterable[tuple[str, str]]) -> _Ranks:
    """The longest way to each node."""
    before = dict.fromkeys(nodes, 0)
    after: dict[str, set[str]] = {name: set() for name in nodes}
    for source, target in onward:
        if target not in after[source]:
            after[source].add(target)
            before[target] += 1
    ranks = dict.fromkeys(nodes, 0)
    ready = [name for name in nodes if not before[name]]
    while ready:
        name = ready.pop()
        for target in sorted(after[name]):
            ranks[target] = max(ranks[target], ranks[name] + 1)
            before[target] -= 1
            if not before[target]:
                ready.append(target)
    return ranks


def _columns(
    nodes: Sequence[str], ranks: _Ranks, onward: Mapping[tuple[str, str], tuple[str, str]]
) -> tuple[list[list[_Slot]], dict[tuple[str, str], list[_Slot]]]:
    """What stands in each rank, and the way of each arrow over the ranks, from left to right."""
    columns: list[list[_Slot]] = [[] for _ in range(max(ranks.values(), default=-1) + 1)]
    for name in nodes:
        columns[ranks[name]].append(_Slot(name))
    chains: dict[tuple[str, str], list[_Slot]] = {}
    for number, (pair, (source, target)) in enumerate(onward.items()):
        between = range(ranks[source] + 1, ranks[target])
        way = [_Slot(f"{rank}", number) for rank in between]
        for rank, slot in zip(between, way, strict=True):
            columns[rank].append(slot)
        chains[pair] = [_Slot(source), *way, _Slot(target)]
    return columns, chains


def _sort(columns: list[list[_Slot]], chains: Mapping[tuple[str, str], list[_Slot]]) -> None:
    """Order each rank by the middle of its neighbours, forth and back."""
    left: dict[_Slot, list[_Slot]] = {}
    right: dict[_Slot, list[_Slot]] = {}
    for way in chains.values():
        for one, other in pairwise(way):
            right.setdefault(one, []).append(other)
            left.setdefault(other, []).append(one)
    for sweep in range(_SWEEPS):
        neighbours = left if sweep % 2 == 0 else right
        for slots in columns if sweep % 2 == 0 else reversed(columns):
            rows = {slot: row for column in columns for row, slot in enumerate(column)}
            middles = {slot: _middle(neighbours.get(slot, ()), rows, rows[slot]) for slot in slots}
            slots.sort(key=lambda slot, middles=middles: middles[slot])  # type: ignore[misc]


def _middle(slots: Sequence[_Slot], rows: Mapping[_Slot, int], own: int) -> float:
    return sum(rows[slot] for slot in slots) / len(slots) if slots else float(own)


def _arrow(pair: tuple[str, str], corners: Sequence[tuple[float, float]], *, is_back: bool) -> Arrow:
    points = list(_way(corners))
    if is_back:
        points.reverse()
    path = f"M{points[0][0]:g} {points[0][1]:g}"
    for (x, y), (to_x, to_y) in pairwise(points):
        middle = (x + to_x) / 2
        path += f"C{middle:g} {y:g} {middle:g} {to_y:g} {to_x:g} {to_y:g}"
    (x, y), (to_x, to_y) = points[0], points[1]
    return Arrow(*pair, path, (x + to_x) / 2, (y + to_y) / 2 - 4)


def _way(corners: Sequence[tuple[float, float]]) -> Iterator[tuple[float, float]]:
    """From the right side of the first place to the left side of the last, straight through those between."""
    last = len(corners) - 1
    for place, (x, y) in enumerate(corners):
        middle = y + NODE_HEIGHT / 2
        if place:
            yield x, middle
        if place < last:
            yield x + NODE_WIDTH, middle


def _loop(pair: tuple[str, str], corner: tuple[float, float]) -> Arrow:
    """An arrow from a node to itself: over its upper right corner."""
    x, y = corner[0] + NODE_WIDTH, corner[1] + NODE_HEIGHT / 2
    return Arrow(
        *pair, f"M{x:g} {y:g}C{x + 48:g} {y:g} {x + 48:g} {y - 24:g} {x - 12:g} {y - 16:g}", x + 44, y - 14
    )
