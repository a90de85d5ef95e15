"""The decoder of LangGraph's values: what it gives, and that hostile bytes cost nothing but an error."""

import contextlib
import math
import pickle
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.importers._langgraph.values import Constructed, DecodeError, Decoder, plain
from tests.ledger.importers.langgraph_cases import Extension, built, pack

PLAIN: st.SearchStrategy[Any] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


def decode(content: bytes, kind: str = "msgpack") -> Any:
    return plain(Decoder().decode(kind, content))


@given(PLAIN)
def test_plain_values_come_back(value: Any) -> None:
    assert decode(pack(value)) == value


@given(st.binary(max_size=200))
def test_any_bytes_give_a_value_or_an_error_of_ours(content: bytes) -> None:
    for kind in ("msgpack", "json"):
        with contextlib.suppress(DecodeError):
            decode(content, kind)


@pytest.mark.parametrize(
    ("content", "value"),
    [
        (b"\x07", 7),
        (b"\xff", -1),
        (b"\xcc\xff", 255),
        (b"\xcd\x01\x00", 256),
        (b"\xcf" + b"\xff" * 8, 2**64 - 1),
        (b"\xd0\x80", -128),
        (b"\xca\x3f\x80\x00\x00", 1.0),
        (b"\xa3abc", "abc"),
        (b"\xd9\x03abc", "abc"),
        (b"\xda\x00\x03abc", "abc"),
        (b"\xa1\xff", "\udcff"),
        (b"\x90", []),
        (b"\x80", {}),
        (b"\x92\x01\x91\x02", [1, [2]]),
        (b"\xdc\x00\x01\xc0", [None]),
        (b"\x81\x01\xc3", {"1": True}),
        (b"\x81\x91\x01\xc3", {"[1]": True}),
        (b"\x81\xc0\xc3", {"null": True}),
        (b"\xc4\x02ab", {"__bytes__": "YWI="}),
        (b"\xd4\x63\x00", {"__ext__": 99, "__bytes__": "AA=="}),
        (pack(math.inf), {"__float__": "inf"}),
        (pack(math.nan), {"__float__": "nan"}),
    ],
)
def test_every_form_of_msgpack_is_read(content: bytes, value: Any) -> None:
    assert decode(content) == value


@pytest.mark.parametrize(
    ("given_value", "value"),
    [
        (built("uuid", "UUID", "0123456789abcdef0123456789abcdef", 0), "01234567-89ab-cdef-0123-456789abcdef"),
        (built("builtins", "set", [1, 2], 0), [1, 2]),
        (built("decimal", "Decimal", "1.5", 0), "1.5"),
        (built("datetime", "datetime", "2026-11-29T12:00:00", 3), "2026-11-29T12:00:00"),
        (built("app", "Colour", 3, 0), {"__class__": "app.Colour", "value": 3}),
        (
            built("langgraph.types", "Send", ["tools", []], 1),
            {"__class__": "langgraph.types.Send", "arguments": ["tools", []]},
        ),
        (built("pydantic.types", "SecretStr", "hush", 0), {"__class__": "pydantic.types.SecretStr", "secret": "hush"}),
        (built("app", "State", {"a": built("app", "Inner", {"b": 1})}), {
            "__class__": "app.State", "a": {"__class__": "app.Inner", "b": 1}
        }),
        (Extension(7, pack([1, 2])), [1, 2]),
        (Extension(5, pack({"no": "list"})), {"__ext__": 5, "value": {"no": "list"}}),
    ],
)  # fmt: skip
def test_objects_become_data_and_classes_stay_names(given_value: Extension, value: Any) -> None:
    assert decode(pack(given_value)) == value
    assert decode(pack([given_value])) == [value]


def test_the_older_json_form_of_objects_is_read() -> None:
    name = b'["langchain_core", "messages", "ai", "AIMessage"]'
    content = b'{"lc": 2, "type": "constructor", "id": ' + name + b', "kwargs": {"a": 1}}'
    value = Decoder().decode("json", content)
    assert isinstance(value, Constructed)
    assert (value.name, value.fields) == ("langchain_core.messages.ai.AIMessage", {"a": 1})


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\xc1",
        b"\x92\x01",
        b"\xdd\xff\xff\xff\xff",
        b"\xdf\xff\xff\xff\xff\xc0",
        b"\xdb\xff\xff\xff\xffabc",
        b"\xc6\xff\xff\xff\xff",
        b"\xc7\x05\x05\xc0\xc0\xc0",
        b"\xc9\xff\xff\xff\xff\x05",
        b"\xd4\x05\x92",
        b"\x01\x01",
        b"\x91" * 20_000,
        (b"\xdd" + b"\x7f\xff\xff\xff") * 5_000,
    ],
)
def test_lying_lengths_and_endless_nesting_are_errors(content: bytes) -> None:
    with pytest.raises(DecodeError):
        decode(content)


def test_extensions_in_extensions_are_read_in_place() -> None:
    value: Any = 1
    for _ in range(300):
        value = Extension(7, pack(value))
    assert decode(pack(value)) == 1


@pytest.mark.parametrize("kind", ["pickle", "msgpack+aes", "json+aes", "anything", 7])
def test_what_is_pickled_or_encrypted_is_not_read(kind: Any) -> None:
    with pytest.raises(DecodeError, match="kept unread"):
        Decoder().decode(kind, b"\x80\x04.")


def test_an_object_that_comes_again_is_decoded_once() -> None:
    decoder = Decoder()
    content = pack(built("app", "State", {"a": 1}))
    assert decoder.decode("msgpack", content) is decoder.decode("msgpack", content)


class _Canary:
    """Unpickling this writes a file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return (Path.touch, (self.path,))


def canary_module(folder: Path, canary: Path) -> str:
    """A module whose import writes a file."""
    name = "canary_of_langgraph"
    (folder / f"{name}.py").write_text(
        f"import pathlib; pathlib.Path({str(canary)!r}).touch()\nclass Bird: pass\n"
    )
    return name


def test_nothing_that_a_value_names_is_imported_or_unpickled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    canary = tmp_path / "canary"
    module = canary_module(tmp_path, canary)
    monkeypatch.syspath_prepend(str(tmp_path))
    for code in range(8):
        decode(pack(built(module, "Bird", {}, code)))
    decode(f'{{"lc": 2, "type": "constructor", "id": ["{module}", "Bird"], "kwargs": {{}}}}'.encode(), "json")
    with pytest.raises(DecodeError):
        decode(pickle.dumps(_Canary(canary)), "pickle")
    assert not canary.exists() and module not in sys.modules
