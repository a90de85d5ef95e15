"""What a span is about, in whichever dialect it says so."""

import re
from typing import Literal

from ledger.otlp.records import Span
from ledger.otlp.values import structured, text

Kind = Literal["model", "tool", "agent", "handoff", "compaction", "other", "unknown"]
"""What we make of a span. `other`: known, and no loop action of ours; `unknown`: of a type that nobody told us of."""

_BY_OPERATION: dict[str, Kind] = {
    "chat": "model",
    "text_completion": "model",
    "generate_content": "model",
    "completion": "model",
    "responses": "model",
    "embeddings": "model",
    "execute_tool": "tool",
    "invoke_agent": "agent",
    "handoff": "handoff",
    "compact_events": "compaction",
    **dict.fromkeys(
        (
            *("create_agent", "invoke_workflow", "execute_task", "workflow", "task", "plan", "retrieval"),
            *("create_memory", "update_memory", "upsert_memory", "delete_memory", "search_memory"),
            *("create_memory_store", "delete_memory_store"),
        ),
        "other",
    ),
}
_BY_OPENINFERENCE: dict[str, Kind] = {
    "LLM": "model",
    "EMBEDDING": "model",
    "TOOL": "tool",
    "AGENT": "agent",
    **dict.fromkeys(("CHAIN", "RETRIEVER", "RERANKER", "GUARDRAIL", "EVALUATOR", "PROMPT"), "other"),
}
_BY_TRACELOOP: dict[str, Kind] = {
    "tool": "tool",
    "agent": "agent",
    "handoff": "handoff",
    "workflow": "other",
    "task": "other",
}
_EMBEDDINGS = ("embeddings", "embedding", "EMBEDDING")
_HANDOFF = re.compile(r"\Ahandoff to (?P<agent>.+)\Z", re.DOTALL)
_TRANSFER = re.compile(
    r"\A(?:transfer_to|handoff_to|transfer_back_to|delegate_to)_(?P<agent>.+)\Z", re.DOTALL
)
_MERGED = "(merged"
_ANSWERED = (
    "gen_ai.response.id",
    "gen_ai.usage.output_tokens",
    "gen_ai.prompt.0.content",
    "gen_ai.prompt.0.role",
)


def kind_of(span: Span) -> Kind:
    """What a span is about."""
    given = span.attributes
    operation = text(given.get("gen_ai.operation.name"))
    if operation == "execute_tool" and _MERGED in (text(given.get("gen_ai.tool.name")) or span.name):
        return "other"  # stands for parallel calls that have spans of their own
    if operation in _BY_OPERATION:
        return _BY_OPERATION[operation]
    if "gen_ai.compaction.trigger" in given:
        return "compaction"
    inference = text(given.get("openinference.span.kind"))
    if inference in _BY_OPENINFERENCE:
        is_handoff = inference == "TOOL" and _HANDOFF.match(span.name)
        return "handoff" if is_handoff else _BY_OPENINFERENCE[inference]
    traceloop = text(given.get("traceloop.span.kind"))
    if traceloop in _BY_TRACELOOP:
        return _BY_TRACELOOP[traceloop]
    if (kind := _vercel(text(given.get("ai.operationId")))) is not None:
        return kind
    if text(given.get("llm.request.type")) in ("chat", "completion", "embedding"):
        return "model"
    if "gen_ai.request.model" in given and any(name in given for name in _ANSWERED):
        return "model"
    return "unknown"


def _vercel(operation: str | None) -> Kind | None:
    if operation is None or not operation.startswith("ai."):
        return None
    if operation == "ai.toolCall":
        return "tool"
    return "model" if operation.endswith((".doGenerate", ".doStream", ".doEmbed")) else "other"


def is_embedding(span: Span) -> bool:
    """Whether a model call only made vectors."""
    given = span.attributes
    names = ("gen_ai.operation.name", "openinference.span.kind", "llm.request.type")
    operation = text(given.get("ai.operationId")) or ""
    return any(given.get(name) in _EMBEDDINGS for name in names) or operation.endswith(".doEmbed")


def native_type(span: Span) -> str:
    """A span's type in its own words, for counting: operation, kind or scope; never a free text."""
    given = span.attributes
    for name, prefix in (
        ("gen_ai.operation.name", ""),
        ("openinference.span.kind", "openinference "),
        ("traceloop.span.kind", "traceloop "),
        ("ai.operationId", ""),
        ("llm.request.type", "llm "),
    ):
        if said := text(given.get(name)):
            return f"{prefix}{said[:60]}"
    return f"span of {span.origin.scope_name[:100] or 'no scope'}"


def agent_name(span: Span) -> str | None:
    """The agent that a span says it is of."""
    given = span.attributes
    for name in ("gen_ai.agent.name", "agent.name", "graph.node.id", "agent_name", "crewai.agent.role"):
        if said := text(given.get(name)):
            return said
    metadata = structured(given.get("metadata"))
    if isinstance(metadata, dict) and (said := text(metadata.get("lc_agent_name"))):
        return said
    return text(given.get("traceloop.association.properties.lc_agent_name"))


def handed_to(span: Span) -> str | None:
    """The agent that a handoff span names; None when it does not say."""
    if found := _HANDOFF.match(span.name):
        return found["agent"]
    return text(span.attributes.get("gen_ai.handoff.to_agent")) or text(span.attributes.get("output.value"))


def transfer_target(tool: str, arguments: object) -> str | None:
    """The agent that a tool call hands over to, "" when it does not show; None when it is an ordinary call."""
    found = _TRANSFER.match(tool)
    if found is None:
        return None
    if found["agent"] != "agent":
        return found["agent"]
    given = structured(arguments)
    if isinstance(given, dict):
        for name in ("agent_name", "agent", "name"):
            if said := text(given.get(name)):
                return said
    return ""
