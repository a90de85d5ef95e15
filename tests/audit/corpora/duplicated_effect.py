"""Payments and messages, some of them twice: random sessions from a seed, labelled by how they were made."""

import random
from collections import Counter
from collections.abc import Iterator
from typing import Any

from ledger.audit import Reader
from ledger.events import Record
from ledger.events.tool_call import ToolCallRequested
from tests.audit.labelled import Labelled, call
from tests.ledger.audit.histories import Told

DETECTOR = "duplicated_effect"
TITLE = "sessions from a seed: repeated effects; repeated reads, retries after failure, keyed retries"
BASELINE = "an external or irreversible call made twice with the same arguments"

_EFFECTS = (("pay", "irreversible"), ("send_message", "external"), ("create_ticket", "external"))
_BAD = ("repeats an effect", "repeats under a new key")
_GOOD = ("repeats a read", "retries a failure", "retries with a key", "plain")
_READS = ("get_balance", "list_messages", "search")


def cases() -> Iterator[Labelled]:
    """240 sessions."""
    chance = random.Random(7)
    for number in range(240):
        kind = (*_BAD, *_GOOD)[number % 6]
        yield Labelled(f"{kind} {number}", kind in _BAD, list(_session(chance, kind)))


def _session(chance: random.Random, kind: str) -> Iterator[Told]:
    calls: list[tuple[str, Any, dict[str, Any]]] = []
    for place in range(chance.randint(4, 12)):
        tool, effect = chance.choice(_EFFECTS)
        if chance.random() < 0.6:
            calls.append((chance.choice(_READS), {"account": place}, {}))
        else:
            calls.append(
                (tool, {"to": f"person {place}", "text": f"number {place}"}, {"effect_class": effect})
            )
    tool, effect = chance.choice(_EFFECTS)
    arguments, more = {"to": "somebody", "text": "once"}, {"effect_class": effect}
    match kind:
        case "repeats an effect":
            pair = [(tool, arguments, more), (tool, arguments, more)]
        case "repeats under a new key":
            pair = [(tool, arguments, {**more, "idempotency_key": key}) for key in ("k1", "k2")]
        case "repeats a read":
            pair = [("get_balance", {"account": "x"}, {}), ("get_balance", {"account": "x"}, {})]
        case "retries a failure":
            pair = [(tool, arguments, {**more, "outcome": "failed"}), (tool, arguments, more)]
        case "retries with a key":
            keyed = {**more, "idempotency_key": "k1"}
            pair = [(tool, arguments, keyed), (tool, arguments, keyed)]
        case _:
            pair = []
    for one in pair:
        calls.insert(chance.randint(0, len(calls)) if kind != "retries a failure" else len(calls), one)
    for number, (name, given, extra) in enumerate(calls):
        yield from call(number, name, given, **extra)


def baseline(records: list[Record], reader: Reader) -> bool:
    """An external or irreversible call made twice with the same arguments."""
    made = Counter(
        (record.event.tool, record.event.arguments.digest)
        for record in records
        if isinstance(record.event, ToolCallRequested)
        and record.event.effect_class in ("external", "irreversible")
    )
    return any(count > 1 for count in made.values())
