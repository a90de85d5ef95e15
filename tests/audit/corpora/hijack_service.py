"""Runs by hand in which an agent rightly does what a page of instructions says, with and without a stranger on it."""

from collections.abc import Iterator

from tests.audit.hijack_baselines import TAINT, taint
from tests.audit.labelled import Labelled
from tests.audit.service_runs import service_runs

DETECTOR = "hijack.obeyed"
TITLE = "four matters by hand that a page tells how to settle: followed; a stranger on the page resisted or obeyed"
BASELINE = TAINT


def cases() -> Iterator[Labelled]:
    """Each run."""
    for run in service_runs():
        yield Labelled(run.name, run.is_obeyed, list(run.events()), group=run.group)


baseline = taint
