"""A match of a rule, and what is told of it: matches with the same beginning are one finding."""

from collections import OrderedDict
from collections.abc import Iterable
from typing import NamedTuple

from ledger.audit.finding import Found
from ledger.audit.rules.words import Rule

_LONGEST_NAME = 100
_MOST_TOLD = 1000
_MOST_WITNESSES = 50


class Match(NamedTuple):
    """A rule's last step came true."""

    rule: Rule
    """The rule."""

    seq: int
    """The record that did it."""

    first: int
    """The record with which it began: matches with the same beginning are one finding."""

    witnesses: tuple[int, ...]
    """The records that made the steps."""

    kind: str
    """What the last step was: `call`, `ran`, `result`, or the name of an event."""

    call_id: str | None
    """The call that it was about."""

    tools: tuple[tuple[str, int], ...]
    """What the steps were: tools, or names of events, each with its seq."""

    @property
    def message(self) -> str:
        """It in words."""
        steps = ", then ".join(f"{_short(tool)} (seq {seq})" for tool, seq in self.tools)
        return f"{self.rule.title}: {steps}"


class Told:
    """What was told of the matches of one session."""

    def __init__(self) -> None:
        self._before: OrderedDict[tuple[str, int], Found] = OrderedDict()

    def found(self, matches: Iterable[Match]) -> list[Found]:
        """What is new to tell of them."""
        return [found for match in matches if (found := self._of(match)) is not None]

    def _of(self, match: Match) -> Found | None:
        """What is new to tell of it."""
        key = match.rule.name, match.first
        before = self._before.pop(key, None)
        if before is None:
            found = Found(
                match.seq,
                match.message,
                match.witnesses,
                severity=match.rule.severity,
                part=match.rule.name,
                key=str(match.first),
                level="action" if _is_of_one_action(match.rule) else "trajectory",
            )
        elif len(before.witnesses) >= _MOST_WITNESSES:
            found = before
        else:
            found = before._replace(witnesses=tuple(sorted({*before.witnesses, *match.witnesses})))
        self._before[key] = found
        if len(self._before) > _MOST_TOLD:
            self._before.popitem(last=False)
        return None if found is before else found


def _is_of_one_action(rule: Rule) -> bool:
    step = rule.steps[0]
    return len(rule.steps) == 1 and not step.counts and step.flows_from is None


def _short(name: str) -> str:
    return name if len(name) <= _LONGEST_NAME else f"{name[:_LONGEST_NAME]}…"
