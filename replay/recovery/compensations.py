"""What takes effects back: looked up, filled in from the call, run. A command runs without a shell.

Nothing that a trace names is imported or run: functions come from the caller or the user's policy file, commands from
the policy file, or from the loop's own word where the user allows that.
"""

import importlib
import inspect
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from ledger.effects import EffectPolicy
from ledger.effects.loop_policy import load_loop_policy
from ledger.effects.policy import Compensation, is_pointer, value_at
from ledger.errors import ContentMissingError, InputError
from ledger.events.canonical import canonical_json
from ledger.store import EventStore
from replay.conversation import decode_content
from replay.recovery.effects import CallEffect

Tools = Mapping[str, Callable[..., Any]]
"""Functions by the name that compensations give them."""

_LAST_WORDS = 500
_MARKER = "[redacted:"


class Prepared(NamedTuple):
    """A compensation that can be run."""

    how: str
    """It in a few words."""

    run: Callable[[], None]
    """Runs it. Raises whatever goes wrong."""


class CompensationFailedError(Exception):
    """A command ended with another status than 0."""


class Compensator:
    """Finds and prepares compensations."""

    def __init__(
        self,
        tools: Tools | None = None,
        policy: EffectPolicy | None = None,
        *,
        run_recorded: bool = False,
        timeout_s: float = 600,
    ) -> None:
        self.policy = policy
        self._tools = dict(tools or {})
        self._run_recorded = run_recorded
        self._timeout_s = timeout_s

    def prepare(self, store: EventStore, call: CallEffect) -> Prepared | str:
        """The compensation of a call, ready to run; or why there is none."""
        found = call.compensation
        if found is None:
            return "no compensation is registered"
        call_values = {"arguments": _value(store, call.arguments.digest), "result": None}
        if call.result is not None:
            call_values["result"] = _value(store, call.result.digest)
        for pointer in found.needs():
            value = value_at(call_values, pointer)
            if value is None:
                return f"its compensation needs {pointer}, which is not on record"
            if _MARKER.encode() in canonical_json(value):
                return f"its compensation needs {pointer}, of which a secret was taken out"
        if found.command is not None:
            return self._command(found, call, call_values)
        function = self._tools.get(found.tool or "")
        if function is None:
            return f"its compensation is the tool {found.tool!r}, for which no function was given"
        arguments = {name: _filled(value, call_values) for name, value in found.arguments.items()}
        return Prepared(found.how, lambda: _call(function, arguments))

    def _command(self, found: Compensation, call: CallEffect, call_values: dict[str, Any]) -> Prepared | str:
        if not call.by_policy and not self._run_recorded:
            return "its compensation is a command that the loop registered; --run-recorded runs such"
        words = [_word(_filled(word, call_values)) for word in found.command or ()]
        if not words:
            return "its compensation is an empty command"
        return Prepared(found.how, lambda: _run(words, self._timeout_s))


def load_compensator(path: Path | None, *, run_recorded: bool) -> Compensator:
    """The compensator of a user's policy file, with the functions that it names. Raises InputError."""
    if path is None:
        return Compensator(run_recorded=run_recorded)
    policy = load_loop_policy(path)
    folder = str(path.resolve().parent)
    if policy.tools and folder not in sys.path:
        sys.path.insert(0, folder)  # functions may lie beside the policy
    tools = {name: _function(path, place) for name, place in policy.tools.items()}
    return Compensator(tools, policy, run_recorded=run_recorded)


def _function(path: Path, place: str) -> Callable[..., Any]:
    module, _, name = place.partition(":")
    try:
        found = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        raise InputError(
            f"{path}: expected a function as module:function, found {place!r}: {error}"
        ) from error
    if not callable(found):
        raise InputError(f"{path}: {place!r} is no function")
    function: Callable[..., Any] = found
    return function


def _filled(value: Any, call_values: dict[str, Any]) -> Any:
    return value_at(call_values, value) if is_pointer(value) else value


def _word(value: Any) -> str:
    return value if isinstance(value, str) else canonical_json(value).decode()


def _value(store: EventStore, digest: str) -> Any:
    try:
        return decode_content(store.content(digest))
    except ContentMissingError:
        return None


def _call(function: Callable[..., Any], arguments: dict[str, Any]) -> None:
    result = function(**arguments)
    if inspect.iscoroutine(result):
        result.close()
        raise TypeError("expected a function that is not asynchronous")


def _run(words: list[str], timeout_s: float) -> None:
    done = subprocess.run(
        words, stdin=subprocess.DEVNULL, capture_output=True, timeout=timeout_s, check=False
    )
    if done.returncode != 0:
        last = done.stderr.decode("utf-8", "replace").strip()[-_LAST_WORDS:]
        raise CompensationFailedError(f"exit status {done.returncode}: {last}")
