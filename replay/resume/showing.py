"""The options `--into` and `--as`, and how what was written is shown to a person."""

from pathlib import Path
from typing import Annotated, Any

import typer

from ledger.cli.terminal import say, visible

IntoOption = Annotated[
    Path | None,
    typer.Option(
        "--into",
        metavar="DIR",
        help="Write what the runtime needs to go on from there into this new folder, and print the command.",
        show_default=False,
    ),
]
RuntimeOption = Annotated[
    str | None,
    typer.Option(
        "--as",
        metavar="RUNTIME",
        help="Runtime that goes on; by default the one that the session ran in.",
        show_default=False,
    ),
]


def show_resumption(answer: dict[str, Any]) -> None:
    """What was written, what is not carried, and last the command."""
    count = len(answer["files"])
    say(f"{count} files for {answer['runtime']} in {visible(answer['into'])}", bold=True)
    for sentence in answer["not_carried"]:
        say(f"  not carried: {visible(sentence)}")
    for sentence in answer["notes"]:
        say(f"  {visible(sentence)}")
    if answer["line"]:
        say("go on from there with")
        say(visible(answer["line"]))
