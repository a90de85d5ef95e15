"""Questions that a graph stops to ask, and the answers it is resumed with: what they are about, yes or no.

Their shapes are those of LangChain's middleware and of applications' own making. Must not fail on any value.
"""

from collections import deque
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple, Protocol, TypeVar

Outcome = Literal["approved", "denied", "unknown"]
"""What an answer decides."""

_WORDS: dict[str, Outcome] = {
    **dict.fromkeys(
        ("approve", "approved", "accept", "accepted", "yes", "y", "ok", "true", "allow"), "approved"
    ),
    **dict.fromkeys(("edit", "edited", "continue", "confirm", "confirmed"), "approved"),
    **dict.fromkeys(
        ("reject", "rejected", "deny", "denied", "no", "n", "false", "ignore", "cancel"), "denied"
    ),
    **dict.fromkeys(("respond", "response", "refuse", "refused", "decline", "declined", "block"), "denied"),
}
_FIELDS = ("type", "decision", "approved", "approve", "action", "answer", "choice", "status")
_SEARCHED = 2000


class Action(NamedTuple):
    """A tool call that a question is about, as far as the question says."""

    tool: str | None
    """Name of the tool."""

    call_id: str | None
    """Id of the call."""

    arguments: Any
    """Arguments shown; None when the question shows none."""


class WaitingCall(Protocol):
    """A call that waits for a result."""

    @property
    def call_id(self) -> str | None:
        """Its id."""

    @property
    def tool(self) -> str:
        """Name of the tool."""

    @property
    def arguments(self) -> Any:
        """Its arguments."""


Waiting = TypeVar("Waiting", bound=WaitingCall)


def actions_in(shown: Any) -> list[Action]:
    """The tool calls that a question shows."""
    if isinstance(shown, dict) and isinstance(shown.get("action_requests"), list):
        return [_action(action) for action in shown["action_requests"]]
    if isinstance(shown, list) and all(isinstance(one, dict) and "action_request" in one for one in shown):
        return [_action(one["action_request"]) for one in shown]
    if isinstance(shown, dict) and "action_request" in shown:
        return [_action(shown["action_request"])]
    if isinstance(shown, dict) and isinstance(shown.get("tool_call_id"), str):
        return [_action(shown)]
    return [_action(call) for call in _shown_calls(shown)]


def _action(action: Any) -> Action:
    if not isinstance(action, dict):
        return Action(None, None, None)
    call_id = _text(action.get("tool_call_id")) or _text(action.get("id"))
    tool = _text(action.get("name")) or _text(action.get("action"))
    return Action(tool, call_id, action.get("args", action.get("arguments")))


def _shown_calls(shown: Any) -> list[dict[str, Any]]:
    """Tool calls anywhere in a question of the application's own making."""
    found: list[dict[str, Any]] = []
    waiting, seen = deque([shown]), 0
    while waiting and seen < _SEARCHED:
        item = waiting.popleft()
        seen += 1
        if isinstance(item, dict):
            if isinstance(item.get("name"), str) and ("args" in item or "arguments" in item):
                found.append(item)
                continue
            waiting.extend(item.values())
        elif isinstance(item, list):
            waiting.extend(item[:_SEARCHED])
    return found


def matching(
    tool: str | None, call_id: str | None, arguments: Any, calls: Sequence[Waiting]
) -> Waiting | None:
    """The waiting call that an action is about: by id, else by name and arguments, else by name."""
    if call_id is not None:
        return next((call for call in calls if call.call_id == call_id), None)
    named = [call for call in calls if tool is not None and call.tool == tool]
    return next((call for call in named if call.arguments == arguments), named[0] if named else None)


def verdict(one: Any) -> tuple[Outcome, str]:
    """What an answer decides, and the decision in its own words, or what it was when it was no word."""
    if isinstance(one, dict):
        for name in _FIELDS:
            if name in one and not isinstance(one[name], dict | list):
                outcome, how = verdict(one[name])
                if outcome != "unknown":
                    return outcome, how
        return "unknown", "resumed with an object"
    if isinstance(one, bool):
        return ("approved", "true") if one else ("denied", "false")
    if isinstance(one, str):
        word = one.strip().lower()
        return (_WORDS[word], word) if word in _WORDS else ("unknown", "resumed with a text")
    return "unknown", "resumed with a value"


def edited_in(one: Any) -> Any:
    """Arguments in an answer that changes the call."""
    if not isinstance(one, dict):
        return None
    action = one.get("edited_action", one.get("args"))
    if isinstance(action, dict) and ("args" in action or "arguments" in action):
        return action.get("args", action.get("arguments"))
    return action if one.get("type") in ("edit", "edited") and isinstance(action, dict) else None


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None
