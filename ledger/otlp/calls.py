"""The facts of a model call, out of a span or of log records, in all dialects that we know."""

from dataclasses import dataclass, field, fields
from decimal import Decimal, InvalidOperation
from typing import Any

from ledger.events.model_call import ModelCallAnswered, Purpose, Usage
from ledger.otlp.kinds import is_embedding
from ledger.otlp.records import ERROR, LogRecord, Span
from ledger.otlp.values import count, first, structured, text, unflattened

DETAILS = "gen_ai.client.inference.operation.details"
"""Event of the current conventions: all of a call in one record."""

CHOICE = "gen_ai.choice"
"""Event of the conventions up to 1.30 that holds an answer."""

MESSAGE_ROLES = {
    "gen_ai.system.message": "system",
    "gen_ai.user.message": "user",
    "gen_ai.assistant.message": "assistant",
    "gen_ai.tool.message": "tool",
}
"""Events of the conventions up to 1.30 that hold a message of the request, and whose it is."""

EXCEPTION = "gen_ai.client.operation.exception"
"""Event for a call that failed."""

_INPUT = ("gen_ai.usage.input_tokens", "gen_ai.usage.prompt_tokens", "llm.token_count.prompt")
_OUTPUT = ("gen_ai.usage.output_tokens", "gen_ai.usage.completion_tokens", "llm.token_count.completion")
_READ = (
    *("gen_ai.usage.cache_read.input_tokens", "gen_ai.usage.cache_read_input_tokens"),
    *("gen_ai.usage.details.cache_read_tokens", "gen_ai.usage.details.cache_read_input_tokens"),
    *("llm.token_count.prompt_details.cache_read", "llm.usage.cache_read_input_tokens"),
    "ai.usage.cachedInputTokens",
)
_WRITE = (
    *("gen_ai.usage.cache_creation.input_tokens", "gen_ai.usage.cache_creation_input_tokens"),
    *("gen_ai.usage.cache_write.input_tokens", "gen_ai.usage.cache_write_input_tokens"),
    *("gen_ai.usage.details.cache_creation_input_tokens", "gen_ai.usage.details.cache_write_tokens"),
    *("llm.token_count.prompt_details.cache_write", "llm.usage.cache_creation_input_tokens"),
)
_REASONING = (
    *("gen_ai.usage.reasoning.output_tokens", "gen_ai.usage.reasoning_tokens", "ai.usage.reasoningTokens"),
    *("gen_ai.usage.details.reasoning_tokens", "llm.usage.reasoning_tokens"),
    "llm.token_count.completion_details.reasoning",
)
_INPUT_VERCEL = ("ai.usage.promptTokens", "ai.usage.inputTokens", "ai.usage.tokens")
_OUTPUT_VERCEL = ("ai.usage.completionTokens", "ai.usage.outputTokens")
_COST = ("operation.cost", "gen_ai.usage.cost", "usage.cost", "llm.cost.total", "gen_ai.usage.total_cost")
_MODEL_ASKED = ("gen_ai.request.model", "llm.request.model", "ai.model.id")
_MODEL_ANSWERED = ("gen_ai.response.model", "llm.response.model", "llm.model_name", "ai.response.model")
_PROVIDER = ("gen_ai.provider.name", "gen_ai.system", "llm.provider", "llm.system", "ai.model.provider")
_RESPONSE = ("gen_ai.response.id", "llm.response.id", "ai.response.id")
_STOPS = ("gen_ai.response.finish_reasons", "llm.finish_reason", "ai.response.finishReason")
_PARAMETERS = "gen_ai.request."
_SUMMARY = "summarization"


