"""/sessions/S/state/SEQ: a session as it stood after any of its records."""

from typing import Annotated, Any

from fastapi import HTTPException, Query

from ledger.cli.terminal import json_text
from ledger.store import EventStore
from replay.conversation import load_message
from webui.contents import pretty
from webui.dependencies import SeqPath, SessionDep, WebDep
from webui.evidence import told_of
from webui.fitting import fit, fitting, weight, weight_in_address
from webui.page import Context, Page
from webui.visible import cut
from webui.windows import SeqText

_MESSAGES = 20
_ENTRIES = 40
_LONGEST = 240
_WHOLE = 16_000
_LONGEST_NAME = 200
_MOST_OF_SECTIONS, _MOST_OF_VALUE = 22_000, 14_000  # bytes of a page
_ROW = 90  # bytes of a row of a table, without what it tells
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
def latest(
    web: WebDep,
    session: SessionDep,
    at: Annotated[SeqText, Query(description="A seq; empty: that of the last record.")] = "",
) -> StateContext:
    """The state after the last record, or after one that a form names."""
    return state(web, session, int(at) if at else web.ledger.store.head(session).seq)


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
    found, digest, said = web.states.at(session, seq)
    parts = found.parts()
    first = max(0, len(said) - _MESSAGES) if message is None else min(message, max(0, len(said) - 1))
    window = [load_message(store, mention) for mention in said.window(first, _MESSAGES)]
    messages = [
        Message(index=first + place, role=role_of(value), told=fit(told(value, _LONGEST), 2 * _LONGEST))
        for place, value in enumerate(window)
    ]
    whole = ""
    if path:
        whole = _value(parts, lambda index: load_message(store, said.window(index, 1)[0]), len(said), path)
    value = fit(whole[:_WHOLE], _MOST_OF_VALUE)
    sections = _fitting(
        [_section(store, name, parts[name]) for name in _SECTIONS if parts.get(name)], bool(path)
    )
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
        total_messages=len(said),
        completeness=str(parts["context_completeness"]),
        path=path,
        value=value,
        is_cut=len(whole) > len(value),
    )


def _fitting(sections: list[Section], beside_value: bool) -> list[Section]:
    """The sections with as many of their last entries as a page holds."""
    lasts = [section.entries[::-1] for section in sections]
    most = _MOST_OF_SECTIONS - _MOST_OF_VALUE if beside_value else _MOST_OF_SECTIONS
    counts = fitting(lasts, _weight, most)
    return [
        section.model_copy(update={"entries": entries[:count][::-1]})
        for section, entries, count in zip(sections, lasts, counts, strict=True)
    ]


def _weight(entry: Entry) -> int:
    return _ROW + weight(cut(entry.name, 60)) + weight(entry.told) + weight_in_address(entry.path)


def _section(store: EventStore, name: str, entries: dict[str, Any]) -> Section:
    shown = list(entries.items())[-_ENTRIES:]
    return Section(
        name=name.replace("_", " "),
        total=len(entries),
        entries=[
            Entry(
                name=_called(key, value), told=fit(_entry(store, value), 2 * _LONGEST), path=_path(name, key)
            )
            for key, value in shown
        ],
    )


def _called(key: str, value: Any) -> str:
    """An entry by what people call it: a question by its tool, a checkpoint by its label."""
    known = isinstance(value, dict) and (
        value.get("label") or (value.get("tool") if "status" in value else None)
    )
    return f"{known} ({key[:8]})" if isinstance(known, str) else key


def _entry(store: EventStore, value: Any) -> str:
    """What an entry says: the words of a rule come before its facts."""
    facts = told(value, _LONGEST)
    if not (isinstance(value, dict) and "modality" in value and _is_digest(value.get("text"))):
        return facts
    return f"“{told_of(store, value['text'], _LONGEST)}” {facts}"


def _path(section: str, key: str) -> str:
    """JSON pointer to an entry; to its section where the name of the entry is too long for an address."""
    if len(key) > _LONGEST_NAME:
        return f"/{section}"
    return f"/{section}/{key.replace('~', '~0').replace('/', '~1')}"


def _value(parts: dict[str, Any], message: Any, messages: int, path: str) -> str:
    """The value that a JSON pointer names, as text. Raises HTTPException."""
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
        raise HTTPException(404, f"Parameter 'path': the state has no value at {path[:200]!r}.") from error
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
    if value is None or value == []:
        return "-"
    return value[:longest] if isinstance(value, str) else json_text(value)[:longest]


def _is_digest(value: Any) -> bool:
    return isinstance(value, str) and len(value) == 64 and value.isalnum()
