"""The command `export`: the lake brought up to the ledger, published in other formats, mirrored elsewhere."""

from pathlib import Path
from typing import Annotated, Any

import typer

from ledger.cli.querying import export
from ledger.cli.settings import JsonOption, settings_of
from ledger.cli.terminal import say, show_json, visible
from ledger.errors import InputError
from ledger.lake import Lake
from ledger.lake.connection import FOLDER
from ledger.lake.publish import FORMATS, publish, push
from ledger.lake.remote import is_remote


def add_export_command(app: typer.Typer) -> None:
    """Add this file's command."""
    app.command(
        "export", epilog="Example: loopledger export, or: loopledger export --to /data/lake --as delta"
    )(export_command)


def export_command(
    context: typer.Context,
    to: Annotated[
        Path | None,
        typer.Option(
            "--to",
            metavar="DIR",
            help="Folder of the lake; `lake` in the home by default.",
            show_default=False,
        ),
    ] = None,
    formats: Annotated[
        list[str] | None,
        typer.Option(
            "--as",
            metavar="FORMAT",
            help="Show the same files as a table of delta or iceberg too; may be given again.",
            show_default=False,
        ),
    ] = None,
    mirror: Annotated[
        str | None,
        typer.Option(
            "--mirror",
            metavar="URL",
            help="Keep a copy on object storage up too: s3://BUCKET/PLACE.",
            show_default=False,
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Bring the lake, Parquet files for SQL, up to the ledger; each record goes there once."""
    for name in formats or ():
        if name not in FORMATS:
            raise InputError(f"{name!r} is no format to publish: expected one of {', '.join(FORMATS)}")
    if mirror is not None and not is_remote(mirror):
        raise InputError(f"{mirror!r} names no object storage: expected a URL as s3://BUCKET/PLACE")
    with settings_of(context).open_existing() as ledger:
        folder = to or ledger.home / FOLDER
        done = export(ledger, folder)
    lake = Lake(folder)
    published = {name: publish(lake, name) for name in formats or ()}
    sent = None if mirror is None else push(lake, mirror)
    if as_json:
        more: dict[str, Any] = {"published": published} if published else {}
        show_json(
            {"to": str(folder), **done.__dict__, **more, **({} if sent is None else {"mirrored": sent})}
        )
        return
    say(f"{done.events} new records are in {visible(str(folder))}: {done.files} files, {done.bytes} bytes")
    for name, place in published.items():
        say(f"as {name}: {visible(place)}")
    if sent is not None:
        say(f"{sent} files went to {visible(str(mirror))}")
