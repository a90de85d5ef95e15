"""Every detector that is on is measured, and beats its trivial baseline."""

import json
from pathlib import Path

import pytest

from ledger.audit import discover
from tests.audit.labelled import Corpus, Counts, measure
from tests.audit.measure import KEPT, figures_of, found_corpora, main

CORPORA = list(found_corpora())


def test_every_detector_that_is_on_has_a_corpus() -> None:
    measured = {corpus.DETECTOR.partition(".")[0] for corpus in CORPORA}
    missing = [name for name, one in discover().items() if name not in measured and not one.is_experimental]
    assert not missing, f"write tests/audit/corpora/*.py for {missing}, or mark them experimental"


@pytest.mark.slow
@pytest.mark.parametrize("corpus", CORPORA, ids=lambda corpus: corpus.__name__.rpartition(".")[2])
def test_a_detector_that_is_on_beats_its_trivial_baseline(corpus: Corpus, tmp_path: Path) -> None:
    detectors = discover()
    done = measure(corpus, detectors, tmp_path)
    if done is None:
        pytest.skip("its traces are not here")
    figures = figures_of(corpus, done)
    known = json.loads(KEPT.read_text(encoding="utf-8"))
    shown = next(one for one in known if (one["detector"], one["corpus"]) == (corpus.DETECTOR, corpus.TITLE))
    if all(figures[name] == shown[name] for name in ("bad", "good")):  # fewer where there are no traces
        assert figures == shown, "run `python -m tests.audit.measure --keep`"
    if not detectors[corpus.DETECTOR.partition(".")[0]].is_experimental:
        assert done.detector["all"].f1 > done.baseline["all"].f1


def test_counts_are_those_of_the_books() -> None:
    counts = Counts()
    for is_bad, is_flagged, times in (
        (True, True, 6),
        (True, False, 2),
        (False, True, 1),
        (False, False, 11),
    ):
        for _ in range(times):
            counts.add("case", is_bad=is_bad, is_flagged=is_flagged)
    assert (counts.precision.value, counts.recall.value) == (6 / 7, 6 / 8)
    assert counts.f1 == pytest.approx(0.8) and counts.false_alarms.value == 1 / 12


def test_the_table_is_printed(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")  # a narrow table breaks its lines
    assert main(["duplicated_effect"]) == 0
    assert "baseline: an external or irreversible call made twice" in capsys.readouterr().out
