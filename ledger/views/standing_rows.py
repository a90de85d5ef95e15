"""What is kept of how the constraints of a session stood: rules, cuts, cells, breaches. Content only of rules."""

from typing import NamedTuple

from pydantic import BaseModel, ConfigDict


class Answer(NamedTuple):
    """What was worked out of a session."""

    seq: int
    """Record up to which."""

    rules: int
    """Its rules."""

    lost: int
    """Those that could be seen and then no longer."""

    cuts: int
    """Places where its context was shortened."""

    broken: int
    """Calls that broke a rule."""

    figures: str
    """Figures over all of it, as JSON in the form of `decay --json`, without what is listed one by one."""


class RuleWords(BaseModel):
    """A rule, what it says and since when."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    number: int
    """Its place among the rules of the session, from 1."""

    name: str
    """Its declared name, or `found:` and a digest of its words."""

    text: str
    """Its words, or the beginning of many."""

    modality: str
    """What sort of rule it is."""

    polarity: str
    """`negative`: it is said by a no; else `positive`."""

    hardness: str
    """Whether it may be outweighed."""

    scope: str
    """What it covers, in the words of its source; empty where nobody said."""

    origin: str
    """Where it was declared or found."""

    seq: int
    """Record by which it came into force; 0: a policy did that before the session."""

    withdrawn: int | None
    """Record by which it went out of force."""

    is_declared: bool
    """Whether somebody declared it; else it was found as a sentence."""


class RuleRow(RuleWords):
    """A rule, with what became of it."""

    is_lost: bool
    """Whether it could be seen and then no longer."""

    exposed: int
    """Calls of tools while it was lost."""

    broken: int
    """Calls that broke it."""

    calls_without: int
    """Model calls that went without it after it was lost."""

    tokens: int
    """Tokens that pinning it to them would have cost."""

    request_tokens: int
    """Tokens of these requests."""


class LaneRow(NamedTuple):
    """A conversation of a session."""

    number: int
    """Its place, from 0: the one whose context was shortened most often comes first."""

    name: str
    """Its name; empty for one without."""

    cuts: int
    """How often it was shortened."""


class CutRow(NamedTuple):
    """A place where the context of a conversation was shortened."""

    number: int
    """The how manieth of its conversation."""

    seq: int
    """The compaction; where the source logs none, the request that shows it."""

    request: int
    """The first request after it."""

    is_logged: bool
    """Whether the source logs it."""

    summary: str | None
    """Digest of the first message that it put in the place of others."""

    before: int
    """Rules that could be seen before."""

    lost: int
    """Those of them that it took away."""

    shown: int
    """Rules in force that had ever been seen."""

    kept: int
    """Those of them that can be seen in what it left."""


class StandRow(NamedTuple):
    """How a rule stood at one place."""

    rule: int
    """Number of the rule."""

    seq: int
    """The place: a request, or a cut."""

    is_cut: bool
    """Whether it is what a cut left, and not a request."""

    how: str
    """How it stood."""

    digest: str | None
    """Digest of the message or system prompt that says so; None: nothing there is about the rule."""

    is_system: bool
    """Whether that is the system prompt."""

    said: str
    """Its sentence that comes nearest to the rule, normalised."""

    lost_by: int | None
    """For a request: the cut that took the rule away, where it can no longer be seen."""

    lane: int
    """Number of the conversation."""


class BreachRow(NamedTuple):
    """A call that broke a rule."""

    rule: int
    """Number of the rule."""

    seq: int
    """The call."""

    tool: str
    """Its tool."""

    how: str
    """How the rule stood in the request before."""

    why: str
    """`decay`: it had been lost; `wilful`: it was there; `unknown`: nobody can say."""

    lost_by: int | None
    """The cut that had taken it away."""

    steps: int
    """Calls of tools since then."""
