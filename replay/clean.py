"""Takes secrets out of a replayed request exactly as they were taken out of the recorded one, part by part."""

import hashlib
from collections import OrderedDict
from collections.abc import Sequence
from typing import Any

from ledger.protocols.plain import fingerprint
from ledger.redaction import Redactor
from replay.matching import ModelRequest
from replay.matching.request import messages_name

_KEPT = 20_000
_WHOLE = ("system", "instructions", "systemInstruction", "tools")


class CleanRequests:
    """Cleans requests. A message that came before, as most of a conversation does, costs one hash. Not for threads."""

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor
        self._clean: OrderedDict[bytes, None] = OrderedDict()

    def request(self, request: ModelRequest) -> ModelRequest:
        """The request without secrets; its headers are for recognising the harness only, and stay as they are."""
        name = messages_name(request.protocol)
        body: dict[str, Any] = {}
        rest: dict[str, Any] = {}
        for field, value in request.body.items():
            if field == name and isinstance(value, list):
                body[field] = [self._value(item) for item in value]
            elif field == "model" and isinstance(value, str):
                body[field] = self._redactor.text(value)[0]
            elif field == name or field in _WHOLE:
                body[field] = self._value(value)
            else:
                rest[field] = value
        return request._replace(body=body | self._redactor.value(rest)[0])

    def around(self, method: str, target: str, headers: Sequence[tuple[str, str]]) -> dict[str, Any]:
        """Method, target and headers without their secrets."""
        return {
            "method": method,
            "target": self._redactor.text(target)[0],
            "headers": [list(pair) for pair in self._redactor.headers(list(headers))[0]],
        }

    def raw(self, body: bytes) -> bytes:
        """Bytes without their secrets."""
        return self._redactor.body(body)[0]

    def _value(self, value: Any) -> Any:
        mark = fingerprint(value)
        key = hashlib.sha256(mark).digest() if mark is not None else None
        if key is not None and key in self._clean:
            self._clean.move_to_end(key)
            return value
        clean, found = self._redactor.value(value)
        if not found and key is not None:
            self._clean[key] = None
            if len(self._clean) > _KEPT:
                self._clean.popitem(last=False)
        return clean
