"""The Model Context Protocol on standard input and output: a server that offers tools, one JSON message a line.

Speaks the versions that begin with `initialize`; a client of a later one falls back to it when `server/discover` is not
known. Calls run in threads, so that a call can be cancelled, and others answered, while one runs.
"""

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import PackageNotFoundError, version
from typing import Any, BinaryIO, NamedTuple

from ledger.cli.terminal import json_text, visible
from ledger.errors import LedgerError
from ledger.events.canonical import decode_json

VERSIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
"""Versions of the protocol, the latest last: an unknown one is answered with that."""

_LONGEST_LINE = 1 << 20
_CALLS_AT_A_TIME = 4
_MOST_WAITING = 32
_PARSE_ERROR, _NO_REQUEST, _NO_METHOD, _WRONG_PARAMETERS, _BUSY = -32700, -32600, -32601, -32602, -32000


class Call:
    """A call of a tool that runs."""

    def __init__(self, tell: Callable[[float], None] | None) -> None:
        self.on_progress = tell
        """Told the percent done; None: nobody asked."""
        self._ended_by: Callable[[], None] | None = None
        self._is_cancelled = False
        self._lock = threading.Lock()

    def ends_by(self, end: Callable[[], None]) -> None:
        """What to do when the client no longer wants the answer."""
        with self._lock:
            self._ended_by = end
            is_late = self._is_cancelled
        if is_late:
            end()

    def cancel(self) -> None:
        """The client no longer wants it."""
        with self._lock:
            self._is_cancelled = True
            end = self._ended_by
        if end is not None:
            end()

    @property
    def is_cancelled(self) -> bool:
        """Whether nobody waits for the answer."""
        return self._is_cancelled


class Tool(NamedTuple):
    """What a client may call."""

    name: str
    """Its name."""
    doc: str
    """What it does, for the model that reads it."""
    parameters: dict[str, Any]
    """JSON schema of each argument, by name."""
    required: tuple[str, ...]
    """Arguments that must be given."""
    run: Callable[[dict[str, Any], Call], str]
    """Does it; gives the text of the answer. Raises LedgerError."""

    def described(self) -> dict[str, Any]:
        """As `tools/list` says it."""
        return {
            "name": self.name,
            "description": self.doc,
            "inputSchema": {
                "type": "object",
                "properties": self.parameters,
                "required": list(self.required),
                "additionalProperties": False,
            },
            "annotations": {"readOnlyHint": True, "openWorldHint": False},
        }


