"""A small run of the bench: the published pattern, and accounts that add up in every arm."""

from itertools import count
from pathlib import Path

from ledger.audit.decay import decay_report
from ledger.constraints.visibility import KEPT
from ledger.home import open_ledger
from ledger.views.decay import decays
from tests.decay_bench.compactors import COMPACTORS
from tests.decay_bench.episodes import Episode, episodes, play
from tests.decay_bench.figures import pattern, rows
from tests.decay_bench.rules import RULES


def test_the_rules_are_hard_and_soft_prohibitions_and_requirements() -> None:
    kinds = [(one.hardness, one.modality) for one in (rule.constraint("user") for rule in RULES)]
    assert {kind: kinds.count(kind) for kind in kinds} == {
        ("hard", "prohibition"): 2,
        ("hard", "requirement"): 2,
        ("soft", "prohibition"): 2,
        ("soft", "requirement"): 2,
    }


def test_rules_are_broken_after_they_are_lost_and_kept_while_they_are_seen_or_pinned(tmp_path: Path) -> None:
    played = [one for one in episodes(("user",), ("obedient",)) if one.rule.name in ("mail", "ticket")]
    with open_ledger(tmp_path) as ledger:
        for episode in played:
            play(ledger, episode)
        found = rows(ledger, played)
        sessions = decays(ledger.store, finds=False)
    assert pattern(found) == []
    assert all(row.identity for row in found)
    assert all(decay_report([one]).accounts().holds() for one in sessions)
    broken = {row.name: row.report.accounts() for row in found if row.group == "all"}
    assert broken["full context"].all_violations == 0
    assert broken["window"].decay == broken["window"].all_violations == 4  # two rules, tempted twice after
    assert broken["adversarial eviction"].decay == 4
    assert broken["summary template"].decay == 2  # the soft one: the template keeps what says `never`
    assert broken["structured eviction"].all_violations == 0  # users' turns stay
    for name in ("window, pinned", "adversarial, pinned"):
        assert broken[name].all_violations == 0
        assert broken[name].rate(KEPT).of == broken[name].all_chances
    pinned = [share for one in sessions for _, share, _ in one.pinned]
    assert pinned


def test_the_same_episode_gives_the_same_figures(tmp_path: Path) -> None:
    episode = Episode(RULES[0], "tool", COMPACTORS[4], "obedient")
    told = []
    for name in ("a", "b"):
        numbers = (f"{number:032}" for number in count())
        with open_ledger(tmp_path / name, ids=numbers.__next__) as ledger:
            play(ledger, episode)
            told.append(decay_report(decays(ledger.store)).as_json())
    assert told[0] == told[1]
    assert told[0]["violations"]["decay_attributed"] == 2  # what a tool told is evicted with its result
