"""Tool calls of a DeepSeek Harness session: started, settled, denied, and the files they changed."""

from collections import OrderedDict
from collections.abc import Iterator
from typing import Any

from ledger.events import ContentRef, Draft
from ledger.events.effect import EffectDone
from ledger.events.tool_call import EffectClass
from ledger.importers._harness.story import Outcome, Story
from ledger.importers._harness.values import items, record, rest, words

_CLASSES: dict[str, EffectClass] = {
    "read": "read",
    "read_image": "read",
    "glob": "read",
    "grep": "read",
    "todo_write": "read",
    "list_agents": "read",
    "write": "write",
    "edit": "write",
    "web_fetch": "external",
    "web_search": "external",
}
_OUTCOMES: dict[str, Outcome] = {
    "TOOL_NOT_STARTED": "not_started",
    "TOOL_OUTCOME_UNKNOWN": "unknown",
    "APPROVAL_REJECTED": "denied",
    "FS_SANDBOX_DENIED": "denied",
}
_APPROVALS_KEPT = 10_000


class Tools:
    """The tool calls of one session."""

    def __init__(self, story: Story) -> None:
        self._story = story
        self._approvals: OrderedDict[str, str | None] = OrderedDict()
        self._refused: set[str] = set()

    def requested(self, block: dict[str, Any], index: int) -> Draft:
        """A call that the model's answer asks for."""
        call_id = words(block.get("id")) or f"{self._story.place.key}:{index}"
        name = words(block.get("name"))
        return self._story.call(
            call_id, name, block.get("arguments"), effect=_CLASSES.get(name or ""),
            rest=rest(block, "type", "id", "name", "arguments"),
        )  # fmt: skip

    def started(self, call_id: str, name: str | None, arguments: Any, *, rest: Any = None) -> Iterator[Draft]:
        """A call that is about to run; asked for here when no answer did."""
        if not self._story.knows(call_id):
            yield self._story.call(call_id, name, arguments, effect=_CLASSES.get(name or ""), rest=rest)
        yield from self._story.started(call_id)

    def asked(self, approval: str, call_id: str | None) -> None:
        """Somebody was asked whether a call may run."""
        self._approvals[approval] = call_id
        if len(self._approvals) > _APPROVALS_KEPT:
            self._approvals.popitem(last=False)

    def decided(self, approval: str, outcome: str) -> str | None:
        """The call that an answer is about."""
        call_id = self._approvals.get(approval)
        if call_id is not None and outcome in ("denied", "cancelled"):
            self._refused.add(call_id)
        return call_id

    def settled(
        self, event: dict[str, Any], data: dict[str, Any], shown: ContentRef | None
    ) -> Iterator[Draft]:
        """The result of a call, as the model is shown it."""
        message = record(data.get("message"))
        call_id = (
            words(message.get("toolCallId"))
            or words(record(message.get("source")).get("callId"))
            or words(data.get("callId"))
            or self._story.place.key
        )
        yield from self._settle(call_id, data, message.get("isError") is True, shown)

    def nested_settled(self, call_id: str, data: dict[str, Any]) -> Iterator[Draft]:
        """The result of a call that another tool made."""
        shown = self._story.keep.json(data.get("content"), "result")
        yield from self._settle(call_id, data, data.get("isError") is True, shown)

    def _settle(
        self, call_id: str, data: dict[str, Any], failed: bool, shown: ContentRef | None
    ) -> Iterator[Draft]:
        story = self._story
        error = record(data.get("error"))
        code = words(error.get("code")) or words(error.get("name"))
        outcome: Outcome = "failed" if failed else "returned"
        if code is not None:
            outcome = _OUTCOMES.get(code, "failed")
        if call_id in self._refused and outcome == "failed":
            outcome = "denied"
        meta = record(data.get("meta"))
        details = {name: data[name] for name in ("error", "meta") if name in data}
        yield story.settled(call_id, outcome, shown, details=details, error=code)
        if outcome == "returned":
            yield from self._effects(call_id, meta)

    def _effects(self, call_id: str, meta: dict[str, Any]) -> Iterator[Draft]:
        paths = [path for one in items(meta.get("diffs")) if (path := words(record(one).get("path")))]
        operation = words(meta.get("operation"))
        if not paths and operation is not None and (path := words(meta.get("path"))):
            paths = [path]
        for index, path in enumerate(dict.fromkeys(paths)):
            effect = EffectDone(
                effect_id=f"{call_id}:{index}",
                call_id=call_id,
                target=path,
                operation=operation or "edit",
                effect_class="write",
                evidence="observed",
            )
            yield self._story.draft(effect, "agent")
