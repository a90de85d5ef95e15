"""Rules over the sequence of a session's records, written in YAML: read, compiled to one fold, matched.

What a rule may say is told in README.md and in `words`. Conditions are CEL, through a library that compiles them; no
Python of a rule file is ever run. May import what `ledger.audit` may.
"""

from ledger.audit.rules.compiled import rules_detector
from ledger.audit.rules.file import RuleSet, load_rules, read_rules
from ledger.audit.rules.match import Match
from ledger.audit.rules.matching import RuleFold

__all__ = ["Match", "RuleFold", "RuleSet", "load_rules", "read_rules", "rules_detector"]
