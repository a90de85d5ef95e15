"""A secret in base64 or in hexadecimal digits goes like a plain one, with the same digest; other packed text stays."""

import base64
import json
import random
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.redaction import Redactor

REDACTOR = Redactor(bytes(range(32)))
GITHUB = "gh" + "p_" + "a1B2c3D4e5F6" * 3
PASSWORD = "gQ7!vx92" + "LmPe"
TEXT = f"# environment\nDB_HOST=db.internal\nDB_PASSWORD={PASSWORD}\nGH={GITHUB}\nLEVEL=3\n"
PLAIN = {(one.kind, one.digest) for one in REDACTOR.text(TEXT)[1]}


def _in_base64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


PACKINGS: dict[str, Callable[[str], str]] = {
    "base64": _in_base64,
    "base64 in lines": lambda text: base64.encodebytes(text.encode()).decode(),
    "base64 in lines of JSON": lambda text: json.dumps(base64.encodebytes(text.encode()).decode()),
    "base64 for URLs, unpadded": lambda text: base64.urlsafe_b64encode(text.encode()).decode().rstrip("="),
    "a parameter": lambda text: f"https://example.org/?d={_in_base64(text)}&n=1",
    "after a path": lambda text: f"/upload/{_in_base64(text)}",
    "digits": lambda text: text.encode().hex(),
    "digits in lines": lambda text: "\n".join(
        text.encode().hex()[at : at + 60] for at in range(0, 2 * len(text.encode()), 60)
    ),
    "large digits": lambda text: text.encode().hex().upper(),
}


@pytest.mark.parametrize("before", ["", "a", "ab", "é≥", "x" * 5000])
@pytest.mark.parametrize("way", PACKINGS)
def test_a_packed_secret_goes_with_the_digest_of_a_plain_one(way: str, before: str) -> None:
    packed = PACKINGS[way](before + TEXT)
    redacted, found = REDACTOR.text(packed)
    assert {(one.kind, one.digest) for one in found} == PLAIN
    assert REDACTOR.text(redacted) == (redacted, ())
    body, _ = REDACTOR.body(packed.encode())
    assert body.decode() == redacted


@given(st.text(max_size=40), st.text(max_size=40), st.sampled_from(sorted(PACKINGS)))
def test_nothing_of_a_packed_secret_is_left(before: str, after: str, way: str) -> None:
    whole = f"{before}\n{GITHUB}\n{after}".encode("utf-8", "ignore").decode()
    redacted, found = REDACTOR.text(PACKINGS[way](whole))
    assert "github_token" in {one.kind for one in found}
    for at in range(3):  # however a reader would group it
        some = PACKINGS["base64"](" " * at + GITHUB)[4:-4]
        assert some not in redacted
    assert GITHUB.encode().hex() not in redacted.lower()


@pytest.mark.parametrize(
    "text",
    [
        _in_base64("The password must be changed each month; ask for a token at the desk."),
        _in_base64(json.dumps({"max_tokens": 4096, "token_type": "bearer", "secret": "${SECRET}"})),
        b"the password must be changed".hex(),
        base64.b64encode(random.Random(7).randbytes(300_000)).decode(),
        random.Random(8).randbytes(300_000).hex(),
    ],
    ids=["prose", "no values", "digits of prose", "an image", "digits of an image"],
)
def test_other_packed_text_stays(text: str) -> None:
    assert REDACTOR.text(text) == (text, ())


def test_a_value_is_unpacked_too_and_shares_what_is_clean() -> None:
    clean = {"kept": ["as", "it", "is"]}
    redacted, found = REDACTOR.value({"arguments": {"command": f"echo {_in_base64(TEXT)}"}, "other": clean})
    assert {(one.kind, one.digest) for one in found} == PLAIN
    assert {one.where for one in found} == {"/arguments/command"}
    assert redacted["other"] is clean


@pytest.mark.parametrize("unit", ["password", "AKIA", "token: ", "secret=", GITHUB])
def test_a_hostile_packed_text_comes_to_an_end(unit: str) -> None:
    for packed in (_in_base64(unit * (30_000 // len(unit))), (unit * (30_000 // len(unit))).encode().hex()):
        redacted, _ = REDACTOR.text(packed)
        assert REDACTOR.text(redacted)[0] == redacted
