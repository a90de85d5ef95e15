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

    key: str | None = None
    """The loop's own name of the question: by it, a loop that was restarted finds the question again."""

    target: str | None = None
    """What the action would be done on."""

    rule: ContentRef | None = None
    """The full rule that made it ask."""

    scopes: tuple[str, ...] = ()
    """Scopes that an answer may have; empty where nobody limits them."""

    deciders: tuple[str, ...] = ()
    """Names of those who may decide, with `*` and `?`; empty where anybody may."""


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

    tool: str | None = None
    """Tool that it is good for."""

    target: str | None = None
    """What the action may be done on."""

    policy_version: str | None = None
    """Version or digest of the policy under which it was given: under another, it no longer counts."""

    expires_at: str | None = None
    """RFC 3339 time after which the answer no longer counts."""

    reason: ContentRef | None = None
    """Why, in the decider's words."""


class ApprovalUsed(Event, name="approval.used"):
    """An action ran under an answer given before."""

    approval_id: str
    """The answer."""

    call_id: str
    """The call that ran under it."""

    arguments_digest: Digest | None = None
    """Digest of the arguments that ran."""

    tool: str | None = None
    """The tool that ran."""

    target: str | None = None
    """What it was done on."""

    policy_version: str | None = None
    """Version or digest of the policy in force when it ran."""
