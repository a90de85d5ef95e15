"""Receives OTLP export requests, by whichever transport they come: answered after their commit."""

from ledger.capture.otlp.receiver import Hold, Receiver
from ledger.capture.otlp.requests import (
    MOST_BYTES,
    BusyError,
    TooLargeError,
    UndecodableError,
    UnknownTypeError,
    unpacked,
)
from ledger.capture.otlp.writing import Answer

__all__ = [
    "MOST_BYTES",
    "Answer",
    "BusyError",
    "Hold",
    "Receiver",
    "TooLargeError",
    "UndecodableError",
    "UnknownTypeError",
    "unpacked",
]
