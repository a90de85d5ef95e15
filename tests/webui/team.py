"""A run of a boss and parallel helpers, one of which hands work on."""

from ledger.events import Draft, Event
from ledger.events.delegation import DelegationReturned, DelegationStarted
from ledger.events.model_call import ModelCallAnswered, ModelCallRequested, Usage
from ledger.events.session import SessionEnded, SessionStarted
from ledger.events.tool_call import ToolCallRequested, ToolCallSettled
from ledger.home import Ledger

BOSS = "team-boss"
"""Session that hands work over."""


def fill_team(ledger: Ledger) -> None:
    """The run."""
    _session(ledger, BOSS, None, "boss", 0, 90, handed=("team-reader", "team-writer", "team-checker"))
    _session(ledger, "team-reader", BOSS, "reader", 5, 60, handed=("team-fetcher",))
    _session(ledger, "team-writer", BOSS, "writer", 6, 80)
    _session(ledger, "team-checker", BOSS, "checker", 61, 85)
    _session(ledger, "team-fetcher", "team-reader", "fetcher", 20, 50)


def _session(
    ledger: Ledger,
    session: str,
    parent: str | None,
    agent: str,
    start: int,
    end: int,
    handed: tuple[str, ...] = (),
) -> None:
    keeper = ledger.recorder.keeper()

    def at(second: int) -> str:
        return f"2026-11-29T10:{second // 60:02}:{second % 60:02}Z"

    told: list[tuple[int, Event]] = [(start, SessionStarted(harness="own", agent=agent, parent=parent))]
    for turn in range(3):
        told += [
            (start + turn, ModelCallRequested(call_id=f"m{turn}", protocol="own", completeness="none")),
            (
                start + turn,
                ModelCallAnswered(
                    call_id=f"m{turn}",
                    message=keeper.text("I go on."),
                    usage=Usage(input_tokens=50, output_tokens=5),
                    cost_usd="0.01",  # type: ignore[arg-type]
                ),
            ),
            (
                start + turn,
                ToolCallRequested(
                    call_id=f"t{turn}",
                    tool=f"tool-{turn % 2}",
                    arguments=keeper.json({}),
                    effect_class="read",
                ),
            ),
            (start + turn, ToolCallSettled(call_id=f"t{turn}", outcome="returned", result=keeper.text("ok"))),
        ]
    for number, child in enumerate(handed):
        handing = f"{session}-{number}"
        told.append(
            (
                start + 4,
                DelegationStarted(
                    delegation_id=handing,
                    to_session=child,
                    to_agent=child.removeprefix("team-"),
                    how="spawn",
                    payload=keeper.text("Do this."),
                ),
            )
        )
    for number, child in enumerate(handed):
        told.append(
            (
                end - 2,
                DelegationReturned(
                    delegation_id=f"{session}-{number}",
                    outcome="returned",
                    from_session=child,
                    result=keeper.text("Done."),
                ),
            )
        )
    told.append((end, SessionEnded(outcome="completed")))
    drafts = [Draft(event, agent=agent, occurred_at=at(second)) for second, event in told]
    ledger.recorder.append(session, drafts, keeper)
