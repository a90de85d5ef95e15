"""Runs attacks in a process with one layer alone: `python -m tests.ledger.lake.sandbox.bare LAYER FOLDER < ATTACKS`.

The layer is `landlock`, with an engine as it comes, or `engine`, which gets its rows without a path. Prints what each
attack gave as JSON.
"""

import json
import os
import sys

import duckdb

from ledger.lake.connection import connect_files
from ledger.lake.sandbox import confine
from ledger.lake.sandbox.engine import lake_files, open_engine


def main() -> None:
    """Try all, tell all."""
    layer, folder = sys.argv[1:]
    attacks = json.load(sys.stdin)
    with connect_files([]):
        pass  # what it reads from files has been read
    os.chdir(folder)
    fence = confine.shut_in(".") if layer == "landlock" else "none"
    told = {}
    for name, sql in attacks.items():
        connection = (
            duckdb.connect()
            if layer == "landlock"
            else open_engine(lake_files(), 1 << 28, 5, is_fenced=False)
        )
        with connection:
            try:
                told[name] = repr(connection.execute(sql).fetchmany(100))
            # AttributeError: a text without a statement gives None
            except (duckdb.Error, OSError, ValueError, RuntimeError, AttributeError) as error:
                told[name] = f"error: {error}"
    json.dump({"fence": fence, "told": told}, sys.stdout)


if __name__ == "__main__":
    main()
