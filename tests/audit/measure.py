"""`python -m tests.audit.measure [DETECTOR...] [-v] [--keep]`: precision, recall, F1 of each detector and its baseline.

Exits with 1 when a detector that is on does not beat its trivial baseline on each of its corpora. With -v, names the
cases that were missed and the false alarms; with --keep, the pages show these figures from now on.
"""

import importlib
import json
import pkgutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

from rich.console import Console
from rich.table import Table

import ledger.audit.measured
from ledger.audit import discover
from tests.audit import corpora
from tests.audit.labelled import Corpus, Counts, Measurement, measure

KEPT = Path(ledger.audit.measured.__file__).with_name(ledger.audit.measured.FILE)
"""Where the pages find the figures."""


def found_corpora() -> Iterator[Corpus]:
    """All corpora, by name of their modules."""
    for module in sorted(pkgutil.iter_modules(corpora.__path__), key=lambda module: module.name):
        if not module.name.startswith("_"):
            yield cast(Corpus, importlib.import_module(f"{corpora.__name__}.{module.name}"))


def main(arguments: list[str]) -> int:
    """Print the table."""
    names, is_verbose = [one for one in arguments if one not in ("-v", "--keep")], "-v" in arguments
    kept = {(one["detector"], one["corpus"]): one for one in json.loads(KEPT.read_text(encoding="utf-8"))}
    detectors = discover()
    table = Table("Detector", "Rule", "Bad", "Good", "Precision", "Recall", "F1", "False alarms")
    worse, told = [], []
    for corpus in found_corpora():
        if names and corpus.DETECTOR not in names:
            continue
        with tempfile.TemporaryDirectory() as home:
            done = measure(corpus, detectors, Path(home))
        if done is None:
            told.append(f"{corpus.DETECTOR}: not measured here: {corpus.TITLE}")
            continue
        _rows(table, corpus, done)
        figures = figures_of(corpus, done)
        kept[figures["detector"], figures["corpus"]] = figures
        beats = done.detector["all"].f1 > done.baseline["all"].f1
        if not beats and not detectors[corpus.DETECTOR.partition(".")[0]].is_experimental:
            worse.append(corpus.DETECTOR)
        if is_verbose:
            told += [f"missed: {name}" for name in done.detector["all"].missed]
            told += [f"false alarm: {name}" for name in done.detector["all"].false]
    console = Console(width=max(120, Console().width))
    console.print(table)
    for line in told:
        console.print(line, markup=False)
    if "--keep" in arguments:
        lines = [json.dumps(kept[name], ensure_ascii=False) for name in sorted(kept)]
        KEPT.write_text("[\n" + ",\n".join(lines) + "\n]\n", encoding="utf-8")
    if worse:
        console.print(f"no better than its trivial baseline: {', '.join(worse)}; mark it experimental")
    return 1 if worse else 0


def figures_of(corpus: Corpus, done: Measurement) -> dict[str, Any]:
    """What is kept of a measurement."""
    detector, baseline = done.detector["all"], done.baseline["all"]
    return {
        "detector": corpus.DETECTOR,
        "corpus": corpus.TITLE,
        "baseline": corpus.BASELINE,
        "bad": detector.recall.of,
        "good": detector.false_alarms.of,
        "hits": detector.hits,
        "false": len(detector.false),
        "baseline_hits": baseline.hits,
        "baseline_false": len(baseline.false),
    }


def _rows(table: Table, corpus: Corpus, done: Measurement) -> None:
    table.add_row(corpus.DETECTOR, corpus.TITLE, end_section=False)
    groups = [name for name in done.detector if name != "all"]
    for group in ["all", *(groups if len(groups) > 1 else ())]:
        where = "" if group == "all" else f" [{group}]"
        _row(table, f"detector{where}", done.detector[group])
    _row(table, f"baseline: {corpus.BASELINE}", done.baseline["all"], ends=True)


def _row(table: Table, name: str, counts: Counts, *, ends: bool = False) -> None:
    low, high = counts.false_alarms.interval()
    false = counts.false_alarms.value
    table.add_row(
        "",
        name.replace("[", r"\["),
        str(counts.recall.of),
        str(counts.false_alarms.of),
        _percent(counts.precision.value),
        _percent(counts.recall.value),
        f"{counts.f1:.3f}",
        "-" if false is None else f"{false:.1%} ({low:.1%} to {high:.1%})",
        end_section=ends,
    )


def _percent(value: float | None) -> str:
    return "-" if value is None else f"{value:.1%}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
