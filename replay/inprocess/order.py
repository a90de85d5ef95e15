"""Gives the answers of a replay in the order in which they came when they were recorded.

Recorded answers are there at once, however long each took then. In a loop with several branches, the branch that asks
first would go on first, and would come to its next step before that of a branch which was quicker then: another order
of steps, though the loop is the same. So an answer waits until every step has begun again that had begun before it
(replay by the order of what was received: LeBlanc and Mellor-Crummey, Debugging Parallel Programs with Instant Replay,
IEEE Transactions on Computers C-36(4), 1987).
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager

from replay.inprocess.frozen import thawed
from replay.inprocess.script import Script, Step

PAUSE_S = 0.002
"""Seconds between two looks."""

_LOOKS = 500


class Order:
    """Of all sessions of one replay: which steps are still to begin.

    A loop that never comes to a step shall not wait for it forever: when nothing has begun during 500 looks, no answer
    waits any more, and what differs is found at the step that comes instead.
    """

    def __init__(self, is_expected: Callable[[Step], bool]) -> None:
        self._is_expected = is_expected
        self._scripts: list[tuple[AbstractContextManager[object], Script]] = []
        self._begun = 0
        self._is_given_up = False

    def follow(self, lock: AbstractContextManager[object], script: Script) -> None:
        """The steps of one more session are to come; a script is only read with its lock held."""
        self._scripts.append((lock, script))

    def begins(self) -> None:
        """A step began again."""
        self._begun += 1

    def looks(self, position: int) -> Iterator[None]:
        """As long as the answer with this place in the ledger must wait: pause, and look again."""
        begun, left = self._begun, _LOOKS
        while not self._is_given_up and self._is_early(position):
            if self._begun != begun:
                begun, left = self._begun, _LOOKS
            self._is_given_up = left == 0
            left -= 1
            yield

    def _is_early(self, position: int) -> bool:
        for lock, script in self._scripts:
            with lock, thawed():
                due = script.first()
                if due is not None and due.position < position and self._is_expected(due):
                    return True
        return False
