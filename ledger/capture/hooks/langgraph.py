"""LangGraph and LangChain: a callback handler that records model calls, tools, questions, sub-graphs and sub-agents.

    handler = LedgerCallback(ledger, effects={"place_order": "irreversible"})
    graph.invoke(inputs, {"callbacks": [handler], "configurable": {"thread_id": "order-7"}})

A thread is a session: the same thread id goes on with it, in another process too. A graph inside a graph, whether
node or called by a tool, is a session of its own that was delegated to. An interrupt is a question, and
`Command(resume=...)` its answer; a tool that stopped to ask and begins again is one call. Retries by `with_retry` and
by middlewares are tied to the call that failed.

What callbacks do not show: the body that the client sends, retries inside the client, and the provider's response id of
a streamed answer, which LangChain drops but for OpenAI Responses (usage only with `stream_usage=True`). The recording
proxy shows them.
"""

import threading
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any, Self, Unpack

from langgraph.callbacks import GraphCallbackHandler
from langgraph.errors import GraphBubbleUp, GraphInterrupt
from langgraph.types import Command

from ledger.capture.calls import ToolOptions
from ledger.capture.hooks import _langgraph as shapes
from ledger.capture.hooks._langgraph import ToolRequest
from ledger.capture.hooks._langgraph_questions import Questions
from ledger.capture.hooks._run import HookOptions, HookRun, Outcome
from ledger.capture.hooks._session import HookSession
from ledger.capture.loop import HasRecorder
from ledger.protocols.plain import plain

_NODE_TAG = "graph:step:"
_RETRY_TAG = "retry:attempt:"
_STOPPED: dict[str, Outcome] = {"CancelledError": "cancelled", "KeyboardInterrupt": "aborted"}


@dataclass
class _Run:
    """One run of LangChain's tree: a graph, a node, a chain, a model or a tool."""

    key: str
    parent: "_Run | None"
    session: HookSession
    name: str | None
    inputs: Any
    metadata: Mapping[str, Any]
    tool: ToolRequest | None = None
    is_graph: bool = False
    is_interrupted: bool = False
    failed_model: str | None = None
    attempts: int = 0


