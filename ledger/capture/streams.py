"""Passes a streamed answer on chunk by chunk and records it. Never holds a chunk back from the loop."""

import re
import weakref
from collections.abc import AsyncIterator, Iterator
from typing import Any, Literal, Self

from ledger.capture.calls import AnswerFacts, Chunk, ModelCall
from ledger.capture.journal import beside
from ledger.events.canonical import canonical_json, decode_json
from ledger.protocols.assembly import assemble
from ledger.protocols.plain import plain

_FLUSH_CHUNKS = 64
_FLUSH_BYTES = 16 * 1024
_FLUSH_MS = 1000
_SPACE = re.compile(r"\s")
_TEXT_FIELDS = frozenset(
    {"text", "content", "arguments", "partial_json", "thinking", "reasoning", "refusal", "delta"}
)

Completeness = Literal["complete", "partial", "aborted"]
"""How a stream ended."""


class StreamRecording:
    """What has arrived of one streamed answer. Shared by both kinds of stream, and by hooks."""

    def __init__(self, call: ModelCall) -> None:
        self._call = call
        self._journal = call.journal
        self._chunks: list[Chunk] = []
        self._pieces: list[str] = []
        self._flushed = 0
        self._looked_at = 0
        self._looked_ms = 0
        self._new_bytes = 0
        self._is_open = True
        self._holder: weakref.ref[Any] | None = None

    def hold(self, holder: Any) -> None:
        """Watch the stream that the loop was given: it may let go of it without a word."""
        self._holder = weakref.ref(holder)
        with self._journal.lock:
            self._journal.waiting.append(self._look)

    def _look(self, is_last: bool) -> bool:
        """Before the session's next record: end a stream that nobody reads any more; whether it is still open."""
        if self._is_open and (is_last or (self._holder is not None and self._holder() is None)):
            self.end("aborted")
        return self._is_open

    def take(self, chunk: Any) -> bool:
        """Note a chunk; whether it is time to flush."""
        self._call.given(chunk)
        value = plain(chunk)
        text = canonical_json(value).decode()
        elapsed = self._call.elapsed_ms()
        self._chunks.append((elapsed, text))
        self._pieces.append(spoken(value))
        self._new_bytes += len(text)
        return (
            len(self._chunks) - self._looked_at >= _FLUSH_CHUNKS
            or self._new_bytes >= _FLUSH_BYTES
            or elapsed - self._looked_ms >= _FLUSH_MS
        )

    def flush(self) -> None:
        """Record what came since the last flush, so that a crash keeps it."""
        with self._journal.lock:
            self._looked_at, self._looked_ms, self._new_bytes = len(self._chunks), self._chunks[-1][0], 0
            upto = self._end_of_words()
            if self._is_open and upto > self._flushed and not self._holds_secret(self._body()):
                self._call.flush(self._chunks[self._flushed : upto])
                self._flushed = upto

    def end(
        self,
        completeness: Completeness,
        error: BaseException | None = None,
        *,
        body: Any = None,
        told: AnswerFacts | None = None,
    ) -> None:
        """Record the answer, once; `body` when somebody has put it together already."""
        with self._journal.lock:
            if not self._is_open:
                return
            self._is_open = False
            if not self._chunks and error is not None:
                self._call.failed(error)
                return
            body = self._body() if body is None else body
            chunks = None if self._holds_secret(body) else self._chunks
            first_byte_ms = self._chunks[0][0] if self._chunks else None
            self._call.streamed(body, chunks, first_byte_ms, completeness, error, told)

    def _body(self) -> Any:
        return assemble(self._call.protocol, [decode_json(text) for _, text in self._chunks])

    def _holds_secret(self, body: Any) -> bool:
        """Whether a secret came in pieces, so that no single chunk shows it: then no chunk is kept."""
        redactor = self._journal.surroundings.recorder.redactor
        return bool(redactor.value(body)[1] or redactor.text("".join(self._pieces))[1])

    def _end_of_words(self) -> int:
        """How many chunks can be kept now: the last word may be the beginning of a secret."""
        for index in range(len(self._pieces) - 1, self._flushed - 1, -1):
            if _SPACE.search(self._pieces[index]):
                return index + (1 if self._pieces[index][-1].isspace() else 0)
        return self._flushed


class RecordedStream:
    """The stream that the model call gave, chunk for chunk; other attributes are those of the original."""

    def __init__(self, source: Iterator[Any], call: ModelCall) -> None:
        self._source = source
        self._recording = StreamRecording(call)
        self._recording.hold(self)

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Any:
        try:
            chunk = next(self._source)
        except StopIteration:
            self._recording.end("complete")
            raise
        except BaseException as error:
            with beside(error):
                self._recording.end(_cut(error), error)
            raise
        if self._recording.take(chunk):
            self._recording.flush()
        return chunk

    def close(self) -> None:
        """Stop early."""
        try:
            if callable(close := getattr(self._source, "close", None)):
                close()
        finally:
            self._recording.end("aborted")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._source, name)


class AsyncRecordedStream:
    """As `RecordedStream`, for `async for`."""

    def __init__(self, source: AsyncIterator[Any], call: ModelCall) -> None:
        self._source = source
        self._recording = StreamRecording(call)
        self._recording.hold(self)
        self._turn = call.journal.surroundings.turns.take

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Any:
        try:
            chunk = await anext(self._source)
        except StopAsyncIteration:
            await self._turn(self._recording.end, "complete")
            raise
        except BaseException as error:
            # Not in a thread: a task that is being cancelled may not get to run again.
            with beside(error):
                self._recording.end(_cut(error), error)
            raise
        if self._recording.take(chunk):
            await self._turn(self._recording.flush)
        return chunk

    async def aclose(self) -> None:
        """Stop early."""
        try:
            close = getattr(self._source, "aclose", None) or getattr(self._source, "close", None)
            if callable(close):
                await close()
        finally:
            await self._turn(self._recording.end, "aborted")

    async def close(self) -> None:
        """Stop early, as SDKs name it."""
        await self.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        await self.aclose()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._source, name)


def _cut(error: BaseException) -> Completeness:
    return "partial" if isinstance(error, Exception) else "aborted"


def spoken(value: Any) -> str:
    """The text that a chunk adds, wherever its protocol puts it."""
    if isinstance(value, str):
        return value
    found: list[str] = []
    stack = [value]
    while stack:
        item = stack.pop()
        if isinstance(item, dict):
            for name, inner in item.items():
                if isinstance(inner, str):
                    found.extend([inner] if name in _TEXT_FIELDS else ())
                else:
                    stack.append(inner)
        elif isinstance(item, list):
            stack.extend(item)
    return "".join(found)
