"""What a tool call does outside: its class, its operation and its target, and who says so. Runs nothing."""

from ledger.effects.classes import Effect, classify, from_annotations, inferred_class, worst
from ledger.effects.policy import EffectPolicy, EffectRule, load_effect_policy

__all__ = [
    "Effect",
    "EffectPolicy",
    "EffectRule",
    "classify",
    "from_annotations",
    "inferred_class",
    "load_effect_policy",
    "worst",
]
