"""/sessions/S/state/SEQ: a session as it stood after any of its records."""

from typing import Annotated, Any

from fastapi import Query

from ledger.cli.terminal import json_text
from ledger.errors import InputError
from replay.conversation import load_message
from webui.contents import pretty
from webui.dependencies import SeqPath, SessionDep, WebDep
from webui.page import Context, Page

_MESSAGES = 20
_ENTRIES = 40
_LONGEST = 240
_WHOLE = 16_000
_LONGEST_NAME = 200
_SECTIONS = (
    "constraints",
    "artifacts",
    "open_calls",
    "open_model_calls",
    "approvals",
    "budget",
    "breakers",
    "usage",
    "modes",
    "tools",
    "files",
    "outside",
    "effects",
    "checkpoints",
    "rollbacks",
    "delegations",
    "abandoned_calls",
    "approvals_decided",
)

page = Page("State", link="/sessions/{session}/state", order=30)


class Entry(Context):
    """One entry of a section."""

    name: str
    """Its name."""
    told: str
    """Its value in short."""
    path: str
    """JSON pointer to it."""


class Section(Context):
    """A part of a state."""

    name: str
    """Its name."""
    entries: list[Entry]
    """Its entries, or the last of them."""
    total: int
    """How many there are."""


class Message(Context):
    """A message of the conversation."""

    index: int
    """Its place, from 0."""
    role: str
    """Who said it."""
    told: str
    """Its beginning."""


class StateContext(Context):
    """What state.html may use."""

    session: str
    """Its id."""
    seq: int
    """The record after which it stood so."""
    head: int
    """Last record of the session."""
    digest: str
    """Digest of the state."""
    about: list[Entry]
    """What ran: harness, agent, model, outcome."""
    sections: list[Section]
    """Everything in force, section by section; empty ones are left out."""
    empty: list[str]
    """Sections that hold nothing."""
    messages: list[Message]
    """A window of the conversation that a model would see."""
    first_message: int
    """Place of the first message of the window."""
    total_messages: int
    """Messages of the conversation."""
    completeness: str
    """How much of the conversation the source shows."""
    path: str
    """JSON pointer of the value that is shown whole; empty for none."""
    value: str
    """That value."""
    is_cut: bool
    """Whether it is longer than what is shown."""

    @property
    def title(self) -> str:
        """Title of the page."""
        return f"State at {self.seq}"


@page.view("/sessions/{session}/state", template="state.html")
def latest(web: WebDep, session: SessionDep) -> StateContext:
    """The state after the last record."""
    return state(web, session, web.ledger.store.head(session).seq)


@page.view("/sessions/{session}/state/{seq}", template="state.html")
def state(
    web: WebDep,
    session: SessionDep,
    seq: SeqPath,
    path: Annotated[str, Query(max_length=1000, description="JSON pointer of a value to show whole.")] = "",
    message: Annotated[
        int | None, Query(ge=0, le=2**40, description="First message to show; the last by default.")
    ] = None,
) -> StateContext:
    """A session as it stood after a record."""
    store = web.ledger.store
    head = store.head(session).seq
    found, digest, mentions = web.states.at(session, seq)
    parts = found.parts()
    first = max(0, len(mentions) - _MESSAGES) if message is None else min(message, max(0, len(mentions) - 1))
    window = [load_message(store, mention) for mention in mentions[first : first + _MESSAGES]]
    messages = [
        Message(index=first + place, role=role_of(value), told=told(value, _LONGEST))
        for place, value in enumerate(window)
    ]
    whole = ""
    if path:
        whole = _value(parts, lambda index: load_message(store, mentions[index]), len(mentions), path)
    sections = [_section(name, parts[name]) for name in _SECTIONS if parts.get(name)]
    return StateContext(
        session=session,
        seq=seq,
        head=head,
        digest=digest,
        about=[
            Entry(name=name.replace("_", " "), told=str(parts[name])[:_LONGEST], path=f"/{name}")
            for name in ("harness", "agent", "model", "cwd", "started_at", "parent", "outcome")
            if parts.get(name) is not None
        ],
        sections=sections,
        empty=[name.replace("_", " ") for name in _SECTIONS if not parts.get(name)],
        messages=messages,
        first_message=first,
        total_messages=len(mentions),
        completeness=str(parts["context_completeness"]),
        path=path,
        value=whole[:_WHOLE],
        is_cut=len(whole) > _WHOLE,
    )


def _section(name: str, entries: dict[str, Any]) -> Section:
    shown = list(entries.items())[-_ENTRIES:]
    return Section(
        name=name.replace("_", " "),
        total=len(entries),
        entries=[Entry(name=key, told=told(value, _LONGEST), path=_path(name, key)) for key, value in shown],
    )


def _path(section: str, key: str) -> str:
    """JSON pointer to an entry; to its section where the name of the entry is too long for an address."""
    if len(key) > _LONGEST_NAME:
        return f"/{section}"
    return f"/{section}/{key.replace('~', '~0').replace('/', '~1')}"


def _value(parts: dict[str, Any], message: Any, messages: int, path: str) -> str:
    """The value that a JSON pointer names, as text. Raises InputError."""
    steps = [step.replace("~1", "/").replace("~0", "~") for step in path.split("/")[1:]]
    value: Any = parts
    try:
        if steps and steps[0] == "context" and "context" not in parts:
            index = int(steps[1])
            if not 0 <= index < messages:
                raise IndexError(index)
            value, steps = message(index), steps[2:]
        for step in steps:
            value = value[int(step)] if isinstance(value, list) else value[step]
    except (KeyError, IndexError, ValueError, TypeError) as error:
        raise InputError(f"parameter 'path': the state has no value at {path[:200]!r}") from error
    return value if isinstance(value, str) else pretty(value)


def role_of(message: Any) -> str:
    """Who said a message."""
    role = message.get("role") or message.get("type") if isinstance(message, dict) else None
    return str(role or "-")[:20]


def told(value: Any, longest: int) -> str:
    """A value in one line: the words of a message, the facts of an entry."""
    if isinstance(value, dict) and isinstance(value.get("content"), str):
        return str(value["content"])[:longest]
    if isinstance(value, dict) and isinstance(value.get("content"), list):
        words = [_block(block, longest) for block in value["content"][:20]]
        return " ".join(words)[:longest]
    if isinstance(value, dict):
        facts = [
            f"{name} {_short(inner, longest)}"
            for name, inner in list(value.items())[:20]
            if inner not in (None, [], {}) and not _is_digest(inner)
        ]
        return ", ".join(facts)[:longest]
    return _short(value, longest)


def _block(block: Any, longest: int) -> str:
    if isinstance(block, dict):
        text = block.get("text") or block.get("thinking")
        if isinstance(text, str):
            return text[:longest]
        if isinstance(block.get("name"), str):
            return f"[calls {block['name']}]"
        inner = block.get("content", block.get("output"))
        if isinstance(inner, str):
            return f"[{block.get('type', 'block')}] {inner[:longest]}"
    return _short(block, longest)


def _short(value: Any, longest: int) -> str:
    return value[:longest] if isinstance(value, str) else json_text(value)[:longest]


def _is_digest(value: Any) -> bool:
    return isinstance(value, str) and len(value) == 64 and value.isalnum()
