"""Sessions in shorthand, and what rules find in them."""

from pathlib import Path
from tempfile import TemporaryDirectory
from textwrap import dedent, indent
from typing import Any

from ledger.audit import Finding
from ledger.audit.rules import read_rules, rules_detector
from tests.ledger.audit.histories import History, Told


def rule(steps: str, *, head: str = "", more: str = "") -> str:
    """A file with one rule named `it`."""
    told = indent(dedent(more), "  "), indent(dedent(steps), "  ")
    return f"{head}\nrules:\n- name: it\n  title: It happened\n{told[0]}\n  steps:\n{told[1]}"


def calls(*told: Any) -> list[Told]:
    """Calls of tools: `"pay"`, or `("pay", arguments)`, or `("pay", arguments, result)`; or whole events."""
    events: list[Told] = []
    for number, one in enumerate(told):
        if isinstance(one, dict):
            events.append(one)
            continue
        tool, arguments, result = (
            (one, {}, "done") if isinstance(one, str) else (*one, "done") if len(one) == 2 else one
        )
        outcome = "returned"
        if isinstance(result, str) and result.startswith("!"):
            outcome, result = result[1:], None
        events += [
            {
                "type": "tool_call.requested",
                "call_id": f"c{number}",
                "tool": tool,
                "arguments": arguments,
            },
            {"type": "tool_call.settled", "call_id": f"c{number}", "outcome": outcome, "result": result},
        ]
    return events


def human(text: str = "go on") -> Told:
    """A person says something."""
    message = {"role": "user", "content": text}
    return {"type": "input.message_received", "origin": "human", "message": message}


def found(home: Path, text: str, events: list[Told]) -> list[Finding]:
    """What the rules of a text find in a session."""
    detector = rules_detector(read_rules("rules", text, "rules.yaml"))
    with TemporaryDirectory(dir=home) as own, History(Path(own)) as history:
        history.add(events)
        return history.findings([detector])


def places(home: Path, text: str, events: list[Told]) -> list[int]:
    """Where they find it."""
    return [one.seq for one in found(home, text, events)]
