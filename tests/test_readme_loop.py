"""The loop in README runs as it stands there, and records what README promises."""

import re
from pathlib import Path
from typing import Any

import pytest

from ledger.home import open_ledger
from ledger.store import verify

README = Path(__file__).parent.parent / "README.md"
BLOCK = re.compile(r"<!-- loop -->\s*```python\n(.*?)```", re.DOTALL)


def _example() -> str:
    found = BLOCK.search(README.read_text(encoding="utf-8")) if README.is_file() else None
    if found is None:
        pytest.skip("README.md has no python block after <!-- loop -->")
    return found[1]


def _create(**request: Any) -> dict[str, Any]:
    """Stands for a provider's function: asks for the tool once, then answers."""
    message: dict[str, Any] = {"role": "assistant", "content": "Yes: prices.csv."}
    if len(request["messages"]) == 1:
        function = {"name": "look_up", "arguments": '{"folder":"inbox"}'}
        call = {"id": "call_1", "type": "function", "function": function}
        message = {"role": "assistant", "content": None, "tool_calls": [call]}
    return {"choices": [{"index": 0, "message": message}]}


def test_the_loop_in_readme_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    code = _example()
    monkeypatch.setenv("LOOPLEDGER_HOME", str(tmp_path))
    given = {"__name__": "__main__", "create": _create, "look_up": lambda folder: f"{folder}: prices.csv"}
    exec(compile(code, "README.md", "exec"), given)  # noqa: S102 - our own README
    with open_ledger(tmp_path) as ledger:
        assert verify(ledger.store).ok
        types = [record.type for record in ledger.store.read_all()]
    assert types[0] == "session.started"
    assert types[-1] == "session.ended"
    assert {"model_call.requested", "model_call.answered", "tool_call.started", "tool_call.settled"} <= set(
        types
    )


def test_the_loop_in_readme_is_short() -> None:
    lines = [line for line in _example().splitlines() if line.strip()]
    assert len(lines) <= 24, "README promises a loop in ten lines, beside the user's own functions"
