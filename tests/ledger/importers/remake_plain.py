"""Writes `expected.json` of every case of the plain traces again: look at the difference before you keep it.

`python -m tests.ledger.importers.remake_plain [FORMAT…]`
"""

import json
import sys
import tempfile
from pathlib import Path

from tests.ledger.importers.fixtures import FIXTURES, promise, trace_files

PLAIN = (
    "a2a-messages",
    "chat-messages",
    "http-archive",
    "inspect",
    "langsmith",
    "managed-agents",
    "mcp-messages",
    "proxy-recording",
)
"""The formats whose fixtures are made by `plain_runs` or by hand."""


def main(formats: list[str]) -> None:
    """Write what an import gives now."""
    for name in formats or PLAIN:
        for case in sorted(path for path in (FIXTURES / name).glob("*") if path.is_dir()):
            if not trace_files(case):
                continue
            with tempfile.TemporaryDirectory() as home:
                found = json.dumps(promise(case, Path(home)), indent=1)
            (case / "expected.json").write_text(f"{found}\n", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
