"""Every secret of the corpus goes, in whatever it is wrapped; every look-alike stays."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ledger.redaction import Redactor

CORPUS = Path(__file__).parents[3] / "fixtures" / "redaction"
REDACTOR = Redactor(bytes(range(32)))

WRAPPINGS: dict[str, Callable[[str], str]] = {
    "bare": lambda text: text,
    "prose": lambda text: f"I found this: {text} and went on.",
    "json": lambda text: json.dumps({"output": text}),
    "json in json": lambda text: json.dumps({"arguments": json.dumps({"command": text})}),
    "json in json in json": lambda text: json.dumps(json.dumps(json.dumps({"command": text}))),
    "lines": lambda text: f"first\n{text}\nlast",
    "escaped lines": lambda text: f"first\\n{text}\\nlast",
    "colours": lambda text: f"\x1b[32m{text}\x1b[0m",
    "quotes": lambda text: f"'{text}'",
    "brackets": lambda text: f"({text})",
    "stream": lambda text: f"event: delta\ndata: {json.dumps({'delta': {'text': text}})}\n\n",
}


def _lines(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (CORPUS / name).read_text("utf-8").splitlines()]


def _secret(case: dict[str, Any]) -> str:
    return "".join(case["parts"])


def _pieces(secret: str) -> set[str]:
    """What must not be seen: the secret in any escape, and any line of a longer one."""
    escaped = json.dumps(secret)[1:-1]
    return {
        secret,
        escaped,
        *(line for line in secret.replace("\\n", "\n").split("\n")[1:-1] if len(line) > 20),
    }


SECRETS = _lines("secrets.jsonl")
LOOKALIKES = _lines("lookalikes.jsonl")


def test_corpus_is_large_enough() -> None:
    assert len(SECRETS) >= 80
    assert len(LOOKALIKES) >= 80


@pytest.mark.parametrize("wrapping", WRAPPINGS)
@pytest.mark.parametrize("case", SECRETS, ids=lambda case: case["name"])
def test_secret_goes(case: dict[str, Any], wrapping: str) -> None:
    secret = _secret(case)
    text = WRAPPINGS[wrapping](case["text"].replace("{secret}", secret))
    redacted, findings = REDACTOR.text(text)
    assert not [piece for piece in _pieces(secret) if piece in redacted]
    assert case["kind"] in {finding.kind for finding in findings}
    assert REDACTOR.text(redacted) == (redacted, ())
    raw, _ = REDACTOR.body(text.encode())
    assert raw.decode() == redacted


@pytest.mark.parametrize("case", SECRETS, ids=lambda case: case["name"])
def test_secret_goes_from_values_and_keys(case: dict[str, Any]) -> None:
    secret = _secret(case)
    text = case["text"].replace("{secret}", secret)
    redacted, findings = REDACTOR.value({"messages": [{"role": "user", "content": text}, {text: 1}]})
    assert not [piece for piece in _pieces(secret) if piece in json.dumps(redacted)]
    assert sum(finding.count for finding in findings) >= 2
    assert REDACTOR.value(redacted) == (redacted, ())


@pytest.mark.parametrize(
    "case", [case for case in SECRETS if case["text"] == "{secret}"], ids=lambda case: case["name"]
)
def test_same_secret_gives_same_digest(case: dict[str, Any]) -> None:
    secret = _secret(case)
    bare = {finding.digest for finding in REDACTOR.text(secret)[1]}
    named = {finding.digest for finding in REDACTOR.value({"api_key": secret})[1]}
    quoted = {finding.digest for finding in REDACTOR.text(json.dumps({"client_secret": secret}))[1]}
    assert bare == named == quoted


@pytest.mark.parametrize("wrapping", ["bare", "prose", "json", "json in json", "lines", "stream"])
@pytest.mark.parametrize("case", LOOKALIKES, ids=lambda case: case["name"])
def test_lookalike_stays(case: dict[str, Any], wrapping: str) -> None:
    text = WRAPPINGS[wrapping](case["text"])
    assert REDACTOR.text(text) == (text, ())
    assert REDACTOR.body(text.encode()) == (text.encode(), ())
    value = {"content": [{"text": text}]}
    assert REDACTOR.value(value)[0] is value


@pytest.mark.parametrize("case", LOOKALIKES, ids=lambda case: case["name"])
def test_lookalike_value_stays(case: dict[str, Any]) -> None:
    try:
        value = json.loads(case["text"])
    except ValueError:
        value = case["text"]
    assert REDACTOR.value(value)[0] is value
