"""A function is loaded by the name that a user gives, and a wrong name is explained."""

from pathlib import Path

import pytest

from ledger.errors import InputError
from replay.inprocess.functions import load_function


def test_a_function_is_found_in_a_file_or_a_module(tmp_path: Path) -> None:
    path = tmp_path / "my_agent_of_this_test.py"
    path.write_text("import helper_of_this_test\ndef agent(run):\n    return helper_of_this_test.VALUE\n")
    (tmp_path / "helper_of_this_test.py").write_text("VALUE = 7\n")
    assert load_function(f"{path}:agent")(None) == 7
    assert load_function("json:dumps")({}) == "{}"


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("agent", "expected module:function"),
        (":agent", "expected module:function"),
        ("json:", "expected module:function"),
        ("no_such_module_here:agent", "cannot be loaded: ModuleNotFoundError"),
        ("nowhere/agent.py:agent", "is no file"),
        ("json:no_such_function", "has no function"),
    ],
)
def test_a_wrong_name_is_explained(name: str, problem: str) -> None:
    with pytest.raises(InputError, match=problem):
        load_function(name)


def test_a_file_that_fails_says_why(tmp_path: Path) -> None:
    path = tmp_path / "broken_agent_of_this_test.py"
    path.write_text("raise SystemExit(3)\n")
    with pytest.raises(InputError, match="SystemExit: 3"):
        load_function(f"{path}:agent")
