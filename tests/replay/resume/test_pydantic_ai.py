"""What is written for Pydantic AI: the history, with open calls left open. Real agents: tests/frameworks."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.commands import FIXTURES, answer, run

PYDANTIC_AI = FIXTURES / "pydantic-ai"


def said(message: dict[str, Any]) -> list[Any]:
    """What tells a message from others."""
    names = ("part_kind", "content", "args", "tool_name", "tool_call_id")
    return [message["kind"], [[part.get(name) for name in names] for part in message["parts"]]]


@pytest.mark.parametrize("case", ["anthropic", "responses"])
def test_a_history_comes_back_up_to_its_question(tmp_path: Path, case: str) -> None:
    home, source = tmp_path / "home", PYDANTIC_AI / case / "2-approved.json"
    session = answer(home, "import", source)["sessions"][0]
    native = json.loads(source.read_text())
    asked = json.loads((PYDANTIC_AI / case / "1-interrupted.json").read_text())
    lines = map(json.loads, run(home, "events", session, "--json").stdout.splitlines())
    seq = [one["seq"] for one in lines if one["type"] == "tool_call.requested"][-1]
    answer(home, "checkpoint", session, "--at", seq, "--label", "asked")
    into = tmp_path / "back"
    result = run(home, "rollback", session, "--to", "asked", "--reason", "x", "--into", into)
    assert result.exit_code in (0, 1), result.output
    written = json.loads((into / "messages.json").read_text())
    assert [said(one) for one in written] == [said(one) for one in asked]
    assert len(written) < len(native)
    assert "those that need an approval are asked about again" in result.stdout.replace("\n", " ")
