"""The web application: health, and the OTLP/HTTP receiver. Pages come with their own modules."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import orjson
from fastapi import FastAPI, Request, Response
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceResponse
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse
from starlette.concurrency import run_in_threadpool

from ledger.errors import LedgerError
from ledger.home import Ledger
from ledger.importers._otlp_live import (
    MOST_BYTES,
    Answer,
    BusyError,
    Receiver,
    TooLargeError,
    UndecodableError,
    UnknownTypeError,
    unpacked,
)

_JSON = "application/json"
_PROTOBUF = "application/x-protobuf"
_RETRY_AFTER = "1"


def create_app(ledger: Ledger, *, most_bytes: int = MOST_BYTES, receiver: Receiver | None = None) -> FastAPI:
    """The application over an open ledger. It closes its receiver, not the ledger, when it shuts down."""
    receiving = receiver or Receiver(ledger.recorder)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        yield
        await run_in_threadpool(receiving.close)

    app = FastAPI(title="loopledger", lifespan=lifespan, docs_url=None, redoc_url=None, openapi_url=None)

    @app.get("/healthz")
    async def health() -> dict[str, str]:
        return {"status": "ok"}

    @app.post("/v1/traces")
    async def traces(request: Request) -> Response:
        return await _received(request, receiving, most_bytes, is_logs=False)

    @app.post("/v1/logs")
    async def logs(request: Request) -> Response:
        return await _received(request, receiving, most_bytes, is_logs=True)

    return app


async def _received(request: Request, receiver: Receiver, most_bytes: int, *, is_logs: bool) -> Response:
    """Answer a request after its commit, or say why not."""
    content_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    encoding = request.headers.get("content-encoding", "").strip().lower()
    try:
        if content_type not in (_JSON, _PROTOBUF):
            raise UnknownTypeError(f"expected {_PROTOBUF} or {_JSON}, found {content_type[:80]!r}")
        with receiver.holding() as hold:
            parts: list[bytes] = []
            async for part in request.stream():
                hold.add(len(part))
                if hold.size > most_bytes:
                    raise TooLargeError(f"expected at most {most_bytes} bytes, found more")
                parts.append(part)
            body = await run_in_threadpool(unpacked, b"".join(parts), encoding, most_bytes)
            hold.add(max(0, len(body) - hold.size))
            answer = await run_in_threadpool(receiver.receive, body, content_type)
    except TooLargeError as error:
        return _refused(413, error, content_type)
    except UnknownTypeError as error:
        return _refused(415, error, content_type)
    except UndecodableError as error:
        return _refused(400, error, content_type)
    except BusyError as error:
        return _refused(429, error, content_type)
    except LedgerError as error:
        return _refused(503, error, content_type)
    return _accepted(answer, content_type, is_logs=is_logs)


def _accepted(answer: Answer, content_type: str, *, is_logs: bool) -> Response:
    message = "; ".join(answer.messages)
    if content_type == _JSON:
        partial: dict[str, Any] = {"errorMessage": message}
        if answer.rejected:
            partial["rejectedLogRecords" if is_logs else "rejectedSpans"] = str(answer.rejected)
        return Response(orjson.dumps({"partialSuccess": partial} if message else {}), media_type=_JSON)
    reply: ExportLogsServiceResponse | ExportTraceServiceResponse
    if is_logs:
        reply = ExportLogsServiceResponse()
        if message:
            reply.partial_success.rejected_log_records = answer.rejected
            reply.partial_success.error_message = message
    else:
        reply = ExportTraceServiceResponse()
        if message:
            reply.partial_success.rejected_spans = answer.rejected
            reply.partial_success.error_message = message
    return Response(reply.SerializeToString(), media_type=_PROTOBUF)


def _refused(status: int, error: LedgerError, content_type: str) -> Response:
    """A `google.rpc.Status` with the message, in the encoding of the request."""
    headers = {"Retry-After": _RETRY_AFTER} if status in (429, 503) else {}
    if content_type != _PROTOBUF:
        return Response(orjson.dumps({"message": str(error)}), status, headers, _JSON)
    text = str(error).encode("utf-8", "replace")
    length, size = len(text), bytearray()
    while length >= 0x80:
        size.append(length & 0x7F | 0x80)
        length >>= 7
    size.append(length)
    return Response(b"\x12" + bytes(size) + text, status, headers, _PROTOBUF)
