"""The program `loopledger`: puts the commands of all layers together. Holds no other logic."""

import pkgutil
from collections.abc import Iterator, Mapping
from typing import Any

import typer
import typer.main

from ledger.cli.settings import LedgerGroup, global_options

HOMES = {
    "webui.demo:add_demo_command": "demo",
    "ledger.cli.importing:add_import_commands": "import formats",
    "ledger.cli.looking:add_look_commands": "sessions events show",
    "ledger.cli.searching:add_search_command": "search",
    "replay.commands:add_replay_commands": "state diff request",
    "webui.replay_command:add_replay_command": "replay",
    "webui.branch_command:add_branch_command": "branch",
    "replay.comparing.commands:add_comparing_commands": "branches compare",
    "replay.recovery.commands:add_recovery_commands": "effects checkpoint checkpoints rollback",
    "ledger.cli.proving:add_proof_commands": "verify",
    "ledger.cli.approving:add_approval_commands": "approvals approve deny hold release",
    "ledger.cli.exporting:add_export_command": "export",
    "ledger.cli.querying:add_query_commands": "sql queries",
    "webui.mcp_command:add_mcp_command": "mcp",
    "ledger.cli.auditing:add_audit_commands": "audit",
    "ledger.cli.decaying:add_decay_command": "decay",
    "ledger.cli.backtesting:add_backtest_command": "backtest",
    "ledger.cli.reviewing:add_review_commands": "detectors verdict note",
    "ledger.cli.edging:add_edge_command": "edges",
    "ledger.cli.fleet:add_fleet_command": "fleet",
    "replay.scorecard.commands:add_scorecard_command": "scorecard",
    "ledger.cli.tapping:add_tap_commands": "hook tap join",
    "webui.proxy_command:add_proxy_command": "proxy",
    "webui.record_command:add_record_command": "record",
    "webui.serve:add_serve_command": "serve",
}
"""Functions that add commands, and the names of these, in the order of `--help`."""


class Commands(Mapping[str, Any]):
    """All commands by name. Each is loaded when it is asked for: a hook does not wait for a web server."""

    def __init__(self) -> None:
        self._home_of = {name: home for home, names in HOMES.items() for name in names.split()}
        self._loaded: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        """A command; loads those of its home."""
        home = self._home_of[name]
        if name not in self._loaded:
            self._loaded.update(commands_of(home))
        return self._loaded[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._home_of)

    def __len__(self) -> int:
        return len(self._home_of)


def commands_of(home: str) -> dict[str, Any]:
    """The commands that a function adds, by name."""
    alone = typer.Typer(rich_markup_mode=None)
    pkgutil.resolve_name(home)(alone)
    return dict(typer.main.get_group(alone).commands)


class Program(LedgerGroup):
    """The group of all commands."""

    def __init__(self, **given: Any) -> None:
        super().__init__(**given)
        self.commands: Any = Commands()


app = typer.Typer(
    name="loopledger",
    cls=Program,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    epilog="Example: loopledger import ~/.claude/projects && loopledger sessions",
)
app.callback()(global_options)


def main() -> None:
    """Entry point of the console script."""
    app()
