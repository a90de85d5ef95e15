"""Budgets of a run: charged from the records that are written anyway; one that is used up holds who used it."""

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from decimal import Decimal
from typing import Any, NamedTuple

from ledger.effects.classes import classify
from ledger.effects.loop_policy import UNITS, Budget, LoopPolicy, Unit
from ledger.effects.policy import EffectPolicy
from ledger.errors import LedgerError
from ledger.events import Event, Record
from ledger.events.canonical import decode_json
from ledger.events.delegation import DelegationStarted
from ledger.events.model_call import ModelCallAnswered, ModelCallRequested
from ledger.events.policy import BreakerTripped, BudgetCharged, BudgetExceeded, Held, Released
from ledger.events.session import SessionStarted
from ledger.events.tool_call import ToolCallRequested
from ledger.recorder import Recorder
from ledger.store import EventStore

_MARKS = (Decimal("0.5"), Decimal("0.8"))
"""Shares of a budget whose use is told; each single charge is not."""

_BEFORE: frozenset[Unit] = frozenset({"calls", "fan_out", "depth", "effects"})
"""Counted when something is about to happen: the last one within the limit may; of the others, nothing after it."""

_MOST_RECALLED = 10_000
_MILLION = Decimal(1_000_000)
_NAMES = (
    ModelCallRequested.TYPE,
    ModelCallAnswered.TYPE,
    ToolCallRequested.TYPE,
    DelegationStarted.TYPE,
    Held.TYPE,
    Released.TYPE,
)


class Whose(NamedTuple):
    """Whose doings they are."""

    session: str
    """The session."""

    agent: str | None
    """The agent of the session."""

    depth: int
    """How deep it is."""

    edge: str | None = None
    """`FROM -> TO` of the delegation that began it."""


class _Account:
    """What was taken from one budget by one of those who have their own."""

    def __init__(self) -> None:
        self.spent: dict[Unit, Decimal] = {}
        self.told: dict[Unit, Decimal] = {}
        self.marks: dict[Unit, int] = {}
        self.base: dict[Unit, Decimal] = {}
        """What had been spent when the limit was given once more, by a release."""


def edge_of(giver: str | None, taker: str | None) -> str:
    """The edge from an agent to the one that it hands over to."""
    return f"{giver or 'unnamed'} -> {taker or 'unnamed'}"


def meter_of(
    policy: EffectPolicy | None, monotonic: Callable[[], float], recorder: Recorder
) -> "Meter | None":
    """The meter of a run, where its policy has budgets."""
    if not isinstance(policy, LoopPolicy) or not policy.budgets:
        return None
    return Meter(policy, monotonic, recorder.ids, recorder.store.content)


