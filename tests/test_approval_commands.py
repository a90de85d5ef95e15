"""The commands of approvals: what people see, what programs read, what is refused; no trace touches the terminal."""

import threading
import unicodedata
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ledger.capture import record_loop
from ledger.effects.loop_policy import ApprovalRule
from ledger.errors import NotApprovedError
from ledger.home import Ledger, open_ledger
from tests.commands import HOSTILE, answer, run
from tests.ledger.capture.gates.test_approvals import waits_for

RULE = ApprovalRule(tool="*", scopes=("once", "session", "rule"), lasts=60)


@pytest.fixture
def asking(tmp_path: Path) -> Iterator[str]:
    """A loop that waits for an answer; the question's id."""
    with open_ledger(tmp_path) as ledger:
        thread = threading.Thread(target=_ask, args=(ledger,))
        thread.start()
        yield waits_for(lambda: [one["id"] for one in answer(tmp_path, "approvals")])[0]
        for question in answer(tmp_path, "approvals"):
            run(tmp_path, "deny", question["id"])
        thread.join()


def _ask(ledger: Ledger) -> None:
    with record_loop(ledger, harness="test", session="s", agent=HOSTILE) as loop:
        try:
            loop.tool(lambda **given: None, {"to": HOSTILE}, name=f"send {HOSTILE}", needs_approval=RULE)
        except NotApprovedError:
            loop.checkpoint("refused")


def test_the_queue_for_programs(tmp_path: Path, asking: str) -> None:
    (question,) = answer(tmp_path, "approvals")
    assert question.keys() == {
        "id", "session", "seq", "agent", "status", "tool", "call_id", "target", "arguments_digest", "context", "rule",
        "policy_version", "asked_at", "expires_at", "scopes", "deciders", "used", "decided",
    }  # fmt: skip
    assert (question["id"], question["status"], question["decided"]) == (asking, "open", None)
    told = answer(tmp_path, "approve", asking[:8], "--scope", "session", "--by", "alice", "--reason", "fine")
    assert told["decided"]["expires_at"] > told["decided"]["at"]  # what the rule says of wider scopes
    assert (told["decided"]["by"], told["decided"]["scope"], told["decided"]["reason"]) == (
        "alice",
        "session",
        "fine",
    )
    assert waits_for(lambda: answer(tmp_path, "approvals", "--all")[0]["status"] == "used")
    assert answer(tmp_path, "approvals") == []
    assert run(tmp_path, "approvals").stdout == "nobody waits for an answer\n"


@pytest.mark.parametrize(
    "view", [("approvals",), ("approvals", "--all"), ("approvals", "--check", "s"), ("deny",)]
)
def test_a_hostile_question_touches_no_terminal(tmp_path: Path, asking: str, view: tuple[Any, ...]) -> None:
    result = run(tmp_path, *view, *([asking] if view == ("deny",) else []))
    assert result.exit_code == 0
    bad = {char for char in result.output if unicodedata.category(char) in ("Cc", "Cf", "Cs", "Zl", "Zp")}
    assert bad <= {"\n"}


@pytest.mark.parametrize(("arguments", "message"), [
    (("approve", "nothing"), "no question has an id that starts with 'nothing'"),
    (("approve", "{id}", "--scope", "always"), "expected a scope of once, session, rule"),
    (("approve", "{id}", "--expires", "soon"), "expected a span of time"),
    (("approve", "{id}", "--rule", "{}"), "--rule goes with --scope rule"),
    (("approve", "{id}", "--scope", "rule", "--rule", "[1]"), "expected a JSON object"),
    (("approve", "{id}", "--scope", "rule", "--rule", '{"tool": 1}'), "--rule: tool"),
    (("approve", "{id}", "--scope", "rule", "--rule", '{"tool": "other"}'), "does not cover the very call"),
    (("hold", "nobody"), "no session has an id that starts with 'nobody'"),
    (("approvals", "--check", "nobody"), "no session has an id"),
])  # fmt: skip
def test_a_mistake_is_a_message_and_status_2(
    tmp_path: Path, asking: str, arguments: tuple[str, ...], message: str
) -> None:
    result = run(tmp_path, *(word.replace("{id}", asking) for word in arguments))
    assert (result.exit_code, result.stdout) == (2, "")
    assert message in result.stderr
    assert answer(tmp_path, "approvals")[0]["status"] == "open"