@dataclass(slots=True)
class CallFacts:
    """What one report tells of a model call. None: it does not say."""

    protocol: str | None = None
    """Shape of its messages."""

    purpose: Purpose | None = None
    """What it was for, where that is said."""

    asked: str | None = None
    """Model asked for."""

    answered_by: str | None = None
    """Model that answered."""

    provider: str | None = None
    """Provider."""

    messages: list[Any] | None = None
    """Messages of the request."""

    system: Any = None
    """System prompt, where it stands beside the messages."""

    tools: list[Any] | None = None
    """Tool schemas."""

    parameters: Any = None
    """Parameters of the request."""

    outputs: list[Any] | None = None
    """Messages of the answer."""

    stop_reason: str | None = None
    """Why it stopped."""

    usage: Usage | None = None
    """Tokens."""

    cost: Decimal | None = None
    """Cost in US dollars."""

    response_id: str | None = None
    """Provider's id of the response."""

    previous: str | None = None
    """Response that the request continues: the provider holds the messages before it."""

    envelope: Any = None
    """Raw response, where one was captured beside the messages."""

    used: set[str] = field(default_factory=set)
    """Attributes that are carried by these facts."""

    missing: list[str] = field(default_factory=list)
    """Parts of the request that were cut or dropped."""

    def filled(self, other: "CallFacts") -> None:
        """Take from another report of the same call what this one does not say."""
        if self.messages is None and other.messages is not None:
            self.protocol, self.missing = other.protocol, [*self.missing, *other.missing]
        for name in (each.name for each in fields(CallFacts)):
            if name not in ("used", "missing") and getattr(self, name) is None:
                setattr(self, name, getattr(other, name))
        if self.usage is not None and other.usage is not None:
            mine, others = self.usage.model_dump(), other.usage.model_dump()
            added = {name: value for name, value in others.items() if mine[name] is None}
            if "cache_write_tokens" not in added and "cache_read_tokens" not in added:
                self.usage = Usage(**(mine | added))

    def take_from(self, told: ModelCallAnswered) -> None:
        """Take from an answer that was recorded what this report does not say."""
        self.filled(
            CallFacts(
                answered_by=told.model,
                stop_reason=told.stop_reason,
                usage=told.usage,
                cost=told.cost_usd,
                response_id=told.response_id,
            )
        )

    def figures(self, told: ModelCallAnswered) -> dict[str, Any]:
        """The fields of an answer that was recorded as they are with what this report says besides."""
        mine = CallFacts(usage=self.usage, cost=self.cost, response_id=self.response_id)
        mine.answered_by, mine.stop_reason = self.answered_by, self.stop_reason
        mine.take_from(told)
        return {
            "model": mine.answered_by,
            "stop_reason": mine.stop_reason,
            "usage": mine.usage,
            "cost_usd": mine.cost,
            "response_id": mine.response_id,
        }


def span_facts(span: Span) -> CallFacts:
    """What a span tells of its model call."""
    given = span.attributes
    facts = attribute_facts(given)
    if is_embedding(span):
        facts.purpose = "embedding"
    if facts.messages is None:
        _openinference(given, facts)
    if facts.messages is None and facts.outputs is None:
        _indexed(given, facts)
    if facts.messages is None and facts.outputs is None:
        _vercel(given, facts)
    if span.dropped:
        facts.missing.append(f"{span.dropped} attributes that the SDK dropped")
    return facts


def attribute_facts(given: dict[str, Any]) -> CallFacts:
    """What attributes with the names of the current conventions tell, of a span or of a log record."""
    facts = CallFacts()
    facts.asked = text(first(given, _MODEL_ASKED))
    facts.answered_by = text(first(given, _MODEL_ANSWERED))
    facts.provider = text(first(given, _PROVIDER))
    facts.response_id = text(first(given, _RESPONSE))
    facts.stop_reason = _stop_reason(first(given, _STOPS))
    facts.usage = usage_of(given)
    facts.cost = _cost(first(given, _COST))
    conversation = text(given.get("gen_ai.conversation.id"))
    facts.previous = text(given.get("gen_ai.openai.request.previous_response_id"))
    if facts.previous is None and is_response_id(conversation):
        facts.previous = conversation
    facts.messages = _list(given, "gen_ai.input.messages", facts)
    facts.outputs = _list(given, "gen_ai.output.messages", facts)
    if facts.messages is not None or facts.outputs is not None:
        facts.protocol = "genai"
    facts.system = structured(given.get("gen_ai.system_instructions"))
    facts.tools = _list(given, "gen_ai.tool.definitions", facts)
    facts.used.update(("gen_ai.system_instructions",))
    parameters = {
        name[len(_PARAMETERS) :]: value
        for name, value in given.items()
        if name.startswith(_PARAMETERS) and name != "gen_ai.request.model"
    }
    facts.used.update(_PARAMETERS + name for name in parameters)
    facts.parameters = parameters or None
    metadata = structured(given.get("metadata"))
    source = metadata.get("lc_source") if isinstance(metadata, dict) else None
    if _SUMMARY in (source, given.get("traceloop.association.properties.lc_source")):
        facts.purpose = "compaction"
    return facts


