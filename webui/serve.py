"""The command `serve`: the web application in one process, on this machine unless told otherwise."""

from typing import Annotated

import typer
import uvicorn

from ledger.cli.settings import settings_of
from ledger.importers._otlp_live import MOST_BYTES
from webui.app import create_app

_MEGABYTE = 1024 * 1024


def add_serve_command(app: typer.Typer) -> None:
    """Add this file's command."""

    @app.command("serve", epilog="Example: loopledger serve --port 4318")
    def serve(
        context: typer.Context,
        host: Annotated[str, typer.Option(help="Address to listen at. There is no login.")] = "127.0.0.1",
        port: Annotated[int, typer.Option(min=0, max=65535, help="Port to listen at.")] = 4318,
        most: Annotated[
            int, typer.Option("--max-request", min=1, help="Largest request in MB, unpacked.")
        ] = MOST_BYTES // _MEGABYTE,
    ) -> None:
        """Receive traces and logs by OTLP/HTTP (/v1/traces, /v1/logs), until stopped."""
        with settings_of(context).open() as ledger:
            application = create_app(ledger, most_bytes=most * _MEGABYTE)
            uvicorn.run(application, host=host, port=port, log_level="warning", access_log=False)
