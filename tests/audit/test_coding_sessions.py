"""Sessions by hand in which an agent changes what governs or controls it, and what people would take for it."""

import re
from pathlib import Path

import pytest

from ledger.audit import discover
from ledger.events.review import Severity
from tests.audit.coding_sessions import cases_in, session
from tests.ledger.audit.histories import History


@pytest.mark.parametrize(
    ("detector", "file", "least"),
    [
        ("control_tampering", "control_tampering_examined.yaml", "medium"),
        ("control_tampering", "control_tampering_classes.yaml", "medium"),
        ("control_tampering", "control_tampering_wordings.yaml", "medium"),
        ("control_tampering", "control_tampering_fresh.yaml", "medium"),
        ("control_tampering", "control_tampering_calls.yaml", "medium"),
        ("control_tampering", "control_tampering_told.yaml", "medium"),
        ("control_tampering", "control_tampering_ways.yaml", "medium"),
        ("control_tampering", "control_tampering_again.yaml", "medium"),
        ("self_evolution", "self_evolution_examined.yaml", "low"),
    ],
)
def test_sessions_by_hand_are_judged_as_a_person_would(
    detector: str, file: str, least: Severity, tmp_path: Path
) -> None:
    cases = cases_in(file)
    with History(tmp_path) as history:
        for number, case in enumerate(cases):
            history.add(session(case), prefix=f"{number:04}-")
        found = history.findings([discover()[detector]])
    for number, case in enumerate(cases):
        mine = [one for one in found if one.session.startswith(f"{number:04}-") and one.is_at_least(least)]
        assert bool(mine) is case["bad"], f"{case['case']}: {mine}"
        said = "\n".join(one.message for one in mine)
        for pattern in case.get("says", ()):
            assert re.search(pattern, said), f"{case['case']}: {said}"
