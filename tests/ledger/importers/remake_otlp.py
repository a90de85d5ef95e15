"""Makes the fixtures of the OTLP importer again.

`python -m tests.ledger.importers.remake_otlp capture` needs an environment with the real SDK and instrumentations (see
the README beside the fixtures); it runs them against the scripted model and writes what their exporters encode.
Without an argument only `expected.json` of every case is written again: look at the difference before you keep it.
"""

import base64
import gzip
import importlib
import itertools
import json
import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.scripted_model import Exchange, Lane, Script, ScriptedModel, Step, Text, ToolCall, Usage

_FOLDER = Path(__file__).parents[3] / "fixtures" / "importers" / "otlp"
_SYSTEM = "You buy parts. Never give more than 15 % discount."
_TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "find_part",
            "description": "Find a part",
            "parameters": {"type": "object", "properties": {"name": {"type": "string"}}},
        },
    }
]
_SCRIPT = Script(
    lanes=[
        Lane(
            "buyer",
            [
                Step(
                    (ToolCall("find_part", {"name": "bolt"}), ToolCall("find_part", {"name": "gasket"})),
                    Usage(90, 30, cache_read_tokens=10),
                ),
                Step((Text("Two parts found: HB-M8 and GK-50."),), Usage(150, 12, cache_read_tokens=60)),
            ],
        )
    ]
)
_PARTS = {"bolt": '{"sku": "HB-M8"}', "gasket": '{"sku": "GK-50"}'}


class Telemetry:
    """The real SDK, with ids that count and what it exports kept in memory."""

    def __init__(self, service: str) -> None:
        sdk = importlib.import_module("opentelemetry.sdk.trace")
        export = importlib.import_module("opentelemetry.sdk.trace.export")
        memory = importlib.import_module("opentelemetry.sdk.trace.export.in_memory_span_exporter")
        logs = importlib.import_module("opentelemetry.sdk._logs")
        log_export = importlib.import_module("opentelemetry.sdk._logs.export")
        resource = importlib.import_module("opentelemetry.sdk.resources").Resource(
            {"service.name": service, "service.instance.id": f"instance-of-{service}"}
        )
        numbers = itertools.count(1)
        seed = int.from_bytes(service.encode()[-6:], "big")
        generator = importlib.import_module("opentelemetry.sdk.trace.id_generator").IdGenerator
        ids = type(
            "CountingIds",
            (generator,),
            {
                "generate_span_id": lambda self: (seed << 16) + next(numbers),
                "generate_trace_id": lambda self: (seed << 64) + next(numbers),
            },
        )
        self.spans: Any = memory.InMemorySpanExporter()
        self.provider: Any = sdk.TracerProvider(resource=resource, id_generator=ids())
        self.provider.add_span_processor(export.SimpleSpanProcessor(self.spans))
        self.logs: Any = log_export.InMemoryLogRecordExporter()
        self.log_provider: Any = logs.LoggerProvider(resource=resource)
        self.log_provider.add_log_record_processor(log_export.SimpleLogRecordProcessor(self.logs))

    def trace_request(self) -> Any:
        """What the exporter of traces sends."""
        encoder = importlib.import_module("opentelemetry.exporter.otlp.proto.common.trace_encoder")
        return encoder.encode_spans(self.spans.get_finished_spans())

    def log_request(self) -> Any:
        """What the exporter of logs sends."""
        encoder = importlib.import_module("opentelemetry.exporter.otlp.proto.common._log_encoder")
        return encoder.encode_logs(self.logs.get_finished_logs())


def _as_json(request: Any) -> Any:
    """OTLP/JSON of a request: as protobuf prints it, but with ids in hexadecimal."""
    plain = importlib.import_module("google.protobuf.json_format").MessageToDict(
        request, use_integers_for_enums=True
    )

    def hexadecimal(value: Any) -> Any:
        if isinstance(value, list):
            return [hexadecimal(item) for item in value]
        if not isinstance(value, dict):
            return value
        return {
            name: base64.b64decode(item).hex()
            if name in ("traceId", "spanId", "parentSpanId")
            else hexadecimal(item)
            for name, item in value.items()
        }

    return hexadecimal(plain)


