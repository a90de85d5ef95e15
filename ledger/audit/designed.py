"""The graph that somebody designed, beside the one that ran: a small YAML file of the edges that there may be.

    edges:
      - from: main
        to: clerk
        kind: delegation          # tool, mcp, a2a, delegation, handoff; any of them where it is left out
        may: [read, write]        # the classes of effects that may be reached over it
        tools: [search, "file_*"] # the tools that the agent behind it may use
        at_once: 3                # most uses open at the same time
        uses: 20                  # most uses in one run
        cost_usd: 0.50            # most that the agent behind it may cost in one run
        secrets: false            # whether a secret may cross

Names may hold `*` and `?`. The first edge of the file that fits counts. What is not said is not limited.
"""

from collections import OrderedDict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from ledger.audit.detector import Detector, Given
from ledger.audit.discovery import digest_of
from ledger.audit.edge_fold import READS, Crossing, EdgeFold
from ledger.audit.edges import AGENT_KINDS, Edge, Kind, Name, spellings
from ledger.audit.finding import Found
from ledger.effects.yaml_file import read_yaml
from ledger.events import Record
from ledger.events.canonical import canonical_json
from ledger.events.delegation import DelegationStarted
from ledger.events.model_call import ModelCallRequested
from ledger.events.tool_call import EffectClass, ToolCallRequested, ToolCallSettled

DETECTOR = "designed_edge"
"""Name of the detector that is made of a design."""

_MOST_WAITING = 1000


class DesignedEdge(BaseModel):
    """One edge that there may be."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", use_attribute_docstrings=True, populate_by_name=True
    )

    source: str = Field(default="*", alias="from")
    """Agent that acts."""

    target: str = Field(alias="to")
    """Tool, `server/tool`, or agent."""

    kind: Kind | None = None
    """By what way; None: any."""

    may: tuple[EffectClass, ...] | None = None
    """Classes of effects that may be reached over it; None: all."""

    tools: tuple[str, ...] | None = None
    """Tools that the agent behind it may use; None: all."""

    at_once: int | None = Field(default=None, ge=1)
    """Most uses open at the same time."""

    uses: int | None = Field(default=None, ge=0)
    """Most uses in one run."""

    cost_usd: Decimal | None = Field(default=None, ge=0)
    """Most that the agent behind it may cost in one run."""

    secrets: bool | None = None
    """Whether a secret may cross; None is as true."""

    def __str__(self) -> str:
        return f"{self.source} -> {self.target} ({self.kind or 'any'})"

    def fits(self, name: Name) -> bool:
        """Whether it is about an edge."""
        return (
            self.kind in (None, name.kind)
            and fnmatchcase(name.source, self.source)
            and fnmatchcase(name.target, self.target)
        )

    def _may_use(self, tool: str) -> bool:
        """Whether the agent behind it may use a tool, however the design spells that of a server."""
        return any(fnmatchcase(name, one) for name in spellings(tool) for one in self.tools or ())

    def exceeded(self, edge: Edge) -> list[str]:
        """What an edge of one run did beyond it."""
        told = []
        reached = sorted(one for one, count in edge.reached.items() if count > 0)
        if self.may is not None and (beyond := [one for one in reached if one not in self.may]):
            told.append(f"reached {', '.join(beyond)}; may reach {', '.join(self.may) or 'nothing'}")
        if self.tools is not None:
            more = sorted(tool for tool in edge.used if not self._may_use(tool))
            if more:
                told.append(f"the agent behind it used {', '.join(more[:5])}, which it may not")
        if self.at_once is not None and edge.at_once > self.at_once:
            told.append(f"{edge.at_once} uses were open at once; at most {self.at_once} may be")
        if self.uses is not None and edge.uses > self.uses:
            told.append(f"used {edge.uses} times; at most {self.uses} are allowed")
        if self.cost_usd is not None and edge.cost_usd is not None and edge.cost_usd > self.cost_usd:
            told.append(f"cost {edge.cost_usd} USD; at most {self.cost_usd} are allowed")
        if self.secrets is False and +(edge.secrets_out + edge.secrets_back):
            told.append("a secret crossed")
        return told


class Design(BaseModel):
    """The whole graph."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    edges: tuple[DesignedEdge, ...]
    """The edges that there may be."""

    def edge_for(self, name: Name) -> DesignedEdge | None:
        """The edge of the design that is about one that ran."""
        return next((one for one in self.edges if one.fits(name)), None)

    def is_turned(self, name: Name) -> bool:
        """Whether an edge between agents that is not designed is designed the other way round."""
        other = Name(name.target, name.kind, name.source)
        return name.kind in AGENT_KINDS and self.edge_for(other) is not None


def load_design(path: Path) -> Design:
    """Read a design. Raises InputError that names the line, what was expected and what was found."""
    return read_yaml(Design, path)


