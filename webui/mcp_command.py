"""The command `mcp`: the ledger as tools for agents, over standard input and output."""

import contextlib
import sys
from pathlib import Path
from typing import Annotated

import typer

from ledger.cli.querying import LakeOption, export
from ledger.cli.settings import settings_of
from ledger.lake.connection import FOLDER
from ledger.lake.sandbox import Limits, SafeQueries
from webui.mcp_stdio import ToolServer
from webui.mcp_tools import INSTRUCTIONS, LedgerTools


def add_mcp_command(app: typer.Typer) -> None:
    """Add this file's command."""
    app.command("mcp", epilog="Example: loopledger mcp, or claude mcp add loopledger -- loopledger mcp")(
        mcp_command
    )


def mcp_command(
    context: typer.Context,
    limit: Annotated[int, typer.Option("--limit", metavar="N", help="Most rows of an answer.", min=1)] = 200,
    timeout: Annotated[
        float, typer.Option("--timeout", metavar="SECONDS", help="Stop a query that takes longer.", min=0.1)
    ] = 10.0,
    lake: LakeOption = None,
) -> None:
    """Offer safe queries to agents as tools of an MCP server on standard input and output."""
    settings = settings_of(context)
    with contextlib.ExitStack() as stack:
        ledger, folder = None, lake
        if folder is None:
            ledger = stack.enter_context(settings.open_existing())
            folder = ledger.home / FOLDER
            export(ledger, folder)
        queries = stack.enter_context(SafeQueries(folder, Limits(seconds=timeout, rows=limit)))
        home: Path = ledger.home if ledger is not None else settings.home_folder
        tools = LedgerTools(queries, folder, ledger, home).all()
        ToolServer(tools, INSTRUCTIONS, sys.stdin.buffer, sys.stdout.buffer).serve()
