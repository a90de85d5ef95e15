"""A server in a process of its own, and requests to it."""

import contextlib
import gzip
import re
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

PROTOBUF = "application/x-protobuf"


@contextlib.contextmanager
def served(
    home: Path, *options: str, store: str | None = None
) -> Iterator[tuple[str, "subprocess.Popen[bytes]"]]:
    """A server's address and process, ready to answer; killed at the end."""
    where = ["--home", str(home), *(["--store", store] if store else [])]
    command = [sys.executable, "-m", "webui", *where, "serve", "--port", "0", *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as child:
        try:
            url = told_address(child)
            urllib.request.urlopen(f"{url}/healthz").close()
            yield url, child
        finally:
            child.kill()


def told_address(child: "subprocess.Popen[bytes]") -> str:
    """Where a server of ours listens, by the first address that it prints."""
    assert child.stdout is not None
    for line in child.stdout:
        if found := re.search(rb"http://[^/\s]+:([0-9]+)/", line):
            return f"http://127.0.0.1:{int(found[1])}"
    raise AssertionError("the server ended")


def free_port() -> int:
    """A port that nobody listens at."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
        return port


def post(
    url: str, body: bytes, *, kind: str = PROTOBUF, packed: bool = False
) -> tuple[int, dict[str, str], bytes]:
    """Status, headers and body of the answer to a request."""
    headers = {"Content-Type": kind} | ({"Content-Encoding": "gzip"} if packed else {})
    request = urllib.request.Request(url, gzip.compress(body) if packed else body, headers)
    try:
        with urllib.request.urlopen(request) as answer:
            return answer.status, dict(answer.headers), answer.read()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, dict(error.headers), error.read()


def batch(first: int, count: int, *, filler: int = 700) -> bytes:
    """An export request of tool spans of one trace; the root is number 0."""
    request = ExportTraceServiceRequest()
    group = request.resource_spans.add()
    named = group.resource.attributes.add(key="service.name")
    named.value.string_value = "agent"
    scope = group.scope_spans.add()
    for number in range(first, first + count):
        span = scope.spans.add(
            trace_id=(7).to_bytes(16, "big"),
            span_id=(number + 1).to_bytes(8, "big"),
            parent_span_id=b"" if number == 0 else (1).to_bytes(8, "big"),
            name="execute_tool read" if number else "agent",
            start_time_unix_nano=10**18 + number,
            end_time_unix_nano=10**18 + number + 1,
        )
        said = {"filler": f"{number} " + "x" * filler}
        if number:
            said |= {
                "gen_ai.operation.name": "execute_tool",
                "gen_ai.tool.name": "read",
                "gen_ai.tool.call.id": f"call-{number}",
            }
        for name, text in said.items():
            span.attributes.add(key=name).value.string_value = text
    return request.SerializeToString()