def is_response_id(value: str | None) -> bool:
    """Whether what is called a conversation is the response that the request continues."""
    return value is not None and value.startswith("resp_")


def usage_of(given: dict[str, Any]) -> Usage | None:
    """Tokens, each counted once: the conventions count cached ones among the input, our events do not."""
    total = count(first(given, _INPUT))
    written = count(first(given, _OUTPUT))
    total = count(first(given, _INPUT_VERCEL)) if total is None else total
    written = count(first(given, _OUTPUT_VERCEL)) if written is None else written
    read, write = count(first(given, _READ)), count(first(given, _WRITE))
    reasoning = count(first(given, _REASONING))
    if total is None and written is None and read is None and write is None:
        return None
    cached = (read or 0) + (write or 0)
    return Usage(
        input_tokens=total - cached if total is not None and total >= cached else total,
        output_tokens=written,
        cache_read_tokens=read,
        cache_write_tokens=write,
        reasoning_tokens=reasoning,
    )


def _cost(value: Any) -> Decimal | None:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return None
    try:
        made = Decimal(str(value))
    except InvalidOperation:
        return None
    return made if made.is_finite() and abs(made) < 10**9 else None


def _stop_reason(value: Any) -> str | None:
    """The last reason that is said: a source may give one for each item of an answer."""
    given = structured(value)
    if isinstance(given, list):
        said = [one for one in given if isinstance(one, str) and one]
        return said[-1] if said else None
    return text(given)


def _list(given: dict[str, Any], name: str, facts: CallFacts) -> list[Any] | None:
    if given.get(name) is None:
        return None
    facts.used.add(name)
    value = structured(given[name])
    if isinstance(value, list):
        return value
    if isinstance(value, str) and value:
        facts.missing.append(f"the end of {name}, which was cut")
    return [value]


def _openinference(given: dict[str, Any], facts: CallFacts) -> None:
    """Flattened `llm.*` attributes."""
    inputs = unflattened(given, "llm.input_messages.")
    outputs = unflattened(given, "llm.output_messages.")
    tools = unflattened(given, "llm.tools.")
    if inputs.names:
        facts.messages = [_wrapped(item, "message") for item in inputs.values]
        facts.protocol = "openinference"
    if outputs.names:
        facts.outputs = [_wrapped(item, "message") for item in outputs.values]
        facts.protocol = "openinference"
        if outputs.has_gaps:
            facts.missing.append("answer")
    if inputs.has_gaps:
        facts.missing.append("messages")
    if tools.names:
        schemas = [_wrapped(item, "tool") for item in tools.values]
        facts.tools = [structured(_wrapped(item, "json_schema")) for item in schemas]
        if tools.has_gaps or not tools.names[0].startswith("llm.tools.0."):
            facts.missing.append("tools")
    facts.used.update((*inputs.names, *outputs.names, *tools.names))
    if "llm.invocation_parameters" in given:
        facts.parameters = structured(given["llm.invocation_parameters"])
        facts.used.add("llm.invocation_parameters")
        asked = facts.parameters.get("model") if isinstance(facts.parameters, dict) else None
        facts.asked = facts.asked or text(asked)
    if "output.value" in given and facts.outputs is not None:
        facts.envelope = structured(given["output.value"])
        facts.used.add("output.value")
        if facts.response_id is None:
            facts.response_id = _raw_response_id(facts.envelope)


