"""Writes `expected.json` of every LangGraph case again: look at the difference before you keep it.

The databases themselves come from `fixtures/importers/langgraph/remake.py`, which needs the real package.
"""

import json
import tempfile
from pathlib import Path

from tests.ledger.importers.fixtures import FIXTURES, promise


def main() -> None:
    """Import each case into a fresh ledger and keep what that gives."""
    for case in sorted(path.parent for path in (FIXTURES / "langgraph").glob("*/checkpoints.sqlite.gz")):
        with tempfile.TemporaryDirectory() as home:
            text = json.dumps(promise(case, Path(home) / "home"), indent=1, ensure_ascii=False)
        (case / "expected.json").write_text(text + "\n", encoding="utf-8")
        print(case.name)


if __name__ == "__main__":
    main()
