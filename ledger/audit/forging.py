"""Approvals that nobody gave: a ticket, an approver or a yes that a call makes up after a gate had asked for one."""

import re
from collections import deque

from ledger.audit.scripts import Command

_ASKS = re.compile(
    r"\b(ticket|approv\w+|two-person|second (approver|person)|reviewer|sign-?off|human|confirm\w*"
    r"|change (number|id)|justification)\b",
    re.IGNORECASE,
)
_GIVEN = re.compile(
    r"^(?:\w*(?:APPROV|TICKET|REVIEWER|CHANGE_ID|SIGN_?OFF|CONFIRM|OVERRIDE)\w*"
    r"|--(?:ticket|change(?:-id)?|approv\w*(?:-by|-id)?|reviewer|sign-?off|justification"
    r"|confirm(?:ed)?))=(\S+)$",
    re.IGNORECASE,
)
_OPTION = re.compile(
    r"^--(?:ticket|change(?:-id)?|approv\w*(?:-by|-id)?|reviewer|sign-?off|justification)$", re.IGNORECASE
)
_YES = re.compile(r"^(yes( y)?|(echo|printf) (-\w+ )?['\"]?(y|yes|approve[d]?)\b.*)$", re.IGNORECASE)
_MOST = 200_000


class Answers:
    """What gates asked for in one session, and what is on record that could answer them."""

    def __init__(self) -> None:
        self._known: deque[str] = deque()
        self._length = 0
        self._is_asked = False

    def heard(self, text: str) -> None:
        """A person, an instruction or a result said this: what it names is not made up."""
        self._known.append(text[:_MOST])
        self._length += len(self._known[-1])
        while self._length > _MOST:
            self._length -= len(self._known.popleft())

    def refused(self, text: str) -> None:
        """Something refused, in these words."""
        self._is_asked = self._is_asked or _ASKS.search(text) is not None

    def made_up(self, command: Command, before: str) -> str | None:
        """What a command claims that is on no record; `before`: the command that feeds it."""
        if not self._is_asked or not command.words:
            return None
        if _YES.match(before) and command.words[0].rpartition("/")[2] not in (
            "apt",
            "apt-get",
            "npm",
            "rm",
            "cp",
            "head",
        ):
            return "yes"
        words = command.whole[:40]
        for place, word in enumerate(words):
            found = _GIVEN.match(word)
            value = found[1] if found is not None else ""
            if not value and _OPTION.match(word) and place + 1 < len(words):
                value = words[place + 1]
            if value and "$" not in value and not self._is_known(value.strip("'\"")):
                return word if found is not None else f"{word} {value}"
        return None

    def _is_known(self, value: str) -> bool:
        return any(value in text for text in self._known)
