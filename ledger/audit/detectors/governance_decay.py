"""A rule was lost when the context was shortened, and broken while the model could not see it, or although it could."""

from collections.abc import Iterable, Iterator

from ledger.audit.decay.outcome import SessionDecay, Use
from ledger.audit.decay.watching import READS as _READS
from ledger.audit.decay.watching import DecayWatch
from ledger.audit.detector import Given
from ledger.audit.finding import Found
from ledger.events import Record

TITLE = "Rule lost in compaction, or broken"
SEVERITY = "high"
WHY = "A model keeps the rules that it sees: what a compaction drops is broken soon after, and no single step shows it."
MISSES = (
    "Rules that are no sentence; what breaks a rule, unless a policy declares it or the rule forbids one tool by name;"
    " rules in other languages than English; other words than its lexicon knows; requests that cannot be rebuilt."
)
READS = _READS
SOURCE = "Governance Decay (arXiv 2606.22528), omission constraints (2604.20911), Ghost in the Context (2605.12535)."

_SHOWN = 3


class Watch:
    """One session."""

    def __init__(self, given: Given) -> None:
        self._watch = DecayWatch(given.session, given.reader)
        self._cuts = 0
        self._uses = 0

    def take(self, record: Record) -> Iterator[Found]:
        """One more record."""
        self._watch.take(record)
        yield from self._news(self._watch.result)

    def end(self) -> Iterable[Found]:
        """Calls of which nobody told how they ended."""
        result = self._watch.end()
        return [
            found for use in result.uses for found in self._broken(result, use) if use not in self._told()
        ]

    def _told(self) -> list[Use]:
        return self._watch.result.uses

    def _news(self, result: SessionDecay) -> Iterator[Found]:
        for cut in result.cuts[self._cuts :]:
            lost = {name: how for name, how in cut.lost.items() if result.rules[name].hardness == "hard"}
            if lost:
                named = "; ".join(
                    f"{result.rules[name].text[:80]!r} ({how})" for name, how in list(lost.items())[:_SHOWN]
                )
                more = f" and {len(lost) - _SHOWN} more" if len(lost) > _SHOWN else ""
                what = "a compaction" if cut.is_logged else "the context was shortened and"
                message = f"{what} lost {len(lost)} of {len(cut.before)} rules: {named}{more}"
                yield Found(
                    cut.seq, message, (cut.seq,), severity="medium", part="lost", key=f"lost {cut.seq}"
                )
        self._cuts = len(result.cuts)
        for use in result.uses[self._uses :]:
            yield from self._broken(result, use)
        self._uses = len(result.uses)

    def _broken(self, result: SessionDecay, use: Use) -> Iterator[Found]:
        if not use.is_violation:
            return
        rule = result.rules[use.rule]
        said = f"{use.tool} broke the rule {rule.text[:120]!r}"
        key = f"{use.rule} {use.seq}"
        if use.why == "decay":
            message = f"{said}, which the model could no longer see ({use.how}) since seq {use.lost_by}"
            witnesses = (use.seq,) if use.lost_by is None else (use.lost_by, use.seq)
            yield Found(use.seq, message, witnesses, part="decayed", key=key)
        elif use.why == "wilful":
            yield Found(use.seq, f"{said}, which stood in its request ({use.how})", part="wilful", key=key)
        else:
            message = f"{said}; whether the model had seen it cannot be said"
            yield Found(use.seq, message, severity="medium", part="unexplained", key=key)


start = Watch
