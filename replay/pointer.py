"""JSON pointers (RFC 6901) and the changes that a diff is made of. Refuses what does not fit."""

from collections.abc import Iterable
from typing import Any, Literal, NamedTuple


class Change(NamedTuple):
    """One step from one document to another."""

    op: Literal["add", "remove", "replace"]
    """`add` into a list moves what comes after; `remove` closes the gap."""

    path: str
    """JSON pointer into the document as the changes before have left it."""

    old: Any
    """Value before; None for `add`."""

    new: Any
    """Value after; None for `remove`."""

    seq: int
    """Record that made the change."""

    def inverse(self) -> "Change":
        """The change that takes this one back."""
        match self.op:
            case "add":
                return self._replace(op="remove", old=self.new, new=None)
            case "remove":
                return self._replace(op="add", old=None, new=self.old)
            case _:
                return self._replace(old=self.new, new=self.old)

    def as_json(self) -> dict[str, Any]:
        """The documented form."""
        return dict(self._asdict())


def pointer(steps: Iterable[str | int]) -> str:
    """The pointer of a path."""
    return "".join(f"/{str(step).replace('~', '~0').replace('/', '~1')}" for step in steps)


def steps_of(text: str) -> list[str]:
    """The path of a pointer. Raises ValueError when it is none."""
    if text and not text.startswith("/"):
        raise ValueError(f"{text!r} is no JSON pointer: expected '/' at its start")
    return [step.replace("~1", "/").replace("~0", "~") for step in text.split("/")[1:]]


def set_value(document: Any, path: str, value: Any) -> None:
    """Set a field, or an item that is there. Raises LookupError when the pointer leads nowhere."""
    parent, last = _parent(document, path)
    if isinstance(parent, list):
        parent[_index(last, len(parent) - 1, path)] = value
    else:
        parent[last] = value


def apply_changes(document: Any, changes: Iterable[Change]) -> None:
    """Make the changes, in order. Raises LookupError when one does not fit."""
    for change in changes:
        parent, last = _parent(document, change.path)
        if isinstance(parent, list):
            index = _index(last, len(parent) - (change.op != "add"), change.path)
            if change.op == "add":
                parent.insert(index, change.new)
            elif change.op == "remove":
                del parent[index]
            else:
                parent[index] = change.new
        elif (last in parent) is (change.op == "add"):
            raise LookupError(f"{change.path} cannot be the place of {change.op!r}")
        elif change.op == "remove":
            del parent[last]
        else:
            parent[last] = change.new


def _parent(document: Any, path: str) -> tuple[Any, str]:
    *steps, last = steps_of(path) or [""]
    for step in steps:
        if isinstance(document, list):
            document = document[_index(step, len(document) - 1, path)]
        elif isinstance(document, dict) and step in document:
            document = document[step]
        else:
            raise LookupError(f"{path} leads nowhere: there is no {step!r}")
    if not isinstance(document, dict | list):
        raise LookupError(f"{path} leads into a value that has no parts")
    return document, last


def _index(step: str, highest: int, path: str) -> int:
    if not step.isascii() or not step.isdigit() or int(step) > highest:
        raise LookupError(f"{path} leads nowhere: {step!r} is no place in a list up to {highest}")
    return int(step)