@dataclass
class Difference:
    """The designed graph against the one that ran."""

    undesigned: dict[Name, list[str]] = field(default_factory=dict)
    """Edges that ran and are not designed, with the first places of their use."""

    turned: set[Name] = field(default_factory=set)
    """Those of them that are designed the other way round."""

    unused: list[DesignedEdge] = field(default_factory=list)
    """Edges that are designed and never ran."""

    exceeding: list[tuple[Name, list[str], str]] = field(default_factory=list)
    """Edges that did more than they may: places, and what."""

    @property
    def is_broken(self) -> bool:
        """Whether something ran that the design does not allow."""
        return bool(self.undesigned or self.exceeding)

    def as_json(self) -> dict[str, Any]:
        """The documented form."""
        return {
            "undesigned": [
                {
                    "from": name.source,
                    "kind": name.kind,
                    "to": name.target,
                    "places": places,
                    "turned": name in self.turned,
                }
                for name, places in self.undesigned.items()
            ],
            "unused": [{"from": one.source, "kind": one.kind, "to": one.target} for one in self.unused],
            "exceeding": [
                {"from": name.source, "kind": name.kind, "to": name.target, "places": places, "what": what}
                for name, places, what in self.exceeding
            ],
        }


def difference(design: Design, runs: Iterable[Iterable[Edge]]) -> Difference:
    """What differs, over the edges of some runs: limits are for one run each."""
    found, used = Difference(), set()
    for edges in runs:
        for edge in edges:
            designed = design.edge_for(edge.name)
            if designed is None:
                places = found.undesigned.setdefault(edge.name, [])
                if design.is_turned(edge.name):
                    found.turned.add(edge.name)
                places.extend(edge.places[: max(0, 5 - len(places))])
                continue
            used.add(designed)
            found.exceeding += [(edge.name, edge.places[:5], what) for what in designed.exceeded(edge)]
    found.unused = [one for one in design.edges if one not in used]
    return found


# -- as a detector ------------------------------------------------------------------------------------------


class Watch:
    """One session against a design, use by use."""

    def __init__(self, given: Given, design: Design) -> None:
        self._design = design
        self._fold = EdgeFold(given.session, given.reader)
        self._told: set[tuple[str, Name]] = set()
        self._waiting: OrderedDict[str, tuple[int, Crossing]] = OrderedDict()

    def end(self) -> Iterator[Found]:
        """Calls that nothing more was told of."""
        yield from self._all()

    def take(self, record: Record) -> Iterator[Found]:
        """One more record. A tool call is judged when it ends, or the next model call begins: it may yet turn out to
        be the handing over to an agent, which is another edge.
        """
        event = record.event
        crossing = self._fold.take(record)
        match event:
            case ToolCallRequested() if crossing is not None:
                self._waiting[event.call_id] = record.seq, crossing
                if len(self._waiting) > _MOST_WAITING:
                    yield from self._judged(*self._waiting.popitem(last=False)[1])
            case ToolCallSettled() if event.call_id in self._waiting:
                yield from self._judged(*self._waiting.pop(event.call_id))
            case ModelCallRequested():
                yield from self._all()
            case DelegationStarted() if crossing is not None:
                self._waiting.pop(event.call_id or "", None)
                yield from self._judged(record.seq, crossing)
            case _:
                pass

    def _all(self) -> Iterator[Found]:
        while self._waiting:
            yield from self._judged(*self._waiting.popitem(last=False)[1])

    def _judged(self, seq: int, crossing: Crossing) -> Iterator[Found]:
        edge = crossing.edge
        designed = self._design.edge_for(edge.name)
        if designed is None:
            turned = "; it has one the other way round" if self._design.is_turned(edge.name) else ""
            told = f"{edge.name} ran, and the design has no such edge{turned}"
            yield from self._once("undesigned", edge, seq, told)
            return
        what = [("secret", "a secret crossed")] if designed.secrets is False and crossing.secrets else []
        if designed.may is not None and crossing.reached is not None and crossing.reached not in designed.may:
            what.append(("capability", f"reached {crossing.reached}; may reach {', '.join(designed.may)}"))
        if designed.at_once is not None and edge.at_once > designed.at_once:
            what.append(("at_once", f"more than {designed.at_once} uses were open at once"))
        if designed.uses is not None and edge.uses > designed.uses:
            what.append(("uses", f"was used more than {designed.uses} times"))
        for part, text in what:
            yield from self._once(part, edge, seq, f"{edge.name}: {text}")

    def _once(self, part: str, edge: Edge, seq: int, message: str) -> Iterator[Found]:
        if (part, edge.name) not in self._told:
            self._told.add((part, edge.name))
            yield Found(seq, message, part=part, key=f"{part} {edge.name}")


def design_detector(design: Design) -> Detector:
    """The detector of a design, for `audit`; it runs as all others do, live ones too."""
    text = canonical_json(design.model_dump(mode="json", by_alias=True)).decode()
    return Detector(
        DETECTOR,
        "Edge that is not designed, or does more than it may",
        "high",
        "What nobody designed, nobody has thought through: who may use it, what it reaches, what it costs.",
        "What an agent behind an edge does in its own session; costs: `edges --designed` shows these for whole runs.",
        tuple(event.TYPE for event in READS),
        '"Evaluate the node, govern the edge": fleets of loops need the graph that was meant.',
        "trajectory",
        False,
        digest_of(text),
        "the design",
        start=lambda given: Watch(given, design),
        is_own=True,
    )
