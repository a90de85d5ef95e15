"""The command `proxy`: the recording proxy alone, on this machine unless told otherwise."""

from pathlib import Path
from typing import Annotated

import typer

from ledger.capture.proxy import Runs
from ledger.cli.settings import settings_of
from ledger.cli.terminal import say, visible
from ledger.effects.loop_policy import load_loop_policy
from ledger.recorder import new_id
from webui.listening import bound_socket, quiet_server
from webui.lost import Lost
from webui.proxy import MOST_BYTES, RUN_HEADER, ProxyApp
from webui.upstreams import Upstreams

_MEGABYTE = 1024 * 1024

UpstreamOption = Annotated[
    list[str] | None,
    typer.Option(
        "--upstream",
        metavar="[PROVIDER=]URL",
        help="Endpoint of anthropic, openai or gemini, or of all; the public ones by default.",
        show_default=False,
    ),
]


UpstreamCaOption = Annotated[
    Path | None,
    typer.Option(
        "--upstream-ca",
        metavar="FILE",
        help="Certificates (PEM) to trust in place of the system's.",
        show_default=False,
    ),
]

PolicyOption = Annotated[
    Path | None,
    typer.Option(
        "--policy",
        metavar="FILE",
        help="Policy (YAML): tool calls that wait for a person's yes, and budgets.",
        show_default=False,
    ),
]


def add_proxy_command(app: typer.Typer) -> None:
    """Add this file's command."""

    @app.command("proxy", epilog="Example: loopledger proxy --run fix-typo --port 8118")
    def proxy(
        context: typer.Context,
        run: Annotated[
            str | None,
            typer.Option(
                "--run",
                metavar="NAME",
                help="Run of requests that name none; a new one by default.",
                show_default=False,
            ),
        ] = None,
        host: Annotated[str, typer.Option(help="Address to listen at. There is no login.")] = "127.0.0.1",
        port: Annotated[int, typer.Option(min=0, max=65535, help="Port to listen at; 0: any.")] = 8118,
        upstream: UpstreamOption = None,
        upstream_ca: UpstreamCaOption = None,
        most: Annotated[int, typer.Option("--max-request", min=1, help="Largest request in MB.")] = MOST_BYTES
        // _MEGABYTE,
        policy: PolicyOption = None,
    ) -> None:
        """Record what goes between agents and model providers, until stopped."""
        upstreams = Upstreams(upstream or ())
        name = run or new_id()
        rules = None if policy is None else load_loop_policy(policy)
        with settings_of(context).open() as ledger, bound_socket(host, port) as listening:
            runs = Runs(ledger.recorder, lost=Lost(), policy=rules)
            try:
                application = ProxyApp(
                    runs,
                    upstreams,
                    default_run=name,
                    upstream_ca=upstream_ca,
                    most_bytes=most * _MEGABYTE,
                )
                _show(f"http://{host}:{listening.getsockname()[1]}", name, upstreams)
                # A dropped connection upstream drops the client's, which is no error of the server.
                quiet_server(application, grace_s=5).run(sockets=[listening])
            finally:
                runs.close()


def _show(url: str, name: str, upstreams: Upstreams) -> None:
    base = f"{url}/run/{name}"
    say(f"recording run {visible(name)}; set in the agent's environment:", bold=True)
    say(f"  ANTHROPIC_BASE_URL={base}")
    say(f"  OPENAI_BASE_URL={base}/v1")
    say(f"  GOOGLE_GEMINI_BASE_URL={base}")
    say(f"  DEEPSEEK_BASE_URL={base}   (with --upstream anthropic=https://api.deepseek.com/anthropic)")
    say(f"{url}/run/<id>/… records another run, and so does the header {RUN_HEADER}")
    for provider, address in upstreams.described().items():
        say(f"  {provider:<10} -> {visible(address)}")
    say("stop with Ctrl-C")
