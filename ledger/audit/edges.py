"""The edges of a loop: each way by which an agent reaches a tool, a server or another agent, from the records.

"Evaluate the node, govern the edge": of each edge who acted, what it may reach and what it reached, what crossed, what
it cost, and what evidence is left. An edge sums up all uses of one way; memory does not grow with the session.
"""

import re
from collections import Counter
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Literal, NamedTuple

from ledger.events.tool_call import EffectClass

Kind = Literal["tool", "mcp", "a2a", "delegation", "handoff"]
"""A tool; one of an MCP server; another's agent, by A2A; an agent of its own session; the next in the same session."""

AGENT_KINDS: tuple[Kind, ...] = ("delegation", "handoff", "a2a")
"""Edges to agents."""

MOST_PLACES = 20
_MOST_NOTES = 50
_SUMS = (
    "uses asked bytes_out bytes_back ms timed model_calls tool_calls handed_on arguments started results implied"
).split()
_MARKER = re.compile(r"\[redacted:([a-z0-9_]{1,40}):([0-9a-f]{24})\]")


class Secret(NamedTuple):
    """A secret that crossed, known by its keyed digest."""

    kind: str
    """Its kind, as redaction says."""

    digest: str
    """The start of its keyed digest: equal for equal secrets of one ledger."""


class Name(NamedTuple):
    """What tells an edge from others."""

    source: str
    """Agent that acts; `main` where nobody named it."""

    kind: Kind
    """By what way."""

    target: str
    """The tool, `server/tool`, or the agent; `?` where nobody named it."""

    def __str__(self) -> str:
        return f"{self.source} -> {self.target} ({self.kind})"


