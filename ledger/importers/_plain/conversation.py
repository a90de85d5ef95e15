"""A list of messages, one after the other, read as the loop that made them. Knows no file format."""

import re
from collections.abc import Iterator
from typing import Any

from ledger.events import ContentRef, Draft
from ledger.events.canonical import canonical_json
from ledger.events.delegation import DelegationReturned, DelegationStarted
from ledger.events.governance import ArtifactChanged
from ledger.events.input import ContextInjected, MessageReceived
from ledger.events.keeping import SourceKept
from ledger.events.model_call import ModelCallAnswered, ModelCallRequested, Usage
from ledger.events.session import ArtifactInForce
from ledger.importers import Item
from ledger.importers._plain.scribe import Scribe
from ledger.protocols.drafting import Place
from ledger.protocols.tool_calls import ToolCalls
from ledger.protocols.tool_use import ToolResult, calls_in, results_in, text

SYSTEM_ROLES = frozenset({"system", "developer"})
"""Roles that govern the model."""
HUMAN_ROLES = frozenset({"user", "human"})
"""Roles of what comes from outside."""
MODEL_ROLES = frozenset({"assistant", "ai", "model"})
"""Roles of what a model wrote."""
TOOL_ROLES = frozenset({"tool", "function"})
"""Roles of results."""

_ADDRESSED = re.compile(r"(?P<agent>[^()]{1,100}?)\s*\((?:->|→)\s*(?P<to>[^()]{1,100})\)\Z")
_THOUGHT = re.compile(r"(?P<agent>[^()]{1,100}?)\s*\((?P<aside>[^()]{1,100})\)\Z")


