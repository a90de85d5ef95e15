"""Questions to a human or a policy before an action, and their answers."""

from typing import Literal

from ledger.events.record import ContentRef, Digest, Event


class ApprovalAsked(Event, name="approval.asked"):
    """The loop stopped to ask whether an action may run."""

    approval_id: str
    """Joins question, answer and use."""

    call_id: str | None = None
    """Tool call it is about."""

    tool: str | None = None
    """Tool it is about."""

    arguments_digest: Digest | None = None
    """Digest of the arguments shown to the decider."""

    context: ContentRef | None = None
    """What the decider was shown."""

    policy_version: str | None = None
    """Version or digest of the policy that made it ask."""

    expires_at: str | None = None
    """RFC 3339 time after which an answer no longer counts."""


class ApprovalDecided(Event, name="approval.decided"):
    """A question was answered, or the source shows the outcome of one that it did not log."""

    approval_id: str
    """The question."""

    call_id: str | None = None
    """Tool call it is about."""

    outcome: Literal["approved", "denied", "timed_out", "cancelled", "unknown"]
    """`unknown`: the action went on and the source does not say whether anybody was asked."""

    decided_by: Literal["human", "policy", "judge", "system", "unknown"]
    """Who decided."""

    decider: str | None = None
    """Their name."""

    how: str | None = None
    """By what: a rule, a mode, a prompt, a default; in the source's words."""

    scope: Literal["once", "session", "rule", "unknown"] = "unknown"
    """How far the answer reaches."""

    rule: ContentRef | None = None
    """The full rule that the answer adds or relies on."""

    arguments_digest: Digest | None = None
    """Digest of the arguments that were approved."""

    evidence: Literal["logged", "inferred"] = "logged"
    """Whether the source logs the decision or it was inferred from its effect."""


class ApprovalUsed(Event, name="approval.used"):
    """An action ran under an answer given before."""

    approval_id: str
    """The answer."""

    call_id: str
    """The call that ran under it."""

    arguments_digest: Digest | None = None
    """Digest of the arguments that ran."""
