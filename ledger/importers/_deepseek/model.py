"""Model calls of a DeepSeek Harness session: requests, chunks, answers, attempts that failed, summaries, titles."""

from collections.abc import Iterator
from typing import Any

from ledger.events import Draft
from ledger.events.canonical import spelled
from ledger.events.compaction import CompactionDone
from ledger.events.model_call import ModelCallChunk, ModelCallRetried, Usage
from ledger.importers._deepseek.surface import Surface, shadowed_seqs
from ledger.importers._deepseek.tools import Tools
from ledger.importers._harness.story import Story
from ledger.importers._harness.values import items, moment, number, record, rest, words


class ModelCalls:
    """The model calls of one session."""

    def __init__(self, story: Story, surface: Surface, tools: Tools) -> None:
        self._story = story
        self._surface = surface
        self._tools = tools
        self._step: tuple[int | None, int | None] = (None, None)
        self._attempt = 0
        self._open: str | None = None
        self._failed: str | None = None
        self._delay_ms: int | None = None
        self._began: int | None = None
        self._title: str | None = None
        self._pending: tuple[str, dict[str, Any], str | None] | None = None

    def begins(self, event: dict[str, Any]) -> None:
        """A step or a retry begins: a request is about to leave."""
        self._began = number(event.get("time"))

    def _request(self, data: dict[str, Any]) -> Iterator[Draft]:
        """The request of the answer that this event is a part of, once."""
        step = (number(data.get("turn")), number(data.get("step")))
        if step != self._step:
            self._step, self._attempt, self._failed = step, 0, None
        if self._open is not None:
            return
        self._attempt += 1
        self._open = f"model-{step[0]}.{step[1]}.{self._attempt}-{self._story.place.key}"
        began = None if self._began is None else moment(self._began)
        yield self._story.asked(self._open, attempt=self._attempt, time=began)
        if self._failed is not None:
            retried = ModelCallRetried(
                call_id=self._open, failed_call_id=self._failed, delay_ms=self._delay_ms
            )
            yield self._story.draft(retried)

    def chunk(self, event: dict[str, Any], data: dict[str, Any]) -> Iterator[Draft]:
        """A streamed part, before format 4 an event of its own or a row of several."""
        yield from self._request(data)
        packed = {**data, "type": event.get("type"), "time0": event.get("time0")}
        single = {"type": "chunk", "time": event.get("time"), "chunk": data.get("chunk")}
        stream = self._timed([packed if spelled(event.get("type")).endswith("-chunks") else single])
        kept = self._story.keep.json(stream, "chunks")
        chunk = ModelCallChunk(call_id=self._open or "", chunks=kept)
        yield self._story.draft(
            chunk, "agent", rest={"chunk": data.get("chunk")} if "chunk" in data else None
        )

    def answer(self, event: dict[str, Any], data: dict[str, Any]) -> Iterator[Draft]:
        """A whole answer, with the calls that it asks for."""
        story = self._story
        yield from self._request(data)
        call_id, self._open = self._open or "", None
        self._failed = None
        ref = self._surface.take(event, data, number(event.get("seq")))
        message = record(data.get("message"))
        source = record(message.get("source"))
        stream = items(data.get("stream"))
        yield story.answered(
            call_id,
            ref or story.keep.json(message, "message"),
            usage=usage_of(data.get("usage")),
            stop=_finish(stream),
            model=words(source.get("model")),
            stream=story.keep.json(self._timed(stream), "stream") if stream else None,
            completeness="aborted" if data.get("interrupted") is True else "complete",
            rest={"data": rest(data, "message", "usage", "stream"), "stream": stream},
        )
        for index, block in enumerate(items(message.get("content"))):
            if isinstance(block, dict) and block.get("type") == "tool-call":
                yield self._tools.requested(block, index)

    def attempt(self, event: dict[str, Any], data: dict[str, Any]) -> Iterator[Draft]:
        """A request that gave no whole answer; what had arrived is kept."""
        yield from self._request(data)
        call_id, self._open = self._open or "", None
        stream = items(data.get("stream"))
        timed = self._timed(stream)
        if timed:
            yield self._story.draft(
                ModelCallChunk(call_id=call_id, chunks=self._story.keep.json(timed, "chunks")), "agent"
            )
        failure = _failure(stream)
        self._failed = call_id
        error = words(failure.get("code")) or "no answer"
        yield self._story.failed(call_id, error, stream, status=_status(failure))

    def retry(self, event: dict[str, Any], data: dict[str, Any]) -> Iterator[Draft]:
        """The harness will try again; before format 4 this is all that is said of the failure."""
        delay = data.get("delayMs")
        self._delay_ms = number(delay)
        if self._failed is None or self._open is not None:
            yield from self._request(data)
            call_id, self._open = self._open or "", None
            failure = record(data.get("failure"))
            error = words(failure.get("code")) or "no answer"
            self._failed = call_id
            yield self._story.failed(call_id, error, failure, status=_status(failure), retry=True)
        yield self._story.kept("llm/retry", event)

    def title(self, event: dict[str, Any], data: dict[str, Any]) -> Iterator[Draft]:
        """A model is asked for a title, with messages of its own."""
        story = self._story
        chain = story.desk.context()
        for message in items(data.get("messages")):
            chain.append(story.keep.json(message, "message"))
        own, story.context = story.context, chain
        system, story.system = story.system, story.keep.json(data.get("system"), "system")
        self._title = f"title-{story.place.key}"
        yield story.asked(self._title, purpose="title")
        story.context, story.system = own, system
        yield story.kept("session/title-llm-request", rest(event, "data"))

    def titled(self, data: dict[str, Any]) -> Iterator[Draft]:
        """The title that came of it."""
        kind = words(record(data.get("source")).get("kind"))
        if self._title is not None and kind != "fallback":
            message = self._story.keep.json(data.get("title"), "title")
            yield self._story.answered(self._title, message)
            self._title = None

    def summary(self, event: dict[str, Any], data: dict[str, Any]) -> Iterator[Draft]:
        """A model wrote what will stand in for a part of the context."""
        story = self._story
        call_id = f"summary-{story.place.key}"
        model, story.model = story.model, words(data.get("model")) or story.model
        yield story.asked(
            call_id, purpose="compaction", whole=False, not_seen=("messages[-1]: the order to summarise",)
        )
        written = data.get("rawOutput") or data.get("summary")
        message = story.keep.json(written, "summary")
        yield story.answered(
            call_id, message, usage=usage_of(data.get("usage")), rest=rest(data, "rawOutput")
        )
        story.model = model
        self._pending = (call_id, data, story.keep.json(data.get("summary"), "summary").digest)
        if event.get("surfaceOp") is not None:  # the oldest logs replace by this event itself
            before = story.context.head, len(story.context)
            self._surface.take(event, data, number(event.get("seq")))
            yield from self._done(data, before, call_id)
            self._pending = None

    def compacted(
        self, event: dict[str, Any], source: dict[str, Any], before: tuple[str | None, int]
    ) -> Iterator[Draft]:
        """A message that replaced others: with a summary before it, that is the compaction."""
        if record(event.get("surfaceOp")).get("op") != "replace" or self._pending is None:
            return
        call_id, data, _ = self._pending
        self._pending = None
        yield from self._done(data, before, call_id)

    def _done(self, data: dict[str, Any], before: tuple[str | None, int], call_id: str) -> Iterator[Draft]:
        story = self._story
        done = CompactionDone(
            compaction_id=words(data.get("compactionId")) or story.place.key,
            trigger="manual" if data.get("sourceCommandId") is not None else "auto",
            evidence="logged",
            context_before=before[0],
            context_after=story.context.head,
            context_added=story.context.take_added(),
            messages_before=before[1],
            messages_after=len(story.context),
            summary=story.keep.json(data.get("summary"), "summary"),
            model=words(data.get("model")),
            call_id=call_id,
            tokens_before=number(data.get("shadowedTokenCount")),
        )
        yield story.draft(done, rest={"shadowedSeqs": shadowed_seqs(data)})

    def _timed(self, stream: list[Any]) -> list[list[Any]]:
        """The texts of a stream with their milliseconds since the request, or since the first of them."""
        found: list[list[Any]] = []
        start = self._began
        for one in stream:
            entry = record(one)
            time = number(entry.get("time0", entry.get("time")))
            if time is None:
                continue
            start = time if start is None else start
            texts = items(entry.get("texts") or entry.get("args"))
            if not texts:
                chunk = record(entry.get("chunk"))
                texts = [
                    text for name in ("text", "argumentsDelta") if isinstance(text := chunk.get(name), str)
                ]
            gaps = [0, *items(entry.get("dt"))]
            for place, text in enumerate(texts):
                time += number(gaps[place]) or 0 if place < len(gaps) else 0
                if isinstance(text, str):
                    found.append([max(0, time - start), text])
        return found


def usage_of(native: Any) -> Usage | None:
    """Tokens of one call; its input leaves out what came from a cache, as ours does."""
    counts = record(native)
    if not counts:
        return None
    return Usage(
        input_tokens=number(counts.get("inputTokens")),
        output_tokens=number(counts.get("outputTokens")),
        cache_read_tokens=number(counts.get("cacheReadTokens")),
        cache_write_tokens=number(counts.get("cacheWriteTokens")),
        reasoning_tokens=number(counts.get("reasoningTokens")),
    )


def _finish(stream: list[Any]) -> str | None:
    for one in reversed(stream):
        chunk = record(record(one).get("chunk"))
        if chunk.get("type") == "finish":
            return words(record(chunk.get("reason")).get("kind"))
    return None


def _failure(stream: list[Any]) -> dict[str, Any]:
    for one in reversed(stream):
        chunk = record(record(one).get("chunk"))
        if chunk.get("type") == "finish":
            return record(record(chunk.get("reason")).get("failure"))
    return {}


def _status(failure: dict[str, Any]) -> int | None:
    status = number(failure.get("status"))
    return status if status is not None and status < 1000 else None
