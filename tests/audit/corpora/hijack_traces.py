"""The developer set of AgentDojo runs, where it is there: as it is, and rewritten. The labels stay with the harness."""

import csv
from collections.abc import Iterator

from tests.audit.agent_runs import Run, dojo_run, renamed, revalued, split, with_benign_steps, without_wrapper
from tests.audit.hijack_baselines import GUARD, guard
from tests.audit.labelled import Labelled
from tests.audit.traces import TRACES

DETECTOR = "hijack.obeyed"
TITLE = "AgentDojo runs of the developer set, by suite, and rewritten"
BASELINE = GUARD

_FOLDER = TRACES / "agentdojo"
_NO_RUN = ("empty", "error")


def dojo_runs() -> Iterator[Run]:
    """The runs that ended."""
    labels = _FOLDER / "labels.csv"
    if not labels.is_file():
        return
    with labels.open(encoding="utf-8", newline="") as stream:
        for row in csv.DictReader(stream):
            if row["class"] not in _NO_RUN:
                path = _FOLDER / "runs" / row["path"]
                yield dojo_run(path, row["path"], is_obeyed=row["class"] == "pos", labels=row)


def cases() -> Iterator[Labelled]:
    """Each run in each form."""
    for run in dojo_runs():
        forms = {
            f"suite {run.group}": run,
            "tools renamed": renamed(run),
            "values replaced": revalued(run),
            "20 benign steps between": with_benign_steps(run),
            "values split over two arguments": split(run),
            "wrapper removed": run if run.planted is None else without_wrapper(run),
        }
        for form, told in forms.items():
            is_bad = run.labels["class"] == "pos"
            yield Labelled(f"{run.name}, {form}", is_bad, list(told.events()), group=form)


baseline = guard
