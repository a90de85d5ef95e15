"""Sessions from a seed in which a made-up secret crosses from one party to another, or stays where it belongs."""

import random
from collections.abc import Iterator

from ledger.audit import Reader
from ledger.events import Record
from ledger.events.credential import SecretRedacted
from tests.audit.labelled import Labelled, call
from tests.ledger.audit.histories import Told

DETECTOR = "edge.secret"
TITLE = "sessions from a seed: server to server, tool to agent, agent to server; back to its own, used at home, none"
BASELINE = "any secret was redacted in the session"

_BAD = ("server to server", "tool to agent", "agent to server")
_GOOD = ("back to its server", "used at home", "two secrets, each at home", "none")


def cases() -> Iterator[Labelled]:
    """210 sessions."""
    chance = random.Random(21)
    for number in range(210):
        kind = (*_BAD, *_GOOD)[number % 7]
        yield Labelled(f"{kind} {number}", kind in _BAD, list(_session(chance, kind)), group=kind)


def _session(chance: random.Random, kind: str) -> Iterator[Told]:
    secret, other = ({"password": f"made-up-{chance.getrandbits(48):012x}Qz"} for _ in range(2))
    for number in range(chance.randint(1, 5)):
        yield from call(number, "search", {"q": f"number {number}"}, f"text {number}", server="index")
    match kind:
        case "server to server":
            yield from call(20, "read", {"name": "db"}, secret, server="vault")
            yield from call(21, "post", {"text": "note", "extra": secret}, server="board")
        case "tool to agent":
            yield from call(20, "read_file", {"path": "settings"}, secret)
            yield {"type": "delegation.started", "delegation_id": "d", "to_agent": "clerk", "payload": secret}
        case "agent to server":
            yield {"type": "delegation.started", "delegation_id": "d", "to_agent": "clerk", "payload": "ask"}
            yield {
                "type": "delegation.returned",
                "delegation_id": "d",
                "outcome": "returned",
                "result": secret,
            }
            yield from call(21, "post", secret, server="board")
        case "back to its server":
            yield from call(20, "read", {"name": "db"}, secret, server="vault")
            yield from call(21, "check", secret, server="vault")
        case "used at home":
            yield from call(20, "read_file", {"path": "settings"}, secret)
            yield from call(21, "connect", secret)
        case "two secrets, each at home":
            yield from call(20, "read", {"name": "db"}, secret, server="vault")
            yield from call(21, "read", {"name": "mail"}, other, server="board")
            yield from call(22, "check", secret, server="vault")
            yield from call(23, "check", other, server="board")
        case _:
            yield from call(20, "post", {"text": "hello"}, server="board")


def baseline(records: list[Record], reader: Reader) -> bool:
    """Any secret was redacted in the session."""
    return any(isinstance(record.event, SecretRedacted) for record in records)
