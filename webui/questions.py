"""A question of a loop as people read it before they answer: who asks what, under which rule, and what was said."""

from typing import Any

from ledger.capture.gates.questions import Question
from ledger.cli.approving import status_of
from ledger.errors import LedgerError
from ledger.events import ContentRef
from ledger.events.approval import ApprovalDecided
from ledger.events.canonical import decode_json
from ledger.events.recovery import BranchOpened
from ledger.home import Ledger
from webui.contents import pretty, readable
from webui.page import Context

_LONGEST = 6_000
_LONGEST_TEXT = 2_000
_PARSED_BYTES = 256 * 1024
_MOST_SECOND = 20
_OWN = ("tool", "arguments", "class", "said_by", "target", "why")


class Answer(Context):
    """An answer to a question."""

    outcome: str
    """What it says."""
    by: str
    """Who gave it."""
    at: str | None
    """When."""
    session: str
    """Session that keeps it."""
    seq: int
    """Its record."""
    scope: str
    """How far it reaches."""
    reason: str | None
    """Why, in their words."""
    expires_at: str | None
    """When it stops to count."""
    rule: str | None
    """The full rule that it gives, as JSON."""
    rule_digest: str | None
    """Digest of that rule."""


class Asked(Context):
    """A question, whole."""

    id: str
    """Its id."""
    session: str
    """Session that asks."""
    seq: int
    """Its record."""
    agent: str | None
    """Agent that asks."""
    status: str
    """How it stands: open, lapsed, approved, used, denied, timed_out, cancelled."""
    is_open: bool
    """Whether an answer still counts."""
    is_queued: bool
    """Whether a loop waits for the answer in this ledger."""
    tool: str | None
    """Tool that would run."""
    call_id: str | None
    """Its call."""
    target: str | None
    """What it would be done on."""
    effect_class: str | None
    """What kind of effect it would have."""
    said_by: str | None
    """Who says so: the tool, a policy, an inference."""
    why: str | None
    """Why it is taken for that."""
    arguments: str
    """The arguments that would run."""
    arguments_digest: str | None
    """Their digest: an answer for once is bound to it."""
    more: str | None
    """What else the loop shows to the decider."""
    is_cut: bool
    """Whether the arguments or the rest are longer than what is shown."""
    rule: str | None
    """The full rule that made it ask, as JSON."""
    rule_digest: str | None
    """Digest of that rule."""
    policy_version: str | None
    """Version or digest of the policy in force: an answer is bound to it."""
    asked_at: str
    """When it was asked."""
    expires_at: str | None
    """When it counts as denied."""
    scopes: list[str]
    """Scopes that an answer may have."""
    deciders: list[str]
    """Who may decide; empty: anybody."""
    used: int
    """How often the answer was used."""
    decided: Answer | None
    """The answer that counts."""


def told(ledger: Ledger, question: Question) -> Asked:
    """A question for people. Content that is missing or damaged is left out, and said to be."""
    asked = question.asked
    shown, text = _shown(ledger, asked.context)
    known = shown if isinstance(shown, dict) else {}
    arguments = pretty(known["arguments"]) if "arguments" in known else text
    rest = {name: value for name, value in known.items() if name not in _OWN}
    more = _readable(rest["context"] if rest.keys() == {"context"} else rest) if rest else None
    if "arguments" not in known:
        more = None
    status = status_of(ledger, question)
    return Asked(
        id=asked.approval_id,
        session=question.session,
        seq=question.asked_seq,
        agent=question.agent,
        status=status,
        is_open=status == "open" and question.is_queued,
        is_queued=question.is_queued,
        tool=asked.tool,
        call_id=asked.call_id,
        target=asked.target,
        effect_class=_word(known.get("class")),
        said_by=_word(known.get("said_by")),
        why=_word(known.get("why")),
        arguments=arguments[:_LONGEST],
        arguments_digest=asked.arguments_digest,
        more=None if more is None else more[:_LONGEST],
        is_cut=len(arguments) > _LONGEST or len(more or "") > _LONGEST,
        rule=_text(ledger, asked.rule),
        rule_digest=None if asked.rule is None else asked.rule.digest,
        policy_version=asked.policy_version,
        asked_at=question.asked_at,
        expires_at=asked.expires_at,
        scopes=list(asked.scopes) or ["once", "session", "rule"],
        deciders=list(asked.deciders)[:20],
        used=question.used,
        decided=None
        if question.decided is None
        else _answer(
            ledger, question.decided, question.session, question.decided_seq or 0, question.decided_at
        ),
    )


def second_answers(ledger: Ledger, question: Question) -> list[Answer]:
    """Answers that came after the first and said something else: each is kept in a branch of its own."""
    found: list[Answer] = []
    for opened in ledger.store.read(question.session, names=(BranchOpened.TYPE,)):
        event = opened.event
        assert isinstance(event, BranchOpened)
        if event.at_seq != question.asked_seq or len(found) == _MOST_SECOND:
            continue
        for record in ledger.store.read(event.branch, names=(ApprovalDecided.TYPE,)):
            decided = record.event
            assert isinstance(decided, ApprovalDecided)
            if decided.approval_id.startswith(f"{question.asked.approval_id}/"):
                at = record.occurred_at or record.recorded_at
                found.append(_answer(ledger, decided, event.branch, record.seq, at))
            break
    return found


def _answer(ledger: Ledger, decided: ApprovalDecided, session: str, seq: int, at: str | None) -> Answer:
    return Answer(
        outcome=decided.outcome,
        by=decided.decider or decided.decided_by,
        at=at,
        session=session,
        seq=seq,
        scope=decided.scope,
        reason=_text(ledger, decided.reason),
        expires_at=decided.expires_at,
        rule=_text(ledger, decided.rule),
        rule_digest=None if decided.rule is None else decided.rule.digest,
    )


def _shown(ledger: Ledger, reference: ContentRef | None) -> tuple[Any, str]:
    """What the decider was shown: as a value where it is small enough to be one, and as text."""
    if reference is None:
        return None, ""
    try:
        body = ledger.store.content(reference.digest)
        value = decode_json(body) if reference.kind == "json" and len(body) <= _PARSED_BYTES else None
        return value, readable(body, reference.kind, "json")
    except (LedgerError, ValueError) as error:
        return None, f"not to be had: {error}"


def _text(ledger: Ledger, reference: ContentRef | None) -> str | None:
    if reference is None:
        return None
    return _shown(ledger, reference)[1][:_LONGEST_TEXT]


def _readable(value: Any) -> str:
    return value if isinstance(value, str) else pretty(value)


def _word(value: Any) -> str | None:
    return value[:200] if isinstance(value, str) else None
