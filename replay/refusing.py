"""The refusal of a replay, in the words of each protocol, so that a client ends its turn instead of guessing."""

from typing import Any

from ledger.events.canonical import canonical_json
from replay.divergence import Divergence


def refusal_body(protocol: str, divergence: Divergence) -> bytes:
    """An error body of a protocol that says that, where and why the replay stopped."""
    where = divergence.session if divergence.seq is None else f"{divergence.session}#{divergence.seq}"
    message = f"replay stopped: {divergence.kind} at {where}"
    if divergence.pointer is not None:
        message += f", {divergence.pointer}"
    if divergence.cause:
        message += f" ({divergence.cause})"
    error: dict[str, Any]
    match protocol:
        case "anthropic.messages":
            error = {"type": "error", "error": {"type": "invalid_request_error", "message": message}}
        case "gemini":
            error = {"error": {"code": 400, "message": message, "status": "INVALID_ARGUMENT"}}
        case _:
            error = {
                "error": {
                    "message": message,
                    "type": "invalid_request_error",
                    "param": None,
                    "code": "replay_diverged",
                }
            }
    return canonical_json(error)