class Conversation:
    """Turns messages into items. A model's message stands for the call that gave it, which saw all before it."""

    def __init__(
        self, scribe: Scribe, protocol: str, *, model: str | None = None, named: bool = False
    ) -> None:
        self._scribe = scribe
        self._protocol = protocol
        self._model = model
        self._named = named
        """Whether speakers are told by name, as in logs of several agents: then nobody knows the model calls."""
        self._context = scribe.desk.context()
        self._system: ContentRef | None = None
        self._changed: tuple[ArtifactInForce, ...] = ()
        self._handed: dict[str, str] = {}
        self.tools = ToolCalls(scribe)
        """The tool calls of the session."""

    def item(self, message: Any, place: Place, *, usage: Usage | None = None) -> Item:
        """One message."""
        tally = self._scribe.desk.tally
        tally.lines += 1
        cause: list[str] = []
        if not isinstance(message, dict):
            name = f"message:{type(message).__name__}"
            tally.native[name] += 1
            tally.unknown[name] += 1
            body = self._scribe.keep.json(message, name)
            kept = SourceKept(native_type=name, recognized=False, body=body)
            drafts = [self._scribe.draft(place, kept)]
        else:
            role = text(message.get("role")) or text(message.get("name")) or "none"
            known = self._named or role in SYSTEM_ROLES | HUMAN_ROLES | MODEL_ROLES | TOOL_ROLES
            tally.native[f"message:{role[:60]}"] += 1
            if not known:
                tally.unknown[f"message:{role[:60]}"] += 1
            drafts = list(self._drafts(message, role, place, usage, cause))
        return Item(
            self._scribe.session,
            place.key,
            drafts,
            place.line,
            canonical_json(message),
            cause=cause[0] if cause else None,
        )

    def _drafts(
        self, message: dict[str, Any], role: str, place: Place, usage: Usage | None, cause: list[str]
    ) -> Iterator[Draft]:
        if self._named:
            yield from self._spoken(message, role, place)
            return
        kept = self._scribe.keep.json(message, f"message of {role}")
        if role in SYSTEM_ROLES:
            yield self._governs(kept, place)
            return
        if role in MODEL_ROLES:
            yield from self._answered(message, kept, place, usage)
        elif role in HUMAN_ROLES | TOOL_ROLES:
            yield from self._came_in(message, role, kept, place, cause)
        else:
            event = SourceKept(native_type=f"message:{role[:60]}", recognized=False, body=kept)
            yield self._scribe.draft(place, event)
        self._context.append(kept)

    def _governs(self, kept: ContentRef, place: Place) -> Draft:
        """The first system message is the prompt; later ones are put in between."""
        if self._system is None and not len(self._context):
            self._system = kept
            self._changed = (ArtifactInForce(artifact="system_prompt", digest=kept.digest),)
            event = ArtifactChanged(artifact="system_prompt", kind="prompt", content=kept, cause="harness")
            return self._scribe.draft(place, event)
        self._context.append(kept)
        return self._scribe.draft(place, ContextInjected(provenance="system", message=kept))

    def _answered(
        self, message: dict[str, Any], kept: ContentRef, place: Place, usage: Usage | None
    ) -> Iterator[Draft]:
        changed, self._changed = self._changed, ()
        request = ModelCallRequested(
            call_id=f"model-{place.key}",
            protocol=self._protocol,
            model=self._model,
            context=self._context.head,
            context_length=len(self._context),
            context_added=self._context.take_added(),
            system=self._system,
            completeness="messages",
            not_seen=("tools", "parameters") if self._system else ("system", "tools", "parameters"),
            artifacts=changed,
        )
        draft = self._scribe.draft(place, request, "agent")
        yield Draft(draft.event, None, draft.actor, agent=draft.agent, source=draft.source, grade=draft.grade)
        answer = ModelCallAnswered(
            call_id=request.call_id, model=self._model, message=kept, usage=usage, completeness="complete"
        )
        yield self._scribe.draft(place, answer, "agent")
        for index, use in enumerate(calls_in(message)):
            yield self.tools.requested(use, place, index)
            if use.result is not None:
                yield self.tools.settled(ToolResult(use.call_id, use.tool, use.result, None), place)[0]
        for result in results_in(message):  # what the provider ran answers in the same message
            yield self.tools.settled(result, place)[0]

    def _came_in(
        self, message: dict[str, Any], role: str, kept: ContentRef, place: Place, cause: list[str]
    ) -> Iterator[Draft]:
        results = results_in(message)
        for result in results:
            error = message.get("error") if role in TOOL_ROLES else None
            draft, asked_in = self.tools.settled(
                result,
                place,
                error=_kind(error),
                details=None if error is None else self.tools.content(error, "tool error"),
            )
            if asked_in is not None and not cause:
                cause.append(asked_in)
            yield draft
        content = message.get("content")
        only_results = isinstance(content, list) and len(content) == len(results)
        if role in HUMAN_ROLES and not (results and only_results):
            sender = self._scribe.word(message.get("name"), "sender")
            event = MessageReceived(origin="human", message=kept, sender=sender)
            yield self._scribe.draft(place, event, "human", name=sender)

    def _spoken(self, message: dict[str, Any], role: str, place: Place) -> Iterator[Draft]:
        """A turn of a log in which agents speak by name: who said what, and to whom work was handed."""
        scribe = self._scribe
        speaker = text(message.get("name")) or role
        kept = scribe.keep.json(message, f"message of {speaker}")
        if speaker in HUMAN_ROLES:
            scribe.agent = None
            yield scribe.draft(place, MessageReceived(origin="human", message=kept), "human")
            return
        if addressed := _ADDRESSED.match(speaker):
            scribe.agent = scribe.word(addressed["agent"].strip(), "agent")
            to_agent = scribe.word(addressed["to"].strip(), "agent") or "unknown"
            self._handed[to_agent] = f"delegation-{place.key}"
            started = DelegationStarted(
                delegation_id=self._handed[to_agent], to_agent=to_agent, how="message", payload=kept
            )
            yield scribe.draft(place, started, "agent")
            return
        aside = _THOUGHT.match(speaker)
        scribe.agent = scribe.word((aside["agent"] if aside else speaker).strip(), "agent")
        sender = scribe.agent if aside is None else f"{scribe.agent} ({aside['aside']})"
        yield scribe.draft(
            place,
            MessageReceived(origin="agent", message=kept, sender=scribe.word(sender, "sender")),
            "agent",
        )
        delegation = None if aside else self._handed.pop(scribe.agent or "", None)
        if delegation is not None:
            returned = DelegationReturned(
                delegation_id=delegation, outcome="returned", result=kept, returned="result"
            )
            yield scribe.draft(place, returned, "agent")


def _kind(error: Any) -> str | None:
    """The kind of a failure: what stands before the colon in `ValueError: no such user`."""
    if not isinstance(error, str) or not error:
        return None
    kind = error.partition(":")[0].strip()
    return kind if kind.replace(".", "").replace("_", "").isalnum() and len(kind) <= 60 else "error"
