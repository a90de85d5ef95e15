"""`backtest` and `audit --rules`, as a user runs them."""

import hashlib
import json
from pathlib import Path

from tests.commands import answer, record_session, run

RULES = """
rules:
- name: echo
  title: Something was echoed
  action: deny
  steps: [{call: echo, if: "args.text == 'TEXT'"}]
"""


def test_rules_are_tried_on_the_past_and_then_used(tmp_path: Path) -> None:
    home, new, old = tmp_path / "home", tmp_path / "new.yaml", tmp_path / "old.yaml"
    record_session(home, "one", text="hello")
    record_session(home, "two", text="bye")
    new.write_text(RULES.replace("TEXT", "hello"))
    old.write_text(RULES.replace("TEXT", "bye"))
    told = answer(home, "backtest", new, "--against", old)
    assert told["by_rule"]["echo"]["would_block"] == 1
    assert told["difference"]["newly_matched"] == told["difference"]["no_longer_matched"] == 1
    assert Path(told["saved"]).is_file()
    shown = run(home, "backtest", new, "--against", old, "--no-save")
    assert shown.exit_code == 0 and "1 newly matched, 1 no longer matched" in shown.stdout
    (finding,) = answer(home, "audit", "--rules", new, "--detector", "new")["findings"]
    assert finding["detector"] == "new.echo" and finding["session"] == "one" and finding["level"] == "action"


def test_a_mistake_in_a_rule_is_a_message_with_its_line(tmp_path: Path) -> None:
    record_session(tmp_path / "home")
    bad = tmp_path / "bad.yaml"
    bad.write_text(RULES.replace("args.text", "argument"))
    result = run(tmp_path / "home", "backtest", bad)
    assert result.exit_code == 2 and "bad.yaml:6: if: expected a CEL expression" in result.stderr
    assert run(tmp_path / "home", "audit", "--rules", bad).exit_code == 2


OLD = """
rules:
- {name: loud, title: Echo, severity: low, steps: [{call: echo}]}
- {name: former, title: Echo of two, action: deny, steps: [{call: echo, if: "args.text == 'two'"}]}
- {name: gone, title: Any, steps: [{call: "*"}]}
"""
NEW = """
rules:
- {name: loud, title: Echo, severity: high, action: deny, steps: [{call: echo, if: "args.text == 'one'"}]}
- {name: renamed, title: Echo of two, action: deny, steps: [{call: echo, if: "args.text == 'two'"}]}
- {name: fresh, title: Result, steps: [{result: echo}]}
"""


def test_the_difference_of_two_versions_is_told_by_rule_and_kept_with_the_same_bytes(tmp_path: Path) -> None:
    home, new, old = tmp_path / "home", tmp_path / "rules.yaml", tmp_path / "old.yaml"
    for text in ("one", "two"):
        record_session(home, text, text=text)
    new.write_text(NEW)
    old.write_text(OLD)
    told = answer(home, "backtest", new, "--against", old)
    difference = told["difference"]
    assert difference["rules"] == {
        "added": ["fresh"],
        "removed": ["gone"],
        "renamed": {"former": "renamed"},
        "changed": {"loud": ["severity", "action", "steps"]},
        "untrusted_changed": False,
    }
    nothing = {"newly_matched": 0, "no_longer_matched": 0, "newly_blocked": 0, "no_longer_blocked": 0}
    assert difference["by_rule"] == {
        "fresh": nothing | {"newly_matched": 2},
        "gone": nothing | {"no_longer_matched": 2},
        "loud": nothing | {"no_longer_matched": 1, "newly_blocked": 1},
    }
    assert (difference["newly_matched"], difference["no_longer_matched"]) == (2, 3)
    kept = Path(told["saved"]).read_bytes()
    again = answer(home, "backtest", new, "--against", old)
    assert again == told and Path(again["saved"]).read_bytes() == kept
    lines = run(home, "events", "backtests", "--json").stdout.splitlines()
    exported = [line for line in map(json.loads, lines) if line["type"] == "review.evidence_exported"]
    assert {line["data"]["digest"] for line in exported} == {hashlib.sha256(kept).hexdigest()}
    shown = run(home, "backtest", new, "--against", old, "--no-save").stdout
    assert "rule former is named renamed now" in shown
    assert "rule loud has changed: severity, action, steps" in shown
    assert "1 newly blocked, 0 no longer blocked" in shown
