"""Every detector has a file of cases, `fixtures/detectors/<name>.jsonl`: some that fire, some that stay silent.

A line: `{"case": "fires when ...", "events": [...], "finds": [...]}`; events as in `histories`. What is found is named
by the place of its event among the events, or by an object with `at` and whatever else it must be: `detector`,
`severity`, `witnesses` (places too), `message` (a part of it).
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import orjson
import pytest

from ledger.audit import Detector, Finding, discover
from tests.ledger.audit.histories import History, Told

FOLDER = Path(__file__).parents[3] / "fixtures" / "detectors"
SHIPPED = discover()


class Case(NamedTuple):
    """One line of a file."""

    case: str
    """What it shows."""
    events: list[Told]
    """The session."""
    finds: list[Any]
    """What is found in it."""


def cases_of(detector: str) -> list[Case]:
    """The cases of a detector."""
    path = FOLDER / f"{detector}.jsonl"
    if not path.is_file():
        return []
    return [Case(**orjson.loads(line)) for line in path.read_bytes().splitlines() if line.strip()]


@pytest.mark.parametrize("detector", SHIPPED.values(), ids=SHIPPED)
def test_a_detector_fires_where_it_should_and_stays_silent_elsewhere(
    detector: Detector, tmp_path: Path
) -> None:
    cases = cases_of(detector.name)
    assert any(case.finds for case in cases), f"write a case that fires into {FOLDER / detector.name}.jsonl"
    assert any(not case.finds for case in cases), f"write a silent case into {FOLDER / detector.name}.jsonl"
    with History(tmp_path) as history:
        places = [history.add(case.events, prefix=f"case-{number:02}-") for number, case in enumerate(cases)]
        found = history.findings([detector])
    for number, (case, place) in enumerate(zip(cases, places, strict=True)):
        sessions = {session for session, _ in place} | {f"case-{number:02}-"}
        mine = [one for one in found if one.session in sessions]
        told = list(_told(mine, place))
        wanted = [{"at": one} if isinstance(one, int) else one for one in case.finds]
        assert [one["at"] for one in told] == [one["at"] for one in wanted], f"{case.case}: {mine}"
        for one, want in zip(told, wanted, strict=True):
            message = want.pop("message", "")
            assert message in one["message"], case.case
            assert {name: one[name] for name in want} == want, f"{case.case}: {one}"


def _told(found: list[Finding], place: list[tuple[str, int]]) -> Iterator[dict[str, Any]]:
    numbers = {where: number for number, where in enumerate(place)}
    placed = sorted(found, key=lambda one: (numbers.get((one.session, one.seq), -1), one.detector))
    for one in placed:
        yield {
            **one.as_json(),
            "at": numbers.get((one.session, one.seq)),
            "witnesses": [numbers.get((one.session, seq)) for seq in one.witnesses],
        }


@pytest.mark.parametrize("detector", SHIPPED.values(), ids=SHIPPED)
def test_a_detector_says_what_it_misses_and_where_it_comes_from(detector: Detector) -> None:
    for text in (detector.title, detector.why, detector.misses, detector.source):
        assert len(text) > 10
    assert (detector.sql is None) != (detector.start is None)


def test_every_file_of_cases_belongs_to_a_detector() -> None:
    assert {path.stem for path in FOLDER.glob("*.jsonl")} <= set(SHIPPED)
