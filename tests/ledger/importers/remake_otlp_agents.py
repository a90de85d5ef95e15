"""A run of several agents as the current GenAI conventions tell it, through the real SDK; made by `remake_otlp`.

Two traces of one conversation: a triage agent hands off to a buyer, who asks a sub-agent, breaks a rule, looks into a
store of documents, is refused by the model once, and ends with a call that waits for approval; a second trace, as
after a restart, runs it.
"""

import importlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

_CONVERSATION = "9d3d2ac4-1c65-4f6e-9a55-0f8f6f1a7c11"
_SYSTEM = [{"type": "text", "content": "You buy parts. Never give more than 15 % discount."}]
_TOOL_SCHEMAS = [
    {"type": "function", "name": name, "parameters": {"type": "object"}}
    for name in ("ask_expert", "price", "book")
]


def _user(text: str) -> dict[str, Any]:
    return {"role": "user", "parts": [{"type": "text", "content": text}]}


def _call(call_id: str, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    part = {"type": "tool_call", "id": call_id, "name": name, "arguments": arguments}
    return {"role": "assistant", "parts": [part], "finish_reason": "tool_call"}


def _shown(call_id: str, response: Any) -> dict[str, Any]:
    return {"role": "tool", "parts": [{"type": "tool_call_response", "id": call_id, "response": response}]}


class _Run:
    """Makes spans of one run."""

    def __init__(self, telemetry: Any) -> None:
        self._tracer = telemetry.provider.get_tracer("fixture.agents", "2.0")
        self._trace = importlib.import_module("opentelemetry.trace")
        self._calls = 0

    @contextmanager
    def agent(self, name: str, **more: str) -> Iterator[Any]:
        """An agent at work."""
        with self._tracer.start_as_current_span(f"invoke_agent {name}") as span:
            span.set_attributes({"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": name, **more})
            yield span

    def fail(self, span: Any, kind: str, message: str) -> None:
        """End with an error, as an instrumentation records it; without the paths of a stack."""
        span.add_event("exception", {"exception.type": kind, "exception.message": message})
        span.set_attribute("error.type", kind)
        span.set_status(self._trace.Status(self._trace.StatusCode.ERROR, message))

    def model(self, messages: list[Any], answer: dict[str, Any] | None, error: str | None = None) -> None:
        """A model call."""
        self._calls += 1
        with self._tracer.start_as_current_span("chat scripted-1") as span:
            span.set_attributes(
                {
                    "gen_ai.operation.name": "chat",
                    "gen_ai.provider.name": "scripted",
                    "gen_ai.request.model": "scripted-1",
                    "gen_ai.request.temperature": 0.5,
                    "gen_ai.system_instructions": json.dumps(_SYSTEM),
                    "gen_ai.input.messages": json.dumps(messages),
                    "gen_ai.tool.definitions": json.dumps(_TOOL_SCHEMAS),
                    "fixture.unknown": "kept as it is",
                }
            )
            if error is not None:
                span.set_attribute("http.response.status_code", 529)
                self.fail(span, error, "Overloaded, try again later")
                return
            assert answer is not None
            span.set_attributes(
                {
                    "gen_ai.response.model": "scripted-1-2026",
                    "gen_ai.response.id": f"answer-{self._calls:04}",
                    "gen_ai.response.finish_reasons": [answer.get("finish_reason", "stop")],
                    "gen_ai.output.messages": json.dumps([answer]),
                    "gen_ai.usage.input_tokens": 100 * self._calls,
                    "gen_ai.usage.output_tokens": 10,
                    "gen_ai.usage.cache_read.input_tokens": 40,
                    "gen_ai.usage.cache_creation.input_tokens": 20,
                    "gen_ai.usage.reasoning.output_tokens": 3,
                    "operation.cost": 0.0025,
                }
            )

    @contextmanager
    def tool(self, call_id: str, name: str, arguments: dict[str, Any], result: Any = None) -> Iterator[Any]:
        """A tool at work."""
        with self._tracer.start_as_current_span(f"execute_tool {name}") as span:
            span.set_attributes(
                {
                    "gen_ai.operation.name": "execute_tool",
                    "gen_ai.tool.name": name,
                    "gen_ai.tool.call.id": call_id,
                    "gen_ai.tool.call.arguments": json.dumps(arguments),
                }
            )
            yield span
            if result is not None:
                span.set_attribute("gen_ai.tool.call.result", json.dumps(result))

    def other(self, name: str, **attributes: str) -> None:
        """Any other span."""
        with self._tracer.start_as_current_span(name) as span:
            span.set_attributes(attributes)


def record(telemetry: Any) -> None:
    """Record the run."""
    run = _Run(telemetry)
    conversation = {"gen_ai.conversation.id": _CONVERSATION}
    start = [_user("Quote 5000 bolts.")]
    with run.agent("triage", **conversation):
        handing = _call("call_10000001", "transfer_to_buyer", {})
        run.model(start, handing)
        with run.tool("call_10000001", "transfer_to_buyer", {}, "ok"):
            pass
        with run.agent("buyer", **conversation):
            seen = [*start, handing, _shown("call_10000001", "ok")]
            asking = _call("call_10000002", "ask_expert", {"about": "bolts"})
            run.model(seen, asking)
            with (
                run.tool("call_10000002", "ask_expert", {"about": "bolts"}, "Take Lohr."),
                run.agent("expert"),
            ):
                run.model([_user("about bolts")], {"role": "assistant", "parts": [], "finish_reason": "stop"})
            seen = [*seen, asking, _shown("call_10000002", "Take Lohr.")]
            run.model(seen, None, error="OverloadedError")
            pricing = _call("call_10000003", "price", {"discount": 18})
            run.model(seen, pricing)
            with run.tool("call_10000003", "price", {"discount": 18}) as span:
                run.fail(span, "PolicyError", "never more than 15 %")
            run.other(
                "search quotes", **{"gen_ai.operation.name": "retrieval", "gen_ai.data_source.id": "quotes"}
            )
            run.other("GET", **{"http.request.method": "GET"})
            seen = [*seen, pricing, _shown("call_10000003", "error: never more than 15 %")]
            booking = _call("call_10000004", "book", {"quote": "Q-7"})
            run.model(seen, booking)
    with run.agent("buyer", **conversation):
        with run.tool("call_10000004", "book", {"quote": "Q-7"}, {"document": "D-1"}):
            pass
        end = {
            "role": "assistant",
            "parts": [{"type": "text", "content": "Booked."}],
            "finish_reason": "stop",
        }
        run.model([*seen, booking, _shown("call_10000004", {"document": "D-1"})], end)


def batches(telemetry: Any) -> Iterator[Any]:
    """The same spans as a processor exports them: in batches, children first, one batch twice."""
    encoder = importlib.import_module("opentelemetry.exporter.otlp.proto.common.trace_encoder")
    spans = telemetry.spans.get_finished_spans()
    for begin in (0, 4, 8, 8, 12, 16):
        if part := spans[begin : begin + 4]:
            yield encoder.encode_spans(part)
