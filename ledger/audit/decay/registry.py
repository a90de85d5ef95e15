"""The rules of a session: those that were declared, and those that stand in prompts, rule files and messages."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from ledger.audit.reader import Reader
from ledger.constraints.finding import Hardness, Modality, forbidden_tool, found_in, kind_of
from ledger.constraints.visibility import KEPT, see
from ledger.effects.constraints import CallPattern, Constraint, Origin
from ledger.events.governance import ConstraintDeclared

MOST_FOUND = 100
"""So many rules are found in one session at most."""

_FILES = ("claude.md", "agents.md", "gemini.md", ".cursorrules", "copilot-instructions")


@dataclass
class Rule:
    """One rule."""

    name: str
    """Its declared name, or `found:` and a digest of its words."""

    text: str
    """Its words."""

    modality: Modality
    """What sort of rule it is."""

    hardness: Hardness
    """Whether it may be outweighed."""

    origin: Origin
    """Where it was declared or found."""

    seq: int
    """Where it came into force."""

    check: Constraint | None = None
    """What breaks it, where that is known."""

    is_declared: bool = True
    """Whether somebody declared it."""

    withdrawn: int | None = None
    """Where it went out of force."""

    scope: str | None = None
    """What it covers, in the words of its source."""

    @property
    def group(self) -> tuple[str, str, str]:
        """Hardness, modality and origin: what figures are given apart for."""
        return self.hardness, self.modality, self.origin

    def as_json(self) -> dict[str, Any]:
        """It as plain data."""
        return {
            "name": self.name,
            "text": self.text,
            "modality": self.modality,
            "hardness": self.hardness,
            "origin": self.origin,
            "seq": self.seq,
            "declared": self.is_declared,
            "checked": self.check is not None and self.check.is_checked,
            "withdrawn": self.withdrawn,
        }


class Registry:
    """The rules of one session, by name, in the order in which they came."""

    def __init__(self, declared: Iterable[Constraint] = (), *, finds: bool = True) -> None:
        self.rules: dict[str, Rule] = {}
        self._finds = finds
        self._found = 0
        for one in declared:
            self.rules[one.name] = _declared(one, 0)

    def in_force(self) -> Iterator[Rule]:
        """Those that nobody withdrew."""
        return (rule for rule in self.rules.values() if rule.withdrawn is None)

    def declare(self, event: ConstraintDeclared, seq: int, reader: Reader) -> None:
        """A rule came into force; declared again, it is a new one."""
        check = _check(reader.value(event.check))
        known = self.rules.get(event.constraint)
        if check is None and known is not None and known.check is not None:
            check = known.check
        text = reader.text(event.text)
        if not text:
            return
        modality, hardness = kind_of(text)
        self.rules[event.constraint] = Rule(
            event.constraint,
            text,
            event.modality
            if event.modality != "unknown"
            else check.modality or modality
            if check
            else modality,
            event.hardness
            if event.hardness != "unknown"
            else check.hardness or hardness
            if check
            else hardness,
            event.origin,
            seq,
            check,
            scope=event.scope or (check.scope if check else None),
        )

    def withdraw(self, name: str, seq: int) -> None:
        """A rule went out of force."""
        if name in self.rules:
            self.rules[name].withdrawn = seq

    def find(self, text: str, origin: Origin, seq: int) -> None:
        """Look for rules in a text; what says a rule that is known is no new one."""
        if not self._finds or self._found >= MOST_FOUND:
            return
        lowered = text[:20_000].lower()
        if origin == "user" and any(name in lowered for name in _FILES):
            origin = "file"
        for found in found_in(text, only_hard=origin == "user"):
            if found.name in self.rules or self._found >= MOST_FOUND:
                continue
            if any(see(rule.text, found.text, is_ruled=True).visibility in KEPT for rule in self.in_force()):
                continue
            self._found += 1
            tool = forbidden_tool(found.text)
            check = None
            if tool is not None:
                check = Constraint(
                    name=found.name, text=found.text, broken_by=(CallPattern(tool=_any_case(tool)),)
                )
            self.rules[found.name] = Rule(
                found.name, found.text, found.modality, found.hardness, origin, seq, check, is_declared=False
            )


def _any_case(tool: str) -> str:
    """A pattern for the tool: the words of a found rule are in small letters."""
    return "".join(f"[{one}{one.upper()}]" if one.isalpha() else one for one in tool)


def _declared(one: Constraint, seq: int) -> Rule:
    modality, hardness = one.modality or "unknown", one.hardness or "unknown"
    return Rule(one.name, one.text, modality, hardness, one.origin, seq, one, scope=one.scope)


def _check(value: Any) -> Constraint | None:
    if not isinstance(value, dict):
        return None
    try:
        return Constraint.model_validate(value)
    except ValidationError:
        return None