def _raw_response_id(body: Any) -> str | None:
    """The id in a raw response, or in LangChain's form of one."""
    if not isinstance(body, dict):
        return None
    if text(body.get("id")):
        return text(body["id"])
    found: Any = body
    for step in ("generations", 0, 0, "message", "kwargs", "response_metadata", "id"):
        if isinstance(found, dict):
            found = found.get(step)
        elif isinstance(found, list) and isinstance(step, int):
            found = found[step] if len(found) > step else None
        else:
            return None
    return text(found)


def _wrapped(item: Any, name: str) -> Any:
    return item[name] if isinstance(item, dict) and name in item else item


def _indexed(given: dict[str, Any], facts: CallFacts) -> None:
    """`gen_ai.prompt.N.*` and `gen_ai.completion.N.*` of older instrumentations."""
    inputs = unflattened(given, "gen_ai.prompt.")
    outputs = unflattened(given, "gen_ai.completion.")
    tools = unflattened(given, "llm.request.functions.")
    if not inputs.values and not outputs.values:
        return
    facts.protocol = "genai.indexed"
    facts.messages = inputs.values if inputs.names else None
    facts.outputs = outputs.values if outputs.names else None
    facts.tools = facts.tools or tools.values or None
    if inputs.has_gaps:
        facts.missing.append("messages")
    facts.used.update((*inputs.names, *outputs.names, *tools.names))
    if facts.stop_reason is None and outputs.values and isinstance(outputs.values[-1], dict):
        facts.stop_reason = text(outputs.values[-1].get("finish_reason"))


def _vercel(given: dict[str, Any], facts: CallFacts) -> None:
    """`ai.*` of the Vercel AI SDK."""
    prompt = structured(given.get("ai.prompt.messages"))
    if isinstance(prompt, list):
        facts.messages, facts.protocol = prompt, "vercel"
        facts.used.add("ai.prompt.messages")
    said, calls = given.get("ai.response.text"), structured(given.get("ai.response.toolCalls"))
    if said is None:
        said = given.get("ai.response.object")
    if said is not None or calls is not None:
        message: dict[str, Any] = {"role": "assistant"}
        if said is not None:
            message["content"] = said
        if calls is not None:
            message["toolCalls"] = calls
        facts.outputs, facts.protocol = [message], "vercel"
        facts.used.update(("ai.response.text", "ai.response.toolCalls", "ai.response.object"))
    tools = given.get("ai.prompt.tools")
    if isinstance(tools, list):
        facts.tools = [structured(tool) for tool in tools]
        facts.used.add("ai.prompt.tools")


def log_facts(logs: list[LogRecord]) -> CallFacts:
    """What the log records of one span tell of its model call."""
    facts = CallFacts()
    messages: list[Any] = []
    outputs: list[Any] = []
    for log in logs:
        if log.name == DETAILS:
            held = log.attributes | (log.body if isinstance(log.body, dict) else {})
            facts.filled(attribute_facts(held))
        elif log.name in MESSAGE_ROLES:
            messages.append(_spoken(MESSAGE_ROLES[log.name], log.body))
        elif log.name == CHOICE:
            body = log.body if isinstance(log.body, dict) else {}
            outputs.append(_spoken("assistant", body.get("message")))
            facts.stop_reason = facts.stop_reason or text(body.get("finish_reason"))
        facts.provider = facts.provider or text(first(log.attributes, _PROVIDER))
    if messages and facts.messages is None:
        facts.messages, facts.protocol = messages, "genai.events"
        if not any(_has_content(message) for message in messages):
            facts.missing.append("content of messages")
    if outputs and facts.outputs is None:
        facts.outputs, facts.protocol = outputs, facts.protocol or "genai.events"
    return facts


def _spoken(role: str, body: Any) -> dict[str, Any]:
    if isinstance(body, dict):
        return {"role": role, **body}
    return {"role": role} if body is None else {"role": role, "content": body}


def _has_content(message: dict[str, Any]) -> bool:
    return message.get("content") is not None


def is_failure(span: Span, facts: CallFacts) -> bool:
    """Whether a model call ended without an answer."""
    return span.status == ERROR and not facts.outputs and facts.response_id is None
