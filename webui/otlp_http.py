"""OTLP/HTTP: `/v1/traces` and `/v1/logs`."""

import asyncio
from typing import Any

import orjson
from fastapi import APIRouter, Request, Response
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceResponse
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect

from ledger.capture.otlp import (
    Answer,
    BusyError,
    Receiver,
    TooLargeError,
    UndecodableError,
    UnknownTypeError,
    unpacked,
)
from ledger.errors import LedgerError

_JSON = "application/json"
_PROTOBUF = "application/x-protobuf"
_RETRY_AFTER = "1"


def otlp_routes(receiver: Receiver, most_bytes: int) -> APIRouter:
    """The endpoints of a receiver; `most_bytes` is the largest request, unpacked."""
    router = APIRouter()

    @router.post("/v1/traces")
    async def traces(request: Request) -> Response:
        return await _received(request, receiver, most_bytes, is_logs=False)

    @router.post("/v1/logs")
    async def logs(request: Request) -> Response:
        return await _received(request, receiver, most_bytes, is_logs=True)

    return router


async def _received(request: Request, receiver: Receiver, most_bytes: int, *, is_logs: bool) -> Response:
    """Answer a request after its commit, or say why not."""
    content_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    encoding = request.headers.get("content-encoding", "").strip().lower()
    try:
        if content_type not in (_JSON, _PROTOBUF):
            raise UnknownTypeError(f"expected {_PROTOBUF} or {_JSON}, found {content_type[:80]!r}")
        if _said_length(request) > most_bytes:
            raise TooLargeError(f"expected at most {most_bytes} bytes, found more")
        with receiver.holding() as hold:
            parts: list[bytes] = []
            async for part in request.stream():
                hold.add(len(part))
                if hold.size > most_bytes:
                    raise TooLargeError(f"expected at most {most_bytes} bytes, found more")
                parts.append(part)
            body = await run_in_threadpool(unpacked, b"".join(parts), encoding, most_bytes)
            hold.add(max(0, len(body) - hold.size))
            answer = await asyncio.wrap_future(await run_in_threadpool(receiver.submit, body, content_type))
    except ClientDisconnect:
        return Response(status_code=400)  # nobody hears it, and nothing was recorded
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


def _said_length(request: Request) -> int:
    said = request.headers.get("content-length", "")
    return int(said) if said.isascii() and said.isdigit() and len(said) < 19 else 0


def _accepted(answer: Answer, content_type: str, *, is_logs: bool) -> Response:
    message = "; ".join(answer.messages)
    if content_type == _JSON:
        partial: dict[str, Any] = {"errorMessage": message}
        if answer.rejected:
            partial["rejectedLogRecords" if is_logs else "rejectedSpans"] = str(answer.rejected)
        return Response(orjson.dumps({"partialSuccess": partial} if message else {}), media_type=_JSON)
    return Response(export_response(answer, is_logs=is_logs), media_type=_PROTOBUF)


def export_response(answer: Answer, *, is_logs: bool) -> bytes:
    """The protobuf message that answers an export request."""
    message = "; ".join(answer.messages)
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
    return reply.SerializeToString()


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
