"""Whether an answer covers a use: one law for those who enforce approvals and those who check them later. Pure."""

from datetime import datetime
from typing import Literal, NamedTuple

from ledger.events.approval import ApprovalAsked, ApprovalDecided

Shortfall = Literal[
    "not_approved",
    "expired",
    "reused",
    "other_arguments",
    "other_tool",
    "other_target",
    "other_policy",
]
"""Why an answer does not cover a use."""


_NOTHING = ApprovalAsked(approval_id="")


class Use(NamedTuple):
    """One use of an answer. What is None is not known, and not held against it."""

    tool: str | None = None
    """The tool that runs."""

    arguments_digest: str | None = None
    """Digest of its arguments."""

    target: str | None = None
    """What it is done on."""

    policy_version: str | None = None
    """Version of the policy in force."""

    at: str | None = None
    """RFC 3339 time of the use."""

    used_before: int = 0
    """How often the answer was used before."""


def shortfalls(answer: ApprovalDecided, question: ApprovalAsked | None, use: Use) -> list[Shortfall]:
    """Why the answer does not cover the use; nothing when it does.

    `once` is good for one call with the arguments asked about; `session` for the same tool on the same target;
    `rule` for what its rule says, which is content and not looked at here.
    """
    found: list[Shortfall] = []
    if answer.outcome not in ("approved", "unknown"):
        found.append("not_approved")
    limit = answer.expires_at or (question.expires_at if question and answer.scope == "once" else None)
    if is_after(use.at, limit):
        found.append("expired")
    if answer.scope == "once" and use.used_before:
        found.append("reused")
    asked = _NOTHING if question is None else question
    if _differs(answer.policy_version or asked.policy_version, use.policy_version):
        found.append("other_policy")
    if answer.scope == "rule":
        return found
    if _differs(answer.tool or asked.tool, use.tool):
        found.append("other_tool")
    if _differs(answer.target or asked.target, use.target):
        found.append("other_target")
    digest = answer.arguments_digest or asked.arguments_digest
    if answer.scope != "session" and _differs(digest, use.arguments_digest):
        found.append("other_arguments")
    return found


def is_after(time: str | None, limit: str | None) -> bool:
    """Whether a time lies after a limit; False where one of them is not known or is no time."""
    if time is None or limit is None:
        return False
    try:
        return datetime.fromisoformat(time) > datetime.fromisoformat(limit)
    except (ValueError, TypeError):
        return False


def _differs(one: str | None, other: str | None) -> bool:
    return one is not None and other is not None and one != other
