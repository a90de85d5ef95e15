"""The seam of all hooks: sessions and calls told by a framework's callbacks, from any thread or task.

How to write a hook. Make one `HookRun` for the user's handler, and tell it what the framework tells you:

    run = HookRun(ledger, harness="my-framework", harness_version=version("my-framework"))

    session = run.session(run_id, conversation=thread_id, agent="buyer")   # the same thread id: the same session
    session.message("Buy pumps.")
    session.model_begun(span_id, "openai.chat", {"model": ..., "messages": [...], "tools": [...]})
    run.model_chunk(span_id, chunk)                                        # a text, or JSON: a streamed answer
    run.model_answered(span_id, message, response_id=..., model=..., usage=Usage(...), stop_reason=...)
    session.tool_begun(tool_run_id, "order", {"item": "pumps"}, call_id="call_1")
    run.tool_returned(tool_run_id, result)            # or tool_failed(tool_run_id, error)
    session.asked(question_id, tool="order", arguments={...}, call_id="call_1")
    session.decided(question_id, True, decider="Ada")  # then `tool_begun` with that call_id runs under the approval
    session.tool_denied("call_1", "order", {...}, reason="too dear")       # asked for, and will not run
    child = run.delegate(session, sub_run_id, agent="expert", payload=..., how="tool", call_id="call_2")
    run.ended(sub_run_id, "completed", result=...)
    run.waits(run_id)                                  # stopped for an answer: `session(...)` goes on with it
    run.ended(run_id, "completed")

Keys are whatever the framework names a run, span or call with; each begins once and ends once, however often it is
told. What begins is recorded before these methods return and raises NotRecordedError when it cannot be kept, so call
them where an exception stops the framework. `fail_open=True` counts and warns instead. The methods block for the time
of a write; in an asyncio loop call them directly or through `asyncio.to_thread`. `session.checkpoint(...)`,
`session.artifact(name, content, kind)`, `session.compacted(...)` and `session.report_usage(tokens)` tell the rest.

Grades: `semantic` unless the request is the provider's body but for some bytes (`grade="near-wire"`).

Joining: model calls keep the provider's response id, tool calls the provider's call id, `trace` the trace id or
traceparent, and every record has the run id as its correlation: that of `LOOPLEDGER_RUN`, which the recording proxy
reads from `/run/<id>/` in its address. Without it the root session's id stands there.
"""

import atexit
import hashlib
import os
import re
import threading
import time
import warnings
import weakref
from collections.abc import Callable, Mapping
from typing import Any, Literal, Self, TypedDict

from ledger.capture.delegation import Delegation, How
from ledger.capture.hooks._earlier import left_open
from ledger.capture.hooks._ends import CallEnds
from ledger.capture.hooks._open import Counts
from ledger.capture.hooks._session import Calls, HookSession
from ledger.capture.journal import Journal, Surroundings
from ledger.capture.loop import HasRecorder
from ledger.errors import InputError, LedgerError
from ledger.events import Draft
from ledger.events.record import Grade
from ledger.events.review import NoteWritten
from ledger.events.session import SessionEnded, SessionStarted
from ledger.events.tool_call import EffectClass

Outcome = Literal["completed", "failed", "aborted", "cancelled", "unknown"]
"""How a session ended."""

RUN_VARIABLE = "LOOPLEDGER_RUN"
"""Environment variable with the run's id, which joins the records of a hook and of the recording proxy."""

_PLAIN_NAME = re.compile(r"[\w.:@/+=-]{1,120}\Z")
_CONVERSATIONS_KEPT = 256


class HookOptions(TypedDict, total=False):
    """What every hook may be given beside the ledger."""

    fail_open: bool
    """Go on when the ledger cannot be written, and count what is lost; by default the agent stops."""

    effects: Mapping[str, EffectClass] | None
    """What tools may do outside, by their names."""

    run_id: str | None
    """Id that joins it to what else records this run, such as the proxy; that of `LOOPLEDGER_RUN` by default."""


