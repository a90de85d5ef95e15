"""Closes what a cut left open: no provider takes a tool call that has no result."""

from collections.abc import Iterable

from replay.resume.turns import Call, Piece, Result, Turn

NO_RESULT = (
    "No result of this call is known: the session was taken back to a point before it ended, and goes on from there. "
    "Do not assume that it ran, nor that it did not."
)
"""What a model is shown in the place of a result that the point does not hold."""


def closed(turns: Iterable[Turn]) -> list[Turn]:
    """The turns with one result for every call, before the next answer, and with the tool's name in every result.

    Some logs tell of a result before the answer that asked for it: it goes behind that answer.
    """
    listed = list(turns)
    asked = {piece.call_id: piece for turn in listed for piece in turn.pieces if isinstance(piece, Call)}
    done: list[Turn] = []
    waiting: list[Call] = []
    early: dict[str | None, Result] = {}
    seen: set[str | None] = set()
    told: set[str | None] = set()
    for turn in listed:
        if turn.role == "assistant" and waiting and done[-1].role != "assistant":
            _close(done, waiting, early)
            waiting = []
        pieces: list[Piece] = []
        for piece in turn.pieces:
            if isinstance(piece, Call):
                waiting.append(piece)
                seen.add(piece.call_id)
            elif isinstance(piece, Result) and piece.call_id in asked:
                named = _named(piece, asked[piece.call_id])
                if piece.call_id not in seen:
                    early.setdefault(piece.call_id, named)
                    continue
                if piece.call_id in told or piece.call_id in early:
                    continue
                told.add(piece.call_id)
                waiting = [call for call in waiting if call.call_id != piece.call_id]
                pieces.append(named)
                continue
            pieces.append(piece)
        if pieces:
            done.append(Turn(turn.role, tuple(pieces)))
    if waiting:
        _close(done, waiting, early)
    return done


def _close(done: list[Turn], waiting: list[Call], early: dict[str | None, Result]) -> None:
    """Put the missing results right behind the answer that asked for them."""
    place = next((at for at in range(len(done), 0, -1) if done[at - 1].role == "assistant"), len(done))
    results = [
        early.get(call.call_id) or Result(call.call_id, call.tool, NO_RESULT, True) for call in waiting
    ]
    done.insert(place, Turn("user", tuple(results)))


def _named(result: Result, call: Call) -> Result:
    return Result(result.call_id, result.tool or call.tool, result.content, result.failed)
