"""What is known of the rules of a session: how they stood, what took them away, which calls broke them, and why."""

from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from ledger.audit.decay.registry import Rule

How = Literal["verbatim", "paraphrase", "weakened", "narrowed", "inverted", "absent", "unknown"]
"""How a rule stood in a request; `unknown`: the request cannot be rebuilt, or there was none."""

Why = Literal["decay", "wilful", "unknown"]
"""Why a rule was broken: it had been lost; it was there; nobody can say, or it was never shown."""


class Cut(NamedTuple):
    """A place where the context was shortened."""

    seq: int
    """The compaction; where the source logs none, the call that shows it."""

    compaction_id: str | None = None
    """Its id; None where the source logs none."""

    context: tuple[str, ...] | None = None
    """Messages that it left; None where the source does not tell."""


class Where(NamedTuple):
    """The words that decided how a rule stands."""

    digest: str
    """Digest of the message, or of the system prompt."""

    is_system: bool = False
    """Whether it is the system prompt."""

    said: str = ""
    """Its sentence that comes nearest to the rule, normalised."""


class Stand(NamedTuple):
    """How a rule stands in what a cut left."""

    how: How
    """How."""

    where: Where | None = None
    """Where it says so; None: nothing there is about the rule."""


class Sighting(NamedTuple):
    """From a model call on, a rule stood like this."""

    rule: str
    """The rule."""

    seq: int
    """The call's request."""

    call_id: str
    """The call."""

    lane: str
    """The conversation."""

    how: How
    """How it stood."""

    lost_by: int | None = None
    """The cut that took it away, where it can no longer be seen."""

    where: Where | None = None
    """Where it says so; None: nothing in the request is about the rule."""


class Use(NamedTuple):
    """A call that could have broken a rule."""

    rule: str
    """The rule."""

    seq: int
    """The call."""

    tool: str
    """Its tool."""

    is_violation: bool
    """Whether it broke it."""

    how: How
    """How the rule stood in the request before."""

    why: Why
    """Why it was broken, if it was."""

    lost_by: int | None
    """The cut that had taken the rule away."""

    steps: int
    """Calls of tools since then."""


class Outlived(NamedTuple):
    """How many cuts a rule outlived, and whether the next one took it away."""

    rule: str
    """The rule."""

    cuts: int
    """Cuts, the one that took it away included."""

    is_lost: bool
    """Whether it was taken away; else the record ends, or it was withdrawn."""


@dataclass
class Shortening:
    """What one cut did."""

    seq: int
    """The cut."""

    is_logged: bool
    """Whether the source logs it."""

    number: int
    """The how manieth of its conversation."""

    before: list[str] = field(default_factory=list)
    """Rules that could be seen before."""

    lost: dict[str, How] = field(default_factory=dict)
    """Those of them that cannot be seen in what it left, and how they stand there."""

    all_shown: int = 0
    """Rules in force that had ever been seen."""

    all_kept: int = 0
    """Those of them that can be seen in what it left."""

    lane: str = ""
    """The conversation."""

    request: int = 0
    """The request that showed it."""

    summary: str | None = None
    """Digest of the first message that it put in the place of others; None where it put none."""

    stands: dict[str, Stand] = field(default_factory=dict)
    """How each rule in force that had ever been seen stands in what it left."""


@dataclass
class SessionDecay:
    """What became of the rules of a session."""

    session: str
    """The session."""

    rules: dict[str, Rule] = field(default_factory=dict)
    """The rules, by name."""

    sightings: list[Sighting] = field(default_factory=list)
    """How they stood, whenever that changed."""

    cuts: list[Shortening] = field(default_factory=list)
    """What each cut did."""

    uses: list[Use] = field(default_factory=list)
    """Calls that could have broken one."""

    outlived: list[Outlived] = field(default_factory=list)
    """How many cuts each outlived."""

    exposure: dict[str, int] = field(default_factory=dict)
    """Calls of tools while a rule was lost."""

    pinned: list[tuple[str, int, int]] = field(default_factory=list)
    """Rules that were pinned, the tokens of that, and those of the request."""

    advice: dict[str, tuple[int, int, int]] = field(default_factory=dict)
    """Lost rules: calls without them, tokens that pinning would have cost there, tokens of these requests."""
