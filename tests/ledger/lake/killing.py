"""`python -m tests.ledger.lake.killing FOLDER SEED KILLS`: exports and merges, and kills itself while it does.

Each attempt is a fork of this process, so that a kill costs milliseconds. Half of them die by a signal at a random
time, half just before or after a random call to the system. Every attempt first checks what the one before it left.
"""

import os
import random
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ledger.lake import Lake
from tests.ledger.lake.feeds import assert_exactly_once, feed_of, golden_rows

CALLS = ("fsync", "link", "unlink", "replace", "utime", "mkdir")
"""What changes a disk, and where a death is worth a try."""


def attempt(folder: Path, chance: random.Random) -> None:
    """Check, then export some more, merge and clear away."""
    lake = Lake(folder)
    position = assert_exactly_once(lake)
    dies_at = chance.randrange(1, 80) if chance.random() < 0.5 else 0
    if dies_at:
        die_at_call(dies_at, is_before=chance.random() < 0.5)
    feed = feed_of(golden_rows(position + chance.randrange(20, 400)))
    lake.export(feed, most_rows=chance.randrange(10, 120))
    lake.compact(many=3, target=chance.choice((60_000, 10**9)))
    lake.clear(grace_s=0)


def die_at_call(number: int, *, is_before: bool) -> None:
    """Let the process die at its so-manieth call that changes the disk."""
    calls = 0

    def deadly(name: str) -> Callable[..., Any]:
        original = getattr(os, name)

        def call(*arguments: Any, **options: Any) -> Any:
            nonlocal calls
            calls += 1
            if calls == number and is_before:
                os.kill(os.getpid(), signal.SIGKILL)
            result = original(*arguments, **options)
            if calls == number:
                os.kill(os.getpid(), signal.SIGKILL)
            return result

        return call

    for name in CALLS:
        setattr(os, name, deadly(name))


def main() -> None:
    """Kill so often; exit with 1 when an attempt found something wrong."""
    folder, seed, kills = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
    chance = random.Random(seed)
    killed = attempts = 0
    while killed < kills:
        attempts += 1
        own = random.Random(chance.random())
        child = os.fork()
        if child == 0:
            try:
                attempt(folder, own)
            except BaseException as error:  # noqa: BLE001 - a fork must not go on as its parent
                sys.stderr.write(f"seed {seed}, attempt {attempts}: {type(error).__name__}: {error}\n")
                os._exit(1)
            os._exit(0)
        if chance.random() < 0.5:
            time.sleep(chance.uniform(0, 0.15))
            os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        if os.WIFSIGNALED(status):
            killed += 1
        elif os.WEXITSTATUS(status):
            sys.exit(1)
    sys.stdout.write(f"{killed} kills in {attempts} attempts\n")


if __name__ == "__main__":
    main()
