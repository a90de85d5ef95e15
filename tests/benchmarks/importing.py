"""Importing a generated Claude Code log: CPU and peak memory of a process that does nothing else."""

import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from tests.benchmarks.claude_log import write_log
from tests.benchmarks.measure import Result, run_child

_LARGE_MB = int(os.environ.get("LOOPLEDGER_BENCH_LARGE_MB", "1000"))


def run() -> Iterator[Result]:
    """The lines of this part."""
    for size_mb, cpu_aim, memory_aim in ((21, 5.0, 250), (_LARGE_MB, None, 300)):
        with tempfile.TemporaryDirectory() as folder:
            log = Path(folder) / "5f0c2a6e-9f4e-4c0e-8f67-1c1d3f1b2a10.jsonl"
            write_log(log, size_mb * 1_000_000)
            child = run_child(["webui", "--home", f"{folder}/home", "import", str(log), "--json"])
            actual = log.stat().st_size / 1e6
        name = f"import of a {actual:.0f} MB Claude Code log"
        if cpu_aim is None:
            yield Result(name, f"{child.cpu_s:.1f} CPU s ({actual / child.cpu_s:.1f} MB/s)", "-", None)
        else:
            yield Result(
                name,
                f"{child.cpu_s:.1f} CPU s ({actual / child.cpu_s:.1f} MB/s)",
                f"<= {cpu_aim:g} s",
                child.cpu_s <= cpu_aim,
            )
        yield Result(
            f"{name}: peak memory",
            f"{child.peak_mb:.0f} MB",
            f"< {memory_aim} MB",
            child.peak_mb < memory_aim,
        )


if __name__ == "__main__":
    sys.stdout.write("\n".join(f"{line.name}: {line.value} (aim {line.aim})" for line in run()) + "\n")
