"""Random histories through the recorder: every figure of decay against a count kept beside it, and formulas by hand."""

import json
import math
import random
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from ledger.audit.decay import decay_report
from ledger.audit.intervals import Z_95, Share
from ledger.capture import record_loop
from ledger.effects.constraints import CallPattern, Constraint
from ledger.effects.loop_policy import LoopPolicy
from ledger.home import Ledger, open_ledger
from ledger.views.decay import decays

RULES = {
    "r0": ("Never drop or truncate a table of orders.", "Dropping or truncating tables of orders is forbidden."),
    "r1": ("Deployments are forbidden on Fridays.", "On Fridays, nothing may be deployed."),
    "r2": ("Try not to mention competitors by name.", "Try to avoid mentioning competitors by name."),
    "r3": ("Refunds above 200 EUR need approval.", "Any refund of more than 200 EUR must be approved."),
}  # fmt: skip
"""Each rule, and other words for it."""


@dataclass
class Count:
    """What must come out."""

    uses: list[tuple[str, bool]] = field(default_factory=list)
    lives: list[tuple[int, bool]] = field(default_factory=list)
    kept: dict[int, list[int]] = field(default_factory=dict)
    exposure: int = 0


class History:
    """One loop with rules that are told, lost in compactions, told again and broken, all at random."""

    def __init__(self, run: Any, chance: random.Random, count: Count, names: list[str]) -> None:
        self._run, self._chance, self._count, self._names = run, chance, count, names
        self._messages: list[dict[str, Any]] = [{"role": "system", "content": "You are a clerk."}]
        self._calls = 0
        self._visible: set[str] = set()
        self._lived: dict[str, int] = {}
        self._shown: set[str] = set()
        self._lost: set[str] = set()

    def play(self) -> None:
        """Play it."""
        late = [name for name in self._names if self._chance.random() < 0.3]
        for name in self._names:
            if name not in late:
                self._tell(name)
        for number in range(1, self._chance.choice((2, 3, 4, 5, 6))):
            for _ in range(self._chance.choice((1, 2, 3))):
                self._hear("Look at the river gauge.")
                self._step()
            self._compact(number)
            for name in self._names:
                if name not in self._visible and self._chance.random() < 0.3:
                    self._tell(name)
            self._step()
        self._count.lives += [(cuts, False) for cuts in self._lived.values()]

    def _hear(self, text: str) -> None:
        message = {"role": "user", "content": text}
        self._messages.append(message)
        self._run.message(message)

    def _tell(self, name: str) -> None:
        self._hear(f"A rule of the house. {RULES[name][0]} Now to the work.")
        self._visible.add(name)

    def _step(self) -> None:
        name, is_bad = self._chance.choice(self._names), self._chance.random() < 0.5
        self._calls += 1
        call_id = f"call-{self._calls}"
        call = {"name": f"tool_{name}", "arguments": json.dumps({"bad": is_bad})}
        asked = {"id": call_id, "type": "function", "function": call}
        message = {"role": "assistant", "content": f"step {self._calls}", "tool_calls": [asked]}
        answer = {"id": "r", "model": "m", "choices": [{"index": 0, "message": message}]}
        self._run.model(lambda **_: answer, protocol="openai.chat", model="m", messages=list(self._messages))
        self._messages.append(message)
        for seen in self._visible - self._shown:
            self._lived[seen] = 0
        self._shown |= self._visible
        self._lost -= self._visible
        self._count.exposure += len(self._lost)
        why = "wilful" if name in self._visible else "decay" if name in self._shown else "unknown"
        self._count.uses.append((why, is_bad))
        self._run.tool(lambda **_: "done", {"bad": is_bad}, name=f"tool_{name}", call_id=call_id)
        self._messages.append({"role": "tool", "tool_call_id": call_id, "content": "done"})

    def _compact(self, number: int) -> None:
        kept = {name for name in sorted(self._visible) if self._chance.random() < 0.65}
        lines = "".join(f"- {self._chance.choice(RULES[name])}\n" for name in sorted(kept))
        summary = f"Summary of the work.\n## Constraints\n{lines}## Done\n- Looked at the river gauge.\n"
        self._messages = [self._messages[0], {"role": "user", "content": summary}]
        self._run.compacted(self._messages, summary=summary)
        for name in list(self._lived):
            self._lived[name] += 1
            if name not in kept:
                self._count.lives.append((self._lived.pop(name), True))
        share = self._count.kept.setdefault(number, [0, 0])
        share[0] += len(kept & self._shown)
        share[1] += len(self._shown)
        self._lost |= (self._visible & self._shown) - kept
        self._visible = kept


