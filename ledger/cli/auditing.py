"""The command `audit`: what detectors find, all at once or as it comes."""

import queue
from collections.abc import Collection
from importlib.metadata import version
from pathlib import Path
from typing import Annotated

import orjson
import typer

from ledger.audit import SEVERITIES, Detector, Finding, Report, chosen, discover
from ledger.audit.designed import design_detector, load_design
from ledger.audit.failure import Failure
from ledger.audit.sarif import Place, sarif
from ledger.cli.engines import Engine, EngineOption, SparkOption, auditing
from ledger.cli.lake_auditing import audit_there, tell_missing
from ledger.cli.querying import LakeOption, export
from ledger.cli.settings import BAD_NEWS, WRONG_USE, JsonOption, settings_of
from ledger.cli.terminal import counted, say, say_wrapped, show_json, visible
from ledger.errors import InputError
from ledger.events.review import Severity
from ledger.home import Ledger
from ledger.lake.connection import FOLDER
from ledger.views.auditing import AuditFollower
from ledger.views.findings import Readable, audit, keep

_MOST_RUNS = 20
_COLORS = {"critical": "red", "high": "red", "medium": "yellow"}
DetectorsOption = Annotated[
    Path | None,
    typer.Option(
        "--detectors",
        envvar="LOOPLEDGER_DETECTORS",
        metavar="DIR",
        help="Folder with detectors of yours, *.sql and *.py; the Python in it is run.",
        show_default=False,
    ),
]
RulesOption = Annotated[
    list[Path] | None,
    typer.Option(
        "--rules",
        metavar="FILE",
        help="Rules of yours over the sequence of calls, a YAML file; may be given again.",
        show_default=False,
    ),
]
FailOption = Annotated[
    str | None,
    typer.Option(
        "--fail-on",
        metavar="LEVEL",
        help=f"Exit with 1 when a finding is at least that bad: {', '.join(SEVERITIES)}.",
        show_default=False,
    ),
]


def add_audit_commands(app: typer.Typer) -> None:
    """Add this file's commands."""
    app.command("audit", epilog="Example: loopledger audit --fail-on high --sarif findings.sarif")(
        audit_command
    )


def audit_command(
    context: typer.Context,
    sessions: Annotated[
        list[str] | None,
        typer.Argument(metavar="[SESSION]...", help="Only these; all by default.", show_default=False),
    ] = None,
    fail_on: FailOption = None,
    names: Annotated[
        list[str] | None,
        typer.Option(
            "--detector", metavar="NAME", help="Only this one; may be given again.", show_default=False
        ),
    ] = None,
    experimental: Annotated[
        bool, typer.Option("--experimental", help="Those detectors, too, that are off.")
    ] = False,
    everything: Annotated[
        bool, typer.Option("--all", help="Show findings, too, that people judged to be no cause for alarm.")
    ] = False,
    follow: Annotated[
        bool, typer.Option("--follow", help="Look at sessions while they run, until stopped.")
    ] = False,
    keeps: Annotated[
        bool, typer.Option("--keep/--no-keep", help="Raise new findings as events of their sessions.")
    ] = True,
    sarif_file: Annotated[
        Path | None,
        typer.Option("--sarif", metavar="FILE", help="Write SARIF 2.1.0 for code hosts.", show_default=False),
    ] = None,
    detectors: DetectorsOption = None,
    rules: RulesOption = None,
    designed: Annotated[
        Path | None,
        typer.Option(
            "--designed",
            metavar="FILE",
            help="YAML file of the edges that there may be, as for `edges`.",
            show_default=False,
        ),
    ] = None,
    lake: LakeOption = None,
    engine: EngineOption = Engine.DUCKDB,
    spark: SparkOption = None,
    as_json: JsonOption = False,
) -> None:
    """Look in sessions for what single actions hide; each finding names the records that show it.

    With --lake, Parquet files are enough: no store is opened and nothing is kept. With --engine spark, a cluster reads
    the lake and runs the detectors of SQL; those of Python run here, over records of the store or of the lake. A
    detector that breaks is told of on stderr, the others go on, and the exit status is 2 unless --fail-on makes it 1.
    """
    level = _level(fail_on)
    settings = settings_of(context)
    found = chosen(
        discover(settings.home_folder, detectors, rules or ()), names or (), everything=experimental
    )
    if designed is not None:
        found = [*found, design_detector(load_design(designed))]
        names = [*names, found[-1].name] if names else None
    if follow and (lake is not None or engine == Engine.SPARK):
        raise InputError("--follow looks at a ledger while it runs: leave out --lake and --engine")

    def finish(store: Readable, report: Report) -> None:
        _only(report, names or ())
        if sarif_file is not None:
            _write_sarif(store, report, sarif_file)

    if lake is not None:
        report = audit_there(lake, engine, spark, found, sessions, finish)
    else:
        with settings.open_existing() as ledger:
            wanted = sorted({ledger.store.resolve(name) for name in sessions}) if sessions else None
            if follow:
                _follow(ledger, found, wanted, level, as_json)
                return
            report = run(ledger, found, wanted, engine, spark)
            finish(ledger.store, report)
            if keeps:
                keep(ledger.recorder, report.findings)
    tell_missing(report.missing or ())
    for failure in report.failures:
        _tell_failed(failure)
    if as_json:
        show_json(report.as_json(everything=everything))
    else:
        _show(report, everything=everything)
    worst = report.worst()
    if level is not None and worst is not None and SEVERITIES.index(worst) >= SEVERITIES.index(level):
        raise typer.Exit(BAD_NEWS)
    if report.failures:
        raise typer.Exit(WRONG_USE)


