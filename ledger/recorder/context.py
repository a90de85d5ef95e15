"""The messages that a model call saw, as a chain of nodes that shares every prefix with the calls before."""

from collections.abc import Sequence

from ledger.events import ContentRef
from ledger.recorder.keeper import Keeper
from ledger.store.content import NodeRow

_LOOKED_BACK = 1000


class ContextChain:
    """The context of one session as it grows. Costs only its new messages, in time and in storage."""

    def __init__(self, keeper: Keeper) -> None:
        self._keeper = keeper
        self._messages: list[str] = []
        self._nodes: list[NodeRow] = []
        self._answered_for = 0

    def __len__(self) -> int:
        return len(self._messages)

    @property
    def head(self) -> str | None:
        """Digest of the last node, hexadecimal; None for an empty context."""
        return self._nodes[-1].node.hex() if self._nodes else None

    def append(self, message: ContentRef) -> None:
        """Add one message at the end."""
        above = self._nodes[-1] if self._nodes else None
        self._messages.append(message.digest)
        self._nodes.append(self._keeper.node(above, bytes.fromhex(message.digest)))

    def cut(self, length: int) -> None:
        """Keep only the first `length` messages."""
        del self._messages[length:]
        del self._nodes[length:]
        self._answered_for = min(self._answered_for, length)

    def replace(self, messages: Sequence[ContentRef]) -> None:
        """Become exactly these messages, reusing the prefix that is the same."""
        wanted = [message.digest for message in messages]
        same = min(len(wanted), len(self._messages))
        if wanted[:same] != self._messages[:same]:
            same = next(index for index in range(same) if wanted[index] != self._messages[index])
        self.cut(same)
        for message in messages[same:]:
            self.append(message)

    def exchange(self, old: ContentRef, new: ContentRef) -> None:
        """Put a message in the place of another that is among the last; at the end, if it is not."""
        first = max(0, len(self._messages) - _LOOKED_BACK)
        place = next(
            (at for at in range(len(self) - 1, first - 1, -1) if self._messages[at] == old.digest), None
        )
        if place is None:
            self.append(new)
            return
        after = self._messages[place + 1 :]
        self.cut(place)
        self.append(new)
        for digest in after:
            self._messages.append(digest)
            self._nodes.append(self._keeper.node(self._nodes[-1], bytes.fromhex(digest)))

    def take_added(self) -> int:
        """How many nodes at the end no record answers for yet; from now on the caller's record does."""
        added = len(self._nodes) - self._answered_for
        self._answered_for = len(self._nodes)
        return added
