"""Times and sizes, and how they are printed. A ratio is worth more than a second: machines are shared."""

import gc
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Result:
    """One line of the table."""

    name: str
    """What was measured."""
    value: str
    """The figure, with its unit."""
    aim: str
    """What we want it to be."""
    met: bool | None
    """Whether it is; None where there is no aim."""


def cpu_us(work: Callable[[], int], *, seconds: float = 0.4) -> float:
    """CPU microseconds of this thread for each of the units that `work` says it did."""
    gc.collect()
    started, units = time.thread_time_ns(), 0
    while (spent := time.thread_time_ns() - started) < seconds * 1e9:
        units += work()
    return spent / 1000 / units


def interleaved(
    ours: Callable[[], float], yardstick: Callable[[], float], *, rounds: int = 7
) -> tuple[float, float, float]:
    """Median of ours, of the yardstick, and of the ratios of each round: noise hits both alike."""
    pairs = [(ours(), yardstick()) for _ in range(rounds)]
    ratios = [mine / theirs for mine, theirs in pairs]
    return (
        statistics.median(mine for mine, _ in pairs),
        statistics.median(theirs for _, theirs in pairs),
        statistics.median(ratios),
    )


def ratio_result(name: str, figures: tuple[float, float, float], aim: float, *, unit: str = "us") -> Result:
    """A line that compares ours with a yardstick; smaller is better."""
    mine, theirs, ratio = figures
    return Result(
        name, f"{ratio:.2f}x ({mine:.1f} against {theirs:.1f} {unit})", f"<= {aim:g}x", ratio <= aim
    )


def file_bytes(folder: Path) -> int:
    """Bytes of all files in a folder."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def resident_mb() -> float:
    """Memory that this process holds now, in MB, where the system tells; what it held at most, elsewhere."""
    pages = Path("/proc/self/statm")
    if pages.exists():
        return int(pages.read_text().split()[1]) * resource.getpagesize() / 2**20
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


@dataclass(frozen=True)
class Child:
    """What a child process used."""

    cpu_s: float
    """User and system seconds."""
    peak_mb: float
    """Largest resident set, in MB."""
    output: str
    """What it printed."""


def run_child(arguments: list[str]) -> Child:
    """Run `python -m …` to its end, and tell what it alone used. Raises CalledProcessError."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    code = (
        "import resource, runpy, sys\n"
        "sys.argv = sys.argv[1:]\n"
        "try:\n    runpy.run_module(sys.argv[0], run_name='__main__', alter_sys=True)\n"
        "finally:\n    print('PEAK', resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, file=sys.stderr)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=True
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    peak = next(int(line.split()[1]) for line in done.stderr.splitlines() if line.startswith("PEAK "))
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Child(cpu, peak / 1024, done.stdout)
