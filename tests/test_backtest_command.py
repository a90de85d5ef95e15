"""`backtest` and `audit --rules`, as a user runs them."""

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
