"""The tree of a pi session: which entries lie between the root and a leaf, and what the model sees there."""

from typing import Any, NamedTuple

from ledger.events import ContentRef
from ledger.importers._harness.story import Story


class Node(NamedTuple):
    """One entry of the tree."""

    parent: str | None
    """The entry that it continues."""
    message: ContentRef | None
    """What it puts before the model."""
    kept_from: str | None
    """For a compaction: the first entry that stays visible beside its summary."""
    compacts: bool
    """Whether it is a compaction."""


class Tree:
    """All entries so far, the leaf, and the story's context kept in step with it."""

    def __init__(self, story: Story) -> None:
        self._story = story
        self._nodes: dict[str, Node] = {}
        self._order: list[str] = []
        self._places: dict[str, int] = {}
        self.leaf: str | None = None
        """The entry that was written last."""

    def __contains__(self, key: Any) -> bool:
        return key in self._nodes

    def follower(self, key: str) -> str | None:
        """The entry that was written after this one, whatever it continues."""
        place = self._places[key] + 1
        return self._order[place] if place < len(self._order) else None

    def nth(self, index: int) -> str | None:
        """The entry at this place in the file, from 0."""
        return self._order[index] if 0 <= index < len(self._order) else None

    def go_to(self, key: str | None) -> None:
        """Make this entry the leaf."""
        self.leaf = key
        self._story.context.replace(self._visible())

    def add(self, key: str, node: Node) -> None:
        """Write an entry behind its parent; it becomes the leaf."""
        if key not in self._places:
            self._places[key] = len(self._order)
            self._order.append(key)
        self._nodes[key] = node
        self.leaf = key
        if node.compacts:
            self._story.context.replace(self._visible())
        elif node.message is not None:
            self._story.context.append(node.message)

    def _visible(self) -> list[ContentRef]:
        """Messages from the last compaction on the way to the leaf, or from the root."""
        path: list[tuple[str, Node]] = []
        seen: set[str] = set()
        key = self.leaf
        while key is not None and key in self._nodes and key not in seen:
            seen.add(key)
            path.append((key, self._nodes[key]))
            key = self._nodes[key].parent
        path.reverse()
        last = max((place for place, (_, node) in enumerate(path) if node.compacts), default=None)
        if last is None:
            return [node.message for _, node in path if node.message is not None]
        compaction = path[last][1]
        found = [] if compaction.message is None else [compaction.message]
        started = False
        for place, (name, node) in enumerate(path):
            started = started or name == compaction.kept_from
            if node.message is not None and not node.compacts and (started if place < last else True):
                found.append(node.message)
        return found
