"""What hooks of agent frameworks share: a framework that may be absent, agents that take turns in one session."""

import importlib
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from ledger.capture.hooks._session import HookSession
from ledger.errors import InputError
from ledger.events.canonical import decode_json
from ledger.events.delegation import DelegationStarted
from ledger.protocols.plain import plain


def framework_class(module: str, name: str, distribution: str) -> Any:
    """A class of a framework, to be a hook's base; without the framework one that cannot be instantiated."""
    try:
        return getattr(importlib.import_module(module), name)
    except ImportError as missing:
        reason = str(missing)

    class Absent:
        def __init__(self, *_: object, **__: object) -> None:
            raise InputError(f"this hook needs {distribution}, which cannot be imported here: {reason}")

    return Absent


def version_of(distribution: str) -> str | None:
    """Version of a framework, where it is installed."""
    try:
        return version(distribution)
    except PackageNotFoundError:
        return None


def arguments_of(given: Any) -> Any:
    """Arguments as JSON, where they are."""
    if not isinstance(given, str):
        return plain(given) if given is not None else {}
    try:
        return decode_json(given)
    except ValueError:
        return given


def acts_as(session: HookSession, agent: str | None) -> None:
    """From here on records are those of this agent: agents of one conversation take turns in one session."""
    if agent is not None:
        session.journal.agent = agent


def handed_over(
    session: HookSession, to_agent: str | None, *, call_id: str | None = None, payload: Any = None
) -> None:
    """One agent hands the conversation to another, which goes on in the same session."""
    journal = session.journal
    with journal.intent("handoff"):
        event = DelegationStarted(
            delegation_id=f"handoff:{call_id or journal.new_id()}",
            to_agent=to_agent,
            how="handoff",
            call_id=call_id,
            payload=None if payload is None else journal.keep.json(plain(payload), "handoff"),
        )
        journal.append([journal.draft(event)])
