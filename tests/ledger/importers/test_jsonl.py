"""Reading JSON lines: every record that can be read arrives with its line, every damaged place is reported."""

import io
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.importers import _jsonl
from ledger.importers._jsonl import Damage, Line, json_lines


def read(data: bytes) -> list[Line | Damage]:
    return list(json_lines(io.BytesIO(data)))


def values(data: bytes) -> list[tuple[int, Any]]:
    return [(entry.number, entry.value) for entry in read(data) if isinstance(entry, Line)]


def damaged(data: bytes) -> list[int]:
    return [entry.number for entry in read(data) if isinstance(entry, Damage)]


def repaired(data: bytes) -> list[tuple[int, str]]:
    return [
        (entry.number, entry.repaired)
        for entry in read(data)
        if isinstance(entry, Line) and entry.repaired is not None
    ]


def test_only_a_newline_ends_a_line() -> None:
    text = "\u2028\u2029\x85\x0b\x0c"
    data = json.dumps({"a": text}, ensure_ascii=False).replace("\\u000b", "").replace("\\f", "").encode()
    assert values(data + b"\n" + data) == [(1, {"a": "\u2028\u2029\x85"}), (2, {"a": "\u2028\u2029\x85"})]


def test_marks_carriage_returns_padding_and_empty_lines_are_no_damage() -> None:
    data = b'\xef\xbb\xbf{"a":1}\r\n\r\n\0\0{"b":2}\0\0\n  \n\t{"c":3} \n{"d":4}'
    assert values(data) == [(1, {"a": 1}), (3, {"b": 2}), (5, {"c": 3}), (6, {"d": 4})]
    assert damaged(data) == []
    assert damaged(b"\0\0\0\n") == [1]


def test_records_that_share_a_line_all_arrive() -> None:
    data = b'{"a":1}{"b":2} {"c":3}\n{"d":4}'
    assert values(data) == [(1, {"a": 1}), (1, {"b": 2}), (1, {"c": 3}), (2, {"d": 4})]
    assert [entry.raw for entry in read(data)] == [b'{"a":1}', b'{"b":2}', b'{"c":3}', b'{"d":4}']


def test_a_torn_write_gives_the_record_behind_it() -> None:
    data = b'{"type":"user","mess{"type":"assistant","n":1}\n{"a":1} rest\n'
    assert values(data) == [(1, {"type": "assistant", "n": 1}), (2, {"a": 1})]
    assert damaged(data) == [1, 2]


def test_a_cut_line_is_damage_and_never_a_smaller_record() -> None:
    assert values(b'{"type":"user","message":{"role":"user"}') == []
    assert damaged(b'{"ok":1}\n{"type":"user","message":{"role":"user"}') == [2]


def test_raw_newlines_in_a_string_are_joined_and_said_so() -> None:
    data = b'{"a":"one\ntwo\n\nthree \\" }\nfour"}\n{"b":2}\n'
    assert values(data) == [(1, {"a": 'one\ntwo\n\nthree " }\nfour'}), (6, {"b": 2})]
    assert [number for number, _ in repaired(data)] == [1]
    assert "lines 1 to 5 joined" in repaired(data)[0][1]
    assert read(data)[0].raw == b'{"a":"one\ntwo\n\nthree \\" }\nfour"}'


def test_a_broken_record_swallows_no_whole_one() -> None:
    data = b'{"cut":"abc\n{"ok":1}\n{"broken":"x\ny"}\n{"cut":"again\nplain\n{"ok":2}\n'
    assert values(data) == [(2, {"ok": 1}), (3, {"broken": "x\ny"}), (7, {"ok": 2})]
    assert damaged(data) == [1, 5, 6]


def test_joining_has_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_jsonl, "_JOINED_LINES", 3)
    data = b'{"a":"one\ntwo\nthree\nfour\nfive"}\n{"b":1}\n'
    assert values(data) == [(6, {"b": 1})]
    assert damaged(data) == [1, 2, 3, 4, 5]
    assert values(b'{"a":"one\ntwo\nthree"}\n') == [(1, {"a": "one\ntwo\nthree"})]


def test_raw_control_characters_are_kept_and_said_so() -> None:
    data = b'{"a":"x\0y\tz\x01"}\n'
    assert values(data) == [(1, {"a": "x\0y\tz\x01"})]
    assert "control character" in repaired(data)[0][1]


def test_bytes_that_are_not_utf8_are_shown_as_such() -> None:
    data = b'{"a":"x\xffy"}\n{"b":"\xed\xa0\x80"}\n'  # the second is half a pair, as some writers leave it
    assert values(data) == [(1, {"a": "x\ufffdy"}), (2, {"b": "\ud800"})]
    assert [number for number, _ in repaired(data)] == [1]
    assert read(data)[0].raw == b'{"a":"x\xffy"}'