@dataclass
class Edge:
    """All uses of one edge, in one session or over several."""

    name: Name
    """Who reaches what, and how."""
    uses: int = 0
    """How often."""
    places: list[str] = field(default_factory=list)
    """The first uses, as `SESSION#SEQ`."""

    actors: Counter[str] = field(default_factory=Counter)
    """Who acted: kinds of actors."""
    depth: int = 0
    """Deepest delegation at which it was used."""
    decided: Counter[str] = field(default_factory=Counter)
    """Answers to questions before a use: `approved by human`."""
    asked: int = 0
    """Uses before which the loop stopped to ask."""

    may: set[str] | None = None
    """What it may reach, as the record says: for an agent, the tools that were offered to it; None: not known."""
    not_offered: list[str] = field(default_factory=list)
    """The first uses of a tool that no request had offered."""
    is_offer_known: bool = False
    """Whether the record shows what was offered at every use."""
    reached: Counter[EffectClass] = field(default_factory=Counter)
    """Uses, or for an agent its own tool calls, by class of effect."""
    used: set[str] = field(default_factory=set)
    """For an agent: the tools that it used; those of a server as `server/tool`."""
    targets: set[str] = field(default_factory=set)
    """What it was done on, where the record says it without a content: paths, hosts, tables."""
    handles: set[str] = field(default_factory=set)
    """Credentials used, by name."""

    bytes_out: int = 0
    """What crossed there: arguments, or the message handed over."""
    bytes_back: int = 0
    """What crossed back."""
    largest: int = 0
    """The largest single content that crossed."""
    contents: Counter[str] = field(default_factory=Counter)
    """Contents that crossed, by kind: json, text, bytes."""
    secrets_out: Counter[Secret] = field(default_factory=Counter)
    """Secrets that crossed there; empty where contents were not looked at."""
    secrets_back: Counter[Secret] = field(default_factory=Counter)
    """Secrets that crossed back."""

    ms: int = 0
    """Milliseconds, as far as the record tells them."""
    timed: int = 0
    """Uses that tell them."""
    at_once: int = 0
    """Most uses open at the same time."""
    burst: int = 0
    """Most uses between two requests to a model."""
    cost_usd: Decimal | None = None
    """Cost of the agent behind it, and of those behind that one."""
    tokens: int | None = None
    """Tokens of these."""
    model_calls: int = 0
    """Model calls of these."""
    tool_calls: int = 0
    """Tool calls of these."""
    handed_on: int = 0
    """How often the agent behind it handed work on itself."""
    budget_usd: Decimal | None = None
    """What one use may cost, where the record says it; the least."""

    arguments: int = 0
    """Uses whose arguments, or handed message, are kept."""
    started: int = 0
    """Uses whose start was recorded before they acted."""
    outcomes: Counter[str] = field(default_factory=Counter)
    """How uses ended."""
    results: int = 0
    """Uses whose result is kept."""
    children: list[str] = field(default_factory=list)
    """Sessions behind it that are on record."""
    implied: int = 0
    """Uses that show only by the session behind them: nobody recorded the handing over."""

    @property
    def is_to_agent(self) -> bool:
        """Whether another agent is at its other end."""
        return self.name.kind in AGENT_KINDS

    @property
    def open(self) -> int:
        """Uses whose end nobody told. After a hand-off nothing comes back."""
        return 0 if self.name.kind == "handoff" else max(0, self.uses - self.implied - self.outcomes.total())

    def note(self, notes: set[str], text: str | None) -> None:
        """Keep one of a limited number of words about it."""
        if text and len(notes) < _MOST_NOTES:
            notes.add(text[:200])

    def tell(self, told: list[str], sign: int = 1) -> None:
        """What was told of a use: that it started, that somebody was asked, or an answer. -1 takes it back."""
        for what in told:
            match what:
                case "started":
                    self.started += sign
                case "asked":
                    self.asked += sign
                case _:
                    self.decided[what] += sign

    def missing(self) -> list[str]:
        """What evidence of it is not there."""
        told = []
        if self.implied:
            told.append(
                f"{self.implied} of {self.uses} hand-overs are not on record: only the session behind is"
            )
        if self.open:
            told.append(f"{self.open} of {self.uses} uses have no end")
        if unknown := self.outcomes["unknown"]:
            told.append(f"{unknown} of {self.uses} ended, and nobody knows how")
        if self.arguments < self.uses - self.implied:
            what = "what was handed over" if self.is_to_agent else "the arguments"
            told.append(f"{what} of {self.uses - self.implied - self.arguments} uses is not kept")
        returned = self.outcomes["returned"]
        if self.results < returned and not (self.is_to_agent and len(self.children) >= returned):
            told.append(f"{returned - self.results} of {returned} results are not kept")
        if self.name.kind == "a2a" and not self.children:
            told.append("what the other agent did is on no record here")
        elif self.name.kind == "delegation" and len(self.children) < self.uses:
            told.append(
                f"{self.uses - len(self.children)} of {self.uses} sessions behind it are not on record"
            )
        if self.asked > self.decided.total():
            told.append(f"{self.asked - self.decided.total()} questions before a use have no answer")
        return told

    def add(self, other: "Edge") -> None:
        """Take in the same edge of another session."""
        for name in _SUMS:
            setattr(self, name, getattr(self, name) + getattr(other, name))
        for name in ("depth", "largest", "at_once", "burst"):
            setattr(self, name, max(getattr(self, name), getattr(other, name)))
        for name in "actors decided reached contents secrets_out secrets_back outcomes".split():
            getattr(self, name).update(getattr(other, name))
        for name in ("used", "targets", "handles"):
            for text in getattr(other, name):
                self.note(getattr(self, name), text)
        for name in ("places", "not_offered", "children"):
            ours: list[str] = getattr(self, name)
            room = None if name == "children" else max(0, MOST_PLACES - len(ours))
            ours.extend(getattr(other, name)[:room])
        self.may = other.may if self.may is None else self.may | (other.may or set())
        self.is_offer_known = self.is_offer_known and other.is_offer_known
        self.cost_usd = _sum(self.cost_usd, other.cost_usd)
        self.tokens = (
            None if self.tokens is other.tokens is None else (self.tokens or 0) + (other.tokens or 0)
        )
        budgets = [one.budget_usd for one in (self, other) if one.budget_usd is not None]
        self.budget_usd = min(budgets, default=None)

    def exceeding(self) -> list[str]:
        """Where what was reached is more than the record says it may."""
        told = []
        if self.not_offered:
            told.append("a tool was used that no request had offered")
        if self.is_to_agent and self.may is not None:
            may = self.may
            more = [
                one for one in sorted(self.used) if may.isdisjoint((*spellings(one), one.rpartition("/")[2]))
            ]
            if more:
                told.append(f"the agent behind it used what was not offered to it: {', '.join(more[:5])}")
        budget = None if self.budget_usd is None else self.budget_usd * self.uses
        if budget is not None and self.cost_usd is not None and self.cost_usd > budget:
            told.append(f"it cost {self.cost_usd} USD of a budget of {self.budget_usd} USD a use")
        return told

    def as_json(self) -> dict[str, Any]:
        """The documented form: the five answers."""
        return {
            "from": self.name.source,
            "kind": self.name.kind,
            "to": self.name.target,
            "uses": self.uses,
            "places": self.places,
            "acted": {
                "agent": self.name.source,
                "actors": _plain(self.actors),
                "depth": self.depth,
                "asked": self.asked,
                "decided": _plain(self.decided),
            },
            "reach": {
                "may": None if self.may is None else sorted(self.may),
                "offered": None if not self.is_offer_known else not self.not_offered,
                "not_offered": self.not_offered,
                "reached": _plain(self.reached),
                "used": sorted(self.used),
                "targets": sorted(self.targets),
                "credentials": sorted(self.handles),
                "exceeding": self.exceeding(),
            },
            "crossed": {
                "bytes_out": self.bytes_out,
                "bytes_back": self.bytes_back,
                "largest": self.largest,
                "contents": _plain(self.contents),
                "secrets": [
                    {
                        "kind": secret.kind,
                        "digest": secret.digest,
                        "out": self.secrets_out[secret],
                        "back": self.secrets_back[secret],
                    }
                    for secret in sorted((+self.secrets_out).keys() | (+self.secrets_back).keys())
                ],
            },
            "cost": {
                "usd": None if self.cost_usd is None else float(self.cost_usd),
                "tokens": self.tokens,
                "ms": self.ms if self.timed else None,
                "model_calls": self.model_calls,
                "tool_calls": self.tool_calls,
                "at_once": self.at_once,
                "burst": self.burst,
                "handed_on": self.handed_on,
                "budget_usd": None if self.budget_usd is None else float(self.budget_usd),
            },
            "evidence": {
                "arguments": self.arguments,
                "started": self.started,
                "outcomes": _plain(self.outcomes),
                "results": self.results,
                "sessions": self.children,
                "missing": self.missing(),
            },
        }


