"""What may stand in a file of rules: its words, what each means, and which go together."""

from typing import Annotated, Any, Literal, Self

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    FiniteFloat,
    NonNegativeInt,
    PositiveFloat,
    PositiveInt,
    model_validator,
)
from pydantic_core import PydanticCustomError

from ledger.events import BY_NAME
from ledger.events.review import Severity
from ledger.events.tool_call import EffectClass, Outcome

Kind = Literal["call", "ran", "result"]
"""Which moment of a tool call a step is about."""

KINDS: tuple[Kind, ...] = ("call", "ran", "result")
"""All moments, in the order in which a call goes through them."""


def _as_list(value: Any) -> Any:
    return [value] if isinstance(value, str) else value


def _wrong(message: str, *where: str | int) -> PydanticCustomError:
    """What is wrong with words that each are right by themselves, and where in this part."""
    return PydanticCustomError("rule", "{message}", {"message": message, "where": where})


Names = Annotated[
    tuple[Annotated[str, Field(min_length=1)], ...], BeforeValidator(_as_list), Field(min_length=1)
]
"""One name or several, each with `*` and `?`."""


class Word(BaseModel):
    """A part of a file: no word that is not known, every word described."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", use_attribute_docstrings=True, populate_by_name=True
    )


class Span(Word):
    """How far apart two things are; all that is given must hold."""

    calls: PositiveInt | None = None
    """Tool calls asked for; 1: the very next one."""

    records: PositiveInt | None = None
    """Records of any kind."""

    turns: NonNegativeInt | None = None
    """Messages of people between; 0: in the same turn."""

    seconds: PositiveFloat | None = None
    """Seconds by the source's own times; without such times the step does not match, and `backtest` says so."""

    @model_validator(mode="after")
    def _is_something(self) -> Self:
        if all(value is None for value in (self.calls, self.records, self.turns, self.seconds)):
            raise ValueError("expected calls, records, turns or seconds")
        return self


class Pattern(Word):
    """Which records are meant."""

    call: Names | None = None
    """Tools by name: the model asked for one of them."""

    ran: Names | None = None
    """Tools by name: one began to act (`tool_call.started`; where a source has none, its result says so)."""

    result: Names | None = None
    """Tools by name: one returned or failed."""

    event: str | None = None
    """Any other event by its stored name, such as `approval.decided`."""

    effect: Annotated[tuple[EffectClass, ...] | None, BeforeValidator(_as_list)] = Field(
        default=None, alias="class"
    )
    """Only calls of such an effect class, declared or inferred from name and arguments."""

    outcome: Annotated[tuple[Outcome, ...] | None, BeforeValidator(_as_list)] = None
    """Only results with such an outcome: returned, failed, denied, not_started, unknown."""

    condition: str | None = Field(default=None, alias="if")
    """Only records for which this CEL expression is true."""

    @property
    def kind(self) -> str:
        """`call`, `ran`, `result` or the name of an event."""
        return next((kind for kind in KINDS if getattr(self, kind) is not None), self.event or "")

    @property
    def tools(self) -> tuple[str, ...]:
        """The tools that are meant; none for another event."""
        return next((names for kind in KINDS if (names := getattr(self, kind)) is not None), ())

    @model_validator(mode="after")
    def _is_one_kind(self) -> Self:
        given = [kind for kind in (*KINDS, "event") if getattr(self, kind) is not None]
        if len(given) > 1 or (not given and getattr(self, "without", None) is None):
            found = ", ".join(given) or "none of them"
            raise ValueError(f"expected exactly one of call, ran, result, event, found {found}")
        if self.event is not None and self.event not in BY_NAME:
            raise _wrong(f"no event is named {self.event!r}; `loopledger events` shows names", "event")
        if self.event is not None and self.event.startswith("tool_call."):
            raise _wrong("expected call, ran or result for what tools do", "event")
        if self.effect is not None and self.event is not None:
            raise _wrong("only a call, ran or result has an effect class", "class")
        if self.outcome is not None and self.result is None:
            raise _wrong("only a result has one", "outcome")
        return self


