"""What middleware of the Agent Framework saw: chat calls and tool calls, before and after."""

from collections.abc import Iterator
from typing import Any

from ledger.events import Draft
from ledger.events.canonical import canonical_json
from ledger.importers import Desk, Item
from ledger.importers._agent_framework.talk import PROTOCOL, Talk, around, response_facts
from ledger.importers._frameworks.printed import unprinted
from ledger.importers._harness.values import items, record, words
from ledger.importers._plain.scribe import utc_time
from ledger.protocols.drafting import Place
from ledger.protocols.exchanges import Ask

_OPEN_KEPT = 1000


class Hooks:
    """The entries of one dump. Calls nest: an agent that is called as a tool asks its model inside."""

    def __init__(self, desk: Desk, session: str) -> None:
        self.talk = Talk(desk, session)
        self._asks: list[Ask] = []
        self._running: list[tuple[str, str]] = []

    def entry(self, value: Any, line: int) -> Item:
        """One entry."""
        fields, loop = record(value), self.talk.loop
        hook = words(fields.get("hook")) or "none"
        loop.desk.tally.lines += 1
        loop.desk.tally.native[hook[:60]] += 1
        place = Place(f"entry:{line}", line, utc_time(record(fields.get("result")).get("created_at")))
        tellers = {
            "chat_before": self._asked,
            "chat_after": self._answered,
            "fn_before": self._runs,
            "fn_error": self._raised,
        }
        teller = tellers.get(hook)
        drafts = list(teller(fields, place)) if teller is not None else []
        if hook == "fn_after":
            self._ended(words(fields.get("name")))
        if not drafts:
            known = teller is not None or hook == "fn_after"
            drafts = [loop.kept(hook, value, place, recognized=known)]
        return Item(loop.session, place.key, drafts, line, canonical_json(value))

    def _asked(self, fields: dict[str, Any], place: Place) -> Iterator[Draft]:
        loop, options = self.talk.loop, record(fields.get("options"))
        messages = items(fields.get("messages"))
        yield from self.talk.results(messages, place)
        body: dict[str, Any] = {"messages": messages}
        model, server = unprinted(options.get("model")), unprinted(options.get("conversation_id"))
        if isinstance(model, str):
            body["model"] = model
        kept = bool(server) and server != "None"
        ask = Ask(
            place.key,
            PROTOCOL,
            completeness="partial" if kept else "messages",
            not_seen=(
                "system: printed among the options",
                "tools",
                "parameters",
                *(("messages: those that the provider kept from earlier calls",) if kept else ()),
            ),
        )
        self._asks.append(ask)
        del self._asks[:-_OPEN_KEPT]
        beside = {"options": options, "stream": fields.get("stream")}
        yield from loop.exchanges.requested(ask, body, place, rest=beside)

    def _answered(self, fields: dict[str, Any], place: Place) -> Iterator[Draft]:
        ask = self._asks.pop() if self._asks else Ask(place.key, PROTOCOL)
        response = record(fields.get("result"))
        listed = items(response.get("messages"))
        if not response:  # a stream: what came through it was not seen
            loop = self.talk.loop
            yield from loop.exchanges.answered(ask, fields.get("result"), place, completeness="partial")
            return
        message = listed[0] if len(listed) == 1 else {"contents": _joined(listed), "messages": listed}
        yield from self.talk.answer(ask, message, place, more=around(response), **response_facts(response))

    def _runs(self, fields: dict[str, Any], place: Place) -> Iterator[Draft]:
        tool = words(fields.get("name")) or "unnamed"
        call_id, drafts = self.talk.loop.runs(tool, fields.get("args"), place)
        self._running.append((tool, call_id))
        del self._running[:-_OPEN_KEPT]
        yield from drafts
        yield self.talk.loop.kept("fn_before", fields, place)

    def _raised(self, fields: dict[str, Any], place: Place) -> Iterator[Draft]:
        call_id = self._ended(words(fields.get("name")))
        if call_id is not None:
            self.talk.errors[call_id] = words(fields.get("err")) or "error"
        yield self.talk.loop.kept("fn_error", fields, place)

    def _ended(self, tool: str | None) -> str | None:
        """The oldest run of a tool has ended; of parallel ones nobody can say which."""
        for entry in self._running:
            if entry[0] == tool:
                self._running.remove(entry)
                return entry[1]
        return None


def _joined(messages: list[Any]) -> list[Any]:
    return [content for message in messages for content in items(record(message).get("contents"))]