class Meter:
    """The budgets of a run: shared by its sessions and threads.

    `content` gives the arguments of a call whose effect class nobody declared: then it is inferred from them.
    """

    NAMES = _NAMES
    """Events that it charges for."""

    def __init__(
        self,
        policy: LoopPolicy,
        monotonic: Callable[[], float],
        new_id: Callable[[], str],
        content: Callable[[str], bytes] | None = None,
    ) -> None:
        self._policy = policy
        self._content = content
        self._given: dict[str, Budget] = {}
        self._monotonic = monotonic
        self._new_id = new_id
        self._lock = threading.Lock()
        self._accounts: dict[tuple[int, str], _Account] = {}
        self._began: dict[str, float] = {}
        self._holds: dict[str, tuple[str, tuple[int, str], Unit]] = {}

    def limit(self, session: str, usd: Decimal) -> None:
        """A session was handed work with so much to spend, for itself and those that it hands over to."""
        self._given[session] = Budget(name="delegation", usd=usd)

    def charge(self, place: Whose, records: Iterable[Record], *, delegated: int = 0) -> list[Event]:
        """Charge for records of a session that were written now; gives what is to be told.

        `delegated` is how many agents it was seen to hand over to, where no event tells of that.
        """
        began = self._began.setdefault(place.session, self._monotonic())
        seconds = Decimal(str(round(self._monotonic() - began, 3)))
        amounts: dict[Unit, Decimal] = {"seconds": seconds, "depth": Decimal(place.depth)}
        if delegated:
            amounts["fan_out"] = Decimal(delegated)
        for record in records:
            if record.session == place.session:
                for unit, amount in self._amounts(record.event):
                    amounts[unit] = amounts.get(unit, Decimal(0)) + amount
        told: list[Event] = []
        with self._lock:
            for number, budget, whose in self._those_of(place):
                account = self._take((number, whose), amounts)
                for unit, limit in budget.limits().items():
                    told += self._tell(budget, (number, whose), account, place.session, unit, limit)
        return told

    def recall(self, place: Whose, records: Iterable[Record]) -> None:
        """Charge for what an earlier process wrote in the session; that was told then."""
        for record in records:
            if isinstance(record.event, Released):
                self.released([record.event.hold_id])
            with self._lock:
                for number, budget, whose in self._those_of(place):
                    self._take((number, whose), dict(self._amounts(record.event)))
                    if isinstance(record.event, Held) and record.event.breaker is not None:
                        name, _, unit = record.event.breaker.rpartition("/")
                        if budget.name == name and unit in UNITS:
                            hold = (place.session, (number, whose), unit)
                            self._holds[record.event.hold_id] = hold

    def recall_below(self, store: EventStore, session: str, agent: str | None) -> None:
        """Charge for what an earlier process wrote in the sessions that a session delegated to."""
        if all(budget.per == "session" for budget in self._policy.budgets):
            return
        agents = {session: agent}
        for name in sorted(store.recorder.find_sessions(f"{session}.", _MOST_RECALLED)):
            past = store.read(name, names=(SessionStarted.TYPE, *_NAMES))
            first = next(past, None)
            if first is None or not isinstance(first.event, SessionStarted):
                continue
            agents[name] = first.event.agent
            edge = edge_of(agents.get(first.event.parent or ""), first.event.agent)
            self.recall(Whose(name, first.event.agent, first.depth, edge), past)

    def _those_of(self, place: Whose) -> Iterator[tuple[int, Budget, str]]:
        """The budgets that somebody uses, each with whose account it is."""
        for number, budget in enumerate(self._policy.budgets):
            whose = _whose(budget, place)
            if whose is not None:
                yield number, budget, whose
        for session, budget in self._given.items():
            if place.session == session or place.session.startswith(f"{session}."):
                yield -1, budget, session

    def released(self, hold_ids: Iterable[str]) -> None:
        """Holds of ours were released: what was used up is given once more."""
        with self._lock:
            for hold_id in hold_ids:
                found = self._holds.pop(hold_id, None)
                if found is not None:
                    _, key, unit = found
                    account = self._accounts.setdefault(key, _Account())
                    account.base[unit] = account.spent.get(unit, Decimal(0))

    def _take(self, key: tuple[int, str], amounts: Mapping[Unit, Decimal]) -> _Account:
        account = self._accounts.setdefault(key, _Account())
        for unit, amount in amounts.items():
            before = account.spent.get(unit, Decimal(0))
            # Time and depth are read, not added up.
            account.spent[unit] = max(before, amount) if unit in ("seconds", "depth") else before + amount
        return account

    def _tell(
        self,
        budget: Budget,
        key: tuple[int, str],
        account: _Account,
        session: str,
        unit: Unit,
        limit: Decimal,
    ) -> list[Event]:
        spent = account.spent.get(unit, Decimal(0))
        allowed = account.base.get(unit, Decimal(0)) + limit
        told: list[Event] = []
        marks = account.marks.get(unit, 0)
        while marks < len(_MARKS) and spent >= limit * _MARKS[marks]:
            marks += 1
        if marks > account.marks.get(unit, 0):
            account.marks[unit] = marks
            amount = spent - account.told.get(unit, Decimal(0))
            account.told[unit] = spent
            left = max(allowed - spent, Decimal(0))
            told.append(BudgetCharged(budget=budget.name, amount=amount, unit=unit, remaining=left))
        is_over = spent > allowed if unit in _BEFORE else spent >= allowed
        if is_over and (session, key, unit) not in self._holds.values():
            hold_id = self._new_id()
            self._holds[hold_id] = (session, key, unit)
            name, reached = f"{budget.name}/{unit}", f"{spent} {unit}"
            scope = f"{budget.per} {key[1]}".strip()
            told += [
                BudgetExceeded(budget=budget.name, limit=allowed, reached=spent, unit=unit),
                BreakerTripped(breaker=name, limit=f"{allowed} {unit}", reached=reached, scope=scope),
                Held(hold_id=hold_id, breaker=name),
            ]
        return told

    def _amounts(self, event: Event) -> Iterable[tuple[Unit, Decimal]]:
        if isinstance(event, ModelCallRequested):
            yield "calls", Decimal(1)
        elif isinstance(event, DelegationStarted):
            yield "fan_out", Decimal(1)
        elif isinstance(event, ToolCallRequested):
            if self._is_effect(event):
                yield "effects", Decimal(1)
        elif isinstance(event, ModelCallAnswered):
            yield from self._of_answer(event)

    def _is_effect(self, event: ToolCallRequested) -> bool:
        """Whether a call may change something. Of one that nobody knows more of than its name, that is read."""
        effect_class = event.effect_class
        if effect_class is None:
            if all(budget.effects is None for budget in self._policy.budgets):
                return False
            effect_class = classify(event.tool, self._arguments(event), policy=self._policy).effect_class
        return effect_class != "read"

    def _arguments(self, event: ToolCallRequested) -> Any:
        if self._content is None or event.arguments.kind != "json":
            return None
        try:
            return decode_json(self._content(event.arguments.digest))
        except (LedgerError, ValueError):
            return None

    def _of_answer(self, event: ModelCallAnswered) -> Iterable[tuple[Unit, Decimal]]:
        usage = event.usage
        cost = event.cost_usd
        if usage is not None:
            counts = [
                usage.input_tokens or 0,
                usage.output_tokens or 0,
                usage.cache_read_tokens or 0,
                usage.cache_write_tokens or 0,
            ]
            yield "tokens", Decimal(sum(counts))
            price = self._policy.price_of(event.model) if cost is None else None
            if price is not None:
                prices = (price.input, price.output, price.cache_read, price.cache_write)
                cost = (
                    sum((count * each for count, each in zip(counts, prices, strict=True)), Decimal(0))
                    / _MILLION
                )
        if cost is not None:
            yield "usd", cost


def _whose(budget: Budget, place: Whose) -> str | None:
    match budget.per:
        case "session":
            return place.session
        case "run":
            return ""
        case "agent":
            return place.agent or "(unnamed)"
        case "edge":
            return place.edge
