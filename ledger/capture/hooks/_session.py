"""One session that a hook records: what began in it, told by the framework. Runs nothing itself."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Unpack

from ledger.capture.approvals import Approval, AskOptions, Question
from ledger.capture.calls import ModelCall, ToolCall, ToolOptions
from ledger.capture.delegation import Delegation
from ledger.capture.hooks._earlier import Left, left_open
from ledger.capture.hooks._open import Keeping, Open
from ledger.capture.journal import Journal
from ledger.capture.notes import Notes
from ledger.capture.streams import StreamRecording
from ledger.events import Actor, Draft
from ledger.events.input import MessageReceived
from ledger.events.model_call import ModelCallRetried, Purpose, Usage
from ledger.events.record import Grade
from ledger.events.session import SessionEnded, SessionResumed, SessionStarted
from ledger.events.tool_call import EffectClass
from ledger.protocols.plain import plain


@dataclass
class BegunModel:
    """A model call that has begun."""

    session: "HookSession"
    """Whose call it is."""

    call: ModelCall
    """Its recording."""

    stream: StreamRecording | None = None
    """What has arrived of its answer, when that is streamed."""


@dataclass
class BegunTool:
    """A tool call that has begun."""

    session: "HookSession"
    """Whose call it is."""

    call: ToolCall
    """Its recording."""


class Calls(Keeping):
    """What all sessions of one hook share: the calls under way, and the ends of them."""

    def __init__(self, *, fail_open: bool, effects: Mapping[str, EffectClass]) -> None:
        super().__init__(fail_open)
        self.effects = dict(effects)
        self.models = Open[BegunModel]()
        self.tools = Open[BegunTool]()


class HookSession(Notes):
    """One session. `HookRun.session` opens it; the ends of what begins here are told to the `HookRun`, by key.

    Every method writes before it returns. `checkpoint`, `compacted`, `artifact`, `constraint`, `withdraw` and
    `report_usage` are those of a recorded loop.
    """

    def __init__(
        self,
        calls: Calls,
        journal: Journal,
        started: SessionStarted,
        environment: dict[str, Any],
        *,
        parent: "HookSession | None" = None,
        delegation: Delegation | None = None,
    ) -> None:
        super().__init__(journal, "openai.chat")
        self._calls = calls
        self._started = started
        self._environment = environment
        self._granted: dict[str, Approval] = {}
        self._questions: dict[str, Question] = {}
        self._counted_tokens = 0
        self._answers_without_usage = 0
        self._delegation = delegation
        self.parent = parent
        """The session that delegated to this one."""
        self.keys: set[str] = set()
        """Runs of the framework that go on in this session now."""
        self.delegated: dict[str, str] = {}
        """Sessions that it delegated to and that have not come back: their ids, and the delegations'."""
        self.is_waiting = False
        """It stopped to be gone on with, so it has begun and not ended."""
        self._is_known = False

    @property
    def session(self) -> str:
        """Id of the session in the ledger."""
        return self._journal.session

    @property
    def agent(self) -> str | None:
        """Name of the agent."""
        return self._journal.agent

    @property
    def journal(self) -> Journal:
        """Its way to the recorder."""
        return self._journal

    # -- life --------------------------------------------------------------------------------------------------------

    def start(self, how: str) -> None:
        """Record that it begins, or goes on. Called by the `HookRun`."""
        journal = self._journal
        with journal.intent("start"):
            about = {name: value for name, value in self._environment.items() if value is not None}
            kept = journal.keep.json(plain(about), "environment") if about else None
            started = self._started.model_copy(update={"environment": kept})
            if self._delegation is not None and not self.is_waiting:
                self._delegation.start(journal, self._telling(started))
            elif journal.surroundings.recorder.store.head(journal.session).seq:
                if not self._is_known:
                    self.take_over(left_open(journal.surroundings.recorder.store, journal.session))
                self._tell(SessionResumed(how=how, environment=kept))
            else:
                self._tell(started)
        self._is_known, self.is_waiting = True, False
        self._calls.counts.add("sessions")

    def take_over(self, left: Left) -> None:
        """Go on with what another process left open. Called by the `HookRun`."""
        self._is_known = True
        for call_id, (tool, seq) in left.tools.items():
            begun = BegunTool(self, ToolCall.recorded_before(self._journal, tool, call_id, seq))
            self._calls.tools.put(f"before:{self.session}:{call_id}", begun)
        for approval_id, (asked, seq) in left.questions.items():
            options: AskOptions = {}
            if asked.tool is not None:
                options["tool"] = asked.tool
            if asked.call_id is not None:
                options["call_id"] = asked.call_id
            self._questions[approval_id] = Question(
                self._journal, options, approval_id=approval_id, asked_at=seq, is_new=False
            )
        self.delegated |= left.delegations

    def end(self, ended: SessionEnded, result: Any = None) -> None:
        """Record that it ends; what is still open in it is settled as unknown. Called by the `HookRun`."""
        self._settle_open(f"the session ended ({ended.outcome}) before its end was told")
        with self._journal.fact("end"):
            self._journal.catch_up(is_last=True)
            drafts = [*self._check_usage(), self._telling(ended)]
            if self._delegation is not None:
                self._delegation.returns(result, "unknown" if result is None else "result")
                self._delegation.end(self._journal, drafts, ended)
                self._delegation = None
                if self.parent is not None:
                    self.parent.delegated.pop(self.session, None)
            else:
                self._journal.append(drafts, durable=True)
        self.is_waiting = False
        self._reported_tokens = self._model_calls = self._counted_tokens = self._answers_without_usage = 0

    def wait(self) -> None:
        """It stopped to be gone on with (for an answer, say): its tool calls and questions stay open."""
        for begun in self._calls.models.take_if(lambda begun: begun.session is self):
            _lose_model(begun, "the session stopped before its end was told")
        self.is_waiting = True

    def _settle_open(self, reason: str) -> None:
        for model in self._calls.models.take_if(lambda begun: begun.session is self):
            _lose_model(model, reason)
        for tool in self._calls.tools.take_if(lambda begun: begun.session is self):
            tool.call.lost(reason)

    # -- messages, model calls ---------------------------------------------------------------------------------------

    def message(
        self,
        message: Any,
        *,
        origin: Literal["human", "agent", "schedule", "file", "unknown"] = "human",
        sender: str | None = None,
    ) -> None:
        """A message entered the loop: a text, or a message in any shape."""
        self._calls.counts.add("callbacks")
        shaped = {"role": "user", "content": message} if isinstance(message, str) else plain(message)
        kind: Literal["human", "agent", "system"] = (
            "human" if origin == "human" else "agent" if origin == "agent" else "system"
        )
        with self._journal.fact("message"):
            kept = self._journal.requests.message(shaped)
            event = MessageReceived(origin=origin, message=kept, sender=sender)
            self._journal.append([self._journal.draft(event, actor=Actor(kind, sender))])

    def model_begun(
        self,
        key: Any,
        protocol: str,
        request: dict[str, Any],
        *,
        purpose: Purpose = "main",
        provider: str | None = None,
        attempt: int = 1,
        retry_of: Any = None,
        grade: Grade | None = None,
        not_seen: Sequence[str] = (),
    ) -> None:
        """A model is about to be asked. Raises NotRecordedError when that cannot be kept.

        `request` has the fields of the provider's body (`model`, `messages`, `tools`, ...), its messages in the
        provider's shape or the framework's; `protocol` names that shape. `not_seen` names what the hook cannot see,
        and `retry_of` is the key of the call that failed.
        """
        self._calls.counts.add("callbacks")

        def make() -> BegunModel:
            call = ModelCall(
                self._journal,
                protocol,
                request,
                purpose=purpose,
                call_id=str(key),
                provider=provider,
                attempt=attempt,
                grade=grade,
                not_seen=tuple(not_seen),
            )
            if retry_of is not None:
                with self._journal.fact("retry"):
                    self._tell(ModelCallRetried(call_id=call.call_id, failed_call_id=str(retry_of)))
            return BegunModel(self, call)

        with self._calls.keeping("request of a model call"):
            if self._calls.models.begin(key, make) is not None:
                self._calls.counts.add("model_calls")
                for session in self._line():
                    session._model_calls += 1

    def count(self, usage: Usage | None) -> None:
        """Add the tokens of an answer, to be compared with what is reported. Called by the `HookRun`."""
        tokens = 0
        if usage is not None:
            parts = (usage.input_tokens, usage.cache_read_tokens, usage.cache_write_tokens)
            tokens = sum(part or 0 for part in (*parts, usage.output_tokens))
        for session in self._line():
            session._counted_tokens += tokens
            session._answers_without_usage += usage is None

    # -- tools, approvals --------------------------------------------------------------------------------------------

    def tool_begun(self, key: Any, tool: str, arguments: Any, **options: Unpack[ToolOptions]) -> None:
        """A tool is about to run. Raises NotRecordedError when that cannot be kept.

        A call whose `call_id` was approved is recorded as running under that approval. One that begins again under
        the same `call_id` before it has ended (the loop stopped inside it) is the same call, started once more.
        """
        self._calls.counts.add("callbacks")
        call_id = options.get("call_id")
        options["name"] = tool
        options.setdefault("effect_class", self._calls.effects.get(tool))

        def make() -> BegunTool:
            for begun in self._calls.tools.take_if(
                lambda begun: call_id is not None and begun.session is self and begun.call.call_id == call_id
            ):
                begun.call.again(arguments, self._granted.pop(call_id or "", None))
                return begun
            if call_id is not None and "approval" not in options and call_id in self._granted:
                options["approval"] = self._granted.pop(call_id)
            call = ToolCall(self._journal, None, arguments, options)
            self._calls.counts.add("tool_calls")
            return BegunTool(self, call)

        with self._calls.keeping(f"call of tool {tool!r}"):
            self._calls.tools.begin(key, make)

    def tool_denied(
        self, call_id: str, tool: str, arguments: Any, *, reason: str | None = None, shown: Any = None
    ) -> None:
        """A tool that the model asked for will not run; `shown` is what the model is told instead. Once per id."""
        self._calls.counts.add("callbacks")

        def make() -> BegunTool:
            options: ToolOptions = {"name": tool, "call_id": call_id, "is_denied": True}
            call = ToolCall(self._journal, None, arguments, options)
            call.denied(reason, shown)
            self._calls.counts.add("tool_calls")
            return BegunTool(self, call)

        key = f"denied:{self.session}:{call_id}"
        with self._calls.keeping(f"refusal of tool {tool!r}"):
            self._calls.tools.begin(key, make)
        self._calls.tools.take(key)

    def asked(self, approval_id: str, **options: Unpack[AskOptions]) -> None:
        """The loop stops to ask. Once per id; raises NotRecordedError when it cannot be kept."""
        self._calls.counts.add("callbacks")
        if approval_id not in self._questions:
            with self._calls.keeping("question for approval"):
                self._questions[approval_id] = Question(self._journal, options, approval_id=approval_id)
                self._calls.counts.add("approvals")

    def decided(self, approval_id: str, outcome: bool | str, **options: Unpack[AskOptions]) -> None:
        """An answer came: True, False or an outcome's name; also to a question that another process recorded.

        `options` add what was not known when it was asked, such as the arguments that a human changed. An approval
        with a `call_id` is used by the tool call of that id.
        """
        self._calls.counts.add("callbacks")
        question = self._questions.pop(approval_id, None)
        if question is None:
            question = Question(self._journal, {}, approval_id=approval_id, is_new=False)
        question.learn(options)
        with self._calls.keeping("decision"):
            approval = question.decided(outcome)
            if approval and question.call_id is not None:
                self._granted[question.call_id] = approval

    def is_asked(self, approval_id: str) -> bool:
        """Whether that question is open."""
        return approval_id in self._questions

    @property
    def questions(self) -> list[Question]:
        """The questions that are open, in the order in which they were asked."""
        return list(self._questions.values())

    # -- what it says of itself --------------------------------------------------------------------------------------

    def _line(self) -> list["HookSession"]:
        """This session and all that it was delegated from."""
        found: list[HookSession] = []
        session: HookSession | None = self
        while session is not None:
            found.append(session)
            session = session.parent
        return found

    def _check_usage(self) -> list[Draft]:
        """What to say when more tokens are reported than the recorded answers used: calls went past the hook."""
        reported, counted = self._reported_tokens, self._counted_tokens
        if not reported or (self._model_calls and (reported <= counted or self._answers_without_usage)):
            return []
        return [
            self._say_loudly(
                f"{reported} tokens of usage were reported and the {self._model_calls} model calls recorded used"
                f" {counted}: calls went past the hook; attach it to every agent and model, or use the proxy"
                f" (counts: {self._calls.counts})"
            )
        ]


def _lose_model(begun: BegunModel, reason: str) -> None:
    if begun.stream is not None:
        begun.stream.end("aborted")
    else:
        begun.call.failed(reason, kind="unknown")
