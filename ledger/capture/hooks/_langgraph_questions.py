"""Interrupts of a graph as questions, and what it is resumed with as their answers. Runs nothing itself."""

import threading
from collections.abc import Iterable, Mapping
from typing import Any

from ledger.capture.approvals import AskOptions
from ledger.capture.hooks._langgraph import Asked, ToolRequest, asked_by, requested_in
from ledger.capture.hooks._run import HookRun
from ledger.capture.hooks._session import HookSession
from ledger.protocols.interrupts import edited_in, verdict
from ledger.protocols.plain import plain


class Questions:
    """The questions of one handler. A question is asked once, however many runs the interrupt passes on its way up."""

    def __init__(self, run: HookRun) -> None:
        self._run = run
        self._denied: dict[tuple[str, str], Asked] = {}
        self._times: dict[str, int] = {}
        self._lock = threading.Lock()

    def raised(self, session: HookSession, interrupts: Any, state: Any, running: ToolRequest | None) -> None:
        """A node with this state, or a tool that runs, stopped to ask."""
        listed = interrupts if isinstance(interrupts, list | tuple) else ()
        for interrupt in listed:
            for asked in asked_by(interrupt, requested_in(state), running):
                self._ask(session, asked)

    def _ask(self, session: HookSession, asked: Asked) -> None:
        with self._lock:
            times = self._times.get(_interrupt_of(asked.approval_id), 0)
            name = f"{asked.approval_id}/{times + 1}" if times else asked.approval_id
            if any(one.is_asked(name) for one in (session, *self._run.waiting_below(session))):
                return
            options: AskOptions = {"context": asked.shown}
            if asked.tool is not None:
                options["tool"] = asked.tool
            if asked.call_id is not None:
                options["call_id"] = asked.call_id
            if asked.arguments is not None:
                options["arguments"] = asked.arguments
            session.asked(name, **options)

    def answered(self, session: HookSession, resume: Any) -> None:
        """The graph is resumed: with the answer to its one interrupt, or with answers by the interrupts' ids."""
        with self._lock:
            waiting = [
                (one, question.approval_id)
                for one in (session, *self._run.waiting_below(session))
                for question in one.questions
            ]
            by_id = isinstance(resume, Mapping) and any(_interrupt_of(name) in resume for _, name in waiting)
            answered = set()
            for one, name in waiting:
                interrupt = _interrupt_of(name)
                if not by_id or interrupt in resume:
                    self._decide(one, name, resume[interrupt] if by_id else resume)
                    answered.add(interrupt)
            for interrupt in answered:
                self._times[interrupt] = self._times.get(interrupt, 0) + 1
            if not waiting:
                self._decide(session, f"resume-{session.journal.new_id()}", resume)

    def _decide(self, session: HookSession, name: str, value: Any) -> None:
        one = plain(value)
        decisions = one.get("decisions") if isinstance(one, dict) else one
        place = _place_of(name)
        if isinstance(decisions, list) and place < len(decisions):
            one = decisions[place]
        outcome, how = verdict(one)
        question = next((one for one in session.questions if one.approval_id == name), None)
        options: AskOptions = {"how": how}
        if (edited := edited_in(one)) is not None:
            options["arguments"] = edited
        session.decided(name, outcome, **options)
        if outcome == "denied" and question is not None and question.call_id is not None:
            known = question.options
            self._denied[session.session, question.call_id] = Asked(
                name, known.get("tool"), question.call_id, known.get("arguments"), how
            )

    def refused(self, session: HookSession, call_id: str, shown: Any) -> None:
        """A message stands in the place of a tool's result: when the call was denied, it will not run."""
        asked = self._denied.pop((session.session, call_id), None)
        if asked is not None:
            session.tool_denied(
                call_id, asked.tool or "unknown", asked.arguments, reason=asked.shown, shown=shown
            )

    def left(self, session: HookSession) -> None:
        """The graph ended: what was denied did not run."""
        for call_id in self._denied_in(session):
            self.refused(session, call_id, None)

    def _denied_in(self, session: HookSession) -> Iterable[str]:
        return [call_id for name, call_id in list(self._denied) if name == session.session]


def _interrupt_of(name: str) -> str:
    """The interrupt's id in a question's: `ID`, `ID.PLACE`, `ID/TIME`, `ID.PLACE/TIME`."""
    return name.partition("/")[0].partition(".")[0]


def _place_of(name: str) -> int:
    place = name.partition("/")[0].partition(".")[2]
    return int(place) if place.isdigit() else 0
