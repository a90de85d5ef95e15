"""Rules that the loop's surroundings evaluate, budgets and breakers."""

from decimal import Decimal
from typing import Literal

from ledger.events.record import ContentRef, Event


class PolicyEvaluated(Event, name="policy.evaluated"):
    """A rule was applied to an action."""

    rule: str
    """Name of the rule, guard or hook."""

    verdict: Literal["allow", "deny", "ask", "warn", "error", "unknown"]
    """What it said."""

    call_id: str | None = None
    """Call it was applied to."""

    policy_version: str | None = None
    """Version or digest of the policy."""

    detail: ContentRef | None = None
    """What it gave as reason."""


class BreakerTripped(Event, name="policy.breaker_tripped"):
    """A breaker stopped the loop."""

    breaker: str
    """Name of the breaker."""

    limit: str
    """The limit, with its unit."""

    reached: str
    """What was reached, with its unit."""

    scope: str | None = None
    """Whose doings were counted: `session`, `run`, `agent NAME`, `edge NAME -> NAME`."""


class BudgetCharged(Event, name="policy.budget_charged"):
    """Something was taken from a budget."""

    budget: str
    """Name of the budget."""

    amount: Decimal
    """How much was taken."""

    unit: str
    """Unit: `usd`, `tokens`, `calls`, `seconds`."""

    remaining: Decimal | None = None
    """What is left."""


class BudgetExceeded(Event, name="policy.budget_exceeded"):
    """A budget was used up."""

    budget: str
    """Name of the budget."""

    limit: Decimal
    """Its limit."""

    reached: Decimal
    """What was reached."""

    unit: str
    """Unit of both."""


class Held(Event, name="policy.held"):
    """The loop was told to stop before its next model or tool call."""

    hold_id: str
    """Joins hold and release."""

    reason: ContentRef | None = None
    """Why, in the words of the person who held it."""

    breaker: str | None = None
    """The breaker that held it; None when a person did."""


class Released(Event, name="policy.released"):
    """A loop that was held may go on."""

    hold_id: str
    """The hold that ends."""

    reason: ContentRef | None = None
    """Why, in the words of the person who released it."""
