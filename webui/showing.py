"""Shows what a replay or a branch did, for people."""

from collections import Counter

from ledger.cli.terminal import amount, say, visible
from replay.inprocess import Report as FunctionReport
from replay.report import Report

_LISTED = 20
_COLORS = {"equal": "green", "diverged": "red", "incomplete": "yellow"}


def show_rerun(report: Report) -> None:
    """A command that ran again: verdict, requests, tools, and what it tried outside."""
    _verdict(report)
    _requests(report)
    facts = report.facts
    for tool, count in report.tools.most_common(_LISTED):
        say(f"  tool      {visible(tool)}: called {amount(count)} times; the agent ran it itself (live)")
    sandbox = facts["sandbox"]
    if not sandbox["held_back"]:
        say(f"  sandbox   none, {sandbox['reason']}: the command could reach and change all that you can")
    else:
        where = f"a copy at {sandbox['cwd']}, a fresh home, all other files read-only"
        reach = "loopback only" if sandbox["network"] == "loopback" else "the whole network"
        say(f"  sandbox   {visible(where)}; {reach}")
    for place, count in list(sandbox["attempts"].items())[:_LISTED]:
        say(f"  stopped   {visible(place)}, tried {amount(count)} times")
    say(f"  command   ended with status {facts['command']['status']}")
    if "replay_session" in facts:
        say(f"  kept as   session {facts['replay_session']}")


def show_function(report: FunctionReport) -> None:
    """A function that ran again in this process."""
    _verdict(report)
    answers = ", ".join(f"{amount(count)} {name}" for name, count in sorted(report.answers.items()) if count)
    say(f"  answers   {answers or 'none'}")
    say(f"  outside   {amount(report.outside_calls)} calls, {amount(report.effects)} tools run for real")
    say(f"  kept as   session {report.replay_session}")


def _verdict(report: Report | FunctionReport) -> None:
    say(report.verdict, bold=True, color=_COLORS[report.verdict])
    if report.divergence is not None:
        say(visible(report.divergence.text(), keep_lines=True))
    elif report.reason is not None:
        say(f"  {visible(report.reason)}")


def _requests(report: Report) -> None:
    found: Counter[tuple[str, str, str]] = Counter()
    for one in report.requests:
        found[one.match if one.source == "recorded" else one.source, one.purpose, ", ".join(one.rules)] += 1
    for (grade, purpose, rules), count in list(found.items())[:_LISTED]:
        words = f"  {grade:<9} {amount(count)} {visible(purpose)} requests"
        say(words + (f" ({visible(rules)})" if rules else ""))
    if report.others:
        say(f"  recorded  {amount(report.others)} answers to other traffic")
    if report.unused:
        say(f"  unused    {amount(len(report.unused))} recorded side calls that nobody made")
