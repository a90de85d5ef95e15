"""Gives a loop what was recorded, in a shape that it can use as it used the original. Calls nobody.

A JSON object comes back as a `View`: a dict whose members are attributes too. Where the loop was given an object of a
model provider's SDK, and the same SDK is loaded in this process, it is given an object of that class again. The record
only chooses among the classes of SDKs that the user's own program has loaded; nothing is imported for it.
"""

import builtins
import inspect
import sys
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

from pydantic import BaseModel

from ledger.errors import InputError
from ledger.events import ContentRef
from ledger.events.canonical import decode_json
from ledger.events.model_call import ModelCallAnswered, ModelCallFailed
from ledger.events.tool_call import ToolCallSettled
from ledger.protocols.responses import put_together
from ledger.store import EventStore

_SDKS = frozenset({"anthropic", "openai", "google", "httpx", "mistralai", "litellm", "cohere"})
_CLIENT_ERROR = "client_error"


class RecordedError(Exception):
    """Raised where the recorded call had raised an error whose class is not at hand here."""

    def __init__(self, kind: str, text: str, status_code: int | None = None) -> None:
        super().__init__(text)
        self.kind = kind
        self.status_code = status_code

    def __str__(self) -> str:
        return f"{self.kind}: {super().__str__()}"


class View(dict[str, Any]):
    """A recorded JSON object: its members are items and attributes, at any depth."""

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(f"the recorded object has no {name!r}, only {', '.join(self)}") from None

    def model_dump(self, **_: Any) -> dict[str, Any]:
        """As pydantic's objects have it."""
        return dict(self)

    def to_dict(self, **_: Any) -> dict[str, Any]:
        """As the SDKs' objects have it."""
        return dict(self)


class Answers:
    """Reads the contents of recorded endings."""

    def __init__(self, store: EventStore) -> None:
        self._store = store

    def value(self, ref: ContentRef | None) -> Any:
        """The text or JSON value that a reference points to; None for none. Raises ContentMissingError."""
        if ref is None:
            return None
        content = self._store.content(ref.digest)
        if ref.kind == "text":
            return content.decode()
        return decode_json(content) if ref.kind == "json" else content

    def tool_result(self, ended: ToolCallSettled, place: str) -> Any:
        """What the tool had returned. Raises what it had raised, as near as it can be had."""
        if ended.outcome == "returned":
            return view(self.value(ended.result))
        if ended.outcome == "failed":
            details = self.value(ended.details)
            text = details.get("message") if isinstance(details, dict) else None
            raise error_of(ended.error or "Exception", text or "")
        raise InputError(
            f"{place}: the recording says {ended.outcome!r} of this tool call, so there is no result to give back;"
            " let the tool run (live), or stop before it"
        )

    def model_answer(self, ended: ModelCallAnswered, protocol: str, place: str) -> Any:
        """What the model function had given: an object, or an iterator of chunks."""
        kind = _sdk_class(ended.returned_type)
        if ended.stream is not None:
            return Chunks(self.value(ended.stream), kind, self._cut(ended))
        if ended.first_byte_ms is not None:
            raise InputError(
                f"{place}: the chunks of this streamed answer were not kept, since a secret lay across them;"
                " it can be shown, but not streamed again"
            )
        envelope = self.value(ended.envelope)
        body = put_together(protocol, self.value(ended.message), envelope)
        return revived(body, kind)

    def model_failure(self, ended: ModelCallFailed) -> BaseException:
        """What the model function had raised."""
        return error_of(ended.error, self.value(ended.detail) or "", ended.status)

    def _cut(self, ended: ModelCallAnswered) -> BaseException | None:
        """The error that had ended a stream."""
        envelope = self.value(ended.envelope)
        error = envelope.get(_CLIENT_ERROR) if isinstance(envelope, dict) else None
        if not isinstance(error, dict):
            return None
        return error_of(str(error.get("type")), str(error.get("message")))


class Chunks:
    """A recorded stream, for `for` and for `async for`."""

    def __init__(
        self, timed: list[list[Any]], kind: type[BaseModel] | None, error: BaseException | None
    ) -> None:
        self._chunks: Iterator[Any] = (revived(decode_json(text), kind) for _, text in timed)
        self._error = error
        self.at_end: Callable[[], None] | None = None
        """Called when all was given."""

    def __iter__(self) -> "Chunks":
        return self

    def __next__(self) -> Any:
        for chunk in self._chunks:
            return chunk
        if self.at_end is not None:
            self.at_end()
        raise self._error or StopIteration

    def close(self) -> None:
        """Nothing is open."""


class AsyncChunks:
    """A recorded stream for a loop that awaits its chunks."""

    def __init__(self, chunks: Iterator[Any], at_end: Callable[[], Awaitable[None]]) -> None:
        self._chunks = chunks
        self._at_end = at_end

    def __aiter__(self) -> "AsyncChunks":
        return self

    async def __anext__(self) -> Any:
        for chunk in self._chunks:
            return chunk
        await self._at_end()
        raise StopAsyncIteration

    async def aclose(self) -> None:
        """Nothing is open."""


def view(value: Any) -> Any:
    """A JSON value with every object in it as a `View`. Any depth."""
    root: list[Any] = [value]
    stack: list[tuple[Any, Any]] = [(root, 0)]
    while stack:
        into, key = stack.pop()
        item = into[key]
        if isinstance(item, dict):
            into[key] = found = View(item)
            stack.extend((found, name) for name in found)
        elif isinstance(item, list):
            into[key] = copy = list(item)
            stack.extend((copy, index) for index in range(len(copy)))
    return root[0]


def revived(body: Any, kind: type[BaseModel] | None) -> Any:
    """The body as an object of a class, as far as it fits; a view otherwise."""
    if kind is None or not isinstance(body, dict):
        return view(body)
    construct = getattr(kind, "construct", None)
    if "openai" in kind.__module__.partition(".")[0] or "anthropic" in kind.__module__.partition(".")[0]:
        # These SDKs build their own answers by `construct`, which takes fields that the class does not know.
        return construct(**body) if callable(construct) else kind.model_validate(body)
    return kind.model_validate(body)


def error_of(kind: str, text: str, status: int | None = None) -> BaseException:
    """An error of a recorded class: a built-in one, or one of a loaded SDK; a RecordedError otherwise."""
    known = getattr(builtins, kind, None)
    if isinstance(known, type) and issubclass(known, Exception):
        try:
            return known(text)
        except TypeError:  # UnicodeDecodeError and its like want more than a text
            return RecordedError(kind, text, status)
    found = _loaded(kind)
    if found is None or not issubclass(found, Exception):
        return RecordedError(kind, text, status)
    # An SDK's error wants the HTTP response, which is not there: it is made without its own constructor.
    error: Exception = found.__new__(found)
    Exception.__init__(error, text)
    for name, value in (("message", text), ("status_code", status), ("body", None), ("response", None)):
        setattr(error, name, value)
    return error


def _sdk_class(name: str | None) -> type[BaseModel] | None:
    found = _loaded(name) if name else None
    return found if found is not None and issubclass(found, BaseModel) else None


def _loaded(name: str) -> type | None:
    """A class of an SDK that this program has loaded already; None for anything else."""
    module_name, _, attribute = name.rpartition(".")
    if module_name.partition(".")[0] not in _SDKS:
        return None
    module = sys.modules.get(module_name)
    found = None if module is None else inspect.getattr_static(module, attribute, None)
    return found if isinstance(found, type) else None
