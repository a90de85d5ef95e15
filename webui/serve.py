"""The command `serve`: the web application in one process, on this machine unless told otherwise."""

import contextlib
import gc
import importlib
import importlib.util
import secrets
from pathlib import Path
from types import ModuleType
from typing import Annotated

import typer
import uvicorn

from ledger.audit import chosen, discover
from ledger.capture.otlp import MOST_BYTES, Receiver
from ledger.cli.settings import settings_of
from ledger.cli.terminal import say
from ledger.effects.loop_policy import load_loop_policy
from ledger.errors import InputError
from ledger.views.auditing import AuditFollower
from webui.app import create_app
from webui.listening import bound_socket
from webui.logins import Logins, read_token
from webui.proxy_command import PolicyOption, UpstreamOption
from webui.settings import LOOPBACK, WebSettings, login_name
from webui.upstreams import Upstreams

_MEGABYTE = 1024 * 1024


def add_serve_command(app: typer.Typer) -> None:
    """Add this file's command."""

    @app.command("serve", epilog="Example: loopledger serve --port 4318 --grpc-port 4317")
    def serve(
        context: typer.Context,
        host: Annotated[
            str, typer.Option(help="Address to listen at; another than this machine's needs --token-file.")
        ] = "127.0.0.1",
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
        token_file: Annotated[
            Path | None,
            typer.Option(
                "--token-file",
                metavar="FILE",
                help="Token that people and programs log in with; by default one is kept in the home.",
                show_default=False,
            ),
        ] = None,
        allow_host: Annotated[
            list[str] | None,
            typer.Option(
                "--allow-host",
                metavar="NAME",
                help="Another name by which browsers and exporters call this server; may be given again.",
                show_default=False,
            ),
        ] = None,
        no_store: Annotated[
            bool, typer.Option("--no-store", help="Let browsers keep nothing, not even what never changes.")
        ] = False,
        upstream: UpstreamOption = None,
        policy: PolicyOption = None,
        lake: Annotated[
            bool,
            typer.Option(
                "--lake", help="Make the Parquet files for SQL; those that are there are kept up anyway."
            ),
        ] = False,
        audit: Annotated[
            bool, typer.Option("--audit", help="Look at sessions while they run, and raise findings.")
        ] = False,
    ) -> None:
        """Serve the pages and their API, receive OTLP/HTTP (/v1/…), record models' traffic (/run/ID/…)."""
        if host not in LOOPBACK and token_file is None:
            raise InputError(
                f"--host {host} lets other machines in: expected --token-file FILE with the token to log in with"
            )
        gc.freeze()  # what is loaded by now stays: no collection need look at it again
        most_bytes = most * _MEGABYTE
        rules = None if policy is None else load_loop_policy(policy)
        with settings_of(context).open() as ledger, contextlib.ExitStack() as stack:
            if audit:
                detectors = chosen(discover(ledger.home), (), everything=False)
                stack.enter_context(AuditFollower(ledger.recorder, detectors))
            receiver = Receiver(ledger.recorder)
            stack.callback(receiver.close)
            if grpc_port is not None:
                address = f"{host}:{grpc_port}"
                stack.enter_context(_grpc_module().grpc_served(receiver, address, most_bytes))
            place = token_file or ledger.home / "keys" / "web.token"
            logins = Logins(login_name(), read_token(place, make=token_file is None))
            own = f"{secrets.token_hex(4)}.localhost"
            hosts = frozenset(name.lower() for name in (*LOOPBACK, own, host, *(allow_host or ())))
            application = create_app(
                ledger,
                most_bytes=most_bytes,
                receiver=receiver,
                upstreams=Upstreams(upstream or ()),
                policy=rules,
                settings=WebSettings(hosts, no_store, store=settings_of(context).store, lake=lake),
                logins=logins,
            )
            listening = stack.enter_context(bound_socket(host, port))
            bound = listening.getsockname()[1]
            shown = own if host in LOOPBACK else host
            say(f"look:  http://{shown}:{bound}/login?code={logins.new_code()}   (once, within five minutes)")
            say(f"token: {place}   (for programs, and to log in again)")
            config = uvicorn.Config(
                application, log_level="warning", access_log=False, timeout_graceful_shutdown=3
            )
            uvicorn.Server(config).run(sockets=[listening])


def _grpc_module() -> ModuleType:
    """The module of OTLP/gRPC. Raises InputError when its library is not installed."""
    if importlib.util.find_spec("grpc") is None:
        raise InputError("OTLP/gRPC needs one more package: pip install 'loopledger[grpc]'")
    return importlib.import_module("webui.otlp_grpc")