def _plain(counts: Counter[Any]) -> dict[str, int]:
    return {name: count for name, count in sorted(counts.items()) if count > 0}


def _sum(left: Decimal | None, right: Decimal | None) -> Decimal | None:
    return right if left is None else left if right is None else left + right


def secrets_in(text: str) -> list[Secret]:
    """Secrets that were taken out of a text, each once."""
    if "[redacted:" not in text:
        return []
    found = (Secret(kind, digest[:16]) for kind, digest in _MARKER.findall(text))
    return list(dict.fromkeys(one for one in found if one.kind != "foreign_marker"))


def tool_edge(tool: str, server: str | None) -> tuple[Kind, str]:
    """Kind and target of the edge to a tool."""
    if tool.startswith("mcp__") and tool.count("__") > 1:
        named, _, own = tool.removeprefix("mcp__").partition("__")
        return "mcp", f"{server or named}/{own}"
    return ("tool", tool) if server is None else ("mcp", f"{server}/{tool}")


def offered_names(tools: Any) -> set[str] | None:
    """Names in a list of tool schemas of any protocol; None where it cannot be read."""
    if not isinstance(tools, list):
        return None
    names: set[str] = set()
    for tool in tools:
        if not isinstance(tool, dict) or tool.get("type") == "mcp":  # whose tools the provider looks up
            return None
        declared = tool.get("functionDeclarations") or tool.get("function_declarations") or [tool]
        for one in declared if isinstance(declared, list) else ():
            inner = one.get("function", one) if isinstance(one, dict) else None
            if not isinstance(inner, dict):
                return None
            names.add(str(inner.get("name") or inner.get("type") or next(iter(inner), "")))
    return names


def spellings(tool: str) -> set[str]:
    """All names by which a tool of the record may be meant: `server/tool` is `mcp__server__tool`, too."""
    server, slash, own = tool.partition("/")
    return {tool, f"mcp__{server}__{own}"} if slash else {tool}