def play(ledger: Ledger, seed: int, count: Count) -> None:
    """Record one history."""
    chance = random.Random(seed)
    names = sorted(chance.sample(sorted(RULES), chance.choice((2, 3, 4))))
    constraints = tuple(
        Constraint(
            name=name,
            text=RULES[name][0],
            origin="user",
            broken_by=(CallPattern(tool=f"tool_{name}", when={"/bad": True}),),
        )
        for name in names
    )
    policy = LoopPolicy(constraints=constraints, pinning="tell")
    with record_loop(ledger, harness="by-hand", session=f"by-hand-{seed}", policy=policy) as run:
        History(run, chance, count, names).play()


@pytest.mark.parametrize("first", [0, 1000])
def test_all_figures_are_what_a_count_beside_the_loops_says(first: int, tmp_path: Path) -> None:
    count = Count()
    with open_ledger(tmp_path) as ledger:
        for seed in range(first, first + 15):
            play(ledger, seed, count)
        found = decays(ledger.store, finds=False)
    assert all(decay_report([one]).accounts().holds() for one in found)
    told = decay_report(found).as_json()
    violations = told["violations"]
    assert violations["identity_holds"]
    assert violations["rate"]["of"] == len(count.uses)
    for key, why in (("decay_attributed", "decay"), ("wilful", "wilful"), ("unknown", "unknown")):
        assert violations[key] == sum(1 for its, is_bad in count.uses if is_bad and its == why), why
    assert told["exposure"]["tool_calls"] == count.exposure
    shares = [(one["compaction"], one["hits"], one["of"]) for one in told["retention"]]
    assert shares == [(number, *share) for number, share in sorted(count.kept.items()) if share[1]]
    curve, survival = [], 1.0
    for number in range(1, max(cuts for cuts, _ in count.lives) + 1):  # Kaplan and Meier, as in a textbook
        at_risk = sum(1 for cuts, _ in count.lives if cuts >= number)
        lost = sum(1 for cuts, is_lost in count.lives if cuts == number and is_lost)
        survival *= 1 - lost / at_risk
        curve.append((number, at_risk, lost, round(lost / at_risk, 4), round(survival, 4)))
    keys = ("compaction", "at_risk", "lost", "hazard", "survival")
    assert [tuple(step[key] for key in keys) for step in told["survival"]] == curve
    assert told["half_life"] == next((step[0] for step in curve if step[4] < 0.5), None)


@pytest.mark.parametrize(("hits", "of"), [(0, 1), (1, 1), (3, 10), (50, 100), (0, 84), (999, 1000)])
def test_the_interval_is_where_the_normal_test_is_not_rejected(hits: int, of: int) -> None:
    low, high = Share(hits, of).interval()
    a, b, c = 1 + Z_95**2 / of, -(2 * hits / of + Z_95**2 / of), (hits / of) ** 2
    reach = math.sqrt(b * b - 4 * a * c)  # the roots of (share - x)^2 = z^2 x (1 - x) / of
    assert low == pytest.approx((-b - reach) / (2 * a), abs=1e-12)
    assert high == pytest.approx((-b + reach) / (2 * a), abs=1e-12)