class HookRun(CallEnds):
    """All that one handler records. Threads and tasks may share it; close it, or use it as a context manager."""

    def __init__(
        self,
        ledger: HasRecorder,
        *,
        harness: str,
        harness_version: str | None = None,
        fail_open: bool = False,
        effects: Mapping[str, EffectClass] | None = None,
        run_id: str | None = None,
        grade: Grade = "semantic",
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        if not _PLAIN_NAME.match(harness):
            raise InputError(
                f"{harness!r} cannot name a harness: expected letters, digits and . : @ / + = - _"
            )
        super().__init__(Calls(fail_open=fail_open, effects=effects or {}))
        self.harness = harness
        self.harness_version = harness_version
        self.run_id = run_id or os.environ.get(RUN_VARIABLE) or None
        self._surroundings = Surroundings(ledger.recorder, monotonic)
        self._grade: Grade = grade
        self._sessions: dict[str, HookSession] = {}
        self._conversations: dict[str, HookSession] = {}
        self._lock = threading.Lock()
        self._is_closed = False
        self._at_exit = _close_at_exit(weakref.ref(self))
        self._at_drop = weakref.finalize(self, _dropped, self.counts, harness, self._at_exit)
        self._at_drop.atexit = False

    # -- sessions ----------------------------------------------------------------------------------------------------

    def session(
        self,
        key: Any,
        *,
        conversation: str | None = None,
        agent: str | None = None,
        name: str | None = None,
        model: str | None = None,
        trace: str | None = None,
        how: str = "the framework",
        **environment: Any,
    ) -> HookSession:
        """The session of a run of the framework: that of this key, that of this conversation, or a new one.

        `how` tells the way of resuming when the conversation goes on; `environment` whatever else joins or explains.
        """
        self.counts.add("callbacks")
        with self._lock:
            known = self._sessions.get(str(key))
            if known is not None:
                return known
            identity = self._surroundings.recorder.ids() if conversation is None else self._name(conversation)
            session = None if conversation is None else self._conversations.pop(identity, None)
            if session is None:
                about = {"run": self.run_id, "conversation": conversation, "trace": trace, **environment}
                journal = self._journal(identity, agent, self.run_id or identity, 0)
                session = HookSession(self._calls, journal, self._started(agent, name, model), about)
            self._enter(session, key, how)
            if conversation is not None:
                self._remember(session)
        return session

    def _started(self, agent: str | None, name: str | None, model: str | None = None) -> SessionStarted:
        return SessionStarted(
            harness=self.harness, harness_version=self.harness_version, name=name, agent=agent, model=model
        )

    def _journal(self, identity: str, agent: str | None, correlation: str, depth: int) -> Journal:
        return Journal(
            self._surroundings, identity, agent=agent, correlation=correlation, depth=depth, grade=self._grade
        )

    def _enter(self, session: HookSession, key: Any, how: str) -> None:
        if not session.keys:
            with self._calls.keeping("start of a session"):
                session.start(how)
        session.keys.add(str(key))
        self._sessions[str(key)] = session

    def _remember(self, session: HookSession) -> None:
        """Old conversations go on from the store when they come again; here only the latest are held."""
        self._conversations[session.session] = session
        idle = [name for name, held in self._conversations.items() if not held.keys]
        for name in idle[: max(0, len(self._conversations) - _CONVERSATIONS_KEPT)]:
            del self._conversations[name]

    def find(self, key: Any) -> HookSession | None:
        """The session of a run of the framework, as long as that goes on."""
        return self._sessions.get(str(key))

    def delegate(
        self,
        parent: HookSession,
        key: Any,
        *,
        agent: str | None = None,
        payload: Any = None,
        how: How = "spawn",
        call_id: str | None = None,
        name: str | None = None,
        trace: str | None = None,
        conversation: str | None = None,
    ) -> HookSession:
        """A session of its own for work that is handed to a sub-agent, a sub-graph or by a handoff.

        When it stopped to be gone on with (`waits`), the same `conversation` goes on with it.
        """
        self.counts.add("callbacks")
        with self._lock:
            known = self._sessions.get(str(key))
            if known is not None:
                return known
            above = parent.journal
            mark = (
                above.new_id() if conversation is None else hashlib.sha256(conversation.encode()).hexdigest()
            )
            identity = f"{parent.session}.{mark[-12:]}"
            delegation_id = parent.delegated.get(identity)
            if delegation_id is None and above.surroundings.recorder.store.head(identity).seq:
                identity = f"{parent.session}.{above.new_id()[-12:]}"
            session = self._conversations.pop(identity, None)
            if session is None and delegation_id is not None:
                session = self._rejoin(parent, identity, delegation_id)
            if session is None:
                delegation = Delegation(above, agent, payload, how, call_id, None)
                session = self._child(parent, identity, agent, delegation, name, call_id, trace)
                parent.delegated[identity] = delegation.delegation_id
            self._enter(session, key, "the framework")
            if conversation is not None:
                self._remember(session)
        return session

    def waiting_below(self, session: HookSession) -> list[HookSession]:
        """The sessions that it delegated to and that wait to be gone on with, theirs included."""
        with self._lock:
            found, looking = [], [session]
            while looking:
                above = looking.pop()
                for identity, delegation_id in above.delegated.items():
                    child = self._conversations.get(identity) or self._rejoin(above, identity, delegation_id)
                    if child.is_waiting:
                        self._remember(child)
                        found.append(child)
                        looking.append(child)
            return found

    def _rejoin(self, parent: HookSession, identity: str, delegation_id: str) -> HookSession:
        """A session that another process delegated to, as it was left."""
        left = left_open(self._surroundings.recorder.store, identity)
        above = parent.journal
        delegation = Delegation(above, left.agent, None, "unknown", None, None, delegation_id=delegation_id)
        session = self._child(parent, identity, left.agent, delegation)
        session.take_over(left)
        session.is_waiting = not left.is_ended
        return session

    def _child(
        self,
        parent: HookSession,
        identity: str,
        agent: str | None,
        delegation: Delegation,
        name: str | None = None,
        call_id: str | None = None,
        trace: str | None = None,
    ) -> HookSession:
        started = self._started(agent, name)
        started = started.model_copy(update={"parent": parent.session, "parent_call": call_id})
        journal = self._journal(identity, agent, parent.journal.correlation, parent.journal.depth + 1)
        about = {"run": self.run_id, "trace": trace}
        return HookSession(self._calls, journal, started, about, parent=parent, delegation=delegation)

    def ended(
        self, key: Any, outcome: Outcome = "completed", *, reason: str | None = None, result: Any = None
    ) -> None:
        """A run of the framework ended; with the last run of a session, the session too, and all under it."""
        self.counts.add("callbacks")
        session = self._release(key)
        if session is None:
            return
        for child in self._below(session):
            for name in list(child.keys):
                self.ended(name, "unknown", reason="the session that delegated to it ended")
        with self._calls.keeping("end of a session"):
            session.end(SessionEnded(outcome=outcome, reason=reason), result)

    def waits(self, key: Any) -> None:
        """A run stopped to be gone on with: its tool calls and questions stay open, and so does the session."""
        self.counts.add("callbacks")
        session = self._release(key)
        if session is not None:
            with self._calls.keeping("pause of a session"):
                session.wait()

    def _release(self, key: Any) -> HookSession | None:
        """Take a run off its session; the session, when that was the last one."""
        with self._lock:
            session = self._sessions.pop(str(key), None)
            if session is None:
                return None
            session.keys.discard(str(key))
            return None if session.keys else session

    def _below(self, session: HookSession) -> list[HookSession]:
        with self._lock:
            return list({id(one): one for one in self._sessions.values() if one.parent is session}.values())

    def _name(self, conversation: str) -> str:
        if _PLAIN_NAME.match(conversation):
            return f"{self.harness}-{conversation}"
        return f"{self.harness}-{hashlib.sha256(conversation.encode(errors='replace')).hexdigest()[:32]}"

    # -- what it says of itself --------------------------------------------------------------------------------------

    def close(self) -> None:
        """End what is still open as `unknown`. A hook that was never told anything says so, and in the ledger too."""
        with self._lock:
            if self._is_closed:
                return
            self._is_closed = True
            open_keys = list(reversed(self._sessions))
        self._at_drop.detach()
        atexit.unregister(self._at_exit)
        for key in open_keys:
            self.ended(key, "unknown", reason="the hook was closed before the end was told")
        if not self.counts.callbacks:
            self._say_silent()

    def _say_silent(self) -> None:
        text = _silence(self.harness, self.counts)
        warnings.warn(text, RuntimeWarning, stacklevel=3)
        identity = self._surroundings.recorder.ids()
        journal = self._journal(identity, None, self.run_id or identity, 0)
        note = NoteWritten(about=identity, text=journal.keep.text(text, "note"))
        started = self._started(None, None)
        ended = SessionEnded(outcome="unknown", reason="the hook captured nothing")
        with journal.fact("silence"):
            drafts: list[Draft] = [journal.draft(event) for event in (started, note, ended)]
            journal.append(drafts, durable=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()


def _close_at_exit(reference: "weakref.ref[HookRun]") -> Callable[[], None]:
    """Registers, and gives, what the interpreter calls when it exits."""

    def close() -> None:
        run = reference()
        if run is not None:
            try:
                run.close()
            except LedgerError as error:
                warnings.warn(
                    f"loopledger could not record the end of the run: {error}", RuntimeWarning, stacklevel=1
                )

    atexit.register(close)
    return close


def _dropped(counts: Counts, harness: str, at_exit: Callable[[], None]) -> None:
    """The handler was let go of. Writes nothing: this may run in the middle of any other append."""
    atexit.unregister(at_exit)
    if not counts.callbacks:
        warnings.warn(_silence(harness, counts), RuntimeWarning, stacklevel=1)


def _silence(harness: str, counts: Counts) -> str:
    return (
        f"the hook of {harness} captured nothing: it was never told of a run, a model call or a tool call"
        f" ({counts}); is it attached to what runs?"
    )
