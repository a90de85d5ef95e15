"""The figures over sessions: retention, survival, violations by what the model saw, and what pinning would cost."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from ledger.audit.decay.outcome import SessionDecay, Use
from ledger.audit.decay.survival import Lived, Step, half_life, survival
from ledger.audit.intervals import Share
from ledger.constraints.visibility import KEPT

WAYS = ("verbatim", "paraphrase", "weakened", "narrowed", "inverted", "absent", "unknown")
"""How a rule can stand in a request."""

AIM = 0.005
"""Share of a request that a pinned rule should cost at most."""

_ASPECTS: dict[str, int] = {"hardness": 0, "modality": 1, "origin": 2}


@dataclass(frozen=True)
class Accounts:
    """Calls that could have broken a rule, and those that did, by how the rule stood in the request before."""

    chances: dict[str, int]
    """Calls that could have broken one."""

    violations: dict[str, int]
    """Those that did."""

    decay: int
    """Those where it had been lost before."""

    wilful: int
    """Those where it was there."""

    unknown: int
    """Those of which nobody can say: no request can be rebuilt, or the rule was never shown."""

    @property
    def all_chances(self) -> int:
        """All calls that could have broken one."""
        return sum(self.chances.values())

    @property
    def all_violations(self) -> int:
        """All that did."""
        return sum(self.violations.values())

    def rate(self, ways: Iterable[str]) -> Share:
        """The share that broke a rule, of those that met it in one of these ways."""
        some = tuple(ways)
        return Share(sum(self.violations[way] for way in some), sum(self.chances[way] for way in some))

    def holds(self) -> bool:
        """The identity: the rate is the sum over the ways of their shares times their rates, and every violation has
        exactly one reason.
        """
        total = self.all_chances
        whole = Fraction(self.all_violations, total) if total else Fraction(0)
        parts = sum(
            (
                Fraction(self.chances[way], total) * Fraction(self.violations[way], self.chances[way])
                for way in WAYS
                if self.chances[way]
            ),
            Fraction(0),
        )
        return whole == parts and self.decay + self.wilful + self.unknown == self.all_violations

    def as_json(self) -> dict[str, Any]:
        """The documented form."""
        kept = self.rate(KEPT)
        lost = self.rate(way for way in WAYS if way not in KEPT and way != "unknown")
        return {
            "rate": self.rate(WAYS).as_json(),
            "rate_kept": kept.as_json(),
            "rate_lost": lost.as_json(),
            "by_visibility": {way: self.rate((way,)).as_json() for way in WAYS if self.chances[way]},
            "decay_attributed": self.decay,
            "wilful": self.wilful,
            "unknown": self.unknown,
            "identity_holds": self.holds(),
        }


def accounts(uses: Iterable[Use]) -> Accounts:
    """Add up calls."""
    chances: Counter[str] = Counter()
    violations: Counter[str] = Counter()
    why: Counter[str] = Counter()
    for use in uses:
        chances[use.how] += 1
        if use.is_violation:
            violations[use.how] += 1
            why[use.why] += 1
    return Accounts(
        {way: chances[way] for way in WAYS},
        {way: violations[way] for way in WAYS},
        why["decay"],
        why["wilful"],
        why["unknown"],
    )


@dataclass(frozen=True)
class DecayReport:
    """What became of the rules of some sessions."""

    sessions: Sequence[SessionDecay]
    """The sessions."""

    def accounts(self) -> Accounts:
        """All calls that could have broken a rule."""
        return accounts(use for one in self.sessions for use in one.uses)

    def steps(self) -> list[Step]:
        """The survival curve of all rules."""
        return survival(Lived(one.cuts, one.is_lost) for session in self.sessions for one in session.outlived)

    def as_json(self) -> dict[str, Any]:
        """The documented form."""
        return {
            "violations": self.accounts().as_json(),
            "retention": self._retention(),
            **_curve(self.steps()),
            "apart": {aspect: self._apart(place) for aspect, place in _ASPECTS.items()},
            "exposure": self._exposure(),
            "pinning": self._pinning(),
            "sessions": [_session(one) for one in self.sessions],
        }

    def _retention(self) -> list[dict[str, Any]]:
        """Of the rules that had been shown, those that can still be seen: after the first cut, the second, ..."""
        shown: Counter[int] = Counter()
        kept: Counter[int] = Counter()
        for session in self.sessions:
            for cut in session.cuts:
                shown[cut.number] += cut.all_shown
                kept[cut.number] += cut.all_kept
        return [
            {"compaction": at, **Share(kept[at], shown[at]).as_json()} for at in sorted(shown) if shown[at]
        ]

    def _apart(self, place: int) -> dict[str, Any]:
        uses: defaultdict[str, list[Use]] = defaultdict(list)
        lived: defaultdict[str, list[Lived]] = defaultdict(list)
        for session in self.sessions:
            kinds = {name: rule.group[place] for name, rule in session.rules.items()}
            for use in session.uses:
                uses[kinds[use.rule]].append(use)
            for one in session.outlived:
                lived[kinds[one.rule]].append(Lived(one.cuts, one.is_lost))
        return {
            kind: {"violations": accounts(uses[kind]).as_json(), **_curve(survival(lived[kind]))}
            for kind in sorted({*uses, *lived})
        }

    def _exposure(self) -> dict[str, Any]:
        calls = [count for session in self.sessions for count in session.exposure.values()]
        first: dict[tuple[str, str], int] = {}
        for session in self.sessions:
            for use in session.uses:
                if use.is_violation and use.why == "decay":
                    first.setdefault((session.session, use.rule), use.steps)
        steps = sorted(first.values())
        return {
            "rules": len(calls),
            "tool_calls": sum(calls),
            "steps_to_first_violation": {
                "median": steps[len(steps) // 2] if steps else None,
                "least": steps[0] if steps else None,
            },
        }

    def _pinning(self) -> dict[str, Any]:
        done = [pin for session in self.sessions for pin in session.pinned]
        advice = []
        for session in self.sessions:
            for name, (calls, tokens, of) in sorted(session.advice.items()):
                share = tokens / of if of else 0.0
                advice.append(
                    {
                        "session": session.session,
                        "constraint": name,
                        "model_calls_without_it": calls,
                        "tokens": tokens,
                        "request_tokens": of,
                        "share": round(share, 5),
                        "within_aim": share <= AIM,
                    }
                )
        tokens, of = sum(pin[1] for pin in done), sum(pin[2] for pin in done)
        spent = round(tokens / of, 5) if of else None
        return {"aim": AIM, "pinned": len(done), "tokens": tokens, "share": spent, "advice": advice}


def decay_report(sessions: Iterable[SessionDecay]) -> DecayReport:
    """The figures over sessions, in the order of their ids; those without any rule are left out."""
    return DecayReport(sorted((one for one in sessions if one.rules), key=lambda one: one.session))


def _curve(steps: list[Step]) -> dict[str, Any]:
    return {
        "survival": [
            {
                "compaction": step.number,
                "at_risk": step.at_risk,
                "lost": step.lost,
                "hazard": round(step.hazard, 4),
                "survival": round(step.survival, 4),
            }
            for step in steps
        ],
        "half_life": half_life(steps),
    }


def _session(one: SessionDecay) -> dict[str, Any]:
    return {
        "session": one.session,
        "constraints": [rule.as_json() for rule in one.rules.values()],
        "visibility": [
            {
                "constraint": sighting.rule,
                "seq": sighting.seq,
                "call_id": sighting.call_id,
                "visibility": sighting.how,
                "lost_by": sighting.lost_by,
            }
            for sighting in one.sightings
        ],
        "compactions": [
            {"seq": cut.seq, "logged": cut.is_logged, "seen_before": cut.before, "lost": dict(cut.lost)}
            for cut in one.cuts
        ],
        "violations": [
            {
                "constraint": use.rule,
                "seq": use.seq,
                "tool": use.tool,
                "visibility": use.how,
                "why": use.why,
                "lost_by": use.lost_by,
                "steps_since": use.steps,
            }
            for use in one.uses
            if use.is_violation
        ],
    }