class Step(Pattern):
    """One step of a sequence: a record, several of one sort, or that there is none."""

    name: str | None = Field(default=None, alias="as", pattern=r"^[a-z][a-z0-9_]*$")
    """Name by which later conditions read this step's record."""

    flows_from: str | None = Field(default=None, alias="from")
    """Data flow: an argument holds a value out of the result of the step of this name, or of `untrusted` results."""

    within: Span | None = None
    """At most so far from the step before; for times, over and a last without: how far the window reaches."""

    times: PositiveInt = 1
    """So many of them."""

    by: str | None = None
    """CEL: count or add up apart for each value of it."""

    sum: str | None = None
    """CEL: what is added up."""

    over: FiniteFloat | None = None
    """The step matches when the sum is over this."""

    without: Pattern | None = None
    """Absence: no such record between the steps around; first: none before; last: none until the window ends."""

    @property
    def counts(self) -> bool:
        """Whether several records make the step."""
        return self.times > 1 or self.sum is not None

    @model_validator(mode="after")
    def _goes_together(self) -> Self:
        if self.without is not None and (set(self.model_fields_set) - {"without", "within"}):
            raise _wrong("expected nothing beside it but within", "without")
        if (self.sum is None) != (self.over is None):
            raise ValueError("expected sum and over together")
        if self.sum is not None and self.times > 1:
            raise _wrong("expected times, or sum and over, not both", "times")
        if self.by is not None and not self.counts:
            raise _wrong("expected times, or sum and over, beside it", "by")
        if self.flows_from is not None and self.kind == self.event:
            raise _wrong("only a call, ran or result has arguments", "from")
        return self


class Rule(Word):
    """One rule: when its last step comes true, it has matched."""

    name: str = Field(pattern=r"^[a-z][a-z0-9_]*$")
    """Its name in findings, after that of the file."""

    title: str = Field(min_length=1)
    """What it suspects, in few words."""

    severity: Severity = "medium"
    """How bad that is."""

    action: Literal["flag", "ask", "deny"] = "flag"
    """What a guard should do; `backtest` tells what it would have blocked."""

    steps: tuple[Step, ...] = Field(min_length=1)
    """The sequence."""

    @model_validator(mode="after")
    def _is_a_sequence(self) -> Self:
        known: set[str] = set()
        for number, step in enumerate(self.steps):
            step_at = ("steps", number)
            is_first, is_last = number == 0, number == len(self.steps) - 1
            if step.within is not None and step.without is not None and not (is_first or is_last):
                raise _wrong("within beside a without between steps says nothing", *step_at, "within")
            before = self.steps[number - 1] if number else None
            alone = is_first or (number == 1 and before is not None and before.without is not None)
            if step.within is not None and step.without is None and alone and not step.counts:
                raise _wrong("there is no step before", *step_at, "within")
            if step.without is not None and before is not None and before.without is not None and is_last:
                raise _wrong("two absences at the end; write one rule for each", *step_at, "without")
            if step.flows_from not in (None, "untrusted", *known):
                raise _wrong(f"no step before is named {step.flows_from!r}", *step_at, "from")
            if step.name in known:
                raise _wrong(f"a step before is named {step.name!r}, too", *step_at, "as")
            known |= {step.name} if step.name is not None else set()
        if all(step.without is not None for step in self.steps):
            raise _wrong("expected a step that is there, found only absences", "steps")
        return self


class RulesFile(Word):
    """A file of rules."""

    title: str | None = None
    """What the rules are about."""

    why: str | None = None
    """Why it matters."""

    misses: str | None = None
    """What they cannot see."""

    source: str | None = None
    """Where they come from."""

    state: Literal["on", "experimental"] = "on"
    """Experimental: off unless asked for."""

    untrusted: Annotated[tuple[str, ...], BeforeValidator(_as_list)] = ()
    """Tools whose results are not trusted, by name with `*` and `?`; what `from: untrusted` is about."""

    rules: tuple[Rule, ...] = Field(min_length=1)
    """The rules."""

    @model_validator(mode="after")
    def _is_whole(self) -> Self:
        names = [rule.name for rule in self.rules]
        for number, name in enumerate(names):
            if name in names[:number]:
                raise _wrong(f"a rule before is named {name!r}, too", "rules", number, "name")
        for number, rule in enumerate(self.rules):
            for place, step in enumerate(rule.steps):
                if step.flows_from == "untrusted" and not self.untrusted:
                    at = ("rules", number, "steps", place, "from")
                    raise _wrong("expected a list `untrusted` of tools in the file", *at)
        return self
