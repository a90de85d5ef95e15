"""Small YAML files of users: what is wrong in one is named with its line."""

from decimal import Decimal
from pathlib import Path

import pytest
from pydantic import BaseModel, ConfigDict, Field

from ledger.effects.yaml_file import LARGEST, read_yaml
from ledger.errors import InputError


class Line(BaseModel):
    """One thing."""

    model_config = ConfigDict(extra="forbid")

    name: str
    count: int = Field(default=0, ge=0)
    price: Decimal | None = None
    words: tuple[str, ...] = ()
    is_good: bool = False


class Lines(BaseModel):
    """Several."""

    model_config = ConfigDict(extra="forbid")

    lines: tuple[Line, ...]


def read(tmp_path: Path, text: str | bytes) -> Lines:
    """What a file with this text holds."""
    path = tmp_path / "lines.yaml"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return read_yaml(Lines, path)


WRONG: dict[str, tuple[str | bytes, str]] = {
    "nothing": ("", "1: expected a list of rules under 'lines', found nothing"),
    "a list": ("\n- a", "2: expected a list of rules under 'lines', found a list"),
    "no YAML": ("lines:\n- {name: a\n- [\n", "3: expected YAML, found an error"),
    "no UTF-8": (b"lines:\n- name: \xff\n", "2: expected UTF-8, found the byte 0xff"),
    "no text": ("lines:\n- name: a\x00\n", "2: expected YAML, found the character"),
    "too deep": (f"lines: {'[' * 5000}{']' * 5000}", "1: expected YAML, found something nested too deep"),
    "in itself": ("lines: &x\n- *x\n", "nested too deep"),
    "a word twice": (
        "lines:\n- name: a\n  count: 1\n  name: b\n",
        "4: 'name' stands there for the second time",
    ),
    "no word": ("lines:\n- [a]: b\n", "2: expected a word, found a sequence"),
    "a bad word": (
        "lines:\n- name: a\n- title: b\n",
        "3: lines.2.title: expected a known word, found 'title'",
    ),
    "a word missing": ("lines:\n- name: a\n- count: 1\n", "3: lines.2.name: expected 'name', found none"),
    "no number": (
        "lines:\n- name: a\n  count: many\n",
        "3: lines.1.count: expected a whole number, found 'many'",
    ),
    "too small": (
        "lines:\n- name: a\n  count: -1\n",
        "lines.1.count: expected a number of at least 0, found '-1'",
    ),
    "no price": ("lines: [{name: a, price: .nan}]", "1: lines.1.price: expected a number, found 'nan'"),
    "no truth": (
        "lines: [{name: a, is_good: maybe}]",
        "lines.1.is_good: expected true or false, found 'maybe'",
    ),
    "no list": ("lines: [{name: a, words: b}]", "1: lines.1.words: expected a list, found 'b'"),
    "no value": ("lines: [{name: a, count: 0x}]", "expected a whole number"),
}


@pytest.mark.parametrize("what", WRONG)
def test_what_is_wrong_is_named_with_its_line(tmp_path: Path, what: str) -> None:
    text, told = WRONG[what]
    with pytest.raises(InputError) as caught:
        read(tmp_path, text)
    assert f"lines.yaml:{told}" in str(caught.value) or told in str(caught.value)
    assert str(caught.value).startswith(f"{tmp_path}/lines.yaml:")


def test_a_file_that_cannot_be_read_or_is_too_large_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"none.yaml cannot be read: No such file"):
        read_yaml(Lines, tmp_path / "none.yaml")
    with pytest.raises(InputError, match=r"cannot be read: Is a directory"):
        read_yaml(Lines, tmp_path)
    with pytest.raises(InputError, match="expected a file of at most"):
        read(tmp_path, "#" * (LARGEST + 1))


def test_what_stands_twice_by_an_anchor_counts_and_no_program_is_made(tmp_path: Path) -> None:
    text = "lines:\n- &a {name: one, count: 2}\n- {<<: *a, name: two}\n- {name: 2026-11-30}\n"
    assert [(one.name, one.count) for one in read(tmp_path, text).lines] == [
        ("one", 2),
        ("two", 2),
        ("2026-11-30", 0),
    ]
    with pytest.raises(InputError, match="expected YAML, found an error"):
        read(tmp_path, "lines: [{name: !!python/name:os.system ''}]")
