"""Plants hostile texts in every text of every event, so that each page has to show them."""

import json
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel

from ledger.events import Actor, ContentRef, Draft, Event, Source
from ledger.events.catalog import EVENTS
from ledger.home import Ledger

CORPUS: dict[str, str] = json.loads(Path(__file__).with_name("corpus.json").read_text(encoding="ascii"))
"""Name -> text."""

SESSION = "hostile/<b>&\"'%2F..{{7*7}}"
"""Id of the session that holds them all."""

_NAMES = {"parent", "origin", "branch", "by_session", "witnesses", "about", "session"}
"""Fields that name sessions or records: a text there would only be an unknown id."""

_LONGEST = 6000


def plant(ledger: Ledger, events: Sequence[type[Event]] = EVENTS, session: str = SESSION) -> int:
    """Append, for each text, one event of every type; give how many."""
    keeper = ledger.recorder.keeper()
    written = 0
    for name, text in CORPUS.items():
        as_json = keeper.json({"role": "user", "content": [{"type": "text", "text": text}], text[:80]: text})
        as_text = keeper.text(text)
        drafts = []
        for number, kind in enumerate(events):
            made = _made(kind, text[:_LONGEST], as_json if number % 2 else as_text)
            assert isinstance(made, Event)
            source = Source(format="hostile", file=text[:300], item=name)
            actor = Actor("agent", text[:300])
            drafts.append(Draft(made, actor=actor, agent=text[:300], source=source, grade="skeleton"))
        written += len(ledger.recorder.append(session, drafts, keeper))
    return written


def _made(model: type[BaseModel], text: str, content: ContentRef) -> BaseModel:
    """A model whose texts are all this text."""
    if model is ContentRef:
        return content
    fields = {}
    for name, field in model.model_fields.items():
        annotation: Any = field.annotation
        if field.metadata and annotation is str:
            annotation = Annotated[str, *field.metadata]
        value = _value(name, annotation, text, content)
        if value is not None:
            fields[name] = value
    return model(**fields)


def _value(name: str, annotation: Any, text: str, content: ContentRef) -> Any:
    origin, inner = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return "ab" * 32  # a digest
    if origin in (Union, UnionType):
        options = [option for option in inner if option is not type(None)]
        is_optional = len(options) < len(inner)
        if is_optional and (get_origin(options[0]) is Annotated or name in _NAMES or options[0] is int):
            return None  # a context node that is not there, an unknown session, a seq beyond the end
        return _value(name, options[0], text, content)
    if origin is Literal:
        return inner[0]
    if origin is tuple:
        return () if name in _NAMES else (_value(name, inner[0], text, content),)
    if origin is dict or annotation is Any:
        return {"text": text}
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return _made(annotation, text, content)
    simple: dict[Any, Any] = {
        str: SESSION if name in _NAMES else text,
        int: 1,
        bool: False,
        Decimal: Decimal(1),
    }
    return simple[annotation]
