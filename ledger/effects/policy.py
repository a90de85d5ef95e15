"""A user's own word on what tools do: a small YAML file of rules, first match wins.

effects:
- tool: "mcp__bank__*"
when: {/action: transfer}
class: irreversible
target: /iban
idempotency_key: /reference
- tool: insert_rows
class: external
compensation: {tool: delete_rows, arguments: {ids: /result/ids}}
"""

from collections.abc import Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, field_validator

from ledger.effects.yaml_file import read_yaml
from ledger.events.canonical import canonical_json
from ledger.events.tool_call import EffectClass


class Compensation(BaseModel):
    """What takes an effect back. `/arguments`, `/result` and what is below them are JSON pointers into the call.

    Words and arguments that begin otherwise stand for themselves.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    tool: str | None = None
    """Another tool of the loop, called with `arguments`."""

    command: tuple[str, ...] | None = None
    """A command and its words, run without a shell."""

    arguments: dict[str, Any] = {}
    """Arguments of the tool."""

    @property
    def how(self) -> str:
        """It in a few words."""
        return f"tool {self.tool}" if self.command is None else f"command {' '.join(self.command[:3])}"

    def needs(self) -> list[str]:
        """The pointers in it."""
        return [word for word in (*(self.command or ()), *self.arguments.values()) if is_pointer(word)]


class EffectRule(BaseModel):
    """One rule."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", use_attribute_docstrings=True, populate_by_name=True
    )

    tool: str
    """Name of the tool, with `*` and `?`."""

    when: dict[str, Any] = {}
    """JSON pointer into the arguments -> the value that must stand there."""

    effect_class: EffectClass | None = Field(default=None, alias="class")
    """What such a call does."""

    target: str | None = None
    """JSON pointer to what it is done on."""

    idempotency_key: str | None = None
    """JSON pointer to the key under which a repetition acts once."""

    compensation: Compensation | None = None
    """What takes it back."""

    @field_validator("target", "idempotency_key")
    @classmethod
    def _is_pointer(cls, value: str | None) -> str | None:
        if value is not None and not value.startswith("/"):
            raise ValueError(f"expected a JSON pointer, which starts with '/', found {value!r}")
        return value

    @property
    def name(self) -> str:
        """The rule in a few words."""
        conditions = ", ".join(f"{path} = {value!r}" for path, value in self.when.items())
        return f"{self.tool}{f' when {conditions}' if conditions else ''}"

    def fits(self, tool: str, arguments: Mapping[str, Any]) -> bool:
        """Whether it is about this call."""
        if not fnmatchcase(tool, self.tool):
            return False
        return all(value_at(arguments, path) == value for path, value in self.when.items())

    def target_in(self, arguments: Mapping[str, Any]) -> str | None:
        """What the call is about."""
        value = None if self.target is None else value_at(arguments, self.target)
        return None if value is None else str(value)

    def key_in(self, arguments: Mapping[str, Any]) -> str | None:
        """The call's idempotency key."""
        value = None if self.idempotency_key is None else value_at(arguments, self.idempotency_key)
        return None if value is None else str(value)


class EffectPolicy(BaseModel):
    """Rules on effects, in order."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    effects: tuple[EffectRule, ...] = ()
    """The rules; the first that fits counts."""

    tools: dict[str, str] = {}
    """Tool that compensations name -> Python function that stands for it in a rollback, as `module:function`."""

    def rule_for(self, tool: str, arguments: Mapping[str, Any]) -> EffectRule | None:
        """The rule about a call."""
        return next((rule for rule in self.effects if rule.fits(tool, arguments)), None)

    def canonical(self) -> bytes:
        """The policy as bytes, for its digest: equal for equal rules, however they are written down."""
        return canonical_json(self.model_dump(mode="json", by_alias=True))


def load_effect_policy(path: Path) -> EffectPolicy:
    """Read a policy. Raises InputError that names the line, what was expected and what was found."""
    return read_yaml(EffectPolicy, path)


def is_pointer(value: object) -> bool:
    """Whether a value of a compensation points into the call."""
    return isinstance(value, str) and (
        value in ("/arguments", "/result") or value.startswith(("/arguments/", "/result/"))
    )


def value_at(document: Any, path: str) -> Any:
    """What stands at a JSON pointer (RFC 6901); None where it leads nowhere."""
    for step in path.split("/")[1:]:
        name = step.replace("~1", "/").replace("~0", "~")
        if isinstance(document, Mapping):
            document = document.get(name)
        elif isinstance(document, list) and name.isdigit() and int(name) < len(document):
            document = document[int(name)]
        else:
            return None
    return document
