"""Random ids of a replay in the place of the recorded ones: later answers must name those that exist here."""

from collections.abc import Iterable

from replay.recordings import Piece


class IdsOfThisRun:
    """Recorded id -> the one of this run."""

    def __init__(self) -> None:
        self._fresh: dict[bytes, bytes] = {}

    def learn(self, recorded: Iterable[str], replayed: Iterable[str]) -> tuple[str, ...]:
        """Take note of the ids of two requests that fit; gives the rule that fired, if one did."""
        pairs = zip(recorded, replayed, strict=False)
        fresh = {old.encode(): new.encode() for old, new in pairs if old != new and len(old) == len(new)}
        self._fresh |= fresh
        return ("ids-of-this-run",) if fresh else ()

    def put_into(self, pieces: list[Piece]) -> list[Piece]:
        """The pieces with the ids of this run; of equal length, so that each piece keeps its place."""
        if not self._fresh:
            return pieces
        raw = body = b"".join(piece for _, piece in pieces)
        for old, new in self._fresh.items():
            body = body.replace(old, new)
        if body == raw:
            return pieces
        changed, start = [], 0
        for at, piece in pieces:
            changed.append((at, body[start : start + len(piece)]))
            start += len(piece)
        return changed
