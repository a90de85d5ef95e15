"""The life of one model call: requested, streamed, answered or failed."""

from decimal import Decimal
from typing import Literal

from ledger.events.record import ContentRef, Digest, Event, Part
from ledger.events.session import ArtifactInForce

Purpose = Literal[
    "main",
    "title",
    "compaction",
    "routing",
    "sub-agent",
    "token-count",
    "summary",
    "embedding",
    "other",
    "unknown",
]
"""What a model call was for."""


class Usage(Part):
    """Tokens of one model call, each counted once. None: the source does not say."""

    input_tokens: int | None = None
    """Prompt tokens that were neither read from nor written to a cache."""

    output_tokens: int | None = None
    """Tokens written by the model, reasoning included."""

    cache_read_tokens: int | None = None
    """Prompt tokens read from a cache."""

    cache_write_tokens: int | None = None
    """Prompt tokens written to a cache."""

    reasoning_tokens: int | None = None
    """The part of `output_tokens` that was reasoning."""


class ModelCallRequested(Event, name="model_call.requested"):
    """A model was asked. The request can be rebuilt from the parts named here."""

    call_id: str
    """Joins request, chunks and answer."""

    purpose: Purpose = "main"
    """What the call was for."""

    protocol: str
    """Shape of the messages: `anthropic.messages`, `openai.responses`, `openai.chat`, `gemini`, `genai` (OTel)."""

    model: str | None = None
    """Model asked for."""

    provider: str | None = None
    """Provider asked."""

    context: Digest | None = None
    """Last node of the context chain; None for an empty context, or when it was not seen (`completeness`)."""

    context_length: int = 0
    """Messages in the context."""

    context_added: int = 0
    """Nodes at the end of the chain that this call was the first in its session to use; it answers for them."""

    system: ContentRef | None = None
    """System prompt, in the protocol's own shape."""

    tools: ContentRef | None = None
    """Tool schemas offered, in the protocol's own shape."""

    parameters: ContentRef | None = None
    """All other fields of the request body."""

    layout: ContentRef | None = None
    """How messages, system, tools and parameters lie in the body, where that is more than joining them."""

    body_digest: Digest | None = None
    """Digest of the canonical body as recorded, redacted; a rebuilt body must give the same."""

    completeness: Literal["body", "messages", "partial", "none"]
    """What can be rebuilt: the whole body; the messages; some of them; nothing."""

    not_seen: tuple[str, ...] = ()
    """Parts of the request that the source does not hold, such as `tools` or `system[0]`."""

    artifacts: tuple[ArtifactInForce, ...] = ()
    """Governing artifacts in force, where they changed since the last call of the session."""

    attempt: int = 1
    """1 for the first attempt, 2 for the first retry."""

    lane: str | None = None
    """Conversation that the call belongs to, as the client names it: session or thread, `/`, agent."""

    http: ContentRef | None = None
    """The request around the body: `{"method", "target", "headers": [[name, value]]}`, without credentials."""

    raw: ContentRef | None = None
    """How the bytes of the body lie: a list of texts, of numbers in `raw_parts`, and null for `raw_context`."""

    raw_parts: tuple[ContentRef, ...] = ()
    """Spellings of large fields of the body."""

    raw_context: Digest | None = None
    """Last node of a chain of the messages' spellings, joined by commas."""

    raw_added: int = 0
    """Nodes at the end of that chain that this call answers for."""

    raw_digest: Digest | None = None
    """Digest of the bytes of the body as they were sent, redacted."""

    at_us: int | None = None
    """Microseconds by a monotonic clock from the start or resumption of the session to the sending."""


class ModelCallChunk(Event, name="model_call.chunk"):
    """A part of a streamed answer arrived and was flushed, so that a crash keeps it."""

    call_id: str
    """The call."""

    chunks: ContentRef
    """The chunks since the last flush: a list of `[milliseconds since request, text]`; for bytes that are no
    UTF-8, `{"base64": text}` in the place of the text."""


class ModelCallAnswered(Event, name="model_call.answered"):
    """A model answered."""

    call_id: str
    """The call."""

    model: str | None = None
    """Model that answered."""

    message: ContentRef
    """The answer as a message, in the protocol's own shape."""

    envelope: ContentRef | None = None
    """The response body around the message, in the protocol's own shape; None where it was not seen."""

    stop_reason: str | None = None
    """Why it stopped, in the provider's words."""

    usage: Usage | None = None
    """Tokens."""

    cost_usd: Decimal | None = None
    """Cost in US dollars, as the source says."""

    response_id: str | None = None
    """Provider's id of the response."""

    request_id: str | None = None
    """Provider's id of the HTTP request."""

    stream: ContentRef | None = None
    """All chunks with their times: a list of `[milliseconds since request, text]`; for bytes that are no UTF-8,
    `{"base64": text}` in the place of the text."""

    http: ContentRef | None = None
    """The response around the body: `{"status", "headers": [[name, value]], "ended"}`; ended `complete`, `cut` by the
    provider, or `aborted` by the client."""

    first_byte_at_us: int | None = None
    """When the first byte came, by the clock of the request's `at_us`."""

    ended_at_us: int | None = None
    """When the last byte came, by that clock: gives the order of completion."""

    first_byte_ms: int | None = None
    """Milliseconds from request to first byte."""

    duration_ms: int | None = None
    """Milliseconds from request to last byte."""

    completeness: Literal["complete", "partial", "aborted"] = "complete"
    """`partial`: the source was cut while the answer streamed; `aborted`: the client hung up."""

    returned_type: str | None = None
    """Class of the object that the loop was given, or of each chunk of a stream; None for plain JSON. A replay in
    process gives back the same class where the program has loaded it."""

    revision: int = 0
    """Above 0: a fuller reading of an answer that was recorded before; it takes the place of the earlier one."""

    synthetic: bool = False
    """Written by the harness in a model's place (an error text, say): no model was paid for it."""


class ModelCallFailed(Event, name="model_call.failed"):
    """A model call ended without an answer."""

    call_id: str
    """The call."""

    status: int | None = None
    """HTTP status."""

    error: str
    """Kind of failure."""

    detail: ContentRef | None = None
    """What the provider or the client said."""

    will_retry: bool | None = None
    """Whether the client said that it tries again."""

    duration_ms: int | None = None
    """Milliseconds until it failed."""

    http: ContentRef | None = None
    """The response around the body, as in `model_call.answered`; None when there was none."""

    stream: ContentRef | None = None
    """The chunks of the response's body, as in `model_call.answered`."""

    first_byte_at_us: int | None = None
    """When the first byte came, by the clock of the request's `at_us`."""

    ended_at_us: int | None = None
    """When it failed, by that clock."""


class ModelCallRetried(Event, name="model_call.retried"):
    """The client tried a failed call again."""

    call_id: str
    """The new call."""

    failed_call_id: str
    """The call that failed."""

    delay_ms: int | None = None
    """Milliseconds waited."""
