"""OTLP/gRPC: the trace and log services on the same receiver as OTLP/HTTP. Needs the extra `grpc`."""

import contextlib
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import grpc

from ledger.capture.otlp import BusyError, Receiver, UndecodableError
from ledger.errors import InputError, LedgerError
from webui.otlp_http import export_response

_SERVICES = {
    "opentelemetry.proto.collector.trace.v1.TraceService": False,
    "opentelemetry.proto.collector.logs.v1.LogsService": True,
}
"""Whether each service takes log records."""

_THREADS = 128  # more than the receiver lets wait, so that some are free to say that it is busy
_CLOSED_WITHIN_S = 5


@contextlib.contextmanager
def grpc_served(receiver: Receiver, address: str, most_bytes: int) -> Iterator[int]:
    """Serve at an address such as `127.0.0.1:4317`; gives the port. Raises InputError when that is taken."""
    server = grpc.server(
        ThreadPoolExecutor(_THREADS, "otlp-grpc"),
        [_service(receiver, name, is_logs=is_logs) for name, is_logs in _SERVICES.items()],
        options=[("grpc.max_receive_message_length", most_bytes), ("grpc.so_reuseport", 0)],
    )
    try:
        port = server.add_insecure_port(address)
    except RuntimeError as error:
        raise InputError(f"cannot listen for OTLP/gRPC at {address}: {error}") from error
    server.start()
    try:
        yield port
    finally:
        server.stop(_CLOSED_WITHIN_S).wait()


def _service(receiver: Receiver, name: str, *, is_logs: bool) -> grpc.GenericRpcHandler:
    """A service with its one method. Without serializers, messages come and go as bytes, as the receiver wants them."""

    def export(body: bytes, context: grpc.ServicerContext) -> bytes:
        return _exported(receiver, body, context, is_logs=is_logs)

    handler: Callable[[bytes, grpc.ServicerContext], bytes] = export
    return grpc.method_handlers_generic_handler(
        name, {"Export": grpc.unary_unary_rpc_method_handler(handler)}
    )


def _exported(receiver: Receiver, body: bytes, context: grpc.ServicerContext, *, is_logs: bool) -> bytes:
    """Answer a request after its commit. UNAVAILABLE tells the sender to try again, INVALID_ARGUMENT not to."""
    try:
        with receiver.holding() as hold:
            hold.add(len(body))
            answer = receiver.submit(body, "application/x-protobuf").result()
            return export_response(answer, is_logs=is_logs)
    except UndecodableError as error:
        context.abort(grpc.StatusCode.INVALID_ARGUMENT, str(error))
    except (BusyError, LedgerError) as error:
        context.abort(grpc.StatusCode.UNAVAILABLE, str(error))
    raise AssertionError("abort raises")
