"""Two versions of a file of rules: which rules came, went, were renamed or changed."""

from dataclasses import dataclass, field
from typing import Any

from ledger.audit.rules.words import Rule, RulesFile

_COMPARED = ("title", "severity", "action", "steps")


@dataclass(frozen=True)
class Versions:
    """What another version of the rules says otherwise."""

    added: tuple[str, ...] = ()
    """Rules that only the new one has."""

    removed: tuple[str, ...] = ()
    """Rules that only the old one had."""

    renamed: dict[str, str] = field(default_factory=dict)
    """Old names of rules that have a new one, and the same steps."""

    changed: dict[str, list[str]] = field(default_factory=dict)
    """By new name: what of a rule is another now."""

    untrusted_changed: bool = False
    """Whether other tools are trusted."""

    def new_name(self, old: str) -> str:
        """The name that a rule of the old version has now."""
        return self.renamed.get(old, old)

    def as_json(self) -> dict[str, Any]:
        """The documented form."""
        return {
            "added": list(self.added),
            "removed": list(self.removed),
            "renamed": self.renamed,
            "changed": self.changed,
            "untrusted_changed": self.untrusted_changed,
        }


def compared(old: RulesFile, new: RulesFile) -> Versions:
    """What the new version says otherwise. A rule with the steps of one that is gone is that one, renamed."""
    before, now = ({rule.name: rule for rule in file.rules} for file in (old, new))
    gone = {name: rule for name, rule in before.items() if name not in now}
    renamed: dict[str, str] = {}
    for name, rule in now.items():
        former = next((one for one in gone if gone[one].steps == rule.steps), None)
        if name not in before and former is not None:
            renamed[former] = name
            del gone[former]
    pairs = {name: name for name in before if name in now} | renamed
    changed = {new_name: _changed(before[name], now[new_name]) for name, new_name in sorted(pairs.items())}
    return Versions(
        tuple(name for name in now if name not in pairs.values()),
        tuple(gone),
        renamed,
        {name: what for name, what in changed.items() if what},
        set(old.untrusted) != set(new.untrusted),
    )


def _changed(old: Rule, new: Rule) -> list[str]:
    return [name for name in _COMPARED if getattr(old, name) != getattr(new, name)]
