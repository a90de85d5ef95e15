"""What the tests of recorded loops share: a scripted model, and looks at what was recorded."""

from typing import Any, TypeVar

from ledger.events import Event, Record
from ledger.events.canonical import decode_json
from ledger.home import Ledger
from ledger.store import verify

Kind = TypeVar("Kind", bound=Event)


def chat_answer(text: str, **fields: Any) -> dict[str, Any]:
    """A chat completion as a provider sends it."""
    usage = {"prompt_tokens": 10, "completion_tokens": 3, "prompt_tokens_details": {"cached_tokens": 4}}
    message = {"role": "assistant", "content": text}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    return {"id": "resp-1", "model": "scripted-1.1", "choices": [choice], "usage": usage, **fields}


def scripted(**request: Any) -> dict[str, Any]:
    """A model that says how many messages it saw."""
    return chat_answer(f"saw {len(request['messages'])}")


def records(ledger: Ledger, session: str) -> list[Record]:
    """All records of a session, of a ledger that verifies."""
    assert verify(ledger.store).problems == []
    return list(ledger.store.read(session))


def types(ledger: Ledger, session: str) -> list[str]:
    """The event names of a session in order."""
    return [record.type for record in records(ledger, session)]


def only(ledger: Ledger, session: str, kind: type[Kind]) -> Kind:
    """The one event of a kind."""
    (found,) = (record.event for record in records(ledger, session) if isinstance(record.event, kind))
    return found


def value(ledger: Ledger, reference: Any) -> Any:
    """The content that a reference points to."""
    content = ledger.store.content(reference.digest)
    return content.decode() if reference.kind == "text" else decode_json(content)
