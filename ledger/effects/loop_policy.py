"""A user's policy for whole loops: effects, which calls need a person's yes, prices, budgets. Decides nothing.

effects: []            # as in `policy`
approvals:             # the first rule that fits counts; a call that none fits needs no approval
- tool: "mcp__bank__*"
  class: [irreversible, credential]
  when: {/action: transfer}
  target: "acct-*"
  ask: true            # false: such calls need none
  deciders: [alice]
  timeout: 15m         # how long the question waits, and how long an answer of scope `once` counts
  lasts: 8h            # how long an answer of a wider scope counts
  scopes: [once, session]
prices:                # US dollars for a million tokens, where an answer does not tell its cost
  "claude-*": {input: 3, output: 15}
budgets:
- {name: day, usd: 5, per: run}
- {name: steps, calls: 200, effects: 20, per: agent}
constraints:           # rules that the model must see in every request: see `constraints`
- {name: no-drop, text: "Never drop a table.", broken_by: {tool: sql, matches: {/query: "(?i)drop table"}}}
pinning: pin           # what is done where one can no longer be seen: pin, hold or tell
"""

import re
from collections.abc import Mapping
from decimal import Decimal
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator

from ledger.effects.constraints import Constraint, WhenLost
from ledger.effects.policy import EffectPolicy, value_at
from ledger.effects.yaml_file import read_yaml
from ledger.events.canonical import canonical_json
from ledger.events.tool_call import EffectClass

Scope = Literal["once", "session", "rule"]
"""How far an answer reaches: this call; this tool on this target for the rest of the session; a rule of its own."""

Unit = Literal["usd", "tokens", "calls", "fan_out", "depth", "seconds", "effects"]
"""What a budget limits."""

UNITS: tuple[Unit, ...] = ("usd", "tokens", "calls", "fan_out", "depth", "seconds", "effects")
"""All of them."""

_SPAN = re.compile(r"(\d+(?:\.\d+)?)\s*(s|m|h|d)?")
_SECONDS = {None: 1, "s": 1, "m": 60, "h": 3600, "d": 86400}
_CONFIG = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True, populate_by_name=True)


def seconds_of(value: Any) -> float:
    """A span of time: a number of seconds, or a text such as `15m`. Raises ValueError for anything else."""
    found = _SPAN.fullmatch(str(value).strip()) if isinstance(value, str | int | float) else None
    if found is None or isinstance(value, bool):
        raise ValueError(f"expected a span of time such as 90s, 15m, 8h or 2d, found {value!r}")
    return float(found[1]) * _SECONDS[found[2]]


class ApprovalRule(BaseModel):
    """One rule on approvals."""

    model_config = _CONFIG

    tool: str
    """Name of the tool, with `*` and `?`."""

    effect_class: tuple[EffectClass, ...] = Field(default=(), alias="class")
    """Only calls of these classes."""

    when: dict[str, Any] = {}
    """JSON pointer into the arguments -> the value that must stand there."""

    target: str | None = None
    """Only calls on such a target, with `*` and `?`."""

    ask: bool = True
    """Whether such a call needs a person's yes."""

    deciders: tuple[str, ...] = ()
    """Names of those who may decide, with `*` and `?`; anybody by default."""

    timeout: float = 900.0
    """Seconds that a question waits; then it counts as denied. An answer of scope `once` counts as long."""

    lasts: float | None = None
    """Seconds that an answer of a wider scope counts; to the end of the session by default."""

    scopes: tuple[Scope, ...] = ("once",)
    """Scopes that an answer may have."""

    @field_validator("timeout", "lasts", mode="before")
    @classmethod
    def _span(cls, value: Any) -> float | None:
        return None if value is None else seconds_of(value)

    @field_validator("effect_class", mode="before")
    @classmethod
    def _classes(cls, value: Any) -> Any:
        return (value,) if isinstance(value, str) else value

    def fits(
        self, tool: str, arguments: Mapping[str, Any], effect_class: EffectClass | None, target: str | None
    ) -> bool:
        """Whether it is about this call."""
        return (
            fnmatchcase(tool, self.tool)
            and (not self.effect_class or effect_class in self.effect_class)
            and (self.target is None or (target is not None and fnmatchcase(target, self.target)))
            and all(value_at(arguments, path) == value for path, value in self.when.items())
        )


