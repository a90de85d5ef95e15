"""Spans per CPU second of the server: 10,000 spans of 0.9 kB of one trace, in batches of 500, and of model calls.

The yardstick does the least that a receiver can: decodes, writes a row of JSON for each span, commits each batch.
"""

import os
import sqlite3
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from google.protobuf.json_format import MessageToJson
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from tests.benchmarks.measure import Result
from tests.webui.otlp_spans import agent, model, request, tool
from tests.webui.served import batch, post, served

_SPANS, _BATCH = 10_000, 500
_TURNS = 400
_AIM = 2000


def _cpu_seconds(pid: int) -> float:
    """CPU seconds of a running process, as Linux counts them."""
    fields = Path(f"/proc/{pid}/stat").read_text("ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _received(batches: list[bytes]) -> float:
    with tempfile.TemporaryDirectory() as home, served(Path(home)) as (url, child):
        before = _cpu_seconds(child.pid)
        for body in batches:
            assert post(f"{url}/v1/traces", body)[0] == 200
        return _cpu_seconds(child.pid) - before


def _kept_barely(batches: list[bytes]) -> float:
    with tempfile.TemporaryDirectory() as folder:
        database = sqlite3.connect(Path(folder) / "spans.sqlite")
        database.execute("pragma journal_mode=wal")
        database.execute("pragma synchronous=full")
        database.execute("create table spans (trace blob, span blob, body text, primary key (trace, span))")
        before = time.process_time()
        for body in batches:
            made = ExportTraceServiceRequest.FromString(body)
            spans = made.resource_spans[0].scope_spans[0].spans
            rows = [(span.trace_id, span.span_id, MessageToJson(span, indent=None)) for span in spans]
            database.executemany("insert into spans values (?, ?, ?)", rows)
            database.commit()
        spent = time.process_time() - before
        database.close()
        return spent


def _turns() -> list[bytes]:
    """A run of model calls, each with the tool call that it asks for, in requests of two turns."""
    spans = [agent(1)]
    for number in range(2, 2 * _TURNS, 2):
        part = {
            "type": "tool_call",
            "id": f"call-1-{number + 1}",
            "name": "write",
            "arguments": {"line": number},
        }
        spans += [model(number, [part], stop="tool_calls"), tool(number + 1, result="x" * 500)]
    return [request(*spans[first : first + 4]) for first in range(0, len(spans), 4)]


def run() -> Iterator[Result]:
    """The lines of this part."""
    batches = [batch(first, _BATCH) for first in range(0, _SPANS, _BATCH)]
    spent, least = _received(batches), _kept_barely(batches)
    size = sum(map(len, batches)) / _SPANS
    rate = _SPANS / spent
    name = f"OTLP spans of {size:.0f} bytes received, {_BATCH} a request"
    yield Result(name, f"{rate:.0f} a CPU second", f">= {_AIM}", rate >= _AIM)
    yield Result(
        f"{name}: against rows of JSON",
        f"{spent / least:.2f}x ({spent:.1f} against {least:.1f} s)",
        "-",
        None,
    )
    turns = _turns()
    rate = 2 * _TURNS / _received(turns)
    yield Result(
        "OTLP spans of model and tool calls received, 4 a request", f"{rate:.0f} a CPU second", "-", None
    )


if __name__ == "__main__":
    sys.stdout.write("\n".join(f"{line.name}: {line.value} (aim {line.aim})" for line in run()) + "\n")
