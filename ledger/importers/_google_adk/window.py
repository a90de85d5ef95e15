"""What of a session's events is sent to the next model call: without what was rewound, compacted or asked of people.

Follows the runner's own rules as far as events show them; holds a digest for each event.
"""

from collections import Counter, OrderedDict
from dataclasses import dataclass, field
from typing import Any

from ledger.events import ContentRef
from ledger.importers._google_adk.fields import get, parts_of, responses_of
from ledger.importers._harness.values import words
from ledger.recorder import ContextChain, Keeper

_PENDING_KEPT = 1000
_COMPACTIONS_KEPT = 100


@dataclass(slots=True)
class _Entry:
    start: float
    end: float
    ref: ContentRef
    author: str | None
    calls: frozenset[str] = field(default_factory=frozenset)


class Window:
    """The contents that a model would see."""

    def __init__(self, keep: Keeper, chain: ContextChain) -> None:
        self._keep = keep
        self._chain = chain
        self._entries: list[_Entry] = []
        self._authors: Counter[str | None] = Counter()
        self._starts: OrderedDict[str, int] = OrderedDict()
        self._keys: dict[str, str] = {}
        self._before: list[tuple[list[_Entry], OrderedDict[str, int]]] = []
        self._pending: OrderedDict[str, tuple[_Entry, Any]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._entries)

    def invocation(self, name: str | None, key: str) -> None:
        """An event of this invocation comes; `key` is that of its record."""
        if name is not None and name not in self._starts:
            self._starts[name] = len(self._entries)
            self._keys[name] = key

    def first_of(self, invocation: str) -> str | None:
        """Key of the first record of an invocation that still counts."""
        return self._keys.get(invocation) if invocation in self._starts else None

    def add(self, content: Any, author: str | None, time: float | None, *, pending: bool = False) -> None:
        """A content. `pending`: a response that stands in for one that comes when a person has answered."""
        when = time if time is not None else (self._entries[-1].end if self._entries else 0.0)
        calls = frozenset(
            call_id for one in responses_of(content) if (call_id := words(get(one, "id"))) is not None
        )
        for call_id in calls:
            if call_id in self._pending:
                self._complete(call_id, content)
                return
        entry = _Entry(when, when, self._keep.json(content, "content"), author, calls)
        self._entries.append(entry)
        self._authors[author] += 1
        self._chain.append(entry.ref)
        if pending:
            for call_id in calls:
                self._pending[call_id] = (entry, content)
                if len(self._pending) > _PENDING_KEPT:
                    self._pending.popitem(last=False)

    def rewind(self, invocation: str | None) -> bool:
        """Take out an invocation and all after it. False when it was never seen."""
        for number, (entries, starts) in enumerate(self._before):
            if invocation in starts:  # that compaction came later: it is undone too
                self._entries, self._starts = list(entries), starts
                del self._before[number:]
                break
        at = self._starts.get(invocation or "")
        if at is None:
            return False
        for name in [one for one, start in self._starts.items() if start >= at]:
            del self._starts[name]
        del self._entries[at:]
        self._authors = Counter(entry.author for entry in self._entries)
        self._chain.replace([entry.ref for entry in self._entries])
        return True

    def compact(self, start: float | None, end: float | None, summary: Any) -> tuple[int, int]:
        """Put a summary in the place of what it covers; gives the numbers of contents before and after."""
        before = len(self._entries)
        low, high = start if start is not None else 0.0, end if end is not None else float("inf")
        covered = [one for one, entry in enumerate(self._entries) if low <= entry.start and entry.end <= high]
        at = covered[0] if covered else before
        gone = set(covered)
        kept = [entry for number, entry in enumerate(self._entries) if number not in gone]
        kept.insert(at, _Entry(low, min(high, 1e12), self._keep.json(summary, "summary"), None))
        self._before.append((self._entries, self._starts.copy()))
        del self._before[:-_COMPACTIONS_KEPT]
        for name, begin in self._starts.items():
            taken = sum(1 for one in covered if one < begin)
            self._starts[name] = begin - taken + (1 if covered and begin > at else 0)
        self._entries = kept
        self._authors = Counter(entry.author for entry in kept)
        self._chain.replace([entry.ref for entry in kept])
        return before, len(kept)

    def others(self, agent: str | None) -> bool:
        """Whether another agent's contents are in it: the runner quotes these as text."""
        return any(author not in (None, "user", agent) for author in self._authors)

    def _complete(self, call_id: str, content: Any) -> None:
        """The runner sends the last response of a call, in the place of the first."""
        entry, first = self._pending.pop(call_id)
        last = {words(get(one, "id")): one for one in responses_of(content)}
        merged = [
            {"function_response": last[name]}
            if (name := words(get(get(part, "function_response"), "id"))) in last
            else part
            for part in parts_of(first)
        ]
        whole = content if len(merged) == len(parts_of(content)) else {"parts": merged, "role": "user"}
        entry.ref = self._keep.json(whole, "content")
        for other, (held, _) in list(self._pending.items()):
            if held is entry:
                self._pending[other] = (entry, whole)
        at = next((one for one in range(len(self._entries) - 1, -1, -1) if self._entries[one] is entry), None)
        if at is not None:
            self._chain.cut(at)
            for one in self._entries[at:]:
                self._chain.append(one.ref)
