"""What takes a call back, as the loop says it before the call: a function, another tool, or a command."""

from collections.abc import Callable, Mapping
from typing import Any

from pydantic import ValidationError

from ledger.capture.journal import Journal
from ledger.effects.policy import Compensation
from ledger.errors import InputError
from ledger.events import Draft
from ledger.events.effect import CompensationRegistered
from ledger.protocols.plain import plain, type_name

Compensate = Callable[..., Any] | Mapping[str, Any]
"""A function, called with `arguments=` and `result=` of the call; or `{"tool", "arguments"}` or `{"command"}`."""


def registered(journal: Journal, call_id: str, tool: str, compensate: Compensate) -> Draft:
    """The event that registers a compensation. A function is kept by name only: it must be given again to roll back."""
    found = _compensation(tool, compensate)
    kept = journal.keep.json(plain(found.model_dump(exclude_defaults=True, mode="json")), "compensation")
    return journal.draft(
        CompensationRegistered(effect_id=call_id, call_id=call_id, how=found.how, compensation=kept)
    )


def _compensation(tool: str, compensate: Compensate) -> Compensation:
    if not isinstance(compensate, Mapping):
        name = getattr(compensate, "__name__", None) or type_name(compensate)
        return Compensation(tool=name, arguments={"arguments": "/arguments", "result": "/result"})
    try:
        found = Compensation.model_validate(dict(compensate))
    except ValidationError as error:
        raise InputError(f"the compensation of tool {tool!r}: {error.errors()[0]['msg']}") from error
    if (found.tool is None) == (found.command is None):
        raise InputError(f"the compensation of tool {tool!r}: expected either 'tool' or 'command'")
    return found
