"""Rules look a bounded way only, so that time grows with the text and not with its square."""

import importlib
from typing import Any

import pytest

from ledger.redaction import Redactor
from ledger.redaction.places import PLACES
from ledger.redaction.rules import Rule
from ledger.redaction.shapes import SHAPES

parser: Any = importlib.import_module("re._parser")
REDACTOR = Redactor(bytes(range(32)))
HOSTILE = (
    "a",
    "=",
    "sk-",
    '"',
    "\\",
    "eyJ",
    "key=",
    'key: "',
    "://",
    "password: ",
    "[redacted:",
    ":AA",
    "glpat-",
    '\\"key\\":',
)


def _unbounded(tree: Any) -> list[str]:
    """Repeats without an upper bound that may give characters back."""
    found = []
    for operation, argument in tree:
        name = str(operation)
        if name in ("MAX_REPEAT", "MIN_REPEAT") and argument[1] == parser.MAXREPEAT:
            found.append(name)
        parts = argument if isinstance(argument, (tuple, list)) else [argument]
        for part in parts:
            inner = part if isinstance(part, list) else [part]
            for item in inner:
                if isinstance(item, parser.SubPattern):
                    found += _unbounded(item)
    return found


@pytest.mark.parametrize("rule", SHAPES + PLACES, ids=lambda rule: f"{rule.kind}-{rule.literals[0]}")
def test_rule_is_bounded(rule: Rule) -> None:
    patterns = [rule.pattern] + ([rule.tail] if rule.tail else [])
    for pattern in patterns:
        assert not _unbounded(parser.parse(pattern.pattern, pattern.flags)), "give each repeat an upper bound"


@pytest.mark.parametrize("unit", HOSTILE)
def test_hostile_text_comes_to_an_end(unit: str) -> None:
    text = unit * (20_000 // len(unit))
    redacted, _ = REDACTOR.text(text)
    assert REDACTOR.text(redacted)[0] == redacted
