"""The command `decay`: which rules a model still saw, what compactions took away, and what was broken then."""

from pathlib import Path
from typing import Annotated, Any

import typer

from ledger.audit.decay import DecayReport, decay_report
from ledger.audit.intervals import Share
from ledger.cli.settings import JsonOption, settings_of
from ledger.cli.terminal import say, show_json, visible
from ledger.constraints.visibility import KEPT
from ledger.effects.constraints import Constraint
from ledger.effects.loop_policy import load_loop_policy
from ledger.views.decay import decays, keep_sightings

_MOST = 20
_LONGEST = 70


def add_decay_command(app: typer.Typer) -> None:
    """Add this file's command."""
    app.command("decay", epilog="Example: loopledger decay 3f2a --rules policy.yaml")(decay_command)


def decay_command(
    context: typer.Context,
    sessions: Annotated[
        list[str] | None,
        typer.Argument(metavar="[SESSION]...", help="Only these; all by default.", show_default=False),
    ] = None,
    rules: Annotated[
        Path | None,
        typer.Option(
            "--rules",
            metavar="FILE",
            help="Policy (YAML) with constraints that are in force in all of them.",
            show_default=False,
        ),
    ] = None,
    finds: Annotated[
        bool, typer.Option("--found/--declared", help="Look for rules in prompts and messages, too.")
    ] = True,
    keeps: Annotated[
        bool,
        typer.Option("--keep/--no-keep", help="Keep how rules stood as events, for the table `constraints`."),
    ] = True,
    as_json: JsonOption = False,
) -> None:
    """Show which rules a model still saw at its calls, which compaction lost them, and what was broken then."""
    declared: tuple[Constraint, ...] = () if rules is None else load_loop_policy(rules).constraints
    settings = settings_of(context)
    with settings.open_existing() as ledger:
        wanted = sorted({ledger.store.resolve(name) for name in sessions}) if sessions else None
        found = decays(ledger.store, wanted, declared, finds=finds)
        if keeps:
            keep_sightings(ledger.recorder, found)
    report = decay_report(found)
    if as_json:
        show_json(report.as_json())
    else:
        _show(report)


def _show(report: DecayReport) -> None:
    if not report.sessions:
        say("no rule is declared or found in these sessions")
        return
    for session in report.sessions[:_MOST]:
        last: dict[str, str] = {}
        for sighting in session.sightings:
            last[sighting.rule] = sighting.how
        declared = sum(rule.is_declared for rule in session.rules.values())
        say(
            f"{visible(session.session)}: {declared} rules declared, {len(session.rules) - declared} found,"
            f" {len(session.cuts)} compactions",
            bold=True,
        )
        for name, rule in list(session.rules.items())[:_MOST]:
            how = last.get(name, "unknown")
            say(
                f"  {how:<10} {rule.hardness:<5} {rule.modality:<12} {rule.origin:<7} {visible(rule.text[:_LONGEST])}",
                color=None if how in KEPT else "yellow",
            )
        for cut in session.cuts:
            named = ", ".join(f"{visible(name)} ({how})" for name, how in cut.lost.items()) or "none"
            what = "compaction" if cut.is_logged else "context shortened, unlogged"
            say(f"  seq {cut.seq}: {what}; {len(cut.before)} rules seen before, lost: {named}")
        for use in session.uses:
            if use.is_violation:
                since = (
                    ""
                    if use.lost_by is None
                    else f", lost at seq {use.lost_by}, {use.steps} tool calls before"
                )
                broke = f"{visible(use.tool)} broke {visible(use.rule)}: {use.why} ({use.how}{since})"
                say(f"  seq {use.seq}: {broke}", color="red")
    _show_figures(report)


def _show_figures(report: DecayReport) -> None:
    told = report.accounts()
    rate = told.rate(told.chances)
    say(f"calls that could break a rule: {rate.of}; broken: {_share(rate)}")
    if told.all_violations:
        kept = told.rate(KEPT)
        lost = told.rate(way for way in told.chances if way not in (*KEPT, "unknown"))
        say(
            f"  {told.decay} after the rule was lost, {told.wilful} although it was there, {told.unknown} unknown;"
            f" while it was seen {_share(kept)}, while it was lost {_share(lost)}"
        )
    for step in report.steps()[:_MOST]:
        say(
            f"  compaction {step.number}: {step.lost} of {step.at_risk} rules lost,"
            f" hazard {step.hazard:.2f}, survival {step.survival:.2f}"
        )
    pinning: dict[str, Any] = report.as_json()["pinning"]
    for advice in pinning["advice"][:_MOST]:
        say(
            f"  pin {visible(advice['constraint'])}: {advice['model_calls_without_it']} model calls went without it;"
            f" {advice['tokens']} tokens, {advice['share']:.2%} of these requests"
        )
    if pinning["pinned"]:
        share = pinning["share"] or 0
        say(f"  pinned {pinning['pinned']} times: {pinning['tokens']} tokens, {share:.2%} of the requests")


def _share(share: Share) -> str:
    if not share.of:
        return "0 of 0"
    low, high = share.interval()
    return f"{share.hits} of {share.of} ({share.hits / share.of:.0%}; {low:.0%} to {high:.0%})"
