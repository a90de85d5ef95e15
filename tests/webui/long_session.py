"""A session of any length, and one with a result of many megabytes, for what must not grow with them."""

from ledger.events import ContentRef, Draft, Event
from ledger.events.input import MessageReceived
from ledger.events.model_call import ModelCallAnswered, ModelCallRequested, Usage
from ledger.events.session import SessionStarted
from ledger.events.tool_call import ToolCallRequested, ToolCallSettled, ToolCallStarted
from ledger.home import Ledger

LONG = "long-0001"
"""Id of the long session."""

LARGE = "large-0001"
"""Id of the session with a large result; it is record 5."""

_TOGETHER = 5_000


def fill_long(ledger: Ledger, events: int, session: str = LONG) -> None:
    """A session of exactly so many events: turns of a loop, some of which fail, some of which act outside."""
    keeper = ledger.recorder.keeper()
    said = keeper.json({"role": "assistant", "content": "The next shelf."})
    arguments, result = keeper.json({"row": 1}), keeper.text("full")
    drafts = [Draft(SessionStarted(harness="test-harness", name="A long day", agent="shopkeeper"))]
    ledger.recorder.append(session, drafts, keeper)
    written, turn = 1, 0
    while written < events:
        drafts = []
        while len(drafts) < _TOGETHER:
            drafts += [Draft(event, agent="shopkeeper") for event in _turn(turn, said, arguments, result)]
            turn += 1
        drafts = drafts[: events - written]
        ledger.store.append({session: drafts}, stamp=lambda: "2026-01-01T00:00:00.000000Z")
        written += len(drafts)


def _turn(turn: int, said: ContentRef, arguments: ContentRef, result: ContentRef) -> list[Event]:
    call, answer = f"call_{turn}", f"answer_{turn}"
    usage = Usage(input_tokens=100 + turn % 900, output_tokens=20)
    return [
        ModelCallRequested(call_id=answer, protocol="anthropic.messages", completeness="none"),
        ModelCallAnswered(call_id=answer, message=said, usage=usage),
        ToolCallRequested(
            call_id=call,
            tool=f"shelf_{turn % 7}",
            arguments=arguments,
            effect_class="irreversible" if turn % 101 == 50 else "read",
        ),
        ToolCallStarted(call_id=call),
        ToolCallSettled(call_id=call, outcome="failed" if turn % 13 == 5 else "returned", result=result),
    ]


def fill_large(ledger: Ledger, size_bytes: int = 12_000_000, session: str = LARGE) -> None:
    """A session with one result of so many bytes."""
    keeper = ledger.recorder.keeper()
    large = keeper.text(
        "".join(f"line {number:08d} of a log that never ends\n" for number in range(size_bytes // 41))
    )
    events: list[Event] = [
        SessionStarted(harness="test-harness", name="A large result"),
        MessageReceived(origin="human", message=keeper.json("Read the log.")),
        ToolCallRequested(call_id="read", tool="read", arguments=keeper.json({"path": "log"})),
        ToolCallStarted(call_id="read"),
        ToolCallSettled(call_id="read", outcome="returned", result=large),
    ]
    ledger.recorder.append(session, [Draft(event) for event in events], keeper)
