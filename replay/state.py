"""State: what is in force in a session at one seq, how it is kept and shown. Knows no event.

A state is sections of named entries, and the conversation. Entries are never changed in place, only replaced,
so a copy shares everything until one of the two is changed: it costs some pointers, however large the state.
"""

import hashlib
from typing import Any, NamedTuple

from ledger.events import ContentRef
from ledger.events.canonical import canonical_json
from replay.said import Item, Link, Tail, items_of, length, text_of, texts_of

FOLD_VERSION = 3
"""Number of the fold's behaviour: raised with every change that gives another state for the same records."""

Entry = Any
"""A JSON value; never changed once it is in a section."""


class Place(NamedTuple):
    """Where a section stands in the JSON form, and whether a rollback takes it back."""

    path: tuple[str, ...] | None
    """Names from the root; None for what the fold remembers for itself and does not show."""

    goes_back: bool
    """False for what stays true when a session goes back: what was spent, done outside, or put on record."""

    start: dict[str, Entry] = {}  # noqa: RUF012 - never changed
    """Entries before the first record."""


_ABOUT = (
    "started_at",
    "harness",
    "harness_version",
    "name",
    "agent",
    "model",
    "cwd",
    "parent",
    "forked_from",
    "forked_from_seq",
    "forked_from_item",
)
_COUNTS = ("model_calls", "failed_model_calls", "answers_without_usage", "tool_calls", "tool_starts")
_TOKENS = ("input", "output", "cache_read", "cache_write", "reasoning")

PLACES: dict[str, Place] = {
    "about": Place((), False, dict.fromkeys(_ABOUT)),
    "outcome": Place((), True, {"outcome": None, "outcome_reason": None}),
    "seen": Place((), True, {"context_completeness": "messages", "context_not_seen": []}),
    "constraints": Place(("constraints",), True),
    "artifacts": Place(("artifacts",), True),
    "offered": Place(("tools",), True, {"offered": None}),
    "capabilities": Place(("tools", "loaded"), True),
    "open_calls": Place(("open_calls",), True),
    "open_model_calls": Place(("open_model_calls",), True),
    "abandoned_calls": Place(("abandoned_calls",), False),
    "approvals_past": Place(("approvals",), True),
    "approvals": Place(("approvals",), True),
    "decisions": Place(("approvals_decided",), False),
    "budget": Place(("budget",), False),
    "breakers": Place(("breakers",), False),
    "usage": Place(("usage",), False, dict.fromkeys(_COUNTS, 0) | {"cost_usd": None}),
    "tokens": Place(("usage", "tokens"), False, dict.fromkeys(_TOKENS)),
    "tool_outcomes": Place(("usage", "tool_outcomes"), False),
    "modes": Place(("modes",), True),
    "files": Place(("files",), False),
    "outside": Place(("outside",), False),
    "effects": Place(("effects",), False, {"done": 0, "compensated": 0, "not_undone": 0}),
    "checkpoints": Place(("checkpoints",), False),
    "rollbacks": Place(("rollbacks",), False),
    "delegations_past": Place(("delegations",), True),
    "delegations": Place(("delegations",), True),
    "call_approvals": Place(None, True),
    "approval_uses": Place(None, False),
    "revised": Place(None, True),
    "answers": Place(None, False),
    "effect_targets": Place(None, False),
}
"""Every section. DESIGN.md section 7 names the parts of the JSON form that others rely on."""

GOES_BACK = tuple(name for name, place in PLACES.items() if place.goes_back)
"""Sections that a rollback takes back."""

_ALL = frozenset(PLACES)

INHERITED = "inherited_from"
"""Field of an entry that a forked session has from another one: that one's id, for the seqs in it are of that one."""

_STAYS_WITH_ORIGIN = frozenset({"outcome", "approval_uses"})
_INHERITS = (
    *(name for name, place in PLACES.items() if place.goes_back and name not in _STAYS_WITH_ORIGIN),
    *("abandoned_calls", "files", "outside", "effect_targets"),
)


_SHOWN_AT: dict[tuple[str, ...], list[str]] = {}
for _name, _place in PLACES.items():
    if _place.path is not None:
        _SHOWN_AT.setdefault(_place.path, []).append(_name)

