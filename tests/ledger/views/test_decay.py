"""The command `decay`, and the table `constraints` that it fills."""

import json
from pathlib import Path
from typing import Any

import pytest

from ledger.events.visibility import ConstraintSeen
from ledger.lake.feed import Stored
from ledger.lake.memory import MemoryLake
from ledger.views.decay import decays, keep_sightings
from ledger.views.lake import lake_feed
from tests.audit.labelled import call
from tests.commands import answer, run
from tests.ledger.audit.decay.test_watching import MAIL, OUT, RULE, asked, compacted
from tests.ledger.audit.histories import History, Told

EVENTS: list[Told] = [
    {
        "type": "governance.constraint_declared",
        "constraint": "mail",
        "text": RULE,
        "origin": "user",
        "check": MAIL.model_dump(mode="json"),
    },
    asked(1, RULE),
    asked(2, RULE, "more"),
    compacted("Work."),
    asked(3, "Work."),
    *call(1, "send_email", OUT),
]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    with History(tmp_path) as history:
        history.add(EVENTS)
    return tmp_path


def test_how_rules_stood_is_kept_once_and_can_be_asked_by_model_call(tmp_path: Path) -> None:
    with History(tmp_path) as history:
        history.add(EVENTS)
        ledger = history.ledger
        assert keep_sightings(ledger.recorder, decays(ledger.store)) == 2
        assert keep_sightings(ledger.recorder, decays(ledger.store)) == 0
        store: Any = ledger.store
        lake = MemoryLake(lake_feed(store).contents)
        rows = store.recorder.select_events("main")
        lake.add(
            "main", [Stored(row.id, "main", row.originator_version, row.topic, row.state) for row in rows]
        )
        found = lake.connection.execute(
            "select call_seq, constraint_name, visibility, is_visible, lost_by_seq, modality, origin, is_declared,"
            " constraint_text from constraints order by call_seq"
        ).fetchall()
    told = ("prohibition", "user", True, RULE)
    assert found == [
        (2, "mail", "verbatim", True, None, *told),
        (3, "mail", "verbatim", True, None, *told),
        (5, "mail", "absent", False, 4, *told),
    ]


def test_the_command_tells_what_was_lost_and_broken(home: Path) -> None:
    told = answer(home, "decay")
    assert told["violations"]["decay_attributed"] == 1
    assert told["violations"]["identity_holds"] is True
    assert told["survival"] == [{"compaction": 1, "at_risk": 1, "lost": 1, "hazard": 1.0, "survival": 0.0}]
    assert told["half_life"] == 1
    assert told["apart"]["origin"].keys() == {"user"}
    assert told["pinning"]["advice"][0]["constraint"] == "mail"
    assert told["sessions"][0]["violations"][0]["lost_by"] == 4
    with History(home) as history:
        kept = [one.event for one in history.ledger.store.read("main", names=(ConstraintSeen.TYPE,))]
    assert len(kept) == 2


def test_rules_of_a_policy_hold_for_sessions_that_declare_none(tmp_path: Path) -> None:
    with History(tmp_path) as history:
        history.add(EVENTS[1:])
    rules = tmp_path / "rules.yaml"
    rules.write_text(
        json.dumps({"constraints": [MAIL.model_dump(mode="json", exclude_none=True)]}), encoding="utf-8"
    )
    told = answer(tmp_path, "decay", "--rules", str(rules), "--declared", "--no-keep")
    assert told["violations"]["decay_attributed"] == 1
    shown = run(tmp_path, "decay", "--rules", str(rules))
    assert "broke mail: decay" in shown.stdout


def test_a_bad_policy_is_refused_with_its_place(home: Path, tmp_path: Path) -> None:
    rules = tmp_path / "bad.yaml"
    rules.write_text(
        "constraints:\n- {name: a, text: x, broken_by: {tool: t, matches: {/a: '('}}}\n", encoding="utf-8"
    )
    done = run(home, "decay", "--rules", str(rules))
    assert done.exit_code == 2
    assert "regular expression" in done.output
