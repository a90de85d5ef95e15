"""What can happen in a loop: the vocabulary of facts. Imports pydantic and nothing of ours but `errors`."""

from ledger.events.catalog import BY_NAME, EVENTS
from ledger.events.record import Actor, ContentRef, Draft, Event, Record, Sibling, Source, UnknownEvent

__all__ = [
    "BY_NAME",
    "EVENTS",
    "Actor",
    "ContentRef",
    "Draft",
    "Event",
    "Record",
    "Sibling",
    "Source",
    "UnknownEvent",
]
