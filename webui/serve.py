"""The command `serve`: the web application in one process, on this machine unless told otherwise."""

import contextlib
import gc
import importlib
import importlib.util
from types import ModuleType
from typing import Annotated

import typer
import uvicorn

from ledger.capture.otlp import MOST_BYTES, Receiver
from ledger.cli.settings import settings_of
from ledger.effects.loop_policy import load_loop_policy
from ledger.errors import InputError
from ledger.lake.connection import FOLDER
from ledger.views.lake import LakeFollower
from webui.app import create_app
from webui.proxy_command import PolicyOption, UpstreamOption
from webui.upstreams import Upstreams

_MEGABYTE = 1024 * 1024


def add_serve_command(app: typer.Typer) -> None:
    """Add this file's command."""

    @app.command("serve", epilog="Example: loopledger serve --port 4318 --grpc-port 4317")
    def serve(
        context: typer.Context,
        host: Annotated[str, typer.Option(help="Address to listen at. There is no login.")] = "127.0.0.1",
        port: Annotated[int, typer.Option(min=0, max=65535, help="Port to listen at.")] = 4318,
        grpc_port: Annotated[
            int | None,
            typer.Option(
                min=1,
                max=65535,
                show_default=False,
                help="Port for OTLP/gRPC, which needs the extra `grpc`; 4317 is usual. Without it: none.",
            ),
        ] = None,
        most: Annotated[
            int, typer.Option("--max-request", min=1, help="Largest request in MB, unpacked.")
        ] = MOST_BYTES // _MEGABYTE,
        upstream: UpstreamOption = None,
        policy: PolicyOption = None,
        lake: Annotated[
            bool, typer.Option("--lake", help="Keep the Parquet files for SQL up with the ledger.")
        ] = False,
    ) -> None:
        """Receive OTLP/HTTP (/v1/traces, /v1/logs) and record models' traffic (/run/ID/…), until stopped."""
        gc.freeze()  # what is loaded by now stays: no collection need look at it again
        most_bytes = most * _MEGABYTE
        rules = None if policy is None else load_loop_policy(policy)
        with settings_of(context).open() as ledger, contextlib.ExitStack() as stack:
            if lake:
                stack.enter_context(LakeFollower(ledger.store, ledger.home / FOLDER))
            receiver = Receiver(ledger.recorder)
            stack.callback(receiver.close)
            if grpc_port is not None:
                address = f"{host}:{grpc_port}"
                stack.enter_context(_grpc_module().grpc_served(receiver, address, most_bytes))
            application = create_app(
                ledger,
                most_bytes=most_bytes,
                receiver=receiver,
                upstreams=Upstreams(upstream or ()),
                policy=rules,
            )
            uvicorn.run(application, host=host, port=port, log_level="warning", access_log=False)


def _grpc_module() -> ModuleType:
    """The module of OTLP/gRPC. Raises InputError when its library is not installed."""
    if importlib.util.find_spec("grpc") is None:
        raise InputError("OTLP/gRPC needs one more package: pip install 'loopledger[grpc]'")
    return importlib.import_module("webui.otlp_grpc")
