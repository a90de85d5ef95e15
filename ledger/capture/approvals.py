"""Questions before an action: asked on record, then decided on record. Decides nothing itself."""

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple, TypedDict, get_args

from ledger.capture.journal import Journal
from ledger.effects.covering import Use, shortfalls
from ledger.errors import NotApprovedError
from ledger.events import Actor
from ledger.events.approval import ApprovalAsked, ApprovalDecided
from ledger.protocols.plain import plain, type_name

Outcome = Literal["approved", "denied", "timed_out", "cancelled", "unknown"]
"""What was decided."""

_OUTCOMES: Mapping[Any, Outcome] = {
    True: "approved",
    False: "denied",
    "approved": "approved",
    "denied": "denied",
    "timed_out": "timed_out",
    "cancelled": "cancelled",
    "unknown": "unknown",
}


class Approval(NamedTuple):
    """The answer to a question; true when it is a yes."""

    approval_id: str
    """Joins question, answer and use."""

    outcome: Outcome
    """What was decided."""

    is_queued: bool = False
    """Whether the ledger is where it was asked and answered: then it is checked there before each use."""

    tool: str | None = None
    """The tool it was asked for."""

    arguments_digest: str | None = None
    """Digest of the arguments it was asked for."""

    expires_at: str | None = None
    """RFC 3339 time after which it no longer counts."""

    def __bool__(self) -> bool:
        return self.outcome == "approved"


class AskOptions(TypedDict, total=False):
    """What may be told of a question."""

    tool: str
    """Tool that it is about."""

    arguments: Mapping[str, Any]
    """Arguments that the tool would be called with."""

    call_id: str
    """Id of the call, when `tool` will be given the same."""

    context: Any
    """What the decider is shown."""

    decided_by: Literal["human", "policy", "judge", "system", "unknown"]
    """Who decides; a human by default."""

    decider: str
    """Their name."""

    how: str
    """By what: a rule, a mode, a prompt."""

    scope: Literal["once", "session", "rule", "unknown"]
    """How far a yes reaches; once by default."""

    policy_version: str
    """Version or digest of the policy that makes the loop ask."""

    expires_at: str
    """RFC 3339 time after which an answer no longer counts."""


class Question:
    """One question, from the moment it is asked; `is_new=False`: it was recorded before, at the seq `asked_at`."""

    def __init__(
        self,
        journal: Journal,
        options: AskOptions,
        *,
        approval_id: str | None = None,
        asked_at: int | None = None,
        is_new: bool = True,
    ) -> None:
        self._journal = journal
        self._options = options
        self.approval_id = approval_id or journal.new_id()
        self._cause = asked_at
        if is_new:
            self._ask()

    def _ask(self) -> None:
        journal, options = self._journal, self._options
        context = options.get("context")
        with journal.intent("question for approval"):
            event = ApprovalAsked(
                approval_id=self.approval_id,
                call_id=options.get("call_id"),
                tool=options.get("tool"),
                arguments_digest=self._digest(),
                context=None if context is None else journal.keep.json(plain(context), "context"),
                policy_version=options.get("policy_version"),
                expires_at=options.get("expires_at"),
            )
            self._cause = journal.append([journal.draft(event)])[0].seq

    def decided(self, answer: Any) -> Approval:
        """The answer came: a yes or no, or one of the outcomes by name. Raises TypeError for anything else."""
        outcome = _OUTCOMES.get(answer) if isinstance(answer, str | bool) else None
        if outcome is None:
            self._record("unknown", f"the decider gave {type_name(answer)}")
            raise TypeError(
                f"expected True, False or one of {', '.join(get_args(Outcome))}; found {answer!r}"
            )
        self._record(outcome, self._options.get("how"))
        options = self._options
        return Approval(
            self.approval_id,
            outcome,
            tool=options.get("tool"),
            arguments_digest=self._digest() if options.get("scope", "once") == "once" else None,
            expires_at=options.get("expires_at"),
        )

    @property
    def options(self) -> AskOptions:
        """What is known of it."""
        return self._options

    @property
    def call_id(self) -> str | None:
        """Tool call that it is about."""
        return self._options.get("call_id")

    def learn(self, options: AskOptions) -> None:
        """More is known of the question now that it is answered: who decided, how, about which arguments."""
        self._options = {**self._options, **options}

    def _digest(self) -> str | None:
        arguments = self._options.get("arguments")
        return None if arguments is None else self._journal.keep.json(plain(arguments), "arguments").digest

    def failed(self, error: BaseException) -> None:
        """Nobody answered: asking raised."""
        self._record("cancelled", type_name(error))

    def _record(self, outcome: Outcome, how: str | None) -> None:
        options, journal = self._options, self._journal
        by = options.get("decided_by", "human")
        with journal.fact("decision"):
            event = ApprovalDecided(
                approval_id=self.approval_id,
                call_id=options.get("call_id"),
                outcome=outcome,
                decided_by=by,
                decider=options.get("decider"),
                how=how,
                scope=options.get("scope", "once"),
                arguments_digest=self._digest(),
            )
            actor = Actor("system" if by == "unknown" else by, options.get("decider"))
            journal.append([journal.draft(event, actor=actor, cause=self._cause)])


def check_approval(journal: Journal, approval: Approval, tool: str, arguments_digest: str) -> None:
    """An answer is good for what was asked, and for as long as was said. Raises NotApprovedError."""
    answer = ApprovalDecided(
        approval_id=approval.approval_id,
        outcome=approval.outcome,
        decided_by="unknown",
        scope="once",
        tool=approval.tool,
        arguments_digest=approval.arguments_digest,
        expires_at=approval.expires_at,
    )
    at = None if approval.expires_at is None else journal.surroundings.recorder.clock()
    if short := shortfalls(answer, None, Use(tool, arguments_digest, at=at)):
        reason = f"approval {approval.approval_id}: {', '.join(short).replace('_', ' ')}"
        raise NotApprovedError(tool, approval.approval_id, list(short), reason)