class LedgerCallback(GraphCallbackHandler):  # type: ignore[misc]
    """Give it in `config["callbacks"]`; one handler serves any number of graphs, threads and tasks."""

    raise_error = True
    """What cannot be recorded does not run."""

    run_inline = True
    """In the order in which things happen."""

    def __init__(
        self, ledger: HasRecorder, *, harness: str = "langgraph", **options: Unpack[HookOptions]
    ) -> None:
        self.run = HookRun(ledger, harness=harness, harness_version=version("langgraph"), **options)
        """What it records with; `run.counts` says how much."""
        self._runs: dict[str, _Run] = {}
        self._questions = Questions(self.run)
        self._lock = threading.Lock()

    def close(self) -> None:
        """End what is open; at the exit of the program this happens by itself."""
        self.run.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    # -- the tree of runs --------------------------------------------------------------------------------------------

    def _begin(
        self, run_id: Any, parent_run_id: Any, inputs: Any, told: Mapping[str, Any], name: str | None
    ) -> _Run:
        """A run begins: as a root with a session of its own, or in the session of what it runs in."""
        metadata = told.get("metadata") or {}
        parent = self._runs.get(str(parent_run_id))
        if parent is None:
            thread = metadata.get("thread_id")
            is_answer = isinstance(inputs, Command) and inputs.resume is not None
            session = self.run.session(
                run_id,
                conversation=None if thread is None else str(thread),
                agent=metadata.get("lc_agent_name") or name,
                how="Command(resume)" if is_answer else "invoke",
            )
            run = _Run(str(run_id), None, session, name, inputs, metadata)
            self._runs[run.key] = run
            if is_answer:
                self._questions.answered(session, inputs.resume)
            for message in shapes.said_in(inputs):
                session.message(message)
            return run
        tags = told.get("tags") or ()
        if any(tag.startswith(_NODE_TAG) for tag in tags):
            self._is_graph(parent)
        run = _Run(str(run_id), parent, parent.session, name, inputs, metadata)
        self._runs[run.key] = run
        return run

    def _is_graph(self, run: _Run) -> None:
        """A node begins in it, so it is a graph; below the root that is delegated work."""
        with self._lock:
            if run.is_graph:
                return
            run.is_graph = True
            if run.parent is None:
                return
            above: _Run | None = run.parent
            caller: ToolRequest | None = None
            while above is not None and above.session is run.session and caller is None:
                caller, above = above.tool, above.parent
            run.session = self.run.delegate(
                run.session,
                run.key,
                agent=run.metadata.get("lc_agent_name") or run.name,
                payload=shapes.said_in(run.inputs) or plain(run.inputs),
                how="spawn" if caller is None else "tool",
                call_id=None if caller is None else caller.call_id,
                conversation=run.metadata.get("langgraph_checkpoint_ns"),
            )

    def on_chain_start(
        self,
        serialized: Any,
        inputs: Any,
        *,
        run_id: Any,
        parent_run_id: Any = None,
        name: str | None = None,
        **told: Any,
    ) -> None:
        """A graph, a node, or a chain begins."""
        self._begin(run_id, parent_run_id, inputs, told, name)

    def on_chain_end(self, outputs: Any, *, run_id: Any, **told: Any) -> None:
        """It ended."""
        run = self._runs.pop(str(run_id), None)
        if run is None:
            return
        for call_id, shown in shapes.tool_messages(outputs):
            self._questions.refused(run.session, call_id, shown)
        self._leave(run, "completed", outputs)

    def on_chain_error(self, error: BaseException, *, run_id: Any, **told: Any) -> None:
        """It failed, or stopped to ask."""
        run = self._runs.pop(str(run_id), None)
        if run is None:
            return
        if isinstance(error, GraphInterrupt):
            self._questions.raised(run.session, error.args[0] if error.args else (), run.inputs, None)
            run.is_interrupted = True
        if isinstance(error, GraphBubbleUp):
            self._leave(run, "completed", None)
        else:
            outcome = _STOPPED.get(type(error).__name__, "failed")
            self._leave(run, outcome, None, reason=shapes.failure_of(error))

    def _leave(self, run: _Run, outcome: Outcome, outputs: Any, reason: str | None = None) -> None:
        if run.parent is not None and not run.is_graph:
            return
        if run.is_interrupted:
            self.run.waits(run.key)
            return
        self._questions.left(run.session)
        result = None if outputs is None or run.parent is None else shapes.last_message(outputs)
        self.run.ended(run.key, outcome, reason=reason, result=result)

    def on_interrupt(self, event: Any) -> None:
        """A graph stopped: to ask, or at a breakpoint."""
        run = self._runs.get(str(event.run_id))
        if run is None:
            return
        self._is_graph(run)
        run.is_interrupted = True
        with self.run.keeping("place where the graph stopped"):
            run.session.checkpoint(f"{event.status} {event.checkpoint_id}")

    # -- model calls -------------------------------------------------------------------------------------------------

    def on_chat_model_start(
        self, serialized: Any, messages: Any, *, run_id: Any, parent_run_id: Any = None, **told: Any
    ) -> None:
        """A chat model is about to be asked."""
        self._asked_model(run_id, parent_run_id, messages[0] if messages else [], told)

    def on_llm_start(
        self, serialized: Any, prompts: Any, *, run_id: Any, parent_run_id: Any = None, **told: Any
    ) -> None:
        """A model that takes texts is about to be asked."""
        self._asked_model(
            run_id, parent_run_id, [{"type": "human", "content": text} for text in prompts], told
        )

    def _asked_model(self, run_id: Any, parent_run_id: Any, messages: Any, told: Mapping[str, Any]) -> None:
        run = self._begin(run_id, parent_run_id, None, told, told.get("name"))
        parameters, above = told.get("invocation_params") or {}, run.parent
        failed = None if above is None else above.failed_model
        run.session.model_begun(
            run.key,
            shapes.PROTOCOL,
            shapes.request_of(messages, parameters, run.metadata),
            purpose="compaction" if run.metadata.get("lc_source") == "summarization" else "main",
            provider=run.metadata.get("ls_provider"),
            attempt=1 if above is None or failed is None else above.attempts + 1,
            retry_of=failed,
        )

    def on_llm_new_token(self, token: Any, *, run_id: Any, chunk: Any = None, **told: Any) -> None:
        """A part of the answer arrived."""
        added = shapes.chunk_of(token, chunk)
        if added is not None:
            self.run.model_chunk(run_id, added)

    def on_llm_end(self, response: Any, *, run_id: Any, **told: Any) -> None:
        """The model answered."""
        message, facts = shapes.answer_of(response)
        self.run.model_answered(run_id, message, **facts)
        run = self._runs.pop(str(run_id), None)
        if run is not None and run.parent is not None:
            run.parent.failed_model, run.parent.attempts = None, 0
        self._end_root(run, "completed")

    def on_llm_error(self, error: BaseException, *, run_id: Any, **told: Any) -> None:
        """The model call failed; the next one of the same node is taken for its retry."""
        self.run.model_failed(run_id, error)
        run = self._runs.pop(str(run_id), None)
        if run is not None and run.parent is not None:
            run.parent.failed_model = run.key
            run.parent.attempts += 1
        self._end_root(run, _STOPPED.get(type(error).__name__, "failed"))

    # -- tools -------------------------------------------------------------------------------------------------------

    def on_tool_start(
        self,
        serialized: Any,
        input_str: str,
        *,
        run_id: Any,
        parent_run_id: Any = None,
        inputs: Any = None,
        tool_call_id: str | None = None,
        **told: Any,
    ) -> None:
        """A tool is about to run."""
        run = self._begin(run_id, parent_run_id, None, told, told.get("name"))
        name = str((serialized or {}).get("name") or told.get("name") or "unnamed")
        run.tool = ToolRequest(tool_call_id, name, shapes.arguments_of(inputs, input_str))
        options: ToolOptions = {} if tool_call_id is None else {"call_id": tool_call_id}
        run.session.tool_begun(run.key, name, run.tool.arguments, **options)

    def on_tool_end(self, output: Any, *, run_id: Any, **told: Any) -> None:
        """It returned, or the framework made a message of its error."""
        shown, is_error = shapes.result_of(output)
        if is_error:
            self.run.tool_failed(run_id, str(shown), kind="ToolException", shown=shown)
        else:
            self.run.tool_returned(run_id, shown, plain(getattr(output, "artifact", None)))
        self._end_root(self._runs.pop(str(run_id), None), "completed")

    def on_tool_error(self, error: BaseException, *, run_id: Any, **told: Any) -> None:
        """It failed; or it stopped to ask: then it has not ended."""
        run = self._runs.pop(str(run_id), None)
        if isinstance(error, GraphInterrupt) and run is not None:
            self._questions.raised(run.session, error.args[0] if error.args else (), None, run.tool)
        else:
            self.run.tool_failed(run_id, error)
        self._end_root(run, _STOPPED.get(type(error).__name__, "failed"))

    def _end_root(self, run: _Run | None, outcome: Outcome) -> None:
        """A model or a tool that was called outside of any graph is a session of its own."""
        if run is not None and run.parent is None:
            self.run.ended(run.key, outcome)
