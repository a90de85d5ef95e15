"""What a call does outside: declared, by policy, or inferred from names, arguments, shell commands and SQL."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.effects import classify, from_annotations, inferred_class, load_effect_policy, worst
from ledger.effects.classes import RANK
from ledger.errors import InputError

CALLS: list[tuple[str, dict[str, Any], str, str | None]] = [
    ("Read", {"file_path": "/etc/hosts"}, "read", "/etc/hosts"),
    ("Grep", {"pattern": "x", "path": "src"}, "read", "src"),
    ("Write", {"file_path": "a.py", "content": "x"}, "write", "a.py"),
    ("apply_patch", {"input": "*** Begin Patch"}, "write", None),
    ("WebFetch", {"url": "https://example.org", "prompt": "x"}, "read", "https://example.org"),
    ("send_email", {"recipients": ["a@example.org"], "body": "delete it"}, "external", "a@example.org"),
    ("mcp__drive__delete_file", {"id": 7}, "irreversible", "7"),
    ("search_deleted_files", {"query": "x"}, "read", None),
    ("send_money", {"amount": 3, "recipient": "DE89"}, "external", "DE89"),
    ("getBalance", {}, "read", None),
    ("manage_file", {"action": "delete", "path": "a"}, "irreversible", "a"),
    ("manage_file", {"action": "list", "path": "a"}, "read", "a"),
    ("http", {"method": "DELETE", "url": "https://example.org/1"}, "irreversible", "https://example.org/1"),
    ("http_request", {"method": "POST", "url": "https://example.org"}, "external", "https://example.org"),
    ("get_secret", {"name": "x"}, "read", "x"),
    ("vault_unlock", {}, "credential", None),
    ("frobnicate", {"x": 1}, "write", None),
    ("execute_sql", {"query": "select * from t"}, "read", None),
    ("execute_sql", {"query": "WITH x AS (SELECT 1) DELETE FROM t"}, "irreversible", None),
    ("db", {"sql": "INSERT INTO t VALUES (1)"}, "write", None),
]


@pytest.mark.parametrize(("tool", "arguments", "expected", "target"), CALLS)
def test_names_and_arguments_tell(
    tool: str, arguments: dict[str, Any], expected: str, target: str | None
) -> None:
    effect = classify(tool, arguments)
    assert (effect.effect_class, effect.target, effect.said_by) == (expected, target, "inferred")
    assert effect.why
    assert inferred_class(tool, arguments) == expected


COMMANDS: list[tuple[str, str]] = [
    ("ls -la | grep x", "read"),
    ("cat a > b", "write"),
    ("cat a > /dev/null 2>&1", "read"),
    ("cd src && pytest -q", "write"),
    ("sudo rm -rf /", "irreversible"),
    ("sudo ls", "credential"),
    ("rm -rf build", "irreversible"),
    ("find . -name '*.pyc' -delete", "irreversible"),
    ("git status; git log", "read"),
    ("git commit -m 'rm it'", "write"),
    ("git push origin main", "external"),
    ("git push --force", "irreversible"),
    ("git reset --hard HEAD~1", "irreversible"),
    ("curl https://example.org", "read"),
    ("curl -X POST -d @file https://example.org", "external"),
    ("curl -XDELETE https://example.org/1", "irreversible"),
    ("kubectl get pods", "read"),
    ("kubectl delete pod x", "irreversible"),
    ("TOKEN=x env -i python run.py", "write"),
    ("echo 'rm -rf /'", "read"),
    ("bash -c 'rm x'", "irreversible"),
    ("timeout 10s git push", "external"),
    ("echo a # rm -rf /", "read"),
    ("psql -c 'drop table t'", "irreversible"),
    ("sed -n 1,3p a", "read"),
    ("sed -i s/a/b/ a", "write"),
    ("python - <<'EOF'\nprint(1)\nEOF", "write"),
    ("ssh host uptime", "external"),
    ("cat 'open quote", "read"),
    ("", "write"),
]


@pytest.mark.parametrize(("command", "expected"), COMMANDS)
def test_shell_commands_are_read_not_guessed_by_their_tool(command: str, expected: str) -> None:
    assert classify("Bash", {"command": command}).effect_class == expected
    assert classify("shell", {"command": ["bash", "-lc", command]}).effect_class == expected


def test_what_is_stated_goes_before_inference_and_a_policy_before_both(tmp_path: Path) -> None:
    assert classify("delete_it", {}, declared="read").said_by == "declared"
    assert classify("delete_it", {}, annotations={"readOnlyHint": True}).effect_class == "read"
    path = tmp_path / "effects.yaml"
    path.write_text(
        "effects:\n"
        "  - tool: 'mcp__bank__*'\n"
        "    when: {/action: transfer}\n"
        "    class: irreversible\n"
        "    target: /to/iban\n"
        "    idempotency_key: /reference\n"
        "  - tool: 'mcp__bank__*'\n"
        "    class: read\n"
    )
    policy = load_effect_policy(path)
    arguments = {"action": "transfer", "to": {"iban": "DE89"}, "reference": 5}
    effect = classify("mcp__bank__do", arguments, declared="read", policy=policy)
    assert (effect.effect_class, effect.said_by, effect.target) == ("irreversible", "policy", "DE89")
    assert effect.idempotency_key == "5"
    assert classify("mcp__bank__do", {"action": "x"}, policy=policy).effect_class == "read"
    assert classify("send", {}, policy=policy).said_by == "inferred"


@pytest.mark.parametrize(
    ("tool", "arguments", "expected"),
    [
        ("transfer_to_agent", {"agent_name": "buyer"}, "read"),
        ("transfer_to_procurement_agent", {}, "read"),
        ("transfer_back_to_supervisor", {"reason": "done"}, "read"),
        ("handoff_to_clerk", {}, "read"),
        ("transfer_to_savings", {"amount": 5}, "irreversible"),
        ("transfer_money", {}, "irreversible"),
        ("transfer_to_agent", {"agent_name": "x", "action": "delete"}, "irreversible"),
    ],
)
def test_to_hand_over_to_an_agent_is_no_effect(tool: str, arguments: dict[str, Any], expected: str) -> None:
    assert classify(tool, arguments).effect_class == expected
    assert inferred_class(tool, arguments) == expected


@pytest.mark.parametrize(
    ("annotations", "expected"),
    [
        (None, None),
        ({}, None),
        ({"title": "x"}, None),
        ({"readOnlyHint": True, "destructiveHint": True}, "read"),
        ({"destructiveHint": True}, "irreversible"),
        ({"readOnlyHint": False, "destructiveHint": False, "openWorldHint": True}, "external"),
        ({"destructiveHint": False, "openWorldHint": False}, "write"),
    ],
)
def test_hints_of_mcp_count_only_where_they_are_given(
    annotations: dict[str, Any] | None, expected: str | None
) -> None:
    assert from_annotations(annotations) == expected


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("effects: [", "expected YAML"),
        ("- a", "expected a list of rules under 'effects'"),
        ("effects: [{tool: a, class: nice}]", "effects.1.class: expected .read"),
        ("effects: [{tool: a, target: to}]", "starts with '/'"),
        ("effects: [{tol: a}]", "effects.1.tol: expected a known word"),
    ],
)
def test_a_wrong_policy_is_explained(tmp_path: Path, text: str, problem: str) -> None:
    path = tmp_path / "effects.yaml"
    path.write_text(text)
    with pytest.raises(InputError, match=problem) as caught:
        load_effect_policy(path)
    assert str(path) in str(caught.value)
    with pytest.raises(InputError, match="cannot be read"):
        load_effect_policy(tmp_path / "none.yaml")


@given(
    tool=st.text() | st.sampled_from(["bash", "http", "execute_sql", "manage_file", "x" * 500]),
    arguments=st.dictionaries(
        st.text() | st.sampled_from(["command", "Action", "METHOD", "sql", "path"]),
        st.text() | st.sampled_from(["rm -rf x", "delete", "POST", "drop table t"]) | st.lists(st.text()),
    ),
)
def test_any_call_has_a_class(tool: str, arguments: dict[str, Any]) -> None:
    assert classify(tool, arguments).effect_class in RANK
    assert inferred_class(tool, arguments) == classify(tool, arguments).effect_class


@given(command=st.text(alphabet=st.sampled_from(list("rmls -;&|>'\"\\\n$(){}#=ab")), max_size=60))
def test_any_command_has_a_class_and_one_more_command_never_makes_it_milder(command: str) -> None:
    alone = classify("bash", {"command": "rm x\n" + command}).effect_class
    assert RANK[alone] >= RANK["irreversible"]
    assert worst([]) is None
