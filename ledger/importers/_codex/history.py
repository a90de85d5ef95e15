"""The model history of a Codex session: what the next request's `input` holds, item for item."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ledger.events import ContentRef
from ledger.importers import Desk
from ledger.importers._codex.context import starts_turn
from ledger.importers._codex.row import Row, row_of, sent_form
from ledger.importers._files import UNPACK_ERRORS, open_source
from ledger.importers._jsonl import Line, json_lines

_SEGMENTS = 100
_OUTPUT_OF = {"custom_tool_call": "custom_tool_call_output"}
_ANSWERED_CALLS = frozenset({"function_call", "custom_tool_call", "local_shell_call", "tool_search_call"})
_NOT_SENT = frozenset({"ghost_snapshot"})


@dataclass(slots=True)
class _Entry:
    """One item of the history."""

    ref: ContentRef
    call: str | None
    output_of: str | None
    prompt: bool
    made_up: bool = False


class History:
    """Items in the order in which the next request sends them."""

    def __init__(self, desk: Desk) -> None:
        self._keep = desk.keep
        self.context = desk.context()
        self.missing: str | None = None
        """What is known to be absent from it; None when it is whole."""
        self._entries: list[_Entry] = []
        self._open: dict[str, str] = {}
        self._made_up: set[str] = set()

    def add(self, item: dict[str, Any], sub: str) -> ContentRef | None:
        """Add a response item; gives what was kept of it, or None for one that is never sent."""
        if sub in _NOT_SENT:
            return None
        ref = self._keep.json(sent_form(item), sub or "item")
        entry = self._entry(item, sub, ref)
        if entry.output_of is not None:
            if entry.output_of in self._made_up:
                self._drop_made_up(entry.output_of)
            elif self._open.pop(entry.output_of, None) is None:
                self.missing = self.missing or "the call of an output"
        if entry.call is not None:
            self._open[entry.call] = sub
        self._entries.append(entry)
        self.context.append(ref)
        return ref

    def close_calls(self) -> None:
        """Before a request: a call that has no output is sent with the output `aborted`, right behind it."""
        if not self._open:
            return
        entries: list[_Entry] = []
        for entry in self._entries:
            entries.append(entry)
            if entry.call is not None and entry.call in self._open:
                kind = _OUTPUT_OF.get(self._open[entry.call], "function_call_output")
                output = {"type": kind, "call_id": entry.call, "output": "aborted"}
                ref = self._keep.json(output, "output")
                entries.append(_Entry(ref, None, entry.call, False, made_up=True))
        self._made_up.update(self._open)
        self._open = {}
        self._become(entries)

    def replace(self, items: Iterable[Any]) -> ContentRef | None:
        """Become exactly these items (a compaction); gives the last of them."""
        entries = []
        for item in items:
            sub = _sub(item)
            if isinstance(item, dict) and sub not in _NOT_SENT:
                entries.append(self._entry(item, sub, self._keep.json(sent_form(item), sub)))
        self._open = {}
        self._made_up = set()
        answered = {entry.output_of for entry in entries}
        for entry in entries:
            if entry.call is not None and entry.call not in answered:
                self._open[entry.call] = "function_call"
        self.missing = None
        self._become(entries)
        return entries[-1].ref if entries else None

    def roll_back(self, turns: int) -> None:
        """Drop the last turns, each from its prompt on."""
        prompts = [index for index, entry in enumerate(self._entries) if entry.prompt]
        if turns > 0 and prompts:
            self._become(self._entries[: prompts[max(0, len(prompts) - turns)]])
            present = {entry.call for entry in self._entries}
            self._open = {call: kind for call, kind in self._open.items() if call in present}

    def replay(self, rows: Iterable[Row]) -> None:
        """Take over what another thread's rows had made of its history."""
        for row in rows:
            if row.kind == "response_item":
                self.add(row.payload, row.sub)
            elif row.kind == "compacted" and isinstance(row.payload.get("replacement_history"), list):
                self.replace(row.payload["replacement_history"])
            elif row.kind == "event_msg" and row.sub == "thread_rolled_back":
                turns = row.payload.get("num_turns")
                self.roll_back(turns if isinstance(turns, int) else 0)

    def _become(self, entries: list[_Entry]) -> None:
        self._entries = entries
        self.context.replace([entry.ref for entry in entries])

    def _drop_made_up(self, call: str) -> None:
        self._made_up.discard(call)
        self._become([entry for entry in self._entries if not (entry.made_up and entry.output_of == call)])

    @staticmethod
    def _entry(item: dict[str, Any], sub: str, ref: ContentRef) -> _Entry:
        call_id = item.get("call_id")
        call_id = call_id if isinstance(call_id, str) else None
        is_output = sub.endswith("_output")
        return _Entry(
            ref,
            call_id if sub in _ANSWERED_CALLS else None,
            call_id if is_output else None,
            sub == "message" and starts_turn(item),
        )


def _sub(item: Any) -> str:
    if not isinstance(item, dict):
        return ""
    sub = item.get("type") or ("message" if "role" in item else "")
    return sub if isinstance(sub, str) else ""


def base_of(meta: dict[str, Any]) -> tuple[str, int] | None:
    """Thread and ordinal (exclusive) that a thread's own history begins with, where it is only pointed to."""
    base = meta.get("history_base")
    if isinstance(base, dict):
        thread, end = base.get("thread_id"), base.get("end_ordinal_exclusive")
    else:
        thread, end = meta.get("forked_from_id"), meta.get("forked_from_ordinal_exclusive")
    return (thread, end) if isinstance(thread, str) and thread and isinstance(end, int) else None


def inherited_rows(path: Path, meta: dict[str, Any]) -> Iterator[Row] | None:
    """Rows that a fork takes over from the threads it continues; None when a file of theirs is not there."""
    segments: list[tuple[Path, int]] = []
    base = base_of(meta)
    while base is not None:
        found = _rollout_of(path, base[0])
        if found is None or len(segments) >= _SEGMENTS:
            return None
        segments.append((found, base[1]))
        first = next(_rows(found), None)
        base = base_of(first.payload) if first is not None and first.kind == "session_meta" else None
    return _segments(segments)


def _segments(segments: list[tuple[Path, int]]) -> Iterator[Row]:
    for path, end in reversed(segments):
        for row in _rows(path):
            if row.ordinal is not None and row.ordinal >= end:
                break
            yield row


def _rows(path: Path) -> Iterator[Row]:
    try:
        with open_source(path) as stream:
            for entry in json_lines(stream):
                if isinstance(entry, Line) and isinstance(entry.value, dict):
                    yield row_of(entry.value, entry.number, 0, entry.raw)
    except UNPACK_ERRORS:
        return


def _rollout_of(path: Path, thread: str) -> Path | None:
    """The rollout file of a thread: in the same folder, or in another day's folder of the same tree."""
    if not all(char.isalnum() or char in "-_" for char in thread):
        return None
    name = f"rollout-*-{thread}.jsonl*"
    beside = sorted(path.parent.glob(name))
    if beside:
        return beside[0]
    days = path.parents[3] if len(path.parents) > 3 and path.parents[0].name.isdigit() else None
    elsewhere = sorted(days.glob(f"*/*/*/{name}")) if days is not None else []
    return elsewhere[0] if elsewhere else None
