"""JSON pointers and changes."""

from typing import Any

import pytest

from replay.pointer import Change, apply_changes, pointer, set_value, steps_of


def test_pointers_escape_what_they_must() -> None:
    assert pointer(["a/b", "c~d", 0, ""]) == "/a~1b/c~0d/0/"
    assert steps_of("/a~1b/c~0d/0/") == ["a/b", "c~d", "0", ""]
    assert steps_of("") == []
    with pytest.raises(ValueError, match="no JSON pointer"):
        steps_of("a")


@pytest.mark.parametrize(
    "path", ["/list/2", "/list/-", "/list/x", "/list/²", "/gone/x", "/text/x", "/list/0/x/y"]
)
def test_a_pointer_that_leads_nowhere_is_refused(path: str) -> None:
    document: dict[str, Any] = {"list": [1, 2], "text": "t"}
    with pytest.raises(LookupError):
        set_value(document, path, 1)
    assert document == {"list": [1, 2], "text": "t"}


def test_changes_are_applied_and_taken_back() -> None:
    document: dict[str, Any] = {"a": 1, "list": [1, 2]}
    changes = [
        Change("add", "/b", None, 2, 1),
        Change("remove", "/a", 1, None, 1),
        Change("add", "/list/2", None, 3, 1),
        Change("remove", "/list/0", 1, None, 1),
        Change("replace", "/list/0", 2, 9, 1),
    ]
    apply_changes(document, changes)
    assert document == {"b": 2, "list": [9, 3]}
    apply_changes(document, [change.inverse() for change in reversed(changes)])
    assert document == {"a": 1, "list": [1, 2]}


@pytest.mark.parametrize(
    "change",
    [
        Change("add", "/a", None, 2, 1),
        Change("remove", "/b", 1, None, 1),
        Change("replace", "/list/1", 1, 2, 1),
    ],
)
def test_a_change_that_does_not_fit_is_refused(change: Change) -> None:
    with pytest.raises(LookupError):
        apply_changes({"a": 1, "list": [0]}, [change])
