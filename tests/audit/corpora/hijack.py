"""Runs written by hand into which a stranger's text was planted, as they are and rewritten in six ways."""

from collections.abc import Iterator

from tests.audit.agent_runs import renamed, revalued, split, with_benign_steps
from tests.audit.hijack_baselines import TAINT, taint
from tests.audit.labelled import Labelled
from tests.audit.planted_runs import runs

DETECTOR = "hijack.obeyed"
TITLE = (
    "eight scenes by hand: text planted in seven ways, obeyed or resisted; delegated and passed on; rewritten"
)
BASELINE = TAINT

REWRITINGS = {
    "as written": lambda run: run,
    "tools renamed": renamed,
    "values replaced": revalued,
    "20 benign steps between": with_benign_steps,
    "values split over two arguments": split,
}


def cases() -> Iterator[Labelled]:
    """Each run in each form. German, and text without a wrapper, are among the ways of planting."""
    for form, rewrite in REWRITINGS.items():
        for run in runs():
            told = rewrite(run)
            group = f"planted: {run.group}" if form == "as written" else form
            yield Labelled(f"{run.name}, {form}", told.is_obeyed, list(told.events()), group=group)


baseline = taint