def _dump(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


@contextmanager
def _case(name: str) -> Iterator[Path]:
    folder = _FOLDER / name
    folder.mkdir(parents=True, exist_ok=True)
    yield folder


def _buy(client: Any, tracer: Any = None) -> None:
    """A small agent loop: ask, run the tools that are asked for, ask again."""
    messages: list[Any] = [
        {"role": "system", "content": _SYSTEM},
        {"role": "user", "content": "Find a bolt and a gasket."},
    ]
    while True:
        answer = client.chat.completions.create(model="scripted-1", messages=messages, tools=_TOOLS)
        said = answer.choices[0].message
        messages.append(said.model_dump(exclude_none=True))
        if not said.tool_calls:
            return
        for call in said.tool_calls:
            result = _PARTS[json.loads(call.function.arguments)["name"]]
            if tracer is not None:
                with tracer.start_as_current_span(call.function.name) as span:
                    span.set_attribute("openinference.span.kind", "TOOL")
                    span.set_attribute("tool.name", call.function.name)
                    span.set_attribute("input.value", call.function.arguments)
                    span.set_attribute("input.mime_type", "application/json")
                    span.set_attribute("output.value", result)
            messages.append({"role": "tool", "tool_call_id": call.id, "content": result})


def _wire(exchanges: list[Exchange]) -> list[dict[str, Any]]:
    """What was on the wire: the messages of each request, and the id of its response."""
    sent = []
    for exchange in exchanges:
        response = json.loads("".join(exchange.chunks))
        messages = exchange.body["messages"]
        sent.append({"response": response["id"], "messages": messages, "usage": response["usage"]})
    return sent


def _with_instrumentor(
    service: str, module: str, run: Callable[[Any, Telemetry], None] | None = None
) -> tuple[Telemetry, list[dict[str, Any]]]:
    """The loop above under a real instrumentation of the OpenAI client."""
    telemetry = Telemetry(service)
    instrumentor = importlib.import_module(module).OpenAIInstrumentor()
    try:
        instrumentor.instrument(
            tracer_provider=telemetry.provider, logger_provider=telemetry.log_provider, skip_dep_check=True
        )
        with ScriptedModel(_SCRIPT, port=8765) as model:
            client = importlib.import_module("openai").OpenAI(base_url=f"{model.url}/v1", api_key="none")
            if run is None:
                _buy(client)
            else:
                run(client, telemetry)
            exchanges = model.exchanges
    finally:
        instrumentor.uninstrument()
    return telemetry, _wire(exchanges)


def _capture() -> None:
    """All cases that real packages write."""
    os.environ["OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"] = "true"
    with _case("openai-v2") as folder:
        telemetry, wire = _with_instrumentor("openai-v2", "opentelemetry.instrumentation.openai_v2")
        (folder / "buyer.traces.pb").write_bytes(telemetry.trace_request().SerializeToString())
        (folder / "buyer.logs.pb").write_bytes(telemetry.log_request().SerializeToString())
        (folder / "wire.json").write_text(_dump(wire) + "\n", encoding="utf-8")

    def under_an_agent(client: Any, telemetry: Telemetry) -> None:
        tracer = telemetry.provider.get_tracer("fixture.buyer", "1.0")
        with tracer.start_as_current_span("buyer") as span:
            span.set_attribute("openinference.span.kind", "AGENT")
            span.set_attribute("session.id", "thread-1")
            span.set_attribute("agent.name", "buyer")
            _buy(client, tracer)

    with _case("openinference") as folder:
        telemetry, wire = _with_instrumentor(
            "openinference", "openinference.instrumentation.openai", under_an_agent
        )
        request = _as_json(telemetry.trace_request())
        (folder / "buyer.otlp.json").write_text(json.dumps(request, indent=1) + "\n", encoding="utf-8")
        (folder / "wire.json").write_text(_dump(wire) + "\n", encoding="utf-8")
    with _case("openllmetry") as folder:
        telemetry, wire = _with_instrumentor("openllmetry", "opentelemetry.instrumentation.openai")
        packed = gzip.compress(telemetry.trace_request().SerializeToString(), mtime=0)
        (folder / "buyer.traces.pb.gz").write_bytes(packed)
        (folder / "wire.json").write_text(_dump(wire) + "\n", encoding="utf-8")
    agents = importlib.import_module("tests.ledger.importers.remake_otlp_agents")
    with _case("agents") as folder:
        telemetry = Telemetry("agents")
        agents.record(telemetry)
        (folder / "quote.traces.pb").write_bytes(telemetry.trace_request().SerializeToString())
        lines = [_dump(_as_json(request)) for request in agents.batches(telemetry)]
        (folder / "quote.otlp.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")


def main() -> None:
    """Write the fixtures, or only what they promise."""
    if sys.argv[1:] == ["capture"]:
        _capture()
        return
    fixtures = importlib.import_module("tests.ledger.importers.fixtures")
    for case in sorted(folder for folder in _FOLDER.iterdir() if folder.is_dir()):
        with tempfile.TemporaryDirectory() as home:
            text = json.dumps(fixtures.promise(case, Path(home) / "home"), indent=1) + "\n"
        (case / "expected.json").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
