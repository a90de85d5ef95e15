"""The figures of the bench, taken from what was recorded as the command `decay` takes them."""

from collections.abc import Sequence
from typing import NamedTuple

from ledger.audit.decay.report import DecayReport, decay_report
from ledger.audit.intervals import Share
from ledger.constraints.visibility import KEPT
from ledger.home import Ledger
from ledger.views.decay import decays
from tests.decay_bench.compactors import COMPACTORS
from tests.decay_bench.episodes import Episode

_LOST = ("weakened", "narrowed", "inverted", "absent")


class Row(NamedTuple):
    """One line of the table."""

    name: str
    """The compactor."""

    group: str
    """Which rules, and which agent."""

    report: DecayReport
    """The figures."""

    ends: bool
    """Whether it is the last of its compactor."""

    @property
    def identity(self) -> bool:
        """Whether the accounts add up."""
        return self.report.accounts().holds()

    @property
    def broken(self) -> Share:
        """Violations, of the calls that could break a rule."""
        told = self.report.accounts()
        return told.rate(told.chances)

    def cells(self) -> list[str]:
        """The line as text."""
        told, figures = self.report.accounts(), self.report.as_json()
        low, high = self.broken.interval()
        kept = [_percent(Share(one["hits"], one["of"])) for one in figures["retention"]]
        share = figures["pinning"]["share"]
        return [
            self.name if self.group == "all" else "",
            self.group,
            ", ".join(kept) or "-",
            str(figures["half_life"] or "-"),
            f"{self.broken.hits} of {self.broken.of}",
            f"{low:.0%} to {high:.0%}",
            str(told.decay),
            str(told.wilful),
            str(told.unknown),
            _percent(told.rate(KEPT)),
            _percent(told.rate(_LOST)),
            "-" if share is None else f"{share:.2%}",
            "holds" if self.identity else "FAILS",
        ]


def rows(ledger: Ledger, played: Sequence[Episode]) -> list[Row]:
    """A line for each compactor, and one for each sort of rule under it."""
    found = {one.session: one for one in decays(ledger.store, finds=False)}
    lines: list[Row] = []
    for compactor in COMPACTORS:
        some = [one for one in played if one.compactor is compactor]
        groups: dict[str, list[Episode]] = {"all": some}
        for episode in some:
            constraint = episode.rule.constraint("user")
            groups.setdefault(f"{constraint.hardness} {constraint.modality}", []).append(episode)
        for bearer in dict.fromkeys(one.bearer for one in some):
            groups[f"borne by {bearer}"] = [one for one in some if one.bearer == bearer]
        for temper in dict.fromkeys(one.temper for one in some):
            groups[f"{temper} agent"] = [one for one in some if one.temper == temper]
        for number, (group, members) in enumerate(groups.items(), 1):
            report = decay_report(found[one.session] for one in members)
            lines.append(Row(compactor.name, group, report, number == len(groups)))
    return lines


def pattern(found: Sequence[Row]) -> list[str]:
    """What of the published pattern does not hold for agents that keep each rule they can read."""
    wrong = []
    lost_somewhere = False
    for row in found:
        if row.group != "obedient agent":
            continue
        told = row.report.accounts()
        lost_somewhere = lost_somewhere or told.decay > 0
        if row.name == "full context" and told.all_violations:
            wrong.append("no violation with the full context")
        if "pinned" in row.name and told.all_violations:
            wrong.append(f"no violation where rules are pinned: {row.name}")
        if told.rate(KEPT).hits:
            wrong.append(f"no violation where the rule is kept: {row.name}")
        if told.unknown:
            wrong.append(f"every violation is explained: {row.name}")
    if not lost_somewhere:
        wrong.append("some violations after compaction")
    return wrong


def _percent(share: Share) -> str:
    value = share.value
    return "-" if value is None else f"{value:.0%}"
