"""What a tool output of Codex says about its call: exit code, time, refusal, interruption, files patched."""

import re
from typing import Any, Literal, NamedTuple

from ledger.events.canonical import decode_json, spelled

_HEADER = re.compile(
    r"\A(?:Chunk ID: [^\n]*\n)?(?:Exit code: (?P<exit>-?\d+)\n)?Wall time: (?P<wall>[\d.]+) seconds\n"
    r"(?:Process exited with code (?P<code>-?\d+)\n)?"
)
_REFUSED = re.compile(
    r'\A(?:exec_command failed: CreateProcess \{ message: "Rejected\((?P<why>.*)\)" \}\s*\Z'
    r"|(?P<user>(?:exec command|command|shell|patch|apply_patch|exec_command)(?: was)? rejected by"
    r" (?:the )?user\b.*)"
    r"|(?P<policy>approval policy is \w+; reject.*|patch rejected: .*))",
    re.DOTALL | re.IGNORECASE,
)
_ABORTED = re.compile(r"\A(?:aborted|aborted by user(?: after [\d.]+s)?)\s*\Z")
_PATCHED = re.compile(
    r"^\*\*\* (?P<what>Add|Update|Delete) File: (?P<path>.+?)\s*$|^\*\*\* Move to: (?P<to>.+?)\s*$", re.M
)
_OPERATIONS = {"add": "create", "update": "edit", "delete": "delete"}
_LONGEST_JSON = 64 * 1024 * 1024


class Verdict(NamedTuple):
    """What an output says."""

    outcome: Literal["returned", "failed", "denied", "unknown"]
    """How the call ended."""

    error: str | None = None
    """Kind of failure, or reason of denial."""

    exit_code: int | None = None
    """Exit code of the process."""

    duration_ms: int | None = None
    """How long it ran."""

    denied_by: Literal["human", "policy", "unknown"] | None = None
    """Who refused it, as the text says."""


def verdict_of(output: Any) -> Verdict:
    """Reads an output in all the forms that Codex versions write."""
    if isinstance(output, dict):
        text, success = output.get("content"), output.get("success")
        verdict = verdict_of(text) if isinstance(text, str) else Verdict("returned")
        return (
            verdict._replace(outcome="failed")
            if success is False and verdict.outcome == "returned"
            else verdict
        )
    if not isinstance(output, str):
        return Verdict("returned")
    if structured := _structured(output):
        return structured
    header = _HEADER.match(output)
    if header is not None:
        code = header.group("exit") or header.group("code")
        return _by_exit(None if code is None else int(code), float(header.group("wall") or 0))
    refused = _REFUSED.match(output)
    if refused is not None:
        why = (refused.group("why") or refused.group("user") or refused.group("policy")).strip('\\"')
        by: Literal["human", "policy", "unknown"] = "unknown"
        if "rejected by user" in why.lower() and "approval settings" not in why.lower():
            by = "human"
        elif refused.group("policy") or "approval settings" in why.lower() or "policy" in why.lower():
            by = "policy"
        return Verdict("denied", why[:300], denied_by=by)
    if _ABORTED.match(output):
        return Verdict("unknown", "aborted")
    if output.startswith(
        ("exec_command failed:", "apply_patch verification failed:", "failed to parse function arguments")
    ):
        return Verdict("failed", output.partition(":")[0])
    return Verdict("returned")


def _structured(output: str) -> Verdict | None:
    """The older form: a JSON text with output and metadata."""
    if not output.startswith("{") or '"metadata"' not in output or len(output) > _LONGEST_JSON:
        return None
    try:
        value = decode_json(output)
    except ValueError:
        return None
    metadata = value.get("metadata") if isinstance(value, dict) else None
    if not isinstance(metadata, dict) or not isinstance(metadata.get("exit_code"), int):
        return None
    seconds = metadata.get("duration_seconds")
    return _by_exit(metadata["exit_code"], seconds if isinstance(seconds, int | float) else None)


def _by_exit(code: int | None, seconds: float | None) -> Verdict:
    duration = round(seconds * 1000) if seconds is not None and 0 <= seconds < 10**9 else None
    if code:
        return Verdict("failed", f"exit code {code}", code, duration)
    return Verdict("returned", None, code, duration)


class Patched(NamedTuple):
    """A file that a patch touches."""

    path: str
    """The file."""

    operation: str
    """`create`, `edit`, `delete` or `move`."""


def patch_of(tool: str, arguments: Any) -> str | None:
    """The patch that a call applies: by its own tool, or by the shell command of that name."""
    if tool == "apply_patch":
        if isinstance(arguments, dict):
            arguments = arguments.get("input") or arguments.get("patch")
        return arguments if isinstance(arguments, str) else None
    command = arguments.get("command") if isinstance(arguments, dict) else None
    if (
        isinstance(command, list)
        and len(command) == 2
        and command[0] == "apply_patch"
        and isinstance(command[1], str)
    ):
        return command[1]
    return None


def patched_files(patch: str) -> list[Patched]:
    """Files that a patch names."""
    files: list[Patched] = []
    for found in _PATCHED.finditer(patch):
        if found.group("to") and files:
            files.append(Patched(found.group("to"), "move"))
        elif found.group("path"):
            files.append(Patched(found.group("path"), _OPERATIONS[found.group("what").lower()]))
    return files


def changed_files(changes: Any) -> list[Patched]:
    """Files of a native change list: an object by path, or a list with `path` and `kind`."""
    files: list[Patched] = []
    if isinstance(changes, dict):
        for path, change in changes.items():
            change = change if isinstance(change, dict) else {}
            kind = change.get("type") or next((name for name in _OPERATIONS if name in change), "update")
            files.append(Patched(path, _OPERATIONS.get(kind, "edit") if isinstance(kind, str) else "edit"))
            inner = change.get("update")
            target = change.get("move_path") or (inner.get("move_path") if isinstance(inner, dict) else None)
            if isinstance(target, str):
                files.append(Patched(target, "move"))
    elif isinstance(changes, list):
        for change in changes:
            if isinstance(change, dict) and isinstance(change.get("path"), str):
                files.append(Patched(change["path"], _OPERATIONS.get(spelled(change.get("kind")), "edit")))
    return files