def test_numbers_keep_their_value() -> None:
    big = 123456789012345678901234567890
    data = f'{{"n":{big},"m":{2**64 - 1},"f":1.5}}\n'.encode()
    assert values(data) == [(1, {"n": big, "m": 2**64 - 1, "f": 1.5})]
    assert damaged(b'{"n":NaN}\n{"n":1e999}\n{"n":-Infinity}\n') == [1, 2, 3]
    assert damaged(b'{"n":1e999,"m":' + b"9" * 30 + b"}\n") == [1]


def test_deep_nesting_arrives() -> None:
    data = b"[" * 3000 + b"]" * 3000 + b"\n" + b'{"a":' * 3000 + b"1" + b"}" * 3000 + b"\n"
    assert [entry.number for entry in read(data) if isinstance(entry, Line)] == [1, 2]


def test_a_line_of_13_million_characters_arrives() -> None:
    data = b'{"a":"' + b"x" * 13_000_000 + b'"}\n{"b":1}\n'
    first, second = read(data)
    assert isinstance(first, Line)
    assert len(first.value["a"]) == 13_000_000
    assert second.number == 2


class _Endless(io.RawIOBase):
    """A line without an end, made as it is read, then a record."""

    def __init__(self, size: int) -> None:
        self._left = size

    def readline(self, size: int | None = -1, /) -> bytes:
        assert size is not None
        assert size > 0  # nothing may ask for a line of any length
        if self._left > 0:
            self._left -= size
            return b"x" * size if self._left > 0 else b"x" * (size - 1) + b"\n"
        if self._left > -(2**40):
            self._left = -(2**40)
            return b'{"ok":1}\n'
        return b""


def test_an_endless_line_is_given_up_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_jsonl, "_LONGEST_LINE", 4096)
    monkeypatch.setattr(_jsonl, "_PIECE", 1024)
    entries = list(json_lines(_Endless(100 * 1024)))  # type: ignore[arg-type]
    pieces = [entry for entry in entries if isinstance(entry, Damage)]
    assert {entry.number for entry in pieces} == {1}
    assert max(len(entry.raw) for entry in pieces) <= 1024
    assert sum(len(entry.raw) for entry in pieces) == 100 * 1024
    assert entries[-1] == Line(2, {"ok": 1}, b'{"ok":1}', None)


def is_garbage(raw: bytes) -> bool:
    text = raw.strip(b" \t\r\n\0").removeprefix(b"\xef\xbb\xbf").strip(b" \t\r\n\0")
    if not text or text[:1] in b'-0123456789"tfn':  # a scalar, or the start of one
        return text == b"NaN"
    try:
        json.loads(text)
    except ValueError:
        return True
    return False


_JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=12),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=8,
)
_RECORD = st.dictionaries(st.text(max_size=6), _JSON, max_size=4)
_GARBAGE = st.one_of(
    st.binary(min_size=1, max_size=30).filter(
        lambda raw: b"\n" not in raw and b"{" not in raw and b"[" not in raw
    ),
    st.sampled_from(
        [b'{"cut":', b'{"cut":"in a string', b'{"a":{"b":1}', b"plain text", b'{"a":1}}', b"NaN", b'{"\0']
    ),
).filter(is_garbage)


@given(st.lists(st.tuples(st.booleans(), _RECORD, _GARBAGE), max_size=12), st.sampled_from([b"\n", b"\r\n"]))
def test_any_mixture_gives_every_record_and_reports_every_other_line(
    lines: list[tuple[bool, dict[str, Any], bytes]], end: bytes
) -> None:
    data, wanted, broken = b"", [], []
    for number, (is_record, record, garbage) in enumerate(lines, 1):
        data += (json.dumps(record, ensure_ascii=number % 2 == 0).encode() if is_record else garbage) + end
        if is_record:
            wanted.append((number, record))
        else:
            broken.append(number)
    found = values(data)
    assert [entry for entry in found if entry in wanted] == wanted
    assert [entry for entry in found if entry not in wanted and entry[0] not in broken] == []
    assert set(damaged(data)) == set(broken)


@given(st.lists(_RECORD, min_size=1, max_size=6), st.sampled_from([b"", b" ", b"\0", b"\n", b"\r\n\n"]))
def test_records_arrive_however_they_are_laid_out(records: list[dict[str, Any]], between: bytes) -> None:
    data = between.join(json.dumps(record).encode() for record in records)
    assert [value for _, value in values(data)] == records
    assert damaged(data) == []


@given(st.text(alphabet=st.characters(codec="utf-8", exclude_characters='"\\'), max_size=30), _RECORD)
def test_a_string_with_any_raw_characters_arrives(text: str, after: dict[str, Any]) -> None:
    data = b'{"a":"' + text.encode() + b'"}\n' + json.dumps(after).encode() + b"\n"
    assert [value for _, value in values(data)] == [{"a": text}, after]


@given(st.binary(max_size=200))
def test_no_bytes_at_all_stop_the_reading(data: bytes) -> None:
    entries = read(data)
    assert [entry.number for entry in entries] == sorted(entry.number for entry in entries)
    assert all(1 <= entry.number <= data.count(b"\n") + 1 for entry in entries)
