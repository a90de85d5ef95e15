"""Event (the fact), Draft (the fact and what is known around it) and Record (the fact as stored: stamped and linked).

Events never read a clock, randomness or ambient state: the recorder stamps, the store links.
"""

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, StringConstraints

Digest = Annotated[str, StringConstraints(min_length=64, max_length=64)]
"""HMAC-SHA256 keyed by the ledger's salt, as 64 lower-case hexadecimal digits."""

Grade = Literal["wire", "near-wire", "semantic", "skeleton"]
"""How much a source can prove: the bytes on the wire; all but some bytes; the meaning; only the outline."""

ActorKind = Literal["human", "agent", "policy", "judge", "system"]
"""Who acted."""


class Part(BaseModel):
    """A value inside an event: frozen, without unknown fields, every field documented."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)


class Event(Part):
    """An immutable fact, past tense. A subclass names itself: `class X(Event, name="noun.verbed", version=1)`."""

    TYPE: ClassVar[str]
    """Stored name, our own word, never a Python path."""

    VERSION: ClassVar[int] = 1
    """Schema version; older ones are brought up by `ledger.events.upcasts`."""

    IGNORABLE: ClassVar[bool] = False
    """Whether a reader that does not know this event may show it and go on."""

    def __init_subclass__(cls, name: str, version: int = 1, ignorable: bool = False, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls.TYPE = name
        cls.VERSION = version
        cls.IGNORABLE = ignorable

    @classmethod
    def __pydantic_init_subclass__(cls, **kwargs: Any) -> None:
        """Takes the class keywords that `__init_subclass__` has used already."""


class UnknownEvent(Event, name="unknown", ignorable=True):
    """An ignorable event of a newer version, shown as it is stored."""

    stored_type: str
    """Its name in the store."""

    stored_version: int
    """Its schema version in the store."""

    data: dict[str, Any]
    """Its fields as stored."""


class ContentRef(Part):
    """Points to a blob: what a person, a model or a tool said, or any other content that may have to be erased."""

    digest: Digest
    """Keyed digest of the blob's canonical bytes."""

    size: int
    """Length of these bytes, before compression."""

    kind: Literal["json", "text", "bytes"]
    """`json`: RFC 8785 bytes; `text`: UTF-8; `bytes`: anything else."""


@dataclass(frozen=True, slots=True)
class Actor:
    """Who did it."""

    kind: ActorKind
    """Human, agent, policy, judge or system."""

    id: str | None = None
    """Their name in the source; None when the source does not say."""


@dataclass(frozen=True, slots=True)
class Source:
    """Where an imported record was read."""

    format: str
    """The importer's name."""

    file: str | None = None
    """File as named on import, or None for a live receiver."""

    item: str | None = None
    """Native id of the source record (uuid, ordinal, span id)."""

    line: int | None = None
    """Line number in the file, from 1."""

    rest: str | None = None
    """Digest of a JSON blob with the native fields that no event field carries."""


class Sibling(NamedTuple):
    """A cause inside the same append, whose seq is not known yet: the draft at this index of its session."""

    place: int
    """Its index among them."""


@dataclass(frozen=True, slots=True)
class Draft:
    """A fact and what is known around it, before it has a place in the ledger."""

    event: Event
    """The fact."""

    occurred_at: str | None = None
    """RFC 3339 UTC time given by the source; None when it gives none. Never used to order."""

    actor: Actor | None = None
    """Who did it, where that is known."""

    cause: int | str | Sibling | None = None
    """The record that led to this one: seq in this session, or `SESSION#SEQ`, or a sibling of the same append."""

    correlation: str | None = None
    """Joins what belongs together over sessions: run id, trace id, turn id."""

    agent: str | None = None
    """Name of the agent that acted."""

    depth: int = 0
    """Delegation depth: 0 for the root session."""

    source: Source | None = None
    """Where it was read; None for live records."""

    grade: Grade = "wire"
    """How much the source can prove."""


class Record(NamedTuple):
    """A fact as stored. `hash` covers session, seq, type and every stored byte, `previous` included."""

    session: str
    """The stream it belongs to."""

    seq: int
    """Place in the session, from 1, without holes."""

    position: int
    """Place in the whole ledger, from 1, without holes; 0 until it is committed."""

    event: Event
    """The fact, brought up to the current schema."""

    recorded_at: str
    """RFC 3339 UTC time at which the recorder stamped it."""

    previous: str
    """Hash of the record before it in the session; 64 zeros for the first."""

    hash: str
    """SHA-256 of this record as stored, hexadecimal."""

    occurred_at: str | None = None
    actor: Actor | None = None
    cause: int | str | None = None
    correlation: str | None = None
    agent: str | None = None
    depth: int = 0
    source: Source | None = None
    grade: Grade = "wire"

    @property
    def type(self) -> str:
        """Stored name of the event."""
        if isinstance(self.event, UnknownEvent):
            return self.event.stored_type
        return self.event.TYPE

    @property
    def place(self) -> str:
        """`SESSION#SEQ`, as people write it."""
        return f"{self.session}#{self.seq}"
