"""`python -m tests.benchmarks [part…]`: prints the table. Never fails on a figure: people read it."""

import sys

from rich.console import Console
from rich.table import Table

from tests.benchmarks import (
    append,
    auditing,
    capture,
    checkpoints,
    comparing,
    conversation,
    importing,
    lake,
    proxy,
    reading,
    receiving,
    replaying,
    rules,
    scrolling,
    search,
    web,
)

PARTS = {
    "conversation": conversation.run,  # first: appending is then not measured in a process without memory of its own
    "append": append.run,
    "capture": capture.run,
    "reading": reading.run,
    "replay": replaying.run,
    "checkpoints": checkpoints.run,
    "comparing": comparing.run,
    "importing": importing.run,
    "receiving": receiving.run,
    "proxy": proxy.run,
    "lake": lake.run,
    "audit": auditing.run,
    "rules": rules.run,
    "web": web.run,
    "scrolling": scrolling.run,
    "search": search.run,
}


def main() -> None:
    """Run the parts that were named, or all."""
    table = Table("Measured", "Figure", "Aim", "Met", title="loopledger benchmarks")
    for name in sys.argv[1:] or PARTS:
        for line in PARTS[name]():
            met = "-" if line.met is None else "yes" if line.met else "no"
            table.add_row(line.name, line.value, line.aim, met)
    Console(width=150).print(table)


main()