_ABSENT = object()


class Trail:
    """Notes which record changed what, for a diff; a state that folds without one does no such work."""

    def __init__(self) -> None:
        self.entries: dict[tuple[str, ...], int] = {}
        """Path of an entry in the JSON form -> seq of the last record that brought or removed it."""
        self.fields: dict[tuple[str, ...], dict[str, int]] = {}
        """Path of an entry -> for its fields, seq of the last record that changed them since."""
        self.bases: list[tuple[int, str | None]] = []
        """(seq, context node) of each record that set the conversation anew."""
        self.said: dict[str, list[int]] = {}
        """Digest of a message -> seqs of the records that brought it."""
        self._before: dict[tuple[str, ...], Entry] = {}

    def note(self, state: "State", section: str, key: str) -> None:
        """An entry is about to be changed."""
        path = PLACES[section].path
        if path is not None and (*path, key) not in self._before:
            self._before[*path, key] = state.shown(path, key)

    def close(self, state: "State") -> None:
        """A record was folded: compare what it touched with what was there before it."""
        for path, old in self._before.items():
            new = state.shown(path[:-1], path[-1])
            if isinstance(old, dict) and isinstance(new, dict):
                for name in old.keys() | new.keys():
                    if old.get(name) != new.get(name):
                        self.fields.setdefault(path, {})[name] = state.seq
            elif old is _ABSENT or new is _ABSENT or old != new:
                self.entries[path] = state.seq
                self.fields.pop(path, None)
        self._before = {}

    def made(self) -> dict[tuple[str, ...], int]:
        """Path of an entry or a field -> seq of the last record that changed it."""
        fields = {(*path, name): seq for path, names in self.fields.items() for name, seq in names.items()}
        return self.entries | fields


