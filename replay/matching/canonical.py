"""The canonical form of a model request, the rules that led to it, and its keys."""

import hashlib
from dataclasses import dataclass
from typing import Any, Protocol

from ledger.events.canonical import canonical_json
from ledger.events.model_call import Purpose
from replay.matching.harnesses import claude_code, codex, deepseek, gemini_cli, opencode, pi
from replay.matching.lanes import Lane, asks_for_title, lane_of, purpose_of_operation
from replay.matching.protocols import RULES
from replay.matching.request import ModelRequest, message_count
from replay.matching.rules import FOLDERS, RENAME_IDS, Folders, Rule, Work
from replay.pointer import pointer, steps_of


class Harness(Protocol):
    """What a module of a harness gives."""

    NAME: str
    BEFORE: tuple[Rule, ...]
    RULES: tuple[Rule, ...]

    def recognizes(self, request: ModelRequest) -> bool:
        """Whether the harness sent it."""

    def purpose(self, request: ModelRequest) -> Purpose:
        """What the request is for."""


HARNESSES: tuple[Harness, ...] = (claude_code, codex, deepseek, gemini_cli, opencode, pi)
"""In the order in which they are asked."""

GENERIC = "generic"
"""Name of any other loop: only the rules of its protocol hold."""

_NO_FOLDERS = Folders()


@dataclass(frozen=True)
class Canonical:
    """A request in canonical form."""

    key: bytes
    """SHA-256: equal for requests that are equal but for what rules take away."""

    rules: tuple[str, ...]
    """Names of the rules that changed something, in order."""

    body: dict[str, Any]
    """The canonical body."""

    lane: Lane
    """Conversation that it belongs to."""

    harness: str
    """Program that sent it."""

    ids: tuple[str, ...]
    """Random ids in it, by first appearance."""

    moved: dict[tuple[str | int, ...], list[int]]
    """Lists that were put in order: path -> index that each item was sent at."""

    def as_sent(self, path: str) -> str:
        """The pointer of a place in the body as it was sent."""
        work = Work.__new__(Work)
        work.moved = self.moved
        return pointer(work.as_sent(steps_of(path)))


def harness_of(request: ModelRequest) -> Harness | None:
    """The harness that sent a request; None for any other loop."""
    return next((harness for harness in HARNESSES if harness.recognizes(request)), None)


def canonical(request: ModelRequest, folders: Folders = _NO_FOLDERS) -> Canonical:
    """The canonical form of a request. The request itself stays as it is."""
    harness = harness_of(request)
    work = Work(request, copied(request.body), folders)
    fired = [rule.name for rule in rules_for(request.protocol, harness) if rule.apply(work)]
    purpose = purpose_of_operation(request) or _purpose(request, harness)
    lane = lane_of(request, work.body, purpose, message_count(request.protocol, request.body))
    asked = [request.protocol, request.operation, request.model, work.body]
    return Canonical(
        key=hashlib.sha256(canonical_json(asked)).digest(),
        rules=tuple(dict.fromkeys(fired)),
        body=work.body,
        lane=lane,
        harness=harness.NAME if harness is not None else GENERIC,
        ids=tuple(work.ids),
        moved=work.moved,
    )


def rules_for(protocol: str, harness: Harness | None) -> list[Rule]:
    """The rules that hold for a protocol and a harness, in the order in which they are applied."""
    own = harness is not None
    return [
        *(harness.BEFORE if own and harness else ()),
        *RULES.get(protocol, ()),
        *(harness.RULES if own and harness else ()),
        FOLDERS,
        RENAME_IDS,
    ]


def copied(value: Any) -> Any:
    """A JSON value with lists and objects of its own, of any depth."""
    root: list[Any] = [value]
    stack: list[tuple[Any, Any]] = [(root, 0)]
    while stack:
        holder, key = stack.pop()
        item = holder[key]
        if isinstance(item, dict):
            holder[key] = twin = dict(item)
            stack.extend((twin, name) for name, inner in twin.items() if isinstance(inner, dict | list))
        elif isinstance(item, list):
            holder[key] = listed = list(item)
            stack.extend(
                (listed, index) for index, inner in enumerate(listed) if isinstance(inner, dict | list)
            )
    return root[0]


def _purpose(request: ModelRequest, harness: Harness | None) -> Purpose:
    if harness is not None:
        return harness.purpose(request)
    return "title" if asks_for_title(request) else "main"
