"""The developer traces, where they are there."""

import os
from pathlib import Path

TRACES = Path(os.environ.get("LOOPLEDGER_TRACES") or Path(__file__).parents[3] / "shared" / "traces")
"""Their folder; it need not exist."""


def files(*patterns: str) -> list[Path]:
    """Files of the traces by patterns, sorted."""
    return sorted({path for pattern in patterns for path in TRACES.glob(pattern) if path.is_file()})
