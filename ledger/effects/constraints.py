"""Constraints as a user declares them: in words for the model, and as calls that break them for whoever checks.

constraints:
- name: no-outside-mail
  text: Never send email to recipients outside the company domain.
  broken_by: {tool: send_email, unless: {/to: "@example\\\\.org$"}}
- name: ask-before-refunds
  text: Before any refund, check the order.
  hardness: hard
  demands: {before: {tool: refund}, call: {tool: get_order}, each_time: true}
  when_lost: hold         # pin: put it back into the request; hold: stop the loop; tell: only say so
pinning: pin              # what counts for constraints that do not say
"""

import re
from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from ledger.constraints.finding import Hardness, Modality, kind_of
from ledger.effects.policy import value_at

WhenLost = Literal["pin", "hold", "tell"]
"""What is done with a model request in which a constraint can no longer be seen."""

Origin = Literal["system", "user", "file", "tool", "policy", "unknown"]
"""Where a constraint was declared or found."""

_CONFIG = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)
_LONGEST = 10_000


class CallPattern(BaseModel):
    """Calls of tools."""

    model_config = _CONFIG

    tool: str
    """Name of the tool, with `*` and `?`."""

    when: dict[str, Any] = {}
    """JSON pointer into the arguments -> the value that must stand there."""

    matches: dict[str, str] = {}
    """JSON pointer into the arguments -> a regular expression that must be found there; `""`: in all of them."""

    unless: dict[str, str] = {}
    """JSON pointer -> a regular expression that must not be found there."""

    more_than: dict[str, float] = {}
    """JSON pointer -> a number that must be exceeded there."""

    @field_validator("matches", "unless")
    @classmethod
    def _are_expressions(cls, value: dict[str, str]) -> dict[str, str]:
        for pattern in value.values():
            try:
                re.compile(pattern)
            except re.error as error:
                raise ValueError(f"expected a regular expression, found {pattern!r}: {error}") from error
        return value

    def is_about(self, tool: str) -> bool:
        """Whether it is about this tool, whatever the arguments."""
        return fnmatchcase(tool, self.tool)

    def fits(self, tool: str, arguments: Any) -> bool:
        """Whether a call is one of these."""
        fields = arguments if isinstance(arguments, Mapping) else {}
        return (
            self.is_about(tool)
            and all(value_at(fields, path) == value for path, value in self.when.items())
            and all(re.search(pattern, _text(fields, path)) for path, pattern in self.matches.items())
            and not any(re.search(pattern, _text(fields, path)) for path, pattern in self.unless.items())
            and all(_number(fields, path) > limit for path, limit in self.more_than.items())
        )


class Demand(BaseModel):
    """One call that must come before another."""

    model_config = _CONFIG

    before: CallPattern
    """The call that may only come after."""

    call: CallPattern
    """The call that must have returned."""

    each_time: bool = False
    """Whether each call needs one of its own; else one in the session is enough."""


class Constraint(BaseModel):
    """One rule that an agent must keep."""

    model_config = _CONFIG

    name: str = Field(min_length=1, max_length=200)
    """Its name."""

    text: str = Field(min_length=1, max_length=_LONGEST)
    """It, in the words that the model is told."""

    modality: Modality | None = None
    """What sort of rule it is; by default as its words say."""

    hardness: Hardness | None = None
    """Whether it may be outweighed; by default as its words say."""

    origin: Origin = "policy"
    """Where it comes from."""

    scope: str | None = None
    """What it covers, in words."""

    broken_by: tuple[CallPattern, ...] = ()
    """Calls that break it."""

    demands: Demand | None = None
    """What must come before a call."""

    when_lost: WhenLost | None = None
    """What is done when it can no longer be seen."""

    @field_validator("broken_by", mode="before")
    @classmethod
    def _patterns(cls, value: Any) -> Any:
        return (value,) if isinstance(value, Mapping) else value

    @model_validator(mode="after")
    def _kind(self) -> Self:
        modality, hardness = kind_of(self.text)
        if self.demands is not None:
            modality = "requirement"
        if self.modality is None:
            object.__setattr__(self, "modality", modality)
        if self.hardness is None:
            object.__setattr__(self, "hardness", hardness)
        return self

    @property
    def is_checked(self) -> bool:
        """Whether calls show that it is broken."""
        return bool(self.broken_by) or self.demands is not None

    def concerns(self, tool: str) -> bool:
        """Whether a call of this tool could break it: an opportunity."""
        if self.demands is not None and self.demands.before.is_about(tool):
            return True
        return any(pattern.is_about(tool) for pattern in self.broken_by)


def _text(fields: Mapping[str, Any], path: str) -> str:
    found = fields if path == "" else value_at(fields, path)
    return "" if found is None else found if isinstance(found, str) else str(found)


def _number(fields: Mapping[str, Any], path: str) -> float:
    try:
        return float(str(value_at(fields, path)))
    except ValueError:
        return float("-inf")