class Price(BaseModel):
    """What a model costs: US dollars for a million tokens."""

    model_config = _CONFIG

    input: Decimal = Decimal(0)
    """Tokens of input that were neither read from nor written to a cache."""

    output: Decimal = Decimal(0)
    """Tokens of output."""

    cache_read: Decimal = Decimal(0)
    """Tokens read from a cache."""

    cache_write: Decimal = Decimal(0)
    """Tokens written to a cache."""


class Budget(BaseModel):
    """Limits whose excess stops the loop at its next gate."""

    model_config = _CONFIG

    name: str
    """Its name in events."""

    per: Literal["session", "run", "agent", "edge"] = "session"
    """What has a budget of its own: each session; the run with all that it delegates; each agent of the run, by
    name; each pair of agents of which one delegates to the other."""

    usd: Decimal | None = None
    """US dollars."""

    tokens: Decimal | None = None
    """Tokens of all kinds."""

    calls: Decimal | None = None
    """Model calls."""

    fan_out: Decimal | None = None
    """Delegations started."""

    depth: Decimal | None = None
    """How deep delegation may go."""

    seconds: Decimal | None = None
    """Seconds since the first record of this process."""

    effects: Decimal | None = None
    """Tool calls that may change something."""

    def limits(self) -> dict[Unit, Decimal]:
        """What it limits."""
        found = {unit: getattr(self, unit) for unit in UNITS}
        return {unit: limit for unit, limit in found.items() if limit is not None}


class LoopPolicy(EffectPolicy):
    """What governs loops from outside."""

    approvals: tuple[ApprovalRule, ...] = ()
    """Which calls need a person's yes; the first rule that fits counts."""

    prices: dict[str, Price] = Field(default_factory=dict)
    """Model name, with `*` and `?` -> its price; the first that fits counts."""

    budgets: tuple[Budget, ...] = ()
    """Limits."""

    constraints: tuple[Constraint, ...] = ()
    """Rules that the model must see."""

    pinning: WhenLost = "pin"
    """What is done with a request in which one can no longer be seen, where the constraint does not say."""

    @field_validator("constraints")
    @classmethod
    def _names_differ(cls, value: tuple[Constraint, ...]) -> tuple[Constraint, ...]:
        names = [one.name for one in value]
        if twice := next((name for name in names if names.count(name) > 1), None):
            raise ValueError(f"expected a name of its own for each constraint, found {twice!r} twice")
        return value

    def canonical(self) -> bytes:
        """As of any policy; without constraints, the bytes are those of the time before there were any."""
        unused = set() if self.constraints else {"constraints", "pinning"}
        return canonical_json(self.model_dump(mode="json", by_alias=True, exclude=unused))

    def approval_for(
        self, tool: str, arguments: Mapping[str, Any], effect_class: EffectClass | None, target: str | None
    ) -> ApprovalRule | None:
        """The rule by which a call needs a person's yes; None when it needs none."""
        for rule in self.approvals:
            if rule.fits(tool, arguments, effect_class, target):
                return rule if rule.ask else None
        return None

    def price_of(self, model: str | None) -> Price | None:
        """What a model costs, where the policy says so."""
        if model is None:
            return None
        return next((price for name, price in self.prices.items() if fnmatchcase(model, name)), None)


def load_loop_policy(path: Path) -> LoopPolicy:
    """Read a policy. Raises InputError that names the line, what was expected and what was found."""
    return read_yaml(LoopPolicy, path)
