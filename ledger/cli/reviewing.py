"""The commands `detectors`, `verdict` and `note`: who suspects what, and what people say of it."""

import getpass
from typing import Annotated, Any

import typer

from ledger.audit import Detector, discover
from ledger.cli.auditing import DetectorsOption
from ledger.cli.settings import ByOption, JsonOption, ReasonOption, settings_of
from ledger.cli.terminal import Column, Table, say, say_wrapped, show_json, visible
from ledger.errors import InputError
from ledger.views.findings import Measured, Verdict, find, give_verdict, kept, measured, write_note

_VERDICTS: dict[str, Verdict] = {
    "true": "confirmed",
    "false-alarm": "dismissed",
    "accepted": "accepted_risk",
    "duplicate": "duplicate",
}


def add_review_commands(app: typer.Typer) -> None:
    """Add this file's commands."""
    app.command("detectors", epilog="Example: loopledger detectors --json | jq '.[].name'")(detectors_command)
    app.command("verdict", epilog="Example: loopledger verdict 3f2a false-alarm --reason 'a test key'")(
        verdict_command
    )
    app.command("note", epilog="Example: loopledger note '3f2a#17' 'the user had asked for this'")(
        note_command
    )


def detectors_command(
    context: typer.Context, detectors: DetectorsOption = None, as_json: JsonOption = False
) -> None:
    """List the detectors: what they suspect, what they miss, and how often people found them right."""
    settings = settings_of(context)
    found = discover(settings.home_folder, detectors)
    done: dict[str, Measured] = {}
    if settings.store is not None or (settings.home_folder / "ledger.sqlite").is_file():
        with settings.open_existing() as ledger:
            done = measured(kept(ledger.store))
    if as_json:
        show_json([_detector_json(detector, done) for detector in found.values()])
        return
    table = Table(
        [
            Column("DETECTOR", 22),
            Column("SEVERITY", 8),
            Column("SESSIONS", 8, is_number=True),
            Column("FINDINGS", 8, is_number=True),
            Column("FOUND RIGHT", 0),
        ]
    )
    for detector in found.values():
        state = " (off: experimental)" if detector.is_experimental else ""
        own = _together(detector.name, done)
        table.row(detector.name, detector.severity, own.runs, own.findings, _precision(own))
        say_wrapped(visible(detector.broken or detector.title + state), 2)


def _together(name: str, done: dict[str, Measured]) -> Measured:
    """A detector with all of its suspicions."""
    return done.get(name) or Measured.of(name, [one for one in done.values() if one.is_of(name)])


def _precision(one: Measured) -> str:
    value = one.precision.value
    if value is None:
        return "-"
    low, high = one.precision.interval()
    return f"{value:.0%} ({low:.0%} to {high:.0%})"


def _detector_json(detector: Detector, done: dict[str, Measured]) -> dict[str, Any]:
    own = _together(detector.name, done)
    return {
        "name": detector.name,
        "title": detector.title,
        "severity": detector.severity,
        "level": detector.level,
        "why": detector.why,
        "misses": detector.misses,
        "reads": list(detector.reads),
        "source": detector.source,
        "state": _state(detector),
        "error": detector.broken,
        "language": "sql" if detector.sql is not None else "python",
        "version": detector.digest,
        "own": detector.is_own,
        "runs": own.runs,
        "findings": own.findings,
        "precision": own.precision.as_json(),
        "parts": [
            {
                "name": one.detector,
                "runs": one.runs,
                "findings": one.findings,
                "precision": one.precision.as_json(),
            }
            for one in done.values()
            if one.is_of(detector.name)
        ],
    }


def _state(detector: Detector) -> str:
    if detector.broken is not None:
        return "broken"
    return "experimental" if detector.is_experimental else "on"


def verdict_command(
    context: typer.Context,
    finding: Annotated[
        str,
        typer.Argument(
            metavar="FINDING", help="Id of a finding, or the unambiguous start of one.", show_default=False
        ),
    ],
    verdict: Annotated[
        str,
        typer.Argument(metavar="VERDICT", help=f"One of {', '.join(_VERDICTS)}.", show_default=False),
    ],
    reason: ReasonOption = None,
    by: ByOption = None,
    as_json: JsonOption = False,
) -> None:
    """Say whether a finding is right; `detectors` shows how often each detector was."""
    if verdict not in _VERDICTS:
        raise InputError(f"expected one of {', '.join(_VERDICTS)}, found {verdict!r}")
    with settings_of(context).open_existing() as ledger:
        one = find(ledger.store, finding)
        give_verdict(ledger.recorder, one, _VERDICTS[verdict], by or getpass.getuser(), reason)
        done = measured(kept(ledger.store))[one.detector]
    if as_json:
        show_json(
            {
                "finding": one.id,
                "detector": one.detector,
                "verdict": _VERDICTS[verdict],
                "precision": done.precision.as_json(),
            }
        )
    else:
        say(f"{visible(one.detector)} {one.id}: {verdict}; right in {_precision(done)} of what was judged")


def note_command(
    context: typer.Context,
    about: Annotated[
        str,
        typer.Argument(metavar="SESSION[#SEQ]", help="A session, or one record of it.", show_default=False),
    ],
    text: Annotated[str, typer.Argument(metavar="TEXT", help="The note.", show_default=False)],
    by: ByOption = None,
    as_json: JsonOption = False,
) -> None:
    """Keep a note about a session, or about one record of it."""
    name, mark, seq = about.rpartition("#")
    if mark and not seq.isdigit():
        raise InputError(f"{about!r} names no record: expected SESSION#SEQ")
    with settings_of(context).open_existing() as ledger:
        session = ledger.store.resolve(name if mark else about)
        write_note(ledger.recorder, session, int(seq) if mark else None, text, by or getpass.getuser())
    if as_json:
        show_json({"session": session, "seq": int(seq) if mark else None})
        return
    say(f"kept: a note about {visible(session)}{mark}{seq if mark else ''}")
