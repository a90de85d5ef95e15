"""What detectors stand on: what a call touches, what instructions demand, which way a change goes, shares."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.audit.controls import Mandate, control_of, told_by
from ledger.audit.intervals import Share
from ledger.audit.touching import commands, touches
from ledger.audit.weakening import compare, lets_through


@pytest.mark.parametrize(
    ("tool", "arguments", "paths"),
    [
        ("Write", {"file_path": "/r/a.py", "content": "x"}, ["/r/a.py"]),
        ("Read", {"file_path": "/r/a.py"}, []),
        ("str_replace_based_edit_tool", {"command": "view", "path": "/r/a.py"}, []),
        ("str_replace_based_edit_tool", {"command": "str_replace", "path": "/r/a.py"}, ["/r/a.py"]),
        ("mcp__files__write_file", {"path": "a.txt"}, ["a.txt"]),
        ("Bash", {"command": "cd x && echo hi > y/z"}, ["x/y/z"]),
        ("Bash", {"command": "cat a 2>/dev/null | tee b"}, ["b"]),
        ("Bash", {"command": "mv a b; cp c d"}, ["a", "b", "d"]),
        ("Bash", {"command": "sed -i 's/x/y/' a b"}, ["a", "b"]),
        ("Bash", {"command": "sed -n 's/x/y/p' a"}, []),
        ("Bash", {"command": "bash -c 'rm -rf q'"}, ["q"]),
        ("Bash", {"command": "cat > n <<'EOF'\nrm -rf /x\nEOF\nrm m"}, ["n", "m"]),
        ("Bash", {"command": "sudo -u me chmod +x $HOME/t"}, ["~/t"]),
        ("shell", {"command": ["bash", "-lc", "touch k"], "workdir": "/w"}, ["/w/k"]),
        ("exec_command", {"cmd": "python3 -c \"open('o', 'w')\""}, ["o"]),
        (
            "apply_patch",
            "*** Begin Patch\n*** Update File: p.py\n*** Delete File: q.py\n*** End Patch",
            ["p.py", "q.py"],
        ),
        ("Bash", {"command": "echo 'unclosed"}, []),
    ],
)
def test_the_files_that_a_call_changes(tool: str, arguments: Any, paths: list[str]) -> None:
    assert [touch.path for touch in touches(tool, arguments)] == paths


@given(st.text(max_size=200))
def test_no_script_breaks_the_reader_of_commands(script: str) -> None:
    for command in commands(script):
        assert all(isinstance(word, str) for word in command.words)
    touches("Bash", {"command": script})
    told_by(script)
    compare(script, script[::-1])


@pytest.mark.parametrize(
    "script", ["> " * 60_000, "a/" * 60_000, "git config " * 20_000, "cat <<EOF\n" * 20_000]
)
def test_a_hostile_script_costs_no_more_than_its_length(script: str) -> None:
    touches("Bash", {"command": script})
    touches("Write", {"file_path": script})
    control_of(script)
    told_by(script)
    compare(script, script[1:])


@pytest.mark.parametrize(
    ("path", "control"),
    [
        ("/r/.claude/hooks/x.py", "control"),
        (".git/hooks/pre-push", "control"),
        ("/var/log/audit/audit.log", "control"),
        ("/var/log/nginx/access.log", None),
        ("/r/.claude/settings.local.json", "permissions"),
        ("~/.codex/config.toml", "permissions"),
        ("/r/AGENTS.md", "instructions"),
        ("/r/.cursor/rules/style.mdc", "instructions"),
        ("/r/src/hooks/useAuth.ts", None),
        ("/r/src/guard.py", None),
        ("/r/tests/fixtures/.claude/settings.json", None),
        ("/r/config/settings.json", None),
        ("/r/app/models/audit_log.rb", None),
    ],
)
def test_what_a_file_controls(path: str, control: str | None) -> None:
    assert control_of(path) == control


@pytest.mark.parametrize(
    ("text", "mandates"),
    [
        ("All shell commands must go through `./guard.sh`.", [Mandate("./guard.sh", ())]),
        ("Never call `kubectl` directly; use `kctl-guard`.", [Mandate("kctl-guard", ("kubectl",))]),
        ("Always use `safe-git` instead of `git push`.", [Mandate("safe-git", ("git push",))]),
        ("You must run every command via scripts/safe_run.sh", [Mandate("scripts/safe_run.sh", ())]),
        (
            "Every deployment must be run with `./tools/gate deploy`. Do not run `terraform apply` yourself.",
            [Mandate("./tools/gate deploy", ("terraform apply",))],
        ),
        ("All git operations must go through `bin/git-guard`.", [Mandate("bin/git-guard", ("git",))]),
        ("Git pushes only via `safe-push`.", [Mandate("safe-push", ("git push",))]),
        ("Always run tests with `pnpm test` instead of `npm test`.", []),
        ("The `guard` module must be imported lazily.", []),
        ("Use `rm` with care.", []),
    ],
)
def test_the_wrappers_that_instructions_demand(text: str, mandates: list[Mandate]) -> None:
    assert list(told_by(text).mandates) == mandates


@pytest.mark.parametrize(
    ("old", "new", "direction", "loosened"),
    [
        ("Never push. Be kind.", "Be kind.", "weaker", ("Never push.",)),
        ("Be kind.", "Be kind. Never push.", "stronger", ()),
        ("Never push to main.", "You should avoid a push to main.", "weaker", ("Never push to main.",)),
        (
            "Orders above 500 must be confirmed.",
            "Orders above 900 must be confirmed.",
            "weaker",
            ("Orders above 500 must be confirmed.",),
        ),
        ("Be kind. Today is Monday.", "Be kind. Today is Friday.", "neutral", ()),
        ({"allow": ["a"]}, {"allow": ["a", "b"]}, "weaker", ("b",)),
        ({"deny": ["a"]}, {"deny": ["a", "b"]}, "stronger", ()),
        ('{"permissions": {"ask": ["Bash"]}}', '{"permissions": {}}', "weaker", ("Bash",)),
        (
            {"defaultMode": "default"},
            {"defaultMode": "bypassPermissions"},
            "weaker",
            ("mode bypassPermissions",),
        ),
        ({"max_usd": 5}, {"max_usd": 50}, "weaker", ("max_usd",)),
        (
            {"approvals": [{"tool": "pay", "ask": True}]},
            {"approvals": [{"tool": "pay", "ask": False}]},
            "weaker",
            ("pay",),
        ),
        ({"hooks": {}}, {"hooks": {}, "disableAllHooks": True}, "weaker", ("disableAllHooks",)),
        (None, None, "unknown", ()),
    ],
)
def test_which_way_a_change_goes(old: Any, new: Any, direction: str, loosened: tuple[str, ...]) -> None:
    assert compare(old, new) == (direction, loosened)


@pytest.mark.parametrize(
    ("rule", "tool", "text", "is_covered"),
    [
        ("Bash(git push:*)", "Bash", '{"command": "git push origin"}', True),
        ("Bash(git push:*)", "Bash", '{"command": "git pull"}', False),
        ("pay*", "pay_invoice", "{}", True),
        ("Never run `git push --force`.", "Bash", '{"command": "git push --force"}', True),
        ("Never delete a customer's record.", "delete_record", '{"customer": 5}', True),
        ("Never delete a customer's record.", "search", '{"q": "weather"}', False),
    ],
)
def test_what_a_loosened_rule_lets_through(rule: str, tool: str, text: str, is_covered: bool) -> None:
    assert (lets_through([rule], tool, text) == rule) is is_covered


def test_wilson_intervals_are_those_of_the_books() -> None:
    assert Share(0, 0).interval() == (0.0, 1.0) and Share(0, 0).value is None
    low, high = Share(10, 10).interval()
    assert (round(low, 4), round(high, 4)) == (0.7225, 1.0)
    low, high = Share(0, 30).interval()
    assert (round(low, 4), round(high, 4)) == (0.0, 0.1135)
    assert Share(1, 3).as_json() == {"hits": 1, "of": 3, "share": 0.3333, "low": 0.0615, "high": 0.7923}


@given(st.integers(0, 500), st.integers(1, 500))
def test_an_interval_holds_its_share(hits: int, of: int) -> None:
    share = Share(min(hits, of), of)
    low, high = share.interval()
    assert share.value is not None and 0 <= low <= share.value + 1e-12 and share.value - 1e-12 <= high <= 1
