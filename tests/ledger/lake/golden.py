"""`python -m tests.ledger.lake.golden`: a lake as this schema version writes it; leaves one that is there alone."""

from pathlib import Path

from ledger.lake import Lake
from ledger.lake.columns import SCHEMA_VERSION
from tests.ledger.lake.feeds import feed_of, golden_rows

FOLDER = Path(__file__).parents[3] / "fixtures" / "lake"
"""One folder for each schema version."""

COUNT = 144
"""Records in the lake of the first version."""


def main() -> None:
    """Make it."""
    lake = Lake(FOLDER / f"v{SCHEMA_VERSION}")
    if not lake.manifest.exists():
        lake.export(feed_of(golden_rows(COUNT)))


if __name__ == "__main__":
    main()
