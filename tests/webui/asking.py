"""A session that asks two questions: one waits, one was answered by two people."""

from ledger.capture.gates.deciding import Verdict, decide
from ledger.effects.loop_policy import ApprovalRule
from ledger.events import Draft, Event
from ledger.events.approval import ApprovalAsked
from ledger.events.model_call import ModelCallAnswered, ModelCallRequested
from ledger.events.session import SessionStarted
from ledger.events.tool_call import ToolCallRequested
from ledger.home import Ledger
from ledger.recorder import Keeper

ASKING = "asks-0001"
"""The session."""

OPEN, DECIDED = "question-1", "question-2"
"""Its questions."""

RULE = ApprovalRule.model_validate(
    {"tool": "transfer*", "class": "irreversible", "scopes": ["once", "session", "rule"]}
)
ARGUMENTS = {"to": "acct-77", "amount": "1200.00", "note": "invoice 4711"}


def fill_asking(ledger: Ledger) -> None:
    """Plant it."""
    keeper = ledger.recorder.keeper()
    first: list[Event] = [
        SessionStarted(harness="test-harness", name="Pay the bills", agent="clerk"),
        ModelCallRequested(call_id="m1", protocol="anthropic.messages", completeness="none"),
        ModelCallAnswered(
            call_id="m1", message=keeper.json({"role": "assistant", "content": "I will pay it."})
        ),
    ]
    events = [*first, *question(keeper, OPEN), *question(keeper, DECIDED)]
    ledger.recorder.append(ASKING, [Draft(event, agent="clerk") for event in events], keeper)
    for verdict in (
        Verdict("denied", "bo", reason="not this month"),
        Verdict("approved", "cy", reason="it is due"),
    ):
        decide(ledger.recorder, ASKING, DECIDED, verdict)


def question(
    keeper: Keeper, approval_id: str, *, expires_at: str = "2099-01-01T00:00:00.000000Z"
) -> list[Event]:
    """A call and the question about it, as a loop of ours asks."""
    shown = {
        "tool": "transfer",
        "arguments": ARGUMENTS,
        "class": "irreversible",
        "said_by": "policy",
        "target": ARGUMENTS["to"],
        "context": "Invoice 4711 is due on Friday.",
    }
    arguments = keeper.json(ARGUMENTS)
    return [
        ToolCallRequested(
            call_id=f"call-{approval_id}", tool="transfer", arguments=arguments, effect_class="irreversible"
        ),
        ApprovalAsked(
            approval_id=approval_id,
            call_id=f"call-{approval_id}",
            tool="transfer",
            arguments_digest=arguments.digest,
            context=keeper.json(shown),
            policy_version="5e" * 32,
            expires_at=expires_at,
            key=f"key of {approval_id}",
            target=ARGUMENTS["to"],
            rule=keeper.json(RULE.model_dump(mode="json", by_alias=True)),
            scopes=RULE.scopes,
        ),
    ]
