"""One run behind the proxy: a session with a keeper of its own. Used by the writer's thread alone."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any, Literal
from urllib.parse import urlsplit

import orjson

from ledger.capture.gates.holds import Holds
from ledger.capture.gates.meter import Meter, Whose, edge_of, meter_of
from ledger.capture.gates.pinning import PURPOSES, Pins
from ledger.capture.proxy.holding import AnswerGate
from ledger.capture.proxy.writer import Job
from ledger.effects.loop_policy import LoopPolicy
from ledger.events import Actor, Draft, Event, Record
from ledger.events.record import ActorKind, Grade
from ledger.events.session import SessionEnded, SessionResumed, SessionStarted
from ledger.protocols.drafting import Place, short_word
from ledger.protocols.recognition import protocol_of
from ledger.protocols.wire import Client, HttpExchange
from ledger.protocols.wire_calls import Sent, WireCalls
from ledger.recorder import Keeper, Recorder

Outcome = Literal["completed", "failed", "aborted", "cancelled", "unknown"]
"""How a session ended."""


@dataclass(frozen=True)
class About:
    """What is known of a run before its first request, by who starts the program that makes it."""

    harness: str
    """Program that runs the loop."""

    cwd: str
    """Its working directory."""

    environment: dict[str, Any]
    """Its surroundings, as plain data."""


class Drafts(list[Draft]):
    """What a job made, and the record that led to it."""

    def __init__(self, drafts: list[Draft], cause: int | None = None) -> None:
        super().__init__(drafts if cause is None else [replace(draft, cause=cause) for draft in drafts])


class Run:
    """The session of a run."""

    def __init__(
        self,
        recorder: Recorder,
        name: str,
        monotonic: Callable[[], float],
        policy: LoopPolicy | None = None,
    ) -> None:
        self._recorder = recorder
        self._monotonic = monotonic
        self.name = name
        """Id of the run, and of its session."""
        self.began = monotonic()
        """Where its clock starts."""
        self.about: About | None = None
        """What was known before its first request."""
        self.holds = Holds(recorder.store, name)
        """Whether somebody holds the run."""
        self.holds.is_watched = True
        self.answers = AnswerGate(recorder, name, policy) if policy is not None and policy.approvals else None
        """Holds answers that contain calls which need a person's yes."""
        self.pins = Pins.of(policy)
        """Puts rules back into requests in which the model could not see them."""
        self._meter = meter_of(policy, monotonic, recorder)
        self._agents: set[str] = set()
        self._is_open = False
        self._agent: str | None = None
        self._depth = 0
        self._fresh()

    def _fresh(self) -> None:
        self.keep: Keeper = self._recorder.keeper()
        self.calls = WireCalls(self)

    def now_us(self) -> int:
        """Microseconds since the session began or went on."""
        return round((self._monotonic() - self.began) * 1_000_000)

    def speaks(self, client: Client) -> None:
        """Whose drafts come next."""
        self._agent = client.agent
        self._depth = 1 if client.is_sub_agent else 0

    def opening(self, program: str, version: str | None, model: Any) -> list[Draft]:
        """What comes before the first exchange; nothing before others."""
        if self._is_open:
            return []
        event: Event
        about = self.about
        around = None if about is None else self.keep.json(about.environment, "environment")
        if self._recorder.store.head(self.name).seq:
            event = SessionResumed(how="recording proxy", environment=around)
        else:
            event = SessionStarted(
                harness=program if about is None else about.harness,
                harness_version=version,
                name=self.name,
                model=self.word(model, "model"),
                cwd=None if about is None else self.keep.scalar(about.cwd, "cwd"),
                environment=around,
            )
        told = [event, *(self.pins.declared(self.keep) if self.pins else ())]
        return [Draft(one, actor=Actor("system"), correlation=self.name) for one in told]

    def in_sight(self, exchange: HttpExchange, key: str, sent: Sent) -> tuple[bytes, list[Draft]] | None:
        """A request as it may leave, and what is to be told of it; None when it may leave as it is."""
        protocol = protocol_of(urlsplit(exchange.url).path, sent.body)
        if self.pins is None or protocol is None or not isinstance(sent.body, dict):
            return None
        if sent.client.purpose not in PURPOSES:
            return None
        sight = self.pins.look(protocol, sent.body)
        if sight is None:
            return None
        told = self.pins.events(sight, self.keep, self._recorder.ids(), key)
        self.holds.wrote(told)
        drafts = [self.draft(Place(key), event) for event in told]
        return orjson.dumps(sight.request) if sight.pinned else sent.raw, drafts

    def ending(self, reason: str, outcome: Outcome = "unknown") -> list[Draft]:
        """The session's end; a proxy alone cannot see how."""
        if not self._is_open:
            return []
        self._is_open = False
        event = SessionEnded(outcome=outcome, reason=reason)
        return [Draft(event, actor=Actor("system"), correlation=self.name)]

    def draft(
        self,
        place: Place,
        event: Event,
        actor: ActorKind = "system",
        *,
        rest: Any = None,
        grade: Grade | None = None,
    ) -> Draft:
        """A draft of what is on the wire now."""
        return Draft(
            event,
            actor=Actor(actor, self._agent if actor == "agent" else None),
            correlation=self.name,
            agent=self._agent,
            depth=self._depth,
            grade=grade or "wire",
        )

    def word(self, value: Any, where: str = "") -> str | None:
        """A short text that an event carries itself, or None."""
        return short_word(self.keep, value, where)

    def write(self, jobs: list[Job]) -> None:
        """Write a group of jobs in one append. One that cannot be drafted costs no other."""
        drafts: list[Draft] = []
        places: list[tuple[Job, int]] = []
        is_torn = False
        for job in jobs:
            try:
                made = job.work()
            except Exception as error:  # noqa: BLE001 - hostile bytes of one exchange
                is_torn = True
                job.written.set_exception(error)
                continue
            assert isinstance(made, list)
            places.append((job, len(drafts)))
            drafts.extend(made)
        try:
            records = self._recorder.append_many({self.name: drafts}, self.keep) if drafts else []
        except BaseException:
            self._fresh()  # what was staged belonged to this append
            raise
        if records:
            self._watch(records)
        if is_torn:
            self._fresh()
        self._is_open = self._is_open or any(
            isinstance(draft.event, SessionStarted | SessionResumed) for draft in drafts
        )
        ends = [*(start for _, start in places[1:]), len(drafts)]
        for (job, start), end in zip(places, ends, strict=True):
            job.written.set_result(records[start:end])

    def _watch(self, records: list[Record]) -> None:
        """Hear of holds, and charge budgets; one that is used up holds the run before its next request."""
        is_first = self.holds.last_seq == 0
        self.holds.saw(records[0].seq, records[-1].seq)
        if self._meter is None:
            return
        told: list[tuple[Whose, Event]] = []
        if is_first and records[0].seq > 1:
            past = self._recorder.store.read(self.name, upto=records[0].seq - 1, names=Meter.NAMES)
            for place, group in self._by_agent(past):
                self._is_new(place)
                self._meter.recall(place, group)
        self._meter.released(self.holds.released)
        self.holds.released.clear()
        for place, group in self._by_agent(records):
            if self._is_new(place):
                giver = Whose(self.name, None, 0)
                told += [(giver, event) for event in self._meter.charge(giver, [], delegated=1)]
            told += [(place, event) for event in self._meter.charge(place, group)]
        if told:
            drafts = [
                Draft(
                    event, actor=Actor("system"), correlation=self.name, agent=place.agent, depth=place.depth
                )
                for place, event in told
            ]
            self.holds.wrote(event for _, event in told)
            more = self._recorder.append_many({self.name: drafts}, self.keep)
            self.holds.saw(more[0].seq, more[-1].seq)

    def _by_agent(self, records: Iterable[Record]) -> Iterator[tuple[Whose, list[Record]]]:
        """Records by whose doings they are, as far as the client says."""
        for (agent, depth), group in groupby(records, lambda record: (record.agent, record.depth)):
            edge = edge_of(None, agent) if depth else None
            yield Whose(self.name, agent, depth, edge), list(group)

    def _is_new(self, place: Whose) -> bool:
        """Whether it is an agent that work was handed to, and that was not seen before."""
        if not place.depth or (place.agent or "") in self._agents:
            return False
        self._agents.add(place.agent or "")
        return True
