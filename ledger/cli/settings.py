"""What all commands share: the global options, and how an error becomes a message. Holds no command."""

import errno
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer
from typer.core import TyperGroup

from ledger.cli.terminal import visible
from ledger.errors import InputError, LedgerError
from ledger.home import Ledger, open_ledger

BAD_NEWS = 1
"""Exit status of an answer that is bad news."""

WRONG_USE = 2
"""Exit status of wrong use or input."""

_PIPE_CLOSED = 141
"""What a shell shows for a program that its reader left: 128 and the number of SIGPIPE."""

JsonOption = Annotated[
    bool, typer.Option("--json", help="Print JSON for programs instead of text for people.")
]
SessionArgument = Annotated[
    str,
    typer.Argument(
        metavar="SESSION", help="Id of a session, or the unambiguous start of one.", show_default=False
    ),
]
ByOption = Annotated[
    str | None,
    typer.Option("--by", metavar="NAME", help="Who says so; your login name by default.", show_default=False),
]
ReasonOption = Annotated[
    str | None,
    typer.Option("--reason", metavar="TEXT", help="Why; kept with it.", show_default=False),
]


@dataclass(frozen=True)
class Settings:
    """The global options, as given."""

    home: str | None = None
    """Folder of the ledger."""

    store: str | None = None
    """URL of the store."""

    @property
    def home_folder(self) -> Path:
        """Folder of the ledger, whether it exists or not."""
        return Path(self.home or os.environ.get("LOOPLEDGER_HOME") or ".loopledger")

    def open(self) -> Ledger:
        """The ledger, made if it does not exist."""
        return open_ledger(self.home, self.store)

    def open_existing(self) -> Ledger:
        """The ledger, for a command that only reads: a mistyped folder must not look like an empty ledger."""
        url = self.store or os.environ.get("LOOPLEDGER_STORE")
        path = self.home_folder / "ledger.sqlite" if not url else None
        if url and url.startswith("sqlite:///"):
            path = Path(url.removeprefix("sqlite:///"))
        if path is not None and not path.is_file():
            raise InputError(
                f"there is no ledger at {path}: `loopledger import PATH` makes one, --home names another"
            )
        return self.open()


def global_options(
    context: typer.Context,
    home: Annotated[
        str | None,
        typer.Option(
            envvar="LOOPLEDGER_HOME",
            metavar="DIR",
            help="Folder with keys, views and the default store; ./.loopledger by default.",
            show_default=False,
        ),
    ] = None,
    store: Annotated[
        str | None,
        typer.Option(
            envvar="LOOPLEDGER_STORE",
            metavar="URL",
            help="sqlite:///PATH or postgresql://USER@HOST/DATABASE; SQLite in the home by default.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """The flight recorder of agent loops."""
    context.obj = Settings(home, store)


def settings_of(context: typer.Context) -> Settings:
    """The global options of a command's context."""
    found = context.obj
    assert isinstance(found, Settings)
    return found


class LedgerGroup(TyperGroup):
    """Commands whose errors are messages: a user's mistake never shows a traceback."""

    def invoke(self, ctx: Any) -> Any:
        """Run the command."""
        try:
            result = super().invoke(ctx)
            sys.stdout.flush()
        except BrokenPipeError:
            _leave_quietly()
        except LedgerError as error:
            typer.echo(f"loopledger: {visible(str(error))}", err=True)
            raise typer.Exit(WRONG_USE) from None
        except OSError as error:
            if error.errno != errno.ENOSPC:
                raise
            typer.echo(
                f"loopledger: {error.strerror}: what should be written is not, or not all of it", err=True
            )
            _leave_quietly(WRONG_USE)
        return result


def _leave_quietly(status: int = _PIPE_CLOSED) -> NoReturn:
    """Nobody can read our output any more: we go, without another word."""
    # What is still buffered would fail again when the interpreter flushes it.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    raise typer.Exit(status) from None
