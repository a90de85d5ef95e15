"""The table of what was measured, printed at the end."""

from typing import Any

import pytest

from tests.harnesses.measured import COLUMNS, Measured

_ROWS = pytest.StashKey[list[Measured]]()


@pytest.fixture
def measured(request: pytest.FixtureRequest) -> list[Measured]:
    """Rows of the table."""
    return request.config.stash.setdefault(_ROWS, [])


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Print the table."""
    # What was skipped is told with its reason.
    rows = [row for row in config.stash.get(_ROWS, []) if row.calls]
    if not rows:
        return
    terminalreporter.section("recorded and replayed")
    table = [COLUMNS, *(row.cells() for row in rows)]
    widths = [max(len(row[at]) for row in table) for at in range(len(COLUMNS))]
    for at, row in enumerate(table):
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        terminalreporter.write_line(f"| {' | '.join(cells)} |")
        if at == 0:
            terminalreporter.write_line(f"|{'|'.join('-' * (width + 2) for width in widths)}|")
