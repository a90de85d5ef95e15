"""Looks at a model request before it leaves: a declared rule that the model could not see is put back, or it waits."""

import hashlib
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import orjson

from ledger.constraints.speakers import Said, said_in, texts_in
from ledger.constraints.visibility import KEPT, Seen, later, see
from ledger.effects.constraints import Constraint
from ledger.effects.loop_policy import LoopPolicy
from ledger.events import Event
from ledger.events.compaction import ConstraintPinned
from ledger.events.governance import ConstraintDeclared
from ledger.events.policy import Held, PolicyEvaluated
from ledger.protocols.plain import plain
from ledger.recorder import Keeper

PURPOSES = ("main", "sub-agent", "unknown")
"""Calls that are looked at; a title or a summary needs no rules."""

HEADING = "Still in force: "
"""What stands before a rule that is put back."""

_CHARACTERS_A_TOKEN = 4
_MOST = 20_000
_NOT_SEEN = Seen("absent", 0.0)
_SYSTEM_NAMES = {"openai.responses": "instructions", "anthropic.messages": "system"}
_MESSAGES_NAMES = {"openai.responses": "input", "gemini": "contents"}


class Sight(NamedTuple):
    """What is done with a request."""

    request: dict[str, Any]
    """The request as it may leave."""

    pinned: tuple[Constraint, ...]
    """Rules that were put back."""

    held: tuple[Constraint, ...]
    """Rules for which it must wait."""

    told: tuple[Constraint, ...]
    """Rules that are only told to be lost."""


class Pins:
    """The declared rules of one session. Used under the lock of whoever records it."""

    def __init__(self, policy: LoopPolicy) -> None:
        self._policy = policy
        self._constraints = {one.name: one for one in policy.constraints}
        self._seen: OrderedDict[tuple[str, bytes], Seen] = OrderedDict()
        self._waited: set[str] = set()

    @classmethod
    def of(cls, policy: LoopPolicy | None) -> "Pins | None":
        """Those of a policy that has constraints."""
        return None if policy is None or not policy.constraints else cls(policy)

    def declare(self, constraint: Constraint) -> None:
        """One more rule is in force."""
        self._constraints[constraint.name] = constraint

    def withdraw(self, name: str) -> None:
        """A rule is no longer in force."""
        self._constraints.pop(name, None)

    def declared(self, keep: Keeper) -> list[Event]:
        """The rules of the policy, as they are told when a session begins."""
        return [
            ConstraintDeclared(
                constraint=one.name,
                text=keep.text(one.text, "constraint"),
                modality=one.modality or "unknown",
                hardness=one.hardness or "unknown",
                origin=one.origin,
                scope=one.scope,
                check=keep.json(one.model_dump(mode="json"), "constraint"),
            )
            for one in self._constraints.values()
        ]

    def look(self, protocol: str, request: Mapping[str, Any]) -> Sight | None:
        """What to do with a request; None: all rules can be seen in it."""
        said = _said(protocol, request)
        lost = [one for one in self._constraints.values() if self._how(one.text, said).visibility not in KEPT]
        ways = {one.name: one.when_lost or self._policy.pinning for one in lost}
        held = tuple(one for one in lost if ways[one.name] == "hold" and one.name not in self._waited)
        pinned = tuple(one for one in lost if ways[one.name] == "pin")
        told = tuple(one for one in lost if ways[one.name] == "tell")
        if not (held or pinned or told):
            return None
        self._waited.update(one.name for one in held)  # who releases it has seen what it waited for
        changed = dict(request)
        if pinned and not pin(protocol, changed, "\n".join(words(one) for one in pinned)):
            told, pinned = (*told, *pinned), ()
        return Sight(changed, pinned, held, told)

    def events(self, sight: Sight, keep: Keeper, new_id: str, call_id: str) -> list[Event]:
        """What is to be told of it. `new_id` names the hold, if there is one."""
        size = _tokens(len(orjson.dumps(plain(sight.request))))
        found: list[Event] = [
            ConstraintPinned(
                constraint=one.name,
                message=keep.text(words(one), "constraint"),
                tokens=_tokens(len(words(one)) + 1),
                request_tokens=size,
                call_id=call_id,
            )
            for one in sight.pinned
        ]
        found += [
            PolicyEvaluated(rule=f"constraint {one.name}", verdict="warn", call_id=call_id)
            for one in sight.told
        ]
        if sight.held:
            names = ", ".join(one.name for one in sight.held)
            reason = keep.text(f"the model could no longer see: {names}", "reason")
            found.append(Held(hold_id=new_id, reason=reason, breaker=f"constraint {names}"[:200]))
        return found

    def _how(self, rule: str, said: Sequence[Said]) -> Seen:
        found = _NOT_SEEN
        for one in said:
            key = rule, hashlib.blake2b(one.text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
            known = self._seen.get(key)
            if known is None:
                known = see(rule, one.text)
                if one.who in ("assistant", "tool") and known.visibility not in KEPT:
                    known = _NOT_SEEN
                self._seen[key] = known
                if len(self._seen) > _MOST:
                    self._seen.popitem(last=False)
            found = later(found, known)
        return found


def words(constraint: Constraint) -> str:
    """What the model is told of a rule that is put back."""
    return f"{HEADING}{constraint.text}"


def pin(protocol: str, request: dict[str, Any], text: str) -> bool:
    """Add a text to the system prompt of a request; False where nobody knows how. Changes no value of the request."""
    if protocol in _SYSTEM_NAMES:
        name = _SYSTEM_NAMES[protocol]
        found = request.get(name)
        if found is not None and not isinstance(found, str | list):
            return False
        request[name] = _with(found, text)
        return True
    if protocol == "gemini":
        name = "system_instruction" if "system_instruction" in request else "systemInstruction"
        known = plain(request.get(name)) or {}
        if not isinstance(known, dict):
            known = {"parts": [{"text": str(known)}]}
        parts = known.get("parts") or []
        parts = [parts] if isinstance(parts, dict) else parts  # the API takes one part without its list
        request[name] = {**known, "parts": [*parts, {"text": text}]}
        return True
    messages = request.get("messages")
    if not isinstance(messages, list | tuple):
        return False
    first = messages[0] if messages else None
    if isinstance(first, Mapping) and first.get("role") in ("system", "developer"):
        changed = {**first, "content": _with(first.get("content"), text)}
        request["messages"] = [changed, *messages[1:]]
    else:
        request["messages"] = [{"role": "system", "content": text}, *messages]
    return True


def _with(found: Any, text: str) -> Any:
    if isinstance(found, list):
        return [*found, {"type": "text", "text": text}]
    return f"{found}\n\n{text}" if found else text


def _said(protocol: str, request: Mapping[str, Any]) -> list[Said]:
    found: list[Said] = []
    for name in ("system", "instructions", "systemInstruction", "system_instruction"):
        if request.get(name) is not None:
            value = plain(request[name])
            if isinstance(value, list):
                value = [block.get("text", block) if isinstance(block, dict) else block for block in value]
            found.append(Said("system", "\n".join(texts_in(value))))
    listed = request.get(_MESSAGES_NAMES.get(protocol, "messages"))
    if isinstance(listed, str):
        return [*found, Said("user", listed)]
    if isinstance(listed, Mapping):  # Gemini takes one content without its list
        listed = [listed]
    if isinstance(listed, list | tuple):
        for message in listed:
            found += said_in(plain(message))
    return found


def _tokens(characters: int) -> int:
    return -(-characters // _CHARACTERS_A_TOKEN)
