"""A loop in a process of its own that asks before it sends.

`python -m tests.ledger.capture.gates.waiting_loop HOME URL TO`

Writes what became of its call to standard output, as JSON.
"""

import json
import sys
from typing import Any

from ledger.capture import record_loop
from ledger.errors import NotApprovedError
from ledger.home import open_ledger

SESSION = "waiting"


def main(home: str, url: str | None, to: str) -> None:
    """Ask, wait, act."""
    sent: list[Any] = []
    with open_ledger(home, url) as ledger, record_loop(ledger, harness="waiting", session=SESSION) as run:
        try:
            run.tool(
                lambda **mail: sent.append(mail),
                {"to": to},
                name="send_mail",
                call_id="call-1",
                needs_approval=True,
            )
            print(json.dumps({"sent": sent}))
        except NotApprovedError as error:
            print(json.dumps({"sent": sent, "refused": error.reason}))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2] or None, sys.argv[3])
