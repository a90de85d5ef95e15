"""Tools that run no shell and take a protection away: by their name, by what they set to nothing, by the request that
they send, or by the command that they stand for.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from ledger.audit.controls import TABLES, pattern
from ledger.audit.scripts import Command
from ledger.audit.switching import Off, turned_off
from ledger.effects.words import words_of

_SAID = TABLES["tools"]
_TAKES = frozenset(_SAID["takes"].split())
_CHANGES = frozenset(_SAID["changes"].split())
_STOPS = frozenset(_SAID["stops"].split())
_LOOKS = frozenset(_SAID["looks"].split())
_CLIENTS: Mapping[str, str] = _SAID["clients"]
_PROTECTION = pattern(_SAID["protection"])
_SETTING = pattern(_SAID["setting"], r"(?:^|[._])(?:{})(?:$|[._])")
_PERMISSION = pattern(_SAID["permission"], r"(?:^|[._])(?:{})$")
_SWITCH = pattern(_SAID["switch"], r"(?:^|[._])(?:{})$")
_WEAK = pattern(_SAID["weak"], r"^(?:{})$")
_SERVICE = pattern(_SAID["service"])
_NAMED = pattern(_SAID["named"], r"(?:^|[._])(?:{})$")
_HOLDERS = pattern(_SAID["holders"])
_OF_AGENTS = pattern(_SAID["of_agents"])
_RULES = pattern(_SAID["rules"])
_REPLICAS = re.compile(r"(^|[._])(replicas?|count|size|instances)$")
_METHODS = frozenset({"DELETE", "PUT", "PATCH", "POST"})
_OFF = Off(
    _SAID["said"],
    "high",
    frozenset(),
    (),
    pattern(rf"(?<![a-z])(?:{_SAID['asks']})"),
    None,
    None,
    "",
)
_MOST = 300
_LONGEST = 2000
_DEEPEST = 8


def unprotected(tool: str, arguments: Any) -> Off | None:
    """What a call of a tool takes away."""
    words = [word.lower() for word in words_of(tool)]
    name = "_".join(words)
    fields = list(_fields(arguments))
    verb = _verb(tool)
    is_protection = _PROTECTION.search(name) is not None or (
        _RULES.search(name) is not None and any(_is_of_agents(value) for _, value in fields)
    )
    if is_protection and verb in _TAKES:
        return _OFF
    if verb in _CHANGES and any(_is_weaker(name, key, value, is_protection) for key, value in fields):
        return _OFF
    clients = () if verb in _LOOKS else _as_client(words, fields)
    for command in (*_requests(arguments, fields), *clients):
        if (off := next(turned_off(command), None)) is not None:
            return off
    return None


def stopped_by_tool(tool: str, arguments: Any) -> list[str]:
    """The names of what a tool stops: processes, services, containers."""
    fields = list(_fields(arguments))
    is_scaled = "scale" in words_of(tool.lower()) and any(
        value == 0 and _REPLICAS.search(key) for key, value in fields
    )
    if not (is_scaled or _verb(tool) in _STOPS) or not _SERVICE.search("_".join(words_of(tool)).lower()):
        return []
    named = [value for key, value in fields if _NAMED.search(key) and isinstance(value, str | int)]
    return [str(value) for value in named if value and " " not in str(value)][:20]


def _verb(tool: str) -> str:
    """The first word of a tool's name that says what it does; its server has a name of its own."""
    for part in (tool.rpartition("__")[2], tool):
        for word in words_of(part):
            if word.lower() in _TAKES | _CHANGES | _STOPS | _LOOKS:
                return word.lower()
    return ""


def _is_of_agents(value: Any) -> bool:
    return (
        isinstance(value, str) and value.count(" ") < 4 and _OF_AGENTS.search(value[:100].lower()) is not None
    )


def _is_weaker(name: str, key: str, value: Any, is_protection: bool) -> bool:
    """Whether a setting is one that protects, and is at nothing now, or lets through, and is on."""
    holds = is_protection or _HOLDERS.search(name) is not None
    if value is True:
        return holds and _PERMISSION.search(key) is not None
    is_nothing = value is None or value is False or value == 0 or value in ([], {}, "")
    is_weak = is_nothing or (isinstance(value, str) and _WEAK.match(value) is not None)
    if not is_weak:
        return False
    if holds and _SETTING.search(f"{name}.{key}"):
        return True
    return is_protection and value is not None and value != "" and _SWITCH.search(key) is not None


def _fields(arguments: Any) -> Iterator[tuple[str, Any]]:
    """The fields of arguments with their values, by the words of their names and those of what holds them."""
    waiting: list[tuple[str, Any, int]] = [("", arguments, 0)]
    count = 0
    while waiting and count < _MOST:
        key, value, depth = waiting.pop()
        count += 1
        if isinstance(value, Mapping) and value and depth < _DEEPEST:
            waiting.extend(
                (f"{key}.{_plain(name)}" if key else _plain(name), one, depth + 1)
                for name, one in reversed(list(value.items())[:_MOST])
            )
        elif isinstance(value, list) and value and depth < _DEEPEST:
            waiting.extend((key, one, depth + 1) for one in reversed(value[:_MOST]))
        elif key:
            yield key, value


def _plain(name: Any) -> str:
    return "_".join(words_of(str(name)[:100])).lower()


def _requests(arguments: Any, fields: list[tuple[str, Any]]) -> Iterator[Command]:
    """The request that a tool sends, as the command that would send it."""
    if not isinstance(arguments, Mapping):
        return
    given = {key: value for key, value in fields if isinstance(value, str)}
    method = next((given[key].upper() for key in ("method", "verb", "http_method") if key in given), "")
    address = next((given[key] for key in ("url", "path", "endpoint", "uri", "route") if key in given), "")
    if not method and " " in address:  # "DELETE /repos/…"
        method, _, address = address.partition(" ")
    query = next((given[key] for key in ("query", "mutation") if "mutation" in given.get(key, "")), "")
    if query:
        yield _command(["gh", "api", "graphql", query])
    if method not in _METHODS or not address:
        return
    body = " ".join(f"{key}={_written(value)}" for key, value in fields if value not in (method, address))
    yield _command(["gh", "api", "-X", method, address, "--data", body])


def _as_client(words: list[str], fields: list[tuple[str, Any]]) -> Iterator[Command]:
    """The command of a program that a tool stands for: `cloudtrail_stop_logging` of a server of AWS."""
    client = next((_CLIENTS[word] for word in words if word in _CLIENTS), None)
    if client is None:
        return
    rest = [word for word in words if word not in _CLIENTS and word != "mcp"]
    given = {key: value for key, value in fields if isinstance(value, str)}
    values = [value for value in given.values() if len(value) < _LONGEST]
    if client in ("aws", "gcloud", "az"):
        service = given.get("service") or given.get("service_name") or ""
        operation = "-".join(words_of(given.get("operation") or given.get("action") or "")).lower()
        if service and operation:
            yield _command([client, service.lower(), operation, *values])
        elif len(rest) > 1:
            yield _command([client, rest[0], "-".join(rest[1:]), *values])
    elif rest:
        kinds = [value.lower() for key, value in given.items() if key.endswith("kind")]
        yield _command([client, rest[0], *kinds, *values])


def _command(words: list[str]) -> Command:
    return Command(words, words, "")


def _written(value: Any) -> str:
    return (
        {None: "null", True: "true", False: "false"}.get(value, str(value)[:_LONGEST])
        if _is_plain(value)
        else "[]"
    )


def _is_plain(value: Any) -> bool:
    return value is None or isinstance(value, bool | str | int | float)
