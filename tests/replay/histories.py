"""Random but valid histories, written to a real ledger: every event that the fold knows, in any order."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hypothesis import strategies as st

from ledger.events import Draft, Event, Source
from ledger.events.approval import ApprovalAsked, ApprovalDecided, ApprovalUsed
from ledger.events.capability import CapabilityLoaded, CapabilityUnloaded
from ledger.events.compaction import CompactionDone, ConstraintPinned
from ledger.events.delegation import DelegationReturned, DelegationStarted
from ledger.events.effect import EffectCompensated, EffectDone, EffectNotUndone
from ledger.events.governance import ArtifactChanged, ConstraintDeclared, ConstraintWithdrawn, ModeChanged
from ledger.events.input import ContextInjected, MessageReceived
from ledger.events.model_call import ModelCallAnswered, ModelCallFailed, ModelCallRequested, Usage
from ledger.events.policy import BreakerTripped, BudgetCharged, BudgetExceeded
from ledger.events.recovery import CheckpointTaken, RolledBack
from ledger.events.review import NoteWritten
from ledger.events.session import ArtifactInForce, SessionEnded, SessionForked, SessionResumed, SessionStarted
from ledger.events.tool_call import ToolCallRequested, ToolCallSettled, ToolCallStarted
from ledger.home import Ledger, open_ledger
from ledger.recorder import ContextChain, Keeper

SESSION = "session-1"

Step = tuple[str, int, int]
"""What happens, and two small numbers that choose ids and variants."""


def counting_clock() -> Callable[[], str]:
    """A clock that counts."""
    ticks = 0

    def clock() -> str:
        nonlocal ticks
        ticks += 1
        return f"2026-01-01T00:00:{ticks // 1000:02d}.{ticks % 1000:03d}Z"

    return clock


@contextmanager
def fresh_ledger(home: Path | None = None) -> Iterator[Ledger]:
    """A ledger of its own, with a clock that counts."""
    with TemporaryDirectory() as folder, open_ledger(home or folder, clock=counting_clock()) as ledger:
        yield ledger


class Writer:
    """Writes events to a session and keeps the context as a recorder would."""

    def __init__(self, ledger: Ledger, session: str = SESSION) -> None:
        self.ledger = ledger
        self.session = session
        self.keep: Keeper = ledger.recorder.keeper()
        self.chain = ContextChain(self.keep)
        self.seq = 0
        self._drafts: list[Draft] = []

    def add(self, *events: Event, source: Source | None = None) -> int:
        """Take events for the next append; give the seq of the last."""
        self._drafts.extend(Draft(event, source=source) for event in events)
        self.seq += len(events)
        return self.seq

    def flush(self) -> None:
        """Append what was taken."""
        self.ledger.recorder.append(self.session, self._drafts, self.keep)
        self._drafts = []

    def request(self, call_id: str, **fields: Any) -> ModelCallRequested:
        """A request with the chain as its context."""
        given: dict[str, Any] = {
            "protocol": "anthropic.messages",
            "context": self.chain.head,
            "context_length": len(self.chain),
            "context_added": self.chain.take_added(),
            "completeness": "messages",
        }
        return ModelCallRequested(call_id=call_id, **(given | fields))

    def answer(self, call_id: str, message: Any, **fields: Any) -> ModelCallAnswered:
        """An answer."""
        return ModelCallAnswered(call_id=call_id, message=self.keep.json(message), **fields)


def write(writer: Writer, steps: list[Step]) -> int:
    """Write a history; give its last seq."""
    for step in steps:
        _STEPS[step[0]](writer, step[1], step[2])
    writer.flush()
    return writer.seq


def _message(writer: Writer, a: int, b: int) -> None:
    message = writer.keep.json({"role": "user", "content": f"message {a}"})
    writer.chain.append(message)
    writer.add(MessageReceived(origin="human", message=message))


def _injected(writer: Writer, a: int, b: int) -> None:
    text = writer.keep.text(f"reminder {a}")
    writer.add(ContextInjected(provenance="reminder", message=text))


def _request(writer: Writer, a: int, b: int) -> None:
    purpose = ("main", "main", "main", "title", "sub-agent")[b % 5]
    fields: dict[str, Any] = {"tools": writer.keep.json([{"name": f"tool {a}"}])} if b == 2 else {}
    if b == 5:
        fields = {"context": None, "completeness": "none", "not_seen": ("messages",)}
    elif b == 6:
        writer.chain.cut(len(writer.chain) // 2)
    if b == 1:
        fields["artifacts"] = (ArtifactInForce(artifact=f"artifact {a % 3}", digest=f"{a:064x}"),)
    writer.add(writer.request(f"model {a}", purpose=purpose, **fields))


def _answer(writer: Writer, a: int, b: int) -> None:
    message = {"role": "assistant", "content": f"answer {a} {b}"}
    usage = None if b == 3 else Usage(input_tokens=a, output_tokens=b, cache_read_tokens=a if b else None)
    cost = Decimal(a) / 7 if b == 4 else None
    event = writer.answer(
        f"model {a}", message, usage=usage, cost_usd=cost, revision=int(b in (1, 2)), synthetic=b == 5
    )
    if event.revision == 0:
        writer.chain.append(event.message)
    writer.add(event)


def _settle(writer: Writer, a: int, b: int) -> None:
    outcome: Any = ("returned", "failed", "denied", "not_started", "unknown")[b % 5]
    result = writer.keep.json(f"result {a}") if b % 5 < 3 else None
    writer.add(ToolCallSettled(call_id=f"tool {a}", outcome=outcome, result=result, orphan=b == 5))


def _call(writer: Writer, a: int, b: int) -> None:
    source = Source("a-format", "file") if b == 1 else None
    writer.add(
        ToolCallRequested(call_id=f"tool {a}", tool="Bash", arguments=writer.keep.json({"a": a})),
        source=source,
    )


def _compaction(writer: Writer, a: int, b: int) -> None:
    summary = writer.keep.json({"role": "user", "content": f"summary {a}"})
    after: str | None = None
    if b < 3:
        writer.chain.replace([summary])
        after = writer.chain.head
    added = writer.chain.take_added()
    done = CompactionDone(
        compaction_id=f"compaction {a}",
        trigger="auto",
        evidence="logged",
        context_after=after,
        context_added=added,
        summary=summary if b < 5 else None,
    )
    writer.add(done)


def _decide(writer: Writer, a: int, b: int) -> None:
    outcome: Any = ("approved", "denied", "timed_out", "unknown")[b % 4]
    scope: Any = ("once", "session", "unknown")[b % 3]
    writer.add(
        ApprovalDecided(
            approval_id=f"approval {a}",
            call_id=f"tool {a}" if b else None,
            outcome=outcome,
            decided_by="human",
            scope=scope,
        )
    )


def _ask(writer: Writer, a: int, b: int) -> None:
    writer.add(ApprovalAsked(approval_id=f"approval {a}", call_id=f"tool {a}" if b % 2 else None))


def _artifact(writer: Writer, a: int, b: int) -> None:
    content = writer.keep.text(f"content {b}") if b else None
    writer.add(ArtifactChanged(artifact=f"artifact {a % 3}", kind="prompt", content=content, cause="human"))


def _declare(writer: Writer, a: int, b: int) -> None:
    text = writer.keep.text(f"rule {b}")
    writer.add(ConstraintDeclared(constraint=f"rule {a % 3}", text=text, origin="user"))


def _pin(writer: Writer, a: int, b: int) -> None:
    writer.add(ConstraintPinned(constraint=f"rule {a % 3}", message=writer.keep.text(f"rule {b}")))


def _effect(writer: Writer, a: int, b: int) -> None:
    effect_class: Any = ("read", "write", "external", "irreversible")[b % 4]
    target = "https://example.org/~a/b" if b > 4 else f"src/file {a % 4}.py"
    writer.add(
        EffectDone(effect_id=f"effect {a}", target=target, operation="edit", effect_class=effect_class)
    )


def _checkpoint(writer: Writer, a: int, b: int) -> None:
    seq = writer.seq - b if 0 < b < writer.seq else None
    writer.add(CheckpointTaken(checkpoint_id=f"checkpoint {a % 3}", seq=seq, label="a/b~c"))


def _roll_back(writer: Writer, a: int, b: int) -> None:
    if b == 0:
        writer.add(RolledBack(checkpoint_id=f"checkpoint {a % 3}"))
    elif b == 1:
        writer.add(RolledBack(reason="unknown"))
    else:
        writer.add(RolledBack(to_seq=writer.seq * a // 8))


def _budget(writer: Writer, a: int, b: int) -> None:
    unit = "usd" if b % 2 else "calls"
    if b == 5:
        writer.add(BudgetExceeded(budget="money", limit=Decimal(1), reached=Decimal(2), unit=unit))
    elif b == 6:
        writer.add(BreakerTripped(breaker="turns", limit="10 turns", reached=f"{a} turns"))
    else:
        writer.add(BudgetCharged(budget="money", amount=Decimal(a) / 10, unit=unit))


def _life(writer: Writer, a: int, b: int) -> None:
    life: tuple[Event, ...] = (
        SessionStarted(
            harness="loop", charter=(ArtifactInForce(artifact="system_prompt", digest=f"{a:064x}"),)
        ),
        SessionEnded(outcome="completed", reason="done"),
        SessionResumed(),
        SessionForked(origin="session-0", origin_seq=a),
        ModeChanged(mode="approval", new=f"mode {a}", cause="human"),
        NoteWritten(about=SESSION, text=writer.keep.text("a note")),
        ModelCallFailed(call_id=f"model {a}", error="overloaded"),
    )
    writer.add(life[b % len(life)])


def _capability(writer: Writer, a: int, b: int) -> None:
    name = f"tool {a % 3}"
    writer.add(
        CapabilityLoaded(kind="tool", capability=name)
        if b
        else CapabilityUnloaded(kind="tool", capability=name)
    )


_STEPS: dict[str, Callable[[Writer, int, int], None]] = {
    "message": _message,
    "injected": _injected,
    "request": _request,
    "answer": _answer,
    "call": _call,
    "start": lambda writer, a, b: _add(writer, ToolCallStarted(call_id=f"tool {a}")),
    "settle": _settle,
    "compaction": _compaction,
    "pin": _pin,
    "ask": _ask,
    "decide": _decide,
    "use": lambda writer, a, b: _add(writer, ApprovalUsed(approval_id=f"approval {a}", call_id=f"tool {a}")),
    "artifact": _artifact,
    "declare": _declare,
    "withdraw": lambda writer, a, b: _add(writer, ConstraintWithdrawn(constraint=f"rule {a % 3}")),
    "capability": _capability,
    "delegate": lambda writer, a, b: _add(
        writer, DelegationStarted(delegation_id=f"work {a}", to_agent="helper")
    ),
    "return": lambda writer, a, b: _add(
        writer, DelegationReturned(delegation_id=f"work {a}", outcome="returned")
    ),
    "effect": _effect,
    "compensate": lambda writer, a, b: _add(
        writer, EffectCompensated(effect_id=f"effect {a}", how="git checkout")
    ),
    "leave": lambda writer, a, b: _add(writer, EffectNotUndone(effect_id=f"effect {a}", reason="sent")),
    "checkpoint": _checkpoint,
    "roll back": _roll_back,
    "budget": _budget,
    "life": _life,
}


def _add(writer: Writer, event: Event) -> None:
    writer.add(event)


_OFTEN = ["message", "request", "answer", "call", "settle", "checkpoint", "roll back", "roll back"]


def histories(largest: int = 60) -> st.SearchStrategy[list[Step]]:
    """Histories of up to so many events, of which some kinds are more frequent, as in life or as it hurts."""
    step = st.tuples(st.sampled_from(sorted(_STEPS) + _OFTEN), st.integers(0, 7), st.integers(0, 6))
    # A list of a drawn length: left alone, hypothesis draws lists of six.
    return st.integers(1, largest).flatmap(lambda length: st.lists(step, min_size=length, max_size=length))