def _tell_failed(failure: Failure) -> None:
    """Say that a detector failed."""
    times = f" ({failure.times} times)" if failure.times > 1 else ""
    typer.echo(f"loopledger: {visible(f'{failure.detector} failed{times}: {failure.error}')}", err=True)


def run(
    ledger: Ledger,
    detectors: list[Detector],
    sessions: Collection[str] | None,
    engine: Engine = Engine.DUCKDB,
    spark: str | None = None,
) -> Report:
    """Audit sessions of a ledger, its lake brought up to it first where a detector needs that."""
    if all(detector.sql is None for detector in detectors):
        return audit(ledger.store, detectors, _no_query, sessions)
    folder = ledger.home / FOLDER
    export(ledger, folder)
    with auditing(folder, engine, spark) as there:
        return audit(ledger.store, detectors, there.query, sessions)


def _no_query(detector: Detector, sessions: Collection[str] | None) -> list[Finding]:
    raise AssertionError(f"{detector.name} is no query")


def _level(text: str | None) -> Severity | None:
    if text is not None and text not in SEVERITIES:
        raise InputError(f"--fail-on: expected one of {', '.join(SEVERITIES)}, found {text!r}")
    return text


def _only(report: Report, names: Collection[str]) -> None:
    """Of a detector with several suspicions, those that were named."""
    if names:
        report.findings = [
            one for one in report.findings if one.detector in names or one.detector.partition(".")[0] in names
        ]


# -- live ---------------------------------------------------------------------------------------------------


def _follow(
    ledger: Ledger,
    detectors: list[Detector],
    sessions: Collection[str] | None,
    level: Severity | None,
    as_json: bool,
) -> None:
    came: queue.Queue[Finding] = queue.Queue()
    failures: list[Failure] = []

    def fails(failure: Failure) -> None:
        failures.append(failure)
        _tell_failed(failure)

    with AuditFollower(ledger.recorder, detectors, tell=came.put, tell_failed=fails):
        if not as_json:
            left = ", ".join(one.name for one in detectors if not one.is_live)
            compare = f"; left to `audit`, since they compare sessions: {left}" if left else ""
            say(f"looking at what comes; Ctrl-C stops{compare}")
        while (finding := _next(came)) is not None:
            if sessions is not None and finding.session not in sessions:
                continue
            if as_json:
                show_json(finding.as_json())
            else:
                _show_finding(finding, None)
            if level is not None and finding.is_at_least(level):
                raise typer.Exit(BAD_NEWS)
    if failures:
        raise typer.Exit(WRONG_USE)


def _next(came: queue.Queue[Finding]) -> Finding | None:
    """What was found next; None when a person stops the program."""
    try:
        return came.get()
    except KeyboardInterrupt:
        return None


# -- shown --------------------------------------------------------------------------------------------------


def _show(report: Report, *, everything: bool) -> None:
    shown = report.findings if everything else report.open()
    for finding in shown:
        _show_finding(finding, report.verdicts.get(finding.id))
    metrics = report.metrics()
    counts = ", ".join(f"{count} {severity}" for severity, count in metrics["by_severity"].items() if count)
    say(
        f"{counted(metrics['sessions'], 'session')}, {counted(len(report.detectors), 'detector')}:"
        f" {counts or 'nothing found'}"
        + (f"; {metrics['not_shown']} judged to be no cause for alarm" if metrics["not_shown"] else "")
    )
    share = metrics["flagged_by_no_action"]
    if share["of"]:
        are = "is flagged for what it does" if share["of"] == 1 else "are flagged for what they do"
        say_wrapped(
            f"{counted(share['of'], 'session')} {are} as a whole; in {share['hits']} of them every single action"
            " passes its own check",
            0,
        )
    for one in metrics["runs"][:_MOST_RUNS]:
        failed = one["failed"]
        say(
            f"  {visible(one['session'])}: {counted(one['actions'], 'action')},"
            f" {len(failed) or 'none'} {'fails by itself' if len(failed) == 1 else 'fail by themselves'}"
        )
        for action in failed[:3]:
            say(f"    seq {action['seq']}: {visible(action['why'])}")
    if len(metrics["runs"]) > _MOST_RUNS:
        say(f"  and {len(metrics['runs']) - _MOST_RUNS} more; --json has all")


def _show_finding(finding: Finding, verdict: str | None) -> None:
    seen = ", ".join([*map(str, finding.witnesses), *finding.elsewhere])
    told = "" if verdict is None else f"  ({verdict.replace('_', ' ')})"
    say(
        f"{finding.severity:<8} {finding.detector}  {finding.id}{told}",
        color=_COLORS.get(finding.severity),
    )
    say_wrapped(f"{visible(finding.session)}#{finding.seq}: {visible(finding.message)}", 9)
    say_wrapped(f"witnesses: {visible(seen)}", 9)


def _write_sarif(store: Readable, report: Report, file: Path) -> None:
    def place_of(session: str, seq: int) -> Place | None:
        for record in store.read(session, after=seq - 1, upto=seq):
            source = record.source
            return None if source is None or source.file is None else Place(source.file, source.line)
        return None

    told = sarif(
        report.detectors, report.findings, report.verdicts, place_of, version("loopledger"), report.failures
    )
    try:
        file.write_bytes(orjson.dumps(told, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE))
    except OSError as error:
        raise InputError(f"{file} cannot be written: {error.strerror}") from error