class ToolServer:
    """A server of tools for one client."""

    def __init__(self, tools: Sequence[Tool], instructions: str, given: BinaryIO, answers: BinaryIO) -> None:
        self._tools = {tool.name: tool for tool in tools}
        self._instructions = instructions
        self._given = given
        self._answers = answers
        self._writing = threading.Lock()
        self._calls: dict[str | int, Call] = {}
        self._threads = ThreadPoolExecutor(_CALLS_AT_A_TIME)

    def serve(self) -> None:
        """Answer until the client closes its end."""
        try:
            while line := self._given.readline(_LONGEST_LINE):
                if line.endswith(b"\n") or len(line) < _LONGEST_LINE:
                    self._take(line)
                else:
                    self._skip_line()
                    self._refuse(None, _NO_REQUEST, f"a message is longer than {_LONGEST_LINE} bytes")
        finally:
            for call in list(self._calls.values()):
                call.cancel()
            self._threads.shutdown(wait=True)

    def _skip_line(self) -> None:
        while (rest := self._given.readline(_LONGEST_LINE)) and not rest.endswith(b"\n"):
            pass

    def _take(self, line: bytes) -> None:
        if not line.strip():
            return
        try:
            message = decode_json(line)
        except ValueError:
            self._refuse(None, _PARSE_ERROR, "a line is no JSON")
            return
        if not isinstance(message, dict) or message.get("jsonrpc") != "2.0":
            self._refuse(None, _NO_REQUEST, "expected a JSON-RPC 2.0 message")
            return
        method, parameters = message.get("method"), message.get("params", {})
        if not isinstance(method, str):
            return  # an answer: nothing was asked
        parameters = parameters if isinstance(parameters, dict) else {}
        if "id" not in message:
            if method == "notifications/cancelled":
                self._cancel(parameters.get("requestId"))
            return
        key = message["id"]
        if isinstance(key, bool) or not isinstance(key, str | int):
            self._refuse(None, _NO_REQUEST, "expected an id that is a text or an integer")
            return
        self._request(key, method, parameters)

    def _request(self, key: str | int, method: str, parameters: dict[str, Any]) -> None:
        match method:
            case "initialize":
                self._answer(key, self._introduction(parameters.get("protocolVersion")))
            case "ping":
                self._answer(key, {})
            case "tools/list":
                self._answer(key, {"tools": [tool.described() for tool in self._tools.values()]})
            case "tools/call":
                self._call(key, parameters)
            case _:
                self._refuse(key, _NO_METHOD, f"there is no method {visible(method[:100])}")

    def _introduction(self, asked: Any) -> dict[str, Any]:
        return {
            "protocolVersion": asked if asked in VERSIONS else VERSIONS[-1],
            "capabilities": {"tools": {"listChanged": False}},
            "serverInfo": {"name": "loopledger", "version": _own_version()},
            "instructions": self._instructions,
        }

    def _call(self, key: str | int, parameters: dict[str, Any]) -> None:
        name, given = parameters.get("name"), parameters.get("arguments") or {}
        tool = self._tools.get(name) if isinstance(name, str) else None
        if tool is None:
            self._refuse(key, _WRONG_PARAMETERS, f"expected one of the tools {', '.join(self._tools)}")
            return
        if len(self._calls) >= _MOST_WAITING or key in self._calls:
            self._refuse(key, _BUSY, "too many calls wait already, or one of this id")
            return
        meta = parameters.get("_meta")
        token = meta.get("progressToken") if isinstance(meta, dict) else None
        call = Call(None if token is None else lambda percent: self._tell_progress(token, percent))
        self._calls[key] = call
        self._threads.submit(self._run, key, tool, given, call)

    def _run(self, key: str | int, tool: Tool, given: Any, call: Call) -> None:
        try:
            text, is_error = tool.run(_checked(tool, given), call), False
        except LedgerError as error:
            text, is_error = visible(str(error)), True
        finally:
            self._calls.pop(key, None)
        if not call.is_cancelled:
            self._answer(key, {"content": [{"type": "text", "text": text}], "isError": is_error})

    def _cancel(self, key: Any) -> None:
        if isinstance(key, str | int) and (call := self._calls.get(key)) is not None:
            call.cancel()

    def _tell_progress(self, token: Any, percent: float) -> None:
        told = {"progressToken": token, "progress": percent, "total": 100}
        self._write({"jsonrpc": "2.0", "method": "notifications/progress", "params": told})

    def _answer(self, key: str | int, result: dict[str, Any]) -> None:
        self._write({"jsonrpc": "2.0", "id": key, "result": result})

    def _refuse(self, key: str | int | None, code: int, message: str) -> None:
        self._write({"jsonrpc": "2.0", "id": key, "error": {"code": code, "message": message}})

    def _write(self, message: dict[str, Any]) -> None:
        with self._writing:
            self._answers.write(json_text(message).encode() + b"\n")
            self._answers.flush()


class ArgumentsError(LedgerError):
    """A tool was called with other arguments than it takes."""


def _checked(tool: Tool, given: Any) -> dict[str, Any]:
    """The arguments, if they are of the kinds that the tool says."""
    kinds: dict[str, type] = {"string": str, "object": dict}
    if not isinstance(given, dict):
        raise ArgumentsError("expected an object of arguments")
    for name in tool.required:
        if name not in given:
            raise ArgumentsError(f"the tool {tool.name} needs the argument {name}")
    for name, value in given.items():
        if name not in tool.parameters:
            raise ArgumentsError(
                f"expected one of {', '.join(tool.parameters) or 'no arguments'}, found {name!r:.100}"
            )
        if not isinstance(value, kinds[tool.parameters[name]["type"]]):
            raise ArgumentsError(f"the argument {name} must be a {tool.parameters[name]['type']}")
    return given


def _own_version() -> str:
    try:
        return version("loopledger")
    except PackageNotFoundError:
        return "0"
