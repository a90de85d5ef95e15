"""Spans per CPU second of the server: 10,000 spans of 0.9 kB of one trace, in batches of 500."""

import os
import tempfile
from pathlib import Path

from tests.webui.served import batch, post, served

_SPANS, _BATCH = 10_000, 500


def _cpu_seconds(pid: int) -> float:
    """CPU seconds of a running process, as Linux counts them."""
    fields = Path(f"/proc/{pid}/stat").read_text("ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def main() -> None:
    """Print the figure."""
    batches = [batch(first, _BATCH) for first in range(0, _SPANS, _BATCH)]
    with tempfile.TemporaryDirectory() as home, served(Path(home)) as (url, child):
        before = _cpu_seconds(child.pid)
        for body in batches:
            assert post(f"{url}/v1/traces", body)[0] == 200
        spent = _cpu_seconds(child.pid) - before
    size = sum(map(len, batches)) / _SPANS
    print(f"{_SPANS} spans of {size:.0f} bytes: {spent:.2f} CPU s, {_SPANS / spent:.0f} spans per CPU second")


if __name__ == "__main__":
    main()
