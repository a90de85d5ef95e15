"""How the calls end that began in the sessions of a hook: told by key, from any thread or task. Runs nothing itself."""

from contextlib import AbstractContextManager
from typing import Any, Unpack

from ledger.capture.calls import AnswerFacts
from ledger.capture.hooks._open import Counts, Open
from ledger.capture.hooks._session import Calls
from ledger.capture.streams import StreamRecording
from ledger.protocols.plain import plain


class CallEnds:
    """The part of a `HookRun` that ends calls."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls

    @property
    def counts(self) -> Counts:
        """What was seen and kept so far."""
        return self._calls.counts

    def keeping(self, what: str) -> AbstractContextManager[None]:
        """Around what a session tells beside calls: with `fail_open`, what cannot be kept is counted and warned of."""
        return self._calls.keeping(what)

    def model_chunk(self, key: Any, chunk: Any) -> None:
        """A part of a streamed answer arrived: a text, or JSON in the provider's or the framework's shape."""
        self.counts.add("callbacks")
        begun = self._calls.models.get(key)
        if begun is None:
            return
        begun.stream = begun.stream or StreamRecording(begun.call)
        with self._calls.keeping("part of a streamed answer"):
            if begun.stream.take(chunk):
                begun.stream.flush()

    def model_answered(self, key: Any, answer: Any, **told: Unpack[AnswerFacts]) -> None:
        """The model answered: a body in the provider's shape, or a message in the framework's with what is told."""
        self.counts.add("callbacks")
        begun = self._taken(self._calls.models, key)
        if begun is None:
            return
        with self._calls.keeping("answer of a model call"):
            if begun.stream is not None:
                begun.stream.end("complete", body=plain(answer), told=told)
            else:
                begun.call.answered(answer, told)
        begun.session.count(begun.call.usage)

    def model_failed(
        self, key: Any, error: BaseException | str, *, kind: str | None = None, will_retry: bool | None = None
    ) -> None:
        """The model call ended without an answer, or with a part of one."""
        self.counts.add("callbacks")
        begun = self._taken(self._calls.models, key)
        if begun is None:
            return
        with self._calls.failing(error):
            if begun.stream is not None and isinstance(error, BaseException):
                begun.stream.end("partial" if isinstance(error, Exception) else "aborted", error)
            else:
                begun.call.failed(error, kind=kind, will_retry=will_retry)

    def tool_returned(self, key: Any, result: Any, details: Any = None) -> None:
        """The tool returned; `details` is what it gave beside what the model is shown."""
        self.counts.add("callbacks")
        begun = self._taken(self._calls.tools, key)
        if begun is not None:
            with self._calls.keeping("result of a tool call"):
                begun.call.returned(result, details)

    def tool_failed(
        self, key: Any, error: BaseException | str, *, kind: str = "error", shown: Any = None
    ) -> None:
        """The tool failed; `shown` is what the model is told."""
        self.counts.add("callbacks")
        begun = self._taken(self._calls.tools, key)
        if begun is not None:
            with self._calls.failing(error):
                begun.call.failed(error, kind=kind, shown=shown)

    def tool_refused(self, key: Any, reason: str | None = None, shown: Any = None) -> None:
        """A tool call that had begun was refused after all."""
        self.counts.add("callbacks")
        begun = self._taken(self._calls.tools, key)
        if begun is not None:
            with self._calls.keeping("refusal of a tool call"):
                begun.call.denied(reason, shown)

    def is_open(self, key: Any) -> bool:
        """Whether a model or tool call of that key has begun and not ended."""
        return self._calls.models.get(key) is not None or self._calls.tools.get(key) is not None

    def _taken(self, calls: Open[Any], key: Any) -> Any:
        call = calls.take(key)
        if call is None and not calls.has_seen(key):
            self.counts.add("unmatched")
        return call
