"""An audit of a lake that lies there: what `audit` does where no store is asked."""

from collections.abc import Callable, Collection
from pathlib import Path

import typer

from ledger.audit import Detector, Report
from ledger.audit.report import MissingInput
from ledger.cli.engines import Engine, auditing
from ledger.cli.terminal import visible
from ledger.lake.records import LakeRecords
from ledger.views.findings import Readable
from ledger.views.lake_audit import audit_lake

_MOST_NAMED = 3


def audit_there(
    folder: Path,
    engine: Engine,
    spark: str | None,
    detectors: list[Detector],
    sessions: Collection[str] | None,
    also: Callable[[Readable, Report], None],
) -> Report:
    """Audit sessions of a lake, on an engine; do something else with its records before it is closed."""
    with auditing(folder, engine, spark) as (ask, query):
        records = LakeRecords(ask)
        wanted = sorted({records.resolve(name) for name in sessions}) if sessions else None
        report = audit_lake(records, detectors, query, wanted)
        also(records, report)
    return report


def tell_missing(missing: Collection[MissingInput]) -> None:
    """Say what detectors asked for in vain."""
    for one in missing:
        named = ", ".join(one.sessions[:_MOST_NAMED])
        more = f" and {len(one.sessions) - _MOST_NAMED} more" if len(one.sessions) > _MOST_NAMED else ""
        text = (
            f"missing input: {one.detector} asked {one.times} times for what the lake does not carry, in {named}{more};"
            " an audit of the store may find other things there"
        )
        typer.echo(f"loopledger: {visible(text)}", err=True)