class State:
    """The state of a session after the record `seq`; seq 0 is the state before the first record."""

    __slots__ = ("_shared", "node", "sections", "seq", "session", "tail", "trail")

    def __init__(self, session: str) -> None:
        self.session = session
        self.seq = 0
        self.node: str | None = None
        """Context node that the conversation begins with; None where it begins with the tail."""
        self.tail: Tail = None
        """What came since, as a list that grows at its end."""
        self.sections: dict[str, dict[str, Entry]] = {name: place.start for name, place in PLACES.items()}
        self.trail: Trail | None = None
        self._shared = set(_ALL)

    def copy(self) -> "State":
        """A state of its own; both may go on."""
        twin = State(self.session)
        twin.seq, twin.node, twin.tail = self.seq, self.node, self.tail
        twin.sections = self.sections.copy()
        self._shared.update(_ALL)
        return twin

    # -- changes ---------------------------------------------------------------------------------------------

    def get(self, section: str, key: str) -> Entry | None:
        """An entry, None where there is none."""
        return self.sections[section].get(key)

    def put(self, section: str, key: str, entry: Entry) -> None:
        """Set an entry."""
        if section in self._shared:
            self._unshare(section)
        entries = self.sections[section]
        if self.trail is not None:
            self.trail.note(self, section, key)
        entries[key] = entry

    def drop(self, section: str, key: str) -> Entry | None:
        """Remove an entry and give it."""
        if key not in self.sections[section]:
            return None
        if section in self._shared:
            self._unshare(section)
        if self.trail is not None:
            self.trail.note(self, section, key)
        return self.sections[section].pop(key)

    def count(self, section: str, key: str, amount: int = 1) -> None:
        """Add to a number."""
        self.put(section, key, (self.sections[section].get(key) or 0) + amount)

    def push(self, section: str, key: str, entry: Entry, limit: int) -> None:
        """Set an entry as the newest of a section that keeps only the last `limit`."""
        self.drop(section, key)
        self.put(section, key, entry)
        if len(self.sections[section]) > limit:
            self.drop(section, next(iter(self.sections[section])))

    def say(self, role: str, ref: ContentRef, call_id: str | None = None) -> None:
        """Add a message to the conversation."""
        self.tail = Link(self.tail, role, ref.digest, ref.kind, call_id)
        if self.trail is not None:
            self.trail.said.setdefault(ref.digest, []).append(self.seq)

    def begin(self, node: str | None) -> None:
        """The conversation is that of a context node, and nothing after it."""
        self.node, self.tail = node, None
        if self.sections["revised"]:
            self._replace("revised", {})
        if self.trail is not None:
            self.trail.bases.append((self.seq, node))

    def go_back(self, earlier: "State") -> None:
        """Be as an earlier state was, but for what stays true."""
        self.begin(earlier.node)
        self.tail = earlier.tail
        for name in GOES_BACK:
            self._replace(name, earlier.sections[name])
        earlier._shared.update(_ALL)

    def inherit(self, origin: "State") -> None:
        """Begin as a forked session does: as its origin was then. What was spent stays with who spent it."""
        self.begin(origin.node)
        self.tail = origin.tail
        for name in _INHERITS:
            start = PLACES[name].start
            own = {key: entry for key, entry in self.sections[name].items() if start.get(key) != entry}
            entries = {key: _inherited(entry, origin.session) for key, entry in origin.sections[name].items()}
            self._replace(name, entries | own)

    def _replace(self, section: str, entries: dict[str, Entry]) -> None:
        if self.trail is not None:
            for key in self.sections[section].keys() | entries.keys():
                self.trail.note(self, section, key)
        self.sections[section] = entries
        self._shared.add(section)

    def _unshare(self, section: str) -> None:
        self.sections[section] = self.sections[section].copy()
        self._shared.discard(section)

    # -- views -----------------------------------------------------------------------------------------------

    def shown(self, path: tuple[str, ...], key: str) -> Entry:
        """What the JSON form shows of an entry; a value of its own where it shows nothing."""
        for name in reversed(_SHOWN_AT[path]):
            if key in self.sections[name]:
                return self.sections[name][key]
        return _ABSENT

    def since(self) -> list[Item]:
        """The conversation after its context node, revised answers in the place of earlier ones."""
        return self.window(0, self.since_count())

    def window(self, first: int, count: int) -> list[Item]:
        """So many messages of that conversation, from a place on."""
        revised = self.sections["revised"]
        return [
            Item(*revised[item.call_id]) if item.role == "assistant" and item.call_id in revised else item
            for item in items_of(self.tail, first, first + count)
        ]

    def since_count(self) -> int:
        """How many messages there are after the context node."""
        return length(self.tail)

    def parts(self) -> dict[str, Any]:
        """The JSON form without session, seq, digest and conversation."""
        form: dict[str, Any] = {}
        for name, place in PLACES.items():
            if place.path is not None:
                inner = form
                for step in place.path:
                    inner = inner.setdefault(step, {})
                inner.update(self.sections[name])
        return form

    def as_json(self) -> dict[str, Any]:
        """The JSON form that the digest covers: as `state --json`, but messages by digest."""
        context = {"node": self.node, "since": [list(item) for item in self.since()]}
        return {"session": self.session, "seq": self.seq, "context": context, **self.parts()}

    def digest(self) -> str:
        """SHA-256 of the RFC 8785 bytes of the JSON form and the fold version, hexadecimal."""
        # As canonical_json gives it, but what is packed is not taken apart.
        rest = {"fold_version": FOLD_VERSION, "session": self.session, "seq": self.seq, **self.parts()}
        earlier, later = (
            canonical_json({name: rest[name] for name in rest if (name < "context") is is_earlier})[1:-1]
            for is_earlier in (True, False)
        )
        texts = texts_of(self.tail) if not self.sections["revised"] else [text_of(self.since())]
        whole = hashlib.sha256(b"{" + earlier + b',"context":{"node":' + canonical_json(self.node))
        whole.update(b',"since":[')
        for number, text in enumerate(texts):
            whole.update(b"," + text if number else text)
        whole.update(b"]}," + later + b"}")
        return whole.hexdigest()


def _inherited(entry: Entry, session: str) -> Entry:
    """An entry of another session, marked with the first that had it."""
    return {INHERITED: session, **entry} if isinstance(entry, dict) else entry
