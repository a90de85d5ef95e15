"""Does work survive a restart? By restarts that are on record, and by what was kept for one."""

from ledger.events import Record
from ledger.events.model_call import ModelCallAnswered
from ledger.events.recovery import CheckpointTaken, RolledBack
from ledger.events.session import SessionEnded, SessionForked, SessionResumed
from ledger.events.tool_call import ToolCallSettled
from replay.scorecard.answer import Answer, Asker, Evidence, nothing


class Restart(Asker):
    """One session."""

    def __init__(self) -> None:
        self._seen = Evidence()
        self._restarts = 0
        self._answers_after = 0
        self._is_cut = False

    def take(self, record: Record) -> None:
        """One more record."""
        event = record.event
        match event:
            case SessionResumed():
                self._went_on(record, "resumed")
            case SessionForked() if not event.runs_again:
                self._went_on(record, "continues another session")
            case RolledBack() if event.rollback_id is not None:
                self._went_on(record, "went back to a checkpoint and on")
            case RolledBack():
                self._seen.add(record, "went back in its conversation")  # in a program that never stopped
            case CheckpointTaken():
                self._seen.add(record, "checkpoint")
            case ToolCallSettled() if event.outcome in ("unknown", "not_started"):
                word = "never began" if event.outcome == "not_started" else "has an unknown end"
                self._seen.add(record, f"a tool call {word}")
            case SessionEnded():
                self._is_cut = event.outcome == "aborted"
                if self._is_cut:
                    self._seen.add(record, f"ended: {event.outcome}")
            case ModelCallAnswered() if self._restarts:
                if not self._answers_after:
                    self._seen.add(record, "first answer after the restart")
                self._answers_after += 1
            case _:
                pass

    def _went_on(self, record: Record, what: str) -> None:
        self._seen.add(record, what)
        self._restarts += 1
        self._is_cut = False

    def answer(self) -> Answer:
        """The answer."""
        seen = self._seen
        unsure = seen["a tool call has an unknown end"] + seen["a tool call never began"]
        facts = {
            "restarts": self._restarts,
            "answers_after": self._answers_after,
            "checkpoints": seen["checkpoint"],
            "went_back": seen["went back in its conversation"],
            "calls_cut": unsure,
        }
        witnesses = tuple(seen.witnesses)
        if self._restarts and self._answers_after:
            lost = f"; {unsure} tool calls were cut off and their end is not known" if unsure else ""
            told = f"it went on {self._restarts} times, and {self._answers_after} answers of models came after{lost}"
            return Answer("restart", "survives in part" if unsure else "survives", told, witnesses, facts)
        if self._restarts or seen["checkpoint"]:
            told = f"{seen['checkpoint']} checkpoints are kept; no work after a restart is on record"
            return Answer("restart", "kept, not shown", told, witnesses, facts)
        if self._is_cut or unsure:
            told = "it was cut off with work under way, no checkpoint is on record, and it never went on"
            return Answer("restart", "lost", told, witnesses, facts)
        if back := seen["went back in its conversation"]:
            told = f"it went back in its conversation {back} times; no restart and no checkpoint is on record"
            return nothing("restart", told, **facts)
        return nothing("restart", "no restart, no checkpoint and no interruption is on record", **facts)
