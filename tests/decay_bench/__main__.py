"""Run the bench and print its table; exits with 1 when the accounting identity fails anywhere, or the pattern."""

import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.table import Table

from ledger.home import open_ledger
from tests.decay_bench import pairs, texts
from tests.decay_bench.episodes import episodes, play
from tests.decay_bench.figures import Row, pattern, rows


def main() -> int:
    """The whole bench."""
    with tempfile.TemporaryDirectory() as home, open_ledger(Path(home)) as ledger:
        played = list(episodes())
        for episode in played:
            play(ledger, episode)
        found = rows(ledger, played)
    console = Console(width=max(190, Console().width))
    console.print(_table(found))
    pairs.show(console)
    told = texts.measure()
    console.print(
        f"Rules found in prompts, files, policies and talk ({told.found + told.missed} of them): precision"
        f" {told.precision:.3f}, recall {told.recall:.3f}, right modality {told.right_kinds} of {told.found}",
        markup=False,
    )
    wrong = [row.name for row in found if not row.identity]
    wrong += pattern(found)
    for line in wrong:
        console.print(f"does not hold: {line}", markup=False)
    return 1 if wrong else 0


def _table(found: list[Row]) -> Table:
    table = Table(
        "Compactor", "Rules", "Kept after 1, 2", "Half-life", "Broken", "95 %", "Decay", "Wilful", "Unknown",
        "Broken if seen", "if lost", "Pin, of request", "Identity",
    )  # fmt: skip
    for row in found:
        table.add_row(*row.cells(), end_section=row.ends)
    return table


if __name__ == "__main__":
    sys.exit(main())
